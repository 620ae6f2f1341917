"""What members ask of a group and what they are told, as plain values without a wire version."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from functools import partial
from typing import NamedTuple, TypeVar

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.waiting import Later

#: The generation of those who are in none.
NO_GENERATION = -1
#: The member id of those who have none yet.
NO_MEMBER_ID = ""
#: by what a filter finds a state, where that is not its name in small letters
_FILTER_WORDS = {"NotReady": "not_ready"}

AnswerT = TypeVar("AnswerT")


@attrs.frozen
class GroupProtocol:
    """One way of sharing the work that a member can follow, and what it says about itself."""

    name: str
    metadata: bytes


@attrs.frozen
class Join:
    """A member wants to take part in the next generation."""

    group_id: str
    member_id: str
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    group_instance_id: str | None = None
    #: new members must come back with the id that they are given (JoinGroup 4 and later)
    must_know_member_id: bool = True
    #: a returning leader can be told to leave the assignment alone (JoinGroup 9)
    can_skip_assignment: bool = True
    reason: str = ""


@attrs.frozen
class JoinedMember:
    """What the leader is told about each member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@attrs.frozen
class Joined:
    """The generation that a member is in, or why it is in none; only the leader sees `members`."""

    error_code: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = NO_MEMBER_ID
    can_skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@attrs.frozen
class Sync:
    """A member wants its share; the leader brings the shares of all, `assignments` by member id."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: dict[str, bytes] = attrs.field(factory=dict[str, bytes])


@attrs.frozen
class Synced:
    """A member's share of the work, or why it has none."""

    error_code: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


@attrs.frozen
class MemberIdentity:
    """Who is meant: a member id, an instance id, or both."""

    member_id: str
    group_instance_id: str | None = None


@attrs.frozen
class Left:
    """What became of one member of a leave request."""

    identity: MemberIdentity
    error_code: ErrorCode


@attrs.frozen
class DescribedMember:
    """A member as administrators see it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@attrs.frozen
class DescribedGroup:
    """A group as administrators see it; protocol and metadata are shown only while it is stable."""

    group_id: str
    error_code: ErrorCode
    state: GroupState = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class ListedGroup(NamedTuple):
    """One line of the list of groups."""

    group_id: str
    protocol_type: str
    #: one of the states of its kind of group
    state: Enum
    #: "classic", "consumer", "share" or "streams"
    group_type: str

    def is_among(self, states: Collection[str], types: Collection[str]) -> bool:
        """Tell whether it is in one of these states and of these types; none of them means any."""
        name: str = self.state.value
        has_state = not states or _FILTER_WORDS.get(name, name.lower()) in states
        return has_state and (not types or self.group_type in types)


class Answers:
    """
    Answers that are ready but not given yet.

    Giving an answer can bring the next request in at once, from the same call stack. So nobody is
    answered while a group is between two states: answers wait here until the step is done.
    """

    def __init__(self) -> None:
        self._ready: deque[Callable[[], None]] = deque()

    def put(self, later: Later[AnswerT], answer: AnswerT) -> None:
        """Queue an answer."""
        self._ready.append(partial(later.answer, answer))

    def give(self) -> None:
        """Give all queued answers, in order."""
        while self._ready:
            self._ready.popleft()()
