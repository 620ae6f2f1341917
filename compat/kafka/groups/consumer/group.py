"""One consumer group: what its records say, and what can be asked about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import ResolvedRegex
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.modern.group import (
    NO_TARGET,
    Applier,
    ModernGroup,
    Target,
    TopicIdPartition,
    partitions_in,
)
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order
from logstore.compat.kafka.groups.modern.member import LEAVING, MemberState
from logstore.compat.kafka.groups.modern.records import GroupChange


class ConsumerGroup(ModernGroup[ConsumerMember, Target]):
    """
    A group whose members read partitions that nobody else has meanwhile.

    Source: ``ConsumerGroup``.
    """

    def __init__(self, group_id: str) -> None:
        appliers: dict[int, Applier] = {
            records.PARTITION_METADATA: self._apply_partition_metadata,
            records.REGEX: self._apply_regex,
        }
        super().__init__(records.KIND, group_id, appliers)
        #: the topics that were looked at last, to see whether they have changed; not in the log
        self.seen_shapes: Mapping[str, TopicShape] | None = None
        #: patterns and the topics that they mean
        self.regexes: dict[str, ResolvedRegex] = {}
        #: a release before 4.1 has left its view of the topics in the log
        self.has_partition_metadata = False
        #: the topics that were there last, to see whether patterns mean others; not in the log
        self.seen_topic_names: frozenset[str] | None = None
        #: how many members there were at most
        self._most_members = 0
        self._member_of_instance: dict[str, str] = {}
        self._owners: dict[TopicIdPartition, str] = {}
        self._subscribed_names: frozenset[str] | None = None

    # what it is

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

    def in_order(self) -> list[ConsumerMember]:
        """Return the members as Kafka walks them."""
        ids = members_in_timeline_order(self.members, self._most_members)
        return [self.members[member_id] for member_id in ids]

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

    @property
    def assignor(self) -> str | None:
        """The assignor that most members ask for, None if nobody does."""
        votes = self._assignor_votes
        return max(votes, key=lambda name: votes[name], default=None)

    def assignor_after(self, before: ConsumerMember, after: ConsumerMember) -> str | None:
        """
        Return the assignor that most members ask for once one of them says something else.

        Of several that of this member counts if nobody else asks for it: Java counts in a table in
        which both names have the same place, and one that comes in stands in front.
        """
        votes = self._assignor_votes
        if before.server_assignor in votes:
            votes[before.server_assignor] -= 1
        votes = {name: count for name, count in votes.items() if count}
        if after.server_assignor is not None:
            is_new = after.server_assignor not in votes
            mine = {after.server_assignor: votes.get(after.server_assignor, 0) + 1}
            votes = mine | votes if is_new else votes | mine
        return max(votes, key=lambda name: votes[name], default=None)

    @property
    def _assignor_votes(self) -> dict[str, int]:
        """How many members ask for which assignor, in the order of a table of them."""
        asked = (one.server_assignor for one in self.members.values())
        votes = Counter(name for name in asked if name is not None)
        return {name: votes[name] for name in members_in_timeline_order(votes)}

    @property
    def subscribed_topic_names(self) -> frozenset[str]:
        """The topics that somebody wants, by name or by a pattern."""
        if self._subscribed_names is None:
            self._subscribed_names = names_wanted(self.members.values(), self.regexes)
        return self._subscribed_names

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether a member reads the topic."""
        return topic in self.subscribed_topic_names

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
            return member.stale_epoch_error
        given = [member.epoch_of(partition) for partition in partitions]
        is_known = all(epoch is not None and epoch <= member_epoch for epoch in given)
        return ErrorCode.NONE if is_known else member.stale_epoch_error

    # what its records change

    def _dead(self) -> list[GroupChange]:
        return records.no_group(self.group_id, list(self.members), list(self.regexes))

    def _target_in(self, value: Any) -> Target:
        return partitions_in(value.topic_partitions)

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
        self._most_members = max(self._most_members, len(self.members))
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
