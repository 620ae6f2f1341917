"""
The groups of one kind of a coordinator, as far as it is the same for every kind.

What a request changes is in the log before it holds; a request that the log refuses changes
nothing. What is in the log holds, also if the disk did not flush it, of which its client is told.

Source: ``GroupMetadataManager``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.modern.group import ModernGroup
from logstore.compat.kafka.groups.modern.member import GroupMember
from logstore.compat.kafka.groups.modern.member_timers import Deadline, MemberTimers
from logstore.compat.kafka.groups.modern.records import GroupChange, GroupKind, encoded
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError

_LOG = logging.getLogger(__name__)
#: after which time something is tried again that the disk has refused
RETRY_MS = 500

GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any])
MemberT = TypeVar("MemberT", bound=GroupMember)


class ModernGroups(ABC, Generic[GroupT, MemberT]):
    """
    Owns the groups of one kind: loads them, writes them, and removes members whose time is up.

    `classic` are the coordinator's classic groups, `is_taken` tells whether a group of yet another
    kind has an id, `refusal` what every request is refused with.
    """

    def __init__(
        self,
        kind: GroupKind,
        surroundings: Surroundings,
        groups: dict[str, GroupT],
        classic: dict[str, Group],
        is_taken: Callable[[str], bool],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        self.groups = groups
        self.refusal = refusal
        self._kind = kind
        self._surroundings = surroundings
        self._classic = classic
        self._is_taken = is_taken
        self._timers = MemberTimers(surroundings)

    # what a kind says

    @abstractmethod
    def _new(self, group_id: str) -> GroupT:
        """Return a group that nobody knows yet."""

    @abstractmethod
    def _session_timeout_ms(self, group_id: str) -> int:
        """Return within what time members of a group must show a sign of life."""

    @abstractmethod
    def _epoch_with(self, group: GroupT, left: Mapping[str, MemberT]) -> list[GroupChange]:
        """Return the records of a group's next epoch, in which only these members are left."""

    # coming and going

    def replay(self, key: bytes, value: bytes | None) -> None:
        """
        Take over a record of the log, if it is about a group of this kind.

        Raises:
            GroupRecordError: it cannot be read.

        """
        record = self._kind.decoded(key, value)
        if record is None:
            return
        group_id = record.group_id
        group = self.groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = self.groups[group_id] = self._new(group_id)
            # Offsets alone make the group of a simple consumer; it has no record of its own.
            self._classic.pop(group_id, None)
        group.apply(record)
        if record.record_type == self._kind.epoch and record.value is None:
            del self.groups[group_id]

    def start_timers(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        for group in self.groups.values():
            self._expect_lives(group)

    def _expect_lives(self, group: GroupT) -> None:
        for member in group.members.values():
            self.expect_life(group.group_id, member.member_id)
            if member.is_giving_back:
                self._expect_revocation(group.group_id, member)

    def close(self) -> None:
        """Give all groups up."""
        self._timers.close()
        self.groups.clear()

    def forget(self, group_id: str) -> None:
        """Take note that an empty group was removed from the log."""
        group = self.groups.pop(group_id)
        assert group.is_empty, f"{group_id} has members"

    # which group is meant

    def group(self, group_id: str) -> GroupT:
        """
        Return a group.

        Raises:
            RefusedRequestError: 69, it is not there or of another kind.

        """
        group = self.groups.get(group_id)
        if group is None:
            raise self._not_found(group_id, f"Group {group_id} not found.")
        return group

    def described(self, group_id: str) -> GroupT:
        """
        Return a group for somebody who wants to look at it.

        Raises:
            RefusedRequestError: nobody is served; 24, it has no name; 69, as :meth:`group`.

        """
        refusal = self.refusal()
        if refusal is ErrorCode.NONE and not group_id:
            refusal = ErrorCode.INVALID_GROUP_ID
        if refusal is not ErrorCode.NONE:
            raise RefusedRequestError(refusal)
        return self.group(group_id)

    def _not_found(self, group_id: str, message: str) -> RefusedRequestError:
        """Return what to tell of a group that is of another kind, or else `message`."""
        if group_id in self._classic or self._is_taken(group_id):
            message = f"Group {group_id} is not a {self._kind.name} group."
        return RefusedRequestError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _not_joined(self, group_id: str) -> RefusedRequestError:
        """Return what a member is told that says it is in a group which is not there."""
        message = f"{self._kind.name.capitalize()} group {group_id} not found."
        return self._not_found(group_id, message)

    def _full(self, size_max: int) -> RefusedRequestError:
        """Return what one is told for whom there is no room."""
        return RefusedRequestError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The {self._kind.name} group has reached its maximum capacity of {size_max} members.",
        )

    # what must happen in time

    def expect_life(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Expect a sign of life of a member within a time, or else within that of the group."""
        if timeout_ms is None:
            timeout_ms = self._session_timeout_ms(group_id)
        self._timers.start(
            group_id, member_id, Deadline.SESSION, timeout_ms,
            partial(self.lapse, group_id, member_id, None, "its session has ended"),
        )  # fmt: skip

    def _expect_revocation(self, group_id: str, member: MemberT) -> None:
        self._timers.start(
            group_id, member.member_id, Deadline.REBALANCE, member.rebalance_timeout_ms,
            partial(
                self.lapse, group_id, member.member_id, member.member_epoch,
                "it has not given back in time what it must",
            ),
        )  # fmt: skip

    def lapse(self, group_id: str, member_id: str, epoch: int | None, reason: str) -> None:
        """Remove a member whose time is up; if `epoch` is given, only one that is still in it."""
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return
        _LOG.info("group %s: %s is removed: %s", group_id, member_id, reason)
        try:
            self._remove(group, member)
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            again = partial(self.lapse, group_id, member_id, epoch, reason)
            deadline = Deadline.SESSION if epoch is None else Deadline.REBALANCE
            self._timers.start(group_id, member_id, deadline, RETRY_MS, again)

    # what the steps are made of

    def _remove(self, group: GroupT, *gone: MemberT) -> None:
        """Take members out; the others get what they had with their next heartbeats."""
        group_id, gone_ids = group.group_id, [member.member_id for member in gone]
        left = {one: member for one, member in group.members.items() if one not in gone_ids}
        dead = [record for one in gone_ids for record in self._kind.no_member(group_id, one)]
        self.commit(group, [*dead, *self._epoch_with(group, left)])
        for one in gone_ids:
            self._timers.stop_all(group_id, one)

    def commit(self, group: GroupT, changes: Sequence[GroupChange]) -> None:
        """
        Write records and let them hold; a group that is new takes a classic one's place.

        Raises:
            RefusedRequestError: nothing was written, and nothing has changed; or the disk did not
                flush what was, and it holds all the same.

        """
        if not changes:
            return
        group_id = group.group_id
        classic = self._classic.get(group_id)
        before = [] if classic is None else classic.tombstones()
        is_held = False

        def take_over() -> None:
            nonlocal is_held
            if classic is not None:
                del self._classic[group_id]
                classic.rebalance.die(ErrorCode.REBALANCE_IN_PROGRESS)
            self.groups[group_id] = group
            for record in changes:
                group.apply(record)
            is_held = True

        error = self._surroundings.write(group_id, [*before, *map(encoded, changes)], take_over)
        if error is not ErrorCode.NONE:
            if is_held:  # who is refused does not come to what it would do next
                self._expect_lives(group)
            raise RefusedRequestError(error)
