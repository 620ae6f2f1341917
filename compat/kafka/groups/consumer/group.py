"""One consumer group: what its records say, and what can be asked about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.exchange import (
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from logstore.compat.kafka.groups.consumer.hash_order import members_in_order
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState, MemberState
from logstore.compat.kafka.groups.exchange import ListedGroup
from logstore.compat.kafka.groups.group_records import encoded
from logstore.compat.kafka.groups.modern_group import (
    LEAVING,
    NO_TARGET,
    ModernGroup,
    Target,
    TopicIdPartition,
)
from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.groups.subscription import CONSUMER_PROTOCOL_TYPE


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """
    The state of a consumer group; only :meth:`apply` changes it.

    Source: ``ConsumerGroup`` and ``GroupMetadataManager.replay``.
    """

    #: how clients call this kind of group
    group_type = "consumer"

    def __init__(self, group_id: str) -> None:
        appliers: dict[int, Callable[[Any, Any], None]] = {
            records.EPOCH: self._apply_epoch,
            records.PARTITION_METADATA: self._apply_partition_metadata,
            records.MEMBER: self._apply_member,
            records.TARGET_EPOCH: self._apply_target_epoch,
            records.TARGET: self._apply_target,
            records.CURRENT: self._apply_current,
            records.REGEX: self._apply_regex,
        }
        super().__init__(group_id, appliers)
        #: patterns and the topics that they mean
        self.regexes: dict[str, ResolvedRegex] = {}
        #: a release before 4.1 has left its view of the topics in the log
        self.has_partition_metadata = False
        #: the topics that were there last, to see whether patterns mean others; not in the log
        self.seen_topic_names: frozenset[str] | None = None
        self._member_of_instance: dict[str, str] = {}
        self._owners: dict[TopicIdPartition, str] = {}
        self._subscribed_names: frozenset[str] | None = None

    # what it is

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody is in it or about to be."""
        return self.is_empty

    @property
    def is_of_consumers(self) -> bool:
        """Tell whether the broker can read what the members want: it can."""
        return True

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group stands."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member that an instance is, None if it is none."""
        if instance_id is None:
            return None
        return self.members.get(self._member_of_instance.get(instance_id, ""))

    def owner_of(self, partition: TopicIdPartition) -> str | None:
        """Return who has not let go of a partition."""
        return self._owners.get(partition)

    def target_of(self, member: ConsumerMember) -> Target:
        """Return what a member shall have; a static one that is replaced hands it down."""
        found = self.targets.get(member.member_id)
        if found is None:
            before = self.static_member(member.instance_id)
            found = None if before is None else self.targets.get(before.member_id)
        return NO_TARGET if found is None else found

    def members_with(self, changed: ConsumerMember) -> dict[str, ConsumerMember]:
        """Return the members as they are with one new or changed, who may replace another."""
        members = dict(self.members)
        before = self.static_member(changed.instance_id)
        if before is not None and before.member_id != changed.member_id:
            del members[before.member_id]
        members[changed.member_id] = changed
        return members

    def assignor_of(self, members: Iterable[ConsumerMember]) -> str | None:
        """Return the assignor that most of these members ask for, None if nobody does."""
        votes = Counter(name for one in members if (name := one.server_assignor) is not None)
        names = members_in_order(votes)
        return max(names, key=lambda name: votes[name], default=None)

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """The topics that somebody wants, by name or by a pattern."""
        if self._subscribed_names is None:
            self._subscribed_names = names_wanted(self.members.values(), self.regexes)
        return self._subscribed_names

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether a member reads the topic."""
        return topic in self.subscribed_topic_names

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int:
        """Return from when on the retention time of a committed offset counts: its commit."""
        return commit_timestamp_ms

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for offsets, else what to tell; who says nothing may."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.member_epoch == member_epoch:
            return ErrorCode.NONE
        return _stale(member)

    def commit_error(
        self,
        member_id: str,
        member_epoch: int,
        partitions: Iterable[TopicIdPartition],
        *,
        is_anonymous_allowed: bool,
    ) -> ErrorCode:
        """
        Return NONE if offsets of these partitions may be committed, else what to tell.

        A member that has not heard of its new epoch yet may commit what it was given before, and
        still has (KIP-1251). For members of the classic protocol the epoch is their generation.
        """
        if member_epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if is_anonymous_allowed and member_epoch < 0 and not member_id:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_epoch == member.member_epoch:
            return ErrorCode.NONE
        if member_epoch > member.member_epoch:
            return _stale(member)
        given = [member.epoch_of(partition) for partition in partitions]
        is_known = all(epoch is not None and epoch <= member_epoch for epoch in given)
        return ErrorCode.NONE if is_known else _stale(member)

    def listed(self) -> ListedGroup:
        """Return the group's line in a list."""
        return ListedGroup(self.group_id, CONSUMER_PROTOCOL_TYPE, self.state, self.group_type)

    def described(self, default_assignor: str) -> DescribedConsumerGroup:
        """Return the group as administrators see it."""
        return DescribedConsumerGroup(
            group_id=self.group_id,
            error_code=ErrorCode.NONE,
            state=self.state,
            epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            assignor=self.assignor_of(self.members.values()) or default_assignor,
            members=tuple(
                DescribedConsumerMember(member, self.targets.get(member.member_id, NO_TARGET))
                for member in self.members.values()
            ),
        )

    def tombstones(self) -> list[GroupRecord]:
        """Return what takes the group out of the log."""
        dead = records.no_group(self.group_id, list(self.members), list(self.regexes))
        return [encoded(record) for record in dead]

    # what its records change

    def _apply_partition_metadata(self, key: Any, value: Any) -> None:
        del key
        self.has_partition_metadata = value is not None

    def _apply_regex(self, key: Any, value: Any) -> None:
        self._subscribed_names = None
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )

    def _apply_member(self, key: Any, value: Any) -> None:
        before = self.members.get(key.member_id)
        if value is None:
            if before is not None:
                self._forget(before)
            return
        member = before or ConsumerMember(key.member_id)
        self._put(
            before,
            attrs.evolve(
                member,
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                subscribed_topic_names=frozenset(value.subscribed_topic_names),
                subscribed_topic_regex=value.subscribed_topic_regex or "",
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                server_assignor=value.server_assignor,
                classic=value.classic_member_metadata,
            ),
        )

    def _apply_current(self, key: Any, value: Any) -> None:
        before = self.members.get(key.member_id)
        if value is not None:
            member = attrs.evolve(
                before or ConsumerMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState.of(value.state),
                assigned=records.held_in(value.assigned_partitions, value.member_epoch),
                pending_revocation=records.held_in(
                    value.partitions_pending_revocation, value.member_epoch
                ),
            )
            self._put(before, member)
        elif before is not None:
            gone = attrs.evolve(
                before,
                member_epoch=LEAVING,
                previous_member_epoch=LEAVING,
                assigned={},
                pending_revocation={},
            )
            self._put(before, gone)

    def _put(self, before: ConsumerMember | None, member: ConsumerMember) -> None:
        self._subscribed_names = None
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._member_of_instance[member.instance_id] = member.member_id
        for partition in member.held():
            self._owners[partition] = member.member_id

    def _forget(self, member: ConsumerMember) -> None:
        self._subscribed_names = None
        self._release(member)
        del self.members[member.member_id]
        instance_id = member.instance_id
        # The instance may have come back already, under the id of another member.
        if instance_id and self._member_of_instance.get(instance_id) == member.member_id:
            del self._member_of_instance[instance_id]

    def _release(self, member: ConsumerMember) -> None:
        for partition in member.held():
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]


def names_wanted(
    members: Iterable[ConsumerMember], regexes: Mapping[str, ResolvedRegex]
) -> frozenset[str]:
    """Return the topics that these members want, by name or by a pattern."""
    names: set[str] = set()
    for member in members:
        names |= member.subscribed_topic_names
        resolved = regexes.get(member.subscribed_topic_regex)
        if resolved is not None:
            names |= resolved.topics
    return frozenset(names)


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
