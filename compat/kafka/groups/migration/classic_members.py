"""
Members of the classic protocol in a consumer group: how JoinGroup, SyncGroup and Heartbeat serve.

=================  ================================================================================
what is asked      what happens
=================  ================================================================================
join               the member says what it wants and what it still has, and takes one step towards
                   its target, as by a heartbeat of KIP-848; answered at once
sync               it is told what it has now
heartbeat          27 if another join would bring it further: there is a new target, or it must give
                   something back, or what it waited for is free
=================  ================================================================================

One that is told to join again, or to sync, must do so within its rebalance timeout.

Source: ``GroupMetadataManager.classicGroupJoinToConsumerGroup`` and its siblings.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.exchange import UNTOLD_MS
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
from logstore.compat.kafka.groups.consumer.heartbeat import HeartbeatStep
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.membership import Newcomer, replacing, static_member
from logstore.compat.kafka.groups.exchange import NO_MEMBER_ID, Join, Joined, Sync, Synced
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.migration.downgrade import downgraded, may_downgrade
from logstore.compat.kafka.groups.migration.embedded_protocol import (
    assignment_for,
    known_partitions,
    subscription_in,
)
from logstore.compat.kafka.groups.migration.policy import MigrationPolicy
from logstore.compat.kafka.groups.migration.upgrade import classic_metadata
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.modern.member import MemberState
from logstore.compat.kafka.groups.modern.member_timers import Deadline, MemberTimers
from logstore.compat.kafka.groups.modern.records import GroupChange, encoded
from logstore.compat.kafka.groups.subscription import CONSUMER_PROTOCOL_TYPE
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.codec import MessageError
from logstore.segments.kafka.internal_topics.consumer_group import ClassicMemberMetadata
from logstore.segments.kafka.internal_topics.consumer_protocol import ConsumerProtocolSubscription
from logstore.segments.kafka.kafka_uuid import random_uuid, uuid_to_text

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.consumer.consumer_groups import ConsumerGroups

_LOG = logging.getLogger(__name__)


class ClassicMembers:
    """Serves the members of the classic protocol in the consumer groups of one coordinator."""

    def __init__(
        self,
        consumers: ConsumerGroups,
        surroundings: Surroundings,
        cluster: Cluster,
        classic: dict[str, Group],
        timers: MemberTimers,
    ) -> None:
        self._consumers = consumers
        self._surroundings = surroundings
        self._cluster = cluster
        self._classic = classic
        self._timers = timers

    # what members ask

    def join(self, join: Join) -> Joined:
        """Let a member join a group that has members, or take its next step in it."""
        try:
            return self._joined(self._consumers.groups[join.group_id], join)
        except RefusedRequestError as refused:
            return Joined(refused.code, NO_MEMBER_ID)

    def sync(self, sync: Sync) -> Synced:
        """Tell a member what it has."""
        try:
            group = self._consumers.groups[sync.group_id]
            member, classic = _speaking(
                group, sync.member_id, sync.group_instance_id, sync.generation_id
            )
            _check_protocol(sync, classic)
            is_giving_back = member.state is MemberState.UNREVOKED_PARTITIONS
            if group.assignment_epoch > member.member_epoch and not is_giving_back:
                self._expect_join(group, member)
                raise RefusedRequestError(ErrorCode.REBALANCE_IN_PROGRESS)
            assignment = assignment_for(
                member.assigned, classic.supported_protocols[0].metadata, self._cluster
            )
        except RefusedRequestError as refused:
            return Synced(refused.code)
        except MessageError:
            return Synced(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._timers.stop(group.group_id, member.member_id, Deadline.SYNC)
        self.expect_life(group, [member])
        return Synced(ErrorCode.NONE, assignment, sync.protocol_type, sync.protocol_name)

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """Note that a member is alive; tell it whether it must join again."""
        group = self._consumers.groups[group_id]
        try:
            member, _ = _speaking(group, member_id, group_instance_id, generation_id)
        except RefusedRequestError as refused:
            return refused.code
        self.expect_life(group, [member])
        if not _is_to_join(group, member):
            return ErrorCode.NONE
        self._expect_join(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _joined(self, group: ConsumerGroup, join: Join) -> Joined:
        if self._surroundings.config.consumer_migration_policy is MigrationPolicy.DISABLED:
            raise RefusedRequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member_id = join.member_id or uuid_to_text(random_uuid(self._surroundings.rng))
        self._consumers.check_room(group, member_id)
        _check_common_protocol(group, join)
        is_new = join.member_id == NO_MEMBER_ID
        if is_new and join.must_know_member_id and join.group_instance_id is None:
            return Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        after = self._stepped(group, join, _newcomer(group, join, member_id))
        return Joined(
            error_code=ErrorCode.NONE,
            member_id=after.member_id,
            generation_id=after.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=join.protocols[0].name,
        )

    def _stepped(self, group: ConsumerGroup, join: Join, newcomer: Newcomer) -> ConsumerMember:
        """Return the member that joins after its step; the group may be a classic one then."""
        try:
            subscription = subscription_in(join.protocols[0].metadata)
        except MessageError as error:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        updated = _told(newcomer.member, join, subscription)
        owned = known_partitions(subscription.owned_partitions, self._cluster)
        step = HeartbeatStep(
            group, newcomer, updated, self._consumers.circumstances(group.group_id)
        )
        before = group.static_member(join.group_instance_id)
        left = group.members_with(updated)
        if before is not None and not before.is_classic and self.may_downgrade(left.values()):
            outcome = step.outcome(owned, may_assign=False)
            is_stale = group.assignment_epoch < outcome.epoch
            reason = "the group has become classic, and its assignment is out of date"
            self.become_classic(group, left, reason if is_stale else None, outcome.records)
            return outcome.after
        outcome = step.outcome(owned)
        self._consumers.commit(group, outcome.records)
        self._consumers.note(group, outcome)
        self._timers.stop(group.group_id, outcome.after.member_id, Deadline.JOIN)
        self._expect(
            group, outcome.after, Deadline.SYNC, join.rebalance_timeout_ms,
            "it has not asked in time for what it was given",
        )  # fmt: skip
        return outcome.after

    # a group that becomes classic

    def may_downgrade(self, left: Collection[ConsumerMember]) -> bool:
        """Tell whether a consumer group in which these are left becomes a classic one."""
        return may_downgrade(left, self._surroundings.config)

    def become_classic(
        self,
        group: ConsumerGroup,
        left: Mapping[str, ConsumerMember],
        reason: str | None,
        changes: Sequence[GroupChange] = (),
    ) -> None:
        """
        Put a classic group of those who are left in a group's place; rebalance if for a `reason`.

        `changes` are those that have put one of them in the place of a static member.

        Raises:
            RefusedRequestError: nothing was written, and nothing has changed; or the disk did not
                flush what was, and the group is classic all the same.

        """
        group_id = group.group_id
        classic = downgraded(group, left.values(), self._cluster, self._surroundings)
        in_log = left if changes else group.members
        dead = records.no_group(group_id, list(in_log), list(group.regexes))
        shares = {one.member_id: one.assignment for one in classic.roster}
        written = [*map(encoded, [*changes, *dead]), classic.record(shares)]

        def take_over() -> None:
            for member_id in (*left, *group.members):
                self._timers.stop_all(group_id, member_id)
            del self._consumers.groups[group_id]
            self._classic[group_id] = classic
            _LOG.info("group %s: classic from now on, in generation %d", group_id, group.epoch)
            classic.rebalance.start_sessions()
            if reason is not None:
                classic.rebalance.start(reason)

        error = self._surroundings.write(group_id, written, take_over)
        if error is not ErrorCode.NONE:
            raise RefusedRequestError(error)

    # what must happen in time

    def expect_life(self, group: ConsumerGroup, members: Iterable[ConsumerMember]) -> None:
        """Expect a sign of life of members within the time that they have told themselves."""
        for member in members:
            if member.classic is not None:
                self._consumers.expect_life(
                    group.group_id, member.member_id, member.classic.session_timeout_ms
                )

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if not self._timers.is_running(group.group_id, member.member_id, Deadline.JOIN):
            self._expect(
                group, member, Deadline.JOIN, member.rebalance_timeout_ms,
                "it has not joined again in time",
            )  # fmt: skip

    def _expect(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        deadline: Deadline,
        delay_ms: int,
        reason: str,
    ) -> None:
        group_id, member_id = group.group_id, member.member_id
        lapse = partial(self._consumers.lapse, group_id, member_id, None, reason)
        self._timers.start(group_id, member_id, deadline, delay_ms, lapse)


def _speaking(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """
    Return the member of the classic protocol that speaks, and what it has said about itself.

    Raises:
        RefusedRequestError: 22, 25 or 82, with the reason.

    """
    if instance_id is not None:
        member = static_member(group, instance_id, member_id)
    else:
        member = group.member(member_id)
    if member.classic is None:
        raise RefusedRequestError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation_id != member.member_epoch:
        raise RefusedRequestError(ErrorCode.ILLEGAL_GENERATION)
    if not member.classic.supported_protocols:
        # As what releases before 3.8 have written is read: those had no such members.
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return member, member.classic


def _newcomer(group: ConsumerGroup, join: Join, member_id: str) -> Newcomer:
    instance_id = join.group_instance_id
    if instance_id is not None:
        if join.member_id != NO_MEMBER_ID:
            return Newcomer(static_member(group, instance_id, member_id))
        before = group.static_member(instance_id)
        if before is not None:
            return replacing(group, before, member_id)
    return Newcomer(group.members.get(member_id) or ConsumerMember(member_id))


def _told(
    member: ConsumerMember, join: Join, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """Return a member with what a join says about it."""
    is_untold = join.rebalance_timeout_ms == UNTOLD_MS
    return attrs.evolve(
        member,
        instance_id=join.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if is_untold else join.rebalance_timeout_ms
        ),
        client_id=join.client_id,
        client_host=join.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=classic_metadata(join.session_timeout_ms, join.protocols),
    )


def _check_common_protocol(group: ConsumerGroup, join: Join) -> None:
    """Refuse one that does not speak what all others of the classic protocol do."""
    classic = [one.classic for one in group.members.values() if one.classic is not None]
    counts = Counter(protocol.name for one in classic for protocol in one.supported_protocols)
    names = {protocol.name for protocol in join.protocols}
    is_common = any(counts[name] == len(classic) for name in names)
    if join.protocol_type != CONSUMER_PROTOCOL_TYPE or not is_common:
        raise RefusedRequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _check_protocol(sync: Sync, classic: ClassicMemberMetadata) -> None:
    is_type = sync.protocol_type in (None, CONSUMER_PROTOCOL_TYPE)
    if not is_type or sync.protocol_name not in (None, classic.supported_protocols[0].name):
        raise RefusedRequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _is_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Tell whether another join would bring a member further."""
    if member.member_epoch < group.assignment_epoch:
        return True
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return not _is_waiting(group, member)
    return member.state is MemberState.UNREVOKED_PARTITIONS


def _is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Tell whether others have not let go of something that a member shall have."""
    return any(
        index not in member.assigned.get(topic_id, {}) and group.owner_of((topic_id, index))
        for topic_id, indexes in group.target_of(member).items()
        for index in indexes
    )
