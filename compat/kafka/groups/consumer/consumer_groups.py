"""
All consumer groups of a coordinator: what is asked of them.

Source: the consumer part of ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.exchange import ConsumerHeartbeat, HeartbeatAnswer
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup, names_wanted
from logstore.compat.kafka.groups.consumer.group_settings import GroupSettings
from logstore.compat.kafka.groups.consumer.heartbeat import (
    Circumstances,
    HeartbeatStep,
    Outcome,
    told,
)
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.membership import member_of, static_member
from logstore.compat.kafka.groups.consumer.request_check import check_heartbeat
from logstore.compat.kafka.groups.exchange import NO_MEMBER_ID, Left, MemberIdentity
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.migration.classic_members import ClassicMembers
from logstore.compat.kafka.groups.migration.upgrade import upgraded
from logstore.compat.kafka.groups.modern.cluster import Cluster, metadata_hash, shapes_of
from logstore.compat.kafka.groups.modern.member import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from logstore.compat.kafka.groups.modern.member_timers import Deadline
from logstore.compat.kafka.groups.modern.modern_groups import ModernGroups
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.schema import NO_ID
from logstore.segments.kafka.kafka_uuid import random_uuid, uuid_to_text


class ConsumerGroups(ModernGroups[ConsumerGroup, ConsumerMember]):
    """
    Owns the consumer groups of one coordinator.

    A classic group becomes a consumer group as soon as somebody joins it as such, if it may.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: Cluster,
        groups: dict[str, ConsumerGroup],
        classic: dict[str, Group],
        is_taken: Callable[[str], bool],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        super().__init__(records.KIND, surroundings, groups, classic, is_taken, refusal)
        self._cluster = cluster
        #: answers those in the groups who speak the classic protocol
        self.classic_members = ClassicMembers(self, surroundings, cluster, classic, self._timers)

    # what members ask

    def heartbeat(self, beat: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Note that a member lives, joins or leaves; tell it what it may read."""
        refusal = self.refusal()
        if refusal is not ErrorCode.NONE:
            return HeartbeatAnswer(refusal)
        try:
            check_heartbeat(beat, self._surroundings.config.consumer_assignors)
            if beat.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
                return self._leave(beat)
            return self._beat(beat)
        except RefusedRequestError as refused:
            return HeartbeatAnswer(refused.code, refused.message)
        finally:
            self._surroundings.answers.give()

    def _beat(self, beat: ConsumerHeartbeat) -> HeartbeatAnswer:
        group, converted = self._group_for(beat)
        self.check_room(group, beat.member_id)
        if not beat.member_id:
            member_id = uuid_to_text(random_uuid(self._surroundings.rng))
            beat = attrs.evolve(beat, member_id=member_id)
        newcomer = member_of(group, beat)
        circumstances = self.circumstances(beat.group_id, beat.may_see)
        step = HeartbeatStep(group, newcomer, told(newcomer.member, beat), circumstances)
        outcome = step.outcome(beat.owned)
        self.commit(group, [*converted, *outcome.records])
        if converted:
            self.classic_members.expect_life(group, group.members.values())
        self.note(group, outcome)
        after = outcome.after
        must_tell = beat.member_epoch == JOINING or beat.is_full
        must_tell = must_tell or not after.has_same_partitions(outcome.before)
        return HeartbeatAnswer(
            ErrorCode.NONE,
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=self._settings(group.group_id).heartbeat_interval_ms,
            assignment=(
                {topic_id: frozenset(parts) for topic_id, parts in after.assigned.items()}
                if must_tell
                else None
            ),
        )

    def _group_for(self, beat: ConsumerHeartbeat) -> tuple[ConsumerGroup, list[GroupChange]]:
        """
        Return the group, a new one that nobody knows yet if somebody joins.

        One that was classic brings the records along that make it what it is now.
        """
        group_id = beat.group_id
        group = self.groups.get(group_id)
        if group is not None:
            return group, []
        classic = self._classic.get(group_id)
        if beat.member_epoch != JOINING or self._is_taken(group_id):
            raise self._not_joined(group_id)
        if classic is None or classic.is_empty:
            return ConsumerGroup(group_id), []
        upgrade = upgraded(classic, self._cluster, self._surroundings.config)
        return upgrade.group, upgrade.records

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        """Refuse who is not in a group that has all the members it may have (81)."""
        size_max = self._surroundings.config.consumer_group_max_size
        if len(group.members) >= size_max and member_id not in group.members:
            raise self._full(size_max)

    def _leave(self, beat: ConsumerHeartbeat) -> HeartbeatAnswer:
        group = self.group(beat.group_id)
        if beat.instance_id is None:
            member = group.member(beat.member_id)
        else:
            member = static_member(group, beat.instance_id, beat.member_id)
        if beat.member_epoch == LEAVING_FOR_A_WHILE:
            # Whoever comes back in its place may commit what it had, whatever epoch it is in.
            held = {it: dict.fromkeys(parts, JOINING) for it, parts in member.assigned.items()}
            away = attrs.evolve(
                member, member_epoch=LEAVING_FOR_A_WHILE, assigned=held, pending_revocation={}
            )
            self.commit(group, [records.current_assignment(group.group_id, away)])
        else:
            self._remove(group, member)
        return HeartbeatAnswer(
            ErrorCode.NONE, member_id=member.member_id, member_epoch=beat.member_epoch
        )

    def leave(self, group_id: str, identities: Iterable[MemberIdentity]) -> list[Left]:
        """Take out members whom LeaveGroup names: by their id, by their instance, or by both."""
        group = self.groups[group_id]
        gone: dict[str, ConsumerMember] = {}
        left: list[Left] = []
        for identity in identities:
            try:
                member = _named(group, identity)
            except RefusedRequestError as refused:
                left.append(Left(identity, refused.code))
            else:
                gone[member.member_id] = member
                left.append(Left(identity, ErrorCode.NONE))
        try:
            if gone:
                self._remove(group, *gone.values())
        except RefusedRequestError as refused:
            return [attrs.evolve(one, error_code=one.error_code or refused.code) for one in left]
        return left

    # offsets

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Return NONE if these may commit offsets to a group of ours, else what to tell them."""
        group = self.groups[commit.group_id]
        is_transactional = commit.producer is not None
        member = group.members.get(commit.member_id)
        if member is not None and not (
            member.is_classic or is_transactional or commit.knows_epochs
        ):
            return ErrorCode.UNSUPPORTED_VERSION
        partitions = [
            (NO_ID if (shape := self._cluster.topic_named(name)) is None else shape.topic_id, index)
            for name, index in commit.offsets
        ]
        error = group.commit_error(
            commit.member_id, commit.generation_id, partitions,
            is_anonymous_allowed=is_transactional and commit.group_instance_id is None,
        )  # fmt: skip
        if is_transactional and error is ErrorCode.STALE_MEMBER_EPOCH:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    # what the steps are made of

    def circumstances(
        self, group_id: str, may_see: Callable[[str], bool] | None = None
    ) -> Circumstances:
        """Return what somebody who speaks in a group, and may see these topics, meets now."""
        return Circumstances(
            self._cluster,
            self._default_assignor,
            self._settings(group_id).assignment_interval_ms,
            self._surroundings.now_ms(),
            may_see,
        )

    def _new(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self._settings(group_id).session_timeout_ms

    def _settings(self, group_id: str) -> GroupSettings:
        return GroupSettings.of(self._surroundings.config, self._cluster, group_id)

    def assignor_of(self, group: ConsumerGroup) -> str:
        """Return the assignor that most members of a group ask for, or else the first there is."""
        return group.assignor or self._default_assignor

    @property
    def _default_assignor(self) -> str:
        return self._surroundings.config.consumer_assignors[0]

    def note(self, group: ConsumerGroup, outcome: Outcome) -> None:
        """Remember what was looked at, and expect what must come next."""
        group.seen_shapes, group.seen_topic_names = outcome.shapes, outcome.topic_names
        before, after = outcome.before, outcome.after
        if outcome.replaced is not None:
            self._timers.stop_all(group.group_id, outcome.replaced.member_id)
        if after.is_classic:
            self.classic_members.expect_life(group, [after])
            return
        self.expect_life(group.group_id, after.member_id)
        for deadline in (Deadline.JOIN, Deadline.SYNC):
            self._timers.stop(group.group_id, after.member_id, deadline)
        if not after.is_giving_back:
            self._timers.stop(group.group_id, after.member_id, Deadline.REBALANCE)
        elif after != before:
            self._expect_revocation(group.group_id, after)

    def _remove(self, group: ConsumerGroup, *gone: ConsumerMember) -> None:
        gone_ids = {member.member_id for member in gone}
        left = {one: member for one, member in group.members.items() if one not in gone_ids}
        if self.classic_members.may_downgrade(left.values()):
            reason = "the group has become classic, as members have left"
            self.classic_members.become_classic(group, left, reason)
        else:
            super()._remove(group, *gone)

    def _epoch_with(
        self, group: ConsumerGroup, left: Mapping[str, ConsumerMember]
    ) -> list[GroupChange]:
        wanted = {member.subscribed_topic_regex for member in left.values()}
        kept = {regex: one for regex, one in group.regexes.items() if regex in wanted}
        hashed = metadata_hash(shapes_of(self._cluster, names_wanted(left.values(), kept)))
        return [
            *(records.no_regex(group.group_id, one) for one in group.regexes if one not in kept),
            records.group_epoch(group.group_id, group.epoch + 1, hashed),
        ]


def _named(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Return the member that is meant; administrators know an instance, and not its member id."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        current = group.static_member(instance_id)
        if member_id == NO_MEMBER_ID and current is not None:
            return current
        return static_member(group, instance_id, member_id)
    return group.member(member_id)
