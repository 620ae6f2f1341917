"""
All consumer groups of a coordinator: what is asked of them, and what must happen in time.

What a request changes is on disk before it holds; a request that the disk refuses changes nothing.

Source: the consumer part of ``GroupMetadataManager``.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.cluster import Cluster, metadata_hash, shapes_of
from logstore.compat.kafka.groups.consumer.exchange import (
    ConsumerHeartbeat,
    DescribedConsumerGroup,
    HeartbeatAnswer,
)
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup, names_wanted
from logstore.compat.kafka.groups.consumer.group_settings import GroupSettings
from logstore.compat.kafka.groups.consumer.heartbeat import (
    Circumstances,
    HeartbeatStep,
    Outcome,
    told,
)
from logstore.compat.kafka.groups.consumer.member import LEAVING_FOR_A_WHILE, ConsumerMember
from logstore.compat.kafka.groups.consumer.member_timers import Deadline, MemberTimers
from logstore.compat.kafka.groups.consumer.membership import (
    member_of,
    static_member,
    unknown_member,
)
from logstore.compat.kafka.groups.consumer.request_check import check_heartbeat
from logstore.compat.kafka.groups.consumer.states import MemberState
from logstore.compat.kafka.groups.exchange import NO_MEMBER_ID, Left, MemberIdentity
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.group_records import GroupChange, encoded
from logstore.compat.kafka.groups.migration.classic_members import ClassicMembers
from logstore.compat.kafka.groups.migration.upgrade import upgraded
from logstore.compat.kafka.groups.modern_group import JOINING, LEAVING
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.schema import NO_ID
from logstore.segments.kafka.kafka_uuid import uuid_to_text

_LOG = logging.getLogger(__name__)
#: after which time something is tried again that the disk has refused
_RETRY_MS = 500


class ConsumerGroups:
    """
    Owns the consumer groups of one coordinator.

    `classic` are the coordinator's other groups: one becomes a consumer group as soon as somebody
    joins it as such, if it may. `refusal` tells what every request is refused with, `is_taken`
    whether a group of yet another kind has an id.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: Cluster,
        groups: dict[str, ConsumerGroup],
        classic: dict[str, Group],
        refusal: Callable[[], ErrorCode],
        is_taken: Callable[[str], bool],
    ) -> None:
        self.groups = groups
        self._surroundings = surroundings
        self._cluster = cluster
        self._classic = classic
        self._refusal = refusal
        self._is_taken = is_taken
        self._timers = MemberTimers(surroundings)
        #: answers those in the groups who speak the classic protocol
        self.classic_members = ClassicMembers(self, surroundings, cluster, classic, self._timers)

    # coming and going

    def replay(self, key: bytes, value: bytes | None) -> None:
        """
        Take over a record of the log, if it is about a consumer group.

        Raises:
            GroupRecordError: it cannot be read.

        """
        record = records.decoded(key, value)
        if record is None:
            return
        group_id: str = getattr(record.key, "group_id")  # noqa: B009 - every key of ours has one
        group = self.groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = self.groups[group_id] = ConsumerGroup(group_id)
            # Offsets alone make the group of a simple consumer; it has no record of its own.
            self._classic.pop(group_id, None)
        group.apply(record)
        if record.record_type == records.EPOCH and record.value is None:
            del self.groups[group_id]

    def start_timers(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        for group in self.groups.values():
            for member in group.members.values():
                self.expect_life(group, member)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._expect_revocation(group, member)

    def close(self) -> None:
        """Give all groups up."""
        self._timers.close()
        self.groups.clear()

    # what members ask

    def heartbeat(self, beat: ConsumerHeartbeat) -> HeartbeatAnswer:
        """Note that a member lives, joins or leaves; tell it what it may read."""
        refusal = self._refusal()
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
            number = self._surroundings.rng.getrandbits(128)
            member_id = uuid_to_text(uuid.UUID(int=number, version=4).bytes)
            beat = attrs.evolve(beat, member_id=member_id)
        newcomer = member_of(group, beat)
        step = HeartbeatStep(group, newcomer, told(newcomer.member, beat), self.circumstances())
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
        is_taken = self._is_taken(group_id)
        if is_taken or beat.member_epoch != JOINING:
            is_there = classic is not None or is_taken
            what = "is not a consumer group" if is_there else "not found"
            name = "Group" if is_there else "Consumer group"
            raise RefusedRequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"{name} {group_id} {what}.")
        if classic is None or classic.is_empty:
            return ConsumerGroup(group_id), []
        upgrade = upgraded(classic, self._cluster, self._surroundings.config)
        return upgrade.group, upgrade.records

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        """Refuse who is not in a group that has all the members it may have (81)."""
        size_max = self._surroundings.config.consumer_group_max_size
        if len(group.members) >= size_max and member_id not in group.members:
            raise RefusedRequestError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {size_max} members.",
            )

    def _leave(self, beat: ConsumerHeartbeat) -> HeartbeatAnswer:
        group = self.group(beat.group_id)
        if beat.instance_id is None:
            member = group.members.get(beat.member_id)
            if member is None:
                raise unknown_member(group, beat.member_id)
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
            self._remove(group, [member])
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
                self._remove(group, gone.values())
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

    def fetch_error(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for a group's offsets, else what to tell them."""
        group = self.groups.get(group_id)
        return ErrorCode.NONE if group is None else group.fetch_error(member_id, member_epoch)

    # administration

    def group(self, group_id: str) -> ConsumerGroup:
        """
        Return a group.

        Raises:
            RefusedRequestError: 69, it is not there or of another kind.

        """
        group = self.groups.get(group_id)
        if group is not None:
            return group
        is_other = group_id in self._classic or self._is_taken(group_id)
        text = (
            f"Group {group_id} is not a consumer group."
            if is_other
            else (f"Group {group_id} not found.")
        )
        raise RefusedRequestError(ErrorCode.GROUP_ID_NOT_FOUND, text)

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Return a group as it stands."""
        refusal = self._refusal()
        if refusal is ErrorCode.NONE and not group_id:
            refusal = ErrorCode.INVALID_GROUP_ID
        if refusal is not ErrorCode.NONE:
            return DescribedConsumerGroup(group_id, refusal)
        try:
            return self.group(group_id).described(self._surroundings.config.consumer_assignors[0])
        except RefusedRequestError as refused:
            return DescribedConsumerGroup(group_id, refused.code, refused.message)

    def forget(self, group_id: str) -> None:
        """Take note that an empty group was removed from the log."""
        group = self.groups.pop(group_id)
        assert group.is_empty, f"{group_id} has members"

    # what must happen in time

    def expect_life(
        self, group: ConsumerGroup, member: ConsumerMember, timeout_ms: int | None = None
    ) -> None:
        """Expect a sign of life of a member within a time, or else within that of the group."""
        if timeout_ms is None:
            timeout_ms = self._settings(group.group_id).session_timeout_ms
        self._timers.start(
            group.group_id, member.member_id, Deadline.SESSION, timeout_ms,
            partial(self.lapse, group.group_id, member.member_id, None, "its session has ended"),
        )  # fmt: skip

    def _expect_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._timers.start(
            group.group_id, member.member_id, Deadline.REBALANCE, member.rebalance_timeout_ms,
            partial(
                self.lapse, group.group_id, member.member_id, member.member_epoch,
                "it has not given its partitions back in time",
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
            self._remove(group, [member])
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            again = partial(self.lapse, group_id, member_id, epoch, reason)
            deadline = Deadline.SESSION if epoch is None else Deadline.REBALANCE
            self._timers.start(group_id, member_id, deadline, _RETRY_MS, again)

    # what the steps are made of

    def circumstances(self) -> Circumstances:
        """Return what somebody who speaks meets now."""
        return Circumstances(
            self._cluster,
            self._surroundings.config.consumer_assignors[0],
            self._surroundings.now_ms(),
        )

    def _settings(self, group_id: str) -> GroupSettings:
        return GroupSettings.of(
            self._surroundings.config, self._cluster.settings_of_group(group_id)
        )

    def commit(self, group: ConsumerGroup, changes: Sequence[GroupChange]) -> None:
        """Write records and let them hold; a group that is new takes a classic one's place."""
        if not changes:
            return
        group_id = group.group_id
        classic = self._classic.get(group_id)
        before = [] if classic is None else classic.tombstones()
        written = [*before, *map(encoded, changes)]
        error = self._surroundings.write(group_id, written)
        if error is not ErrorCode.NONE:
            raise RefusedRequestError(error)
        if classic is not None:
            del self._classic[group_id]
            classic.rebalance.die(ErrorCode.REBALANCE_IN_PROGRESS)
        self.groups[group_id] = group
        for record in changes:
            group.apply(record)

    def note(self, group: ConsumerGroup, outcome: Outcome) -> None:
        """Remember what was looked at, and expect what must come next."""
        group.seen_shapes, group.seen_topic_names = outcome.shapes, outcome.topic_names
        before, after = outcome.before, outcome.after
        if outcome.replaced is not None:
            self._timers.stop_all(group.group_id, outcome.replaced.member_id)
        if after.is_classic:
            self.classic_members.expect_life(group, [after])
            return
        self.expect_life(group, after)
        for deadline in (Deadline.JOIN, Deadline.SYNC):
            self._timers.stop(group.group_id, after.member_id, deadline)
        if after.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.stop(group.group_id, after.member_id, Deadline.REBALANCE)
        elif after != before:
            self._expect_revocation(group, after)

    def _remove(self, group: ConsumerGroup, gone: Iterable[ConsumerMember]) -> None:
        """Take members out; the others get what they had with their next heartbeats."""
        members = dict(group.members)
        changes: list[GroupChange] = []
        for member in gone:
            del members[member.member_id]
            changes += records.no_member(group.group_id, member.member_id)
        if self.classic_members.may_downgrade(members.values()):
            reason = "the group has become classic, as members have left"
            self.classic_members.become_classic(group, members, reason)
            return
        wanted = {member.subscribed_topic_regex for member in members.values()}
        kept = {regex: one for regex, one in group.regexes.items() if regex in wanted}
        changes += [
            records.no_regex(group.group_id, one) for one in group.regexes if one not in kept
        ]
        hashed = metadata_hash(shapes_of(self._cluster, names_wanted(members.values(), kept)))
        changes.append(records.group_epoch(group.group_id, group.epoch + 1, hashed))
        self.commit(group, changes)
        for member in gone:
            self._timers.stop_all(group.group_id, member.member_id)


def _named(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Return the member that is meant; administrators know an instance, and not its member id."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        current = group.static_member(instance_id)
        if member_id == NO_MEMBER_ID and current is not None:
            return current
        return static_member(group, instance_id, member_id)
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group, member_id)
    return member
