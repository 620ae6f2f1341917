"""
One classic group: what it is, and what can be asked about it.

How one generation follows the other is in :mod:`~logstore.compat.kafka.groups.rebalance`, who may
join is decided in :mod:`~logstore.compat.kafka.groups.admission`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import (
    NO_MEMBER_ID,
    DescribedGroup,
    Joined,
    ListedGroup,
    Synced,
)
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.offsets_log import (
    GroupMetadata,
    GroupMetadataKey,
    GroupRecord,
    encode_group_metadata_key,
    encode_group_metadata_value,
)
from logstore.compat.kafka.groups.rebalance import Rebalance
from logstore.compat.kafka.groups.roster import Roster
from logstore.compat.kafka.groups.states import NEXT_STATES, GroupState
from logstore.compat.kafka.groups.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from logstore.compat.kafka.groups.surroundings import Surroundings


class Group:
    """
    The state of a classic group: the kind that JoinGroup, SyncGroup and Heartbeat make.

    Source: ``ClassicGroup``.
    """

    #: how clients call this kind of group
    group_type = "classic"

    def __init__(self, group_id: str, surroundings: Surroundings) -> None:
        self.group_id = group_id
        self.surroundings = surroundings
        self.state = GroupState.EMPTY
        #: the one before, which tells the first rebalance of a group from later ones
        self.previous_state = GroupState.EMPTY
        #: wall clock in ms; -1 if an old record did not say
        self.state_since_ms = surroundings.now_ms()
        self.generation_id = 0
        #: None only as long as nobody has joined: then it is the group of a simple consumer
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        #: None if the broker cannot know
        self.subscribed_topics: frozenset[str] | None = None
        self.roster = Roster()
        self.rebalance = Rebalance(self)

    @classmethod
    def restored(cls, group_id: str, kept: GroupMetadata, surroundings: Surroundings) -> Group:
        """Return a group as it was kept: empty or stable. Sessions are not started yet."""
        group = cls(group_id, surroundings)
        group.generation_id = kept.generation_id
        group.protocol_type = kept.protocol_type or None
        group.protocol_name = kept.protocol_name
        group.state_since_ms = kept.state_since_ms
        for member in kept.members:
            group.roster.add(Member.restored(member, kept.protocol_name or ""))
        if kept.members:
            group.state = GroupState.STABLE
            if kept.leader_id in group.roster:
                group.roster.leader_id = kept.leader_id
        group.note_subscriptions()
        return group

    def move_to(self, state: GroupState) -> None:
        """Change the state; one that cannot follow is a programmer's error."""
        assert state in NEXT_STATES[self.state], f"{self.group_id}: {self.state} to {state}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = self.surroundings.now_ms()

    @property
    def is_first_rebalance(self) -> bool:
        """Tell whether the group was empty before the rebalance that goes on."""
        is_rebalancing = self.state is GroupState.PREPARING_REBALANCE
        return is_rebalancing and self.previous_state is GroupState.EMPTY

    @property
    def is_empty(self) -> bool:
        """Tell whether it has no members."""
        return self.state is GroupState.EMPTY

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody is in it or about to be."""
        return self.is_empty and not self.roster.pending_joins

    @property
    def is_of_consumers(self) -> bool:
        """Tell whether the members speak the consumer protocol, which the broker can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def would_change_protocol(self) -> bool:
        """Tell whether the members, as they are now, would choose another protocol."""
        return self.roster.choose_protocol() != self.protocol_name

    def supports(self, protocol_type: str, protocol_names: Sequence[str]) -> bool:
        """Tell whether one who can do this fits to those who are there."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocol_names)
        fits = protocol_type == self.protocol_type
        return fits and self.roster.supports_one_of(protocol_names)

    def commit_error(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        is_transactional: bool = False,
    ) -> ErrorCode:
        """
        Return NONE if these may commit offsets now, else what to tell them.

        An empty group takes commits from anyone who claims no generation: administrators, and
        consumers that assign themselves. Commits in transactions are let in more easily: their
        producers may not know the group's generation.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        is_empty = self.state is GroupState.EMPTY
        if generation_id < 0 and is_empty:
            return ErrorCode.NONE
        if generation_id >= 0 or member_id or group_instance_id is not None:
            error = self.roster.check(member_id, group_instance_id)
            if error is not ErrorCode.NONE:
                return error
            if generation_id != self.generation_id:
                return ErrorCode.ILLEGAL_GENERATION
        elif not is_empty and not is_transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            # It has read the generation off its join, so it will understand this answer.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def note_subscriptions(self) -> None:
        """Read which topics the members of a consumer group are subscribed to."""
        self.subscribed_topics = None
        if not self.is_of_consumers:
            return
        name = self.protocol_name
        if not len(self.roster):
            self.subscribed_topics = frozenset()
        elif name is not None:
            subscriptions = [member.metadata_for(name) for member in self.roster]
            self.subscribed_topics = subscribed_topics(subscriptions)

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether a member reads the topic; consumers whose subscription is unknown might."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.is_of_consumers

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        """
        Return from when on the retention time of a committed offset counts; None for: not yet.

        The offsets of a consumer group count from when it became empty; those of a topic that
        nobody reads any more, and those of simple consumers, from their commit.
        """
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is GroupState.EMPTY:
            return commit_timestamp_ms if self.state_since_ms == -1 else self.state_since_ms
        is_subscription_known = self.is_of_consumers and self.subscribed_topics is not None
        if is_subscription_known and self.state is GroupState.STABLE:
            return commit_timestamp_ms
        return None

    def described(self) -> DescribedGroup:
        """Return the group as administrators see it."""
        name = self.protocol_name if self.state is GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            error_code=ErrorCode.NONE,
            state=self.state,
            protocol_type=self.protocol_type or "",
            protocol_name=name or "",
            members=tuple(member.described(name) for member in self.roster.in_order()),
        )

    def listed(self) -> ListedGroup:
        """Return the group's line in a list."""
        return ListedGroup(self.group_id, self.protocol_type or "", self.state, self.group_type)

    def generation_for(self, member: Member) -> Joined:
        """Return the current generation as a member is told about it."""
        name = self.protocol_name
        assert name is not None, "a generation with members has a protocol"
        is_leader = self.roster.leader_id == member.member_id
        members = self.roster.in_order() if is_leader else []
        return Joined(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=name,
            leader_id=self.roster.leader_id or NO_MEMBER_ID,
            members=tuple(one.joined(name) for one in members),
        )

    def share_of(self, member: Member) -> Synced:
        """Return a member's assignment as it is told about it."""
        return Synced(ErrorCode.NONE, member.assignment, self.protocol_type, self.protocol_name)

    def tombstones(self) -> list[GroupRecord]:
        """Return what takes the group out of the log."""
        return [(encode_group_metadata_key(GroupMetadataKey(self.group_id)), None)]

    def record(self, assignments: Mapping[str, bytes]) -> GroupRecord:
        """Return the group as the log takes it, with these assignments by member id."""
        name = self.protocol_name or ""
        value = GroupMetadata(
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            leader_id=self.roster.leader_id,
            state_since_ms=self.state_since_ms,
            members=tuple(
                member.kept(name, assignments[member.member_id])
                for member in self.roster.in_order()
            ),
        )
        key = encode_group_metadata_key(GroupMetadataKey(self.group_id))
        return key, encode_group_metadata_value(value, self.surroundings.versions.group)

    def store(self, assignments: Mapping[str, bytes]) -> ErrorCode:
        """Write the group to the log, these assignments by member id; return what went wrong."""
        return self.surroundings.write(self.group_id, [self.record(assignments)], lambda: None)
