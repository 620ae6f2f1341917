"""
All share groups of a coordinator: what is asked of them.

Source: the share part of ``GroupMetadataManager`` and ``GroupCoordinatorService``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.modern.cluster import metadata_hash, shapes_of
from logstore.compat.kafka.groups.modern.member import JOINING, LEAVING
from logstore.compat.kafka.groups.modern.modern_groups import ModernGroups
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.cluster import ShareCluster
from logstore.compat.kafka.groups.share.exchange import ShareHeartbeat, ShareHeartbeatAnswer
from logstore.compat.kafka.groups.share.group import ShareGroup, names_wanted
from logstore.compat.kafka.groups.share.group_states import GroupStates
from logstore.compat.kafka.groups.share.heartbeat import HeartbeatStep, Outcome, member_of
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.share_offsets import ShareOffsets
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.java_trim import is_blank
from logstore.compat.kafka.refused_request import RefusedRequestError


class ShareGroups(ModernGroups[ShareGroup, ShareMember]):
    """Owns the share groups of one coordinator; a group of another kind never becomes one."""

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: ShareCluster,
        groups: dict[str, ShareGroup],
        classic: dict[str, Group],
        is_taken: Callable[[str], bool],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        super().__init__(records.KIND, surroundings, groups, classic, is_taken, refusal)
        self._cluster = cluster
        #: begins and deletes what the groups have read
        self.states = GroupStates(self, cluster, surroundings)
        #: tells administrators where the groups start, and moves them
        self.offsets = ShareOffsets(self, cluster)

    # what members ask

    def heartbeat(self, beat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        """Note that a member lives, joins or leaves; tell it what it may read."""
        try:
            check_heartbeat(beat)
            refusal = self.refusal()
            if refusal is not ErrorCode.NONE:
                return ShareHeartbeatAnswer(refusal)
            return self._leave(beat) if beat.member_epoch == LEAVING else self._beat(beat)
        except RefusedRequestError as refused:
            return ShareHeartbeatAnswer(refused.code, refused.message)

    def _beat(self, beat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        group = self.group_or_new(beat.group_id, may_be_new=beat.member_epoch == JOINING)
        self._check_room(group, beat.member_id)
        before = member_of(group, beat)
        settings = self._cluster.share_settings_of(group.group_id)
        now_ms = self._surroundings.now_ms()
        step = HeartbeatStep(group, self._cluster, now_ms, settings.assignment_interval_ms)
        outcome = step.outcome(before, beat)
        beginning = self.states.beginning(group, outcome.shapes.values())
        self.commit(group, [*outcome.records, *beginning.records])
        group.seen_shapes = outcome.shapes
        self.expect_life(group.group_id, beat.member_id)
        self.states.begin(group, beginning, outcome.epoch)
        return self._answer(beat, outcome, settings.heartbeat_interval_ms)

    def _answer(
        self, beat: ShareHeartbeat, outcome: Outcome, interval_ms: int
    ) -> ShareHeartbeatAnswer:
        after = outcome.after
        must_tell = beat.member_epoch == JOINING or beat.subscribed_topic_names is not None
        must_tell = must_tell or after.assigned != outcome.before.assigned
        return ShareHeartbeatAnswer(
            ErrorCode.NONE,
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=interval_ms,
            assignment=after.assigned if must_tell else None,
        )

    def _check_room(self, group: ShareGroup, member_id: str) -> None:
        """Refuse who is not in a group that has all the members it may have (81)."""
        size_max = self._surroundings.config.share_group_max_size
        if len(group.members) >= size_max and member_id not in group.members:
            raise self._full(size_max)

    def _leave(self, beat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        group = self.group(beat.group_id)
        self._remove(group, group.member(beat.member_id))
        return ShareHeartbeatAnswer(
            ErrorCode.NONE, member_id=beat.member_id, member_epoch=beat.member_epoch
        )

    # administration

    def group_or_new(self, group_id: str, *, may_be_new: bool) -> ShareGroup:
        """
        Return a group, or a new one that nobody knows yet.

        Raises:
            RefusedRequestError: 69, it is of another kind, or not there and may not be new.

        """
        group = self.groups.get(group_id)
        if group is not None:
            return group
        if not may_be_new or group_id in self._classic or self._is_taken(group_id):
            raise self._not_joined(group_id)
        return self._new(group_id)

    def delete(self, group_id: str) -> ErrorCode:
        """Remove an empty group, and what is known of what it has read."""
        group = self.groups[group_id]
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        try:
            self.states.delete_all(group)
        except RefusedRequestError as refused:
            return refused.code

        def let_go() -> None:
            del self.groups[group_id]

        return self._surroundings.write(group_id, group.tombstones(), let_go)

    # what the steps are made of

    def _new(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id, self._surroundings.now_ms)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self._cluster.share_settings_of(group_id).session_timeout_ms

    def _epoch_with(self, group: ShareGroup, left: Mapping[str, ShareMember]) -> list[GroupChange]:
        hashed = metadata_hash(shapes_of(self._cluster, names_wanted(left)))
        return [records.group_epoch(group.group_id, group.epoch + 1, hashed)]


def check_heartbeat(beat: ShareHeartbeat) -> None:
    """
    Refuse a heartbeat that contradicts itself.

    Raises:
        RefusedRequestError: 42, with the reason.

    """
    if is_blank(beat.member_id):
        raise _invalid("MemberId can't be empty.")
    if is_blank(beat.group_id):
        raise _invalid("GroupId can't be empty.")
    if is_blank(beat.rack_id):
        raise _invalid("RackId can't be empty.")
    if beat.member_epoch == JOINING:
        if not beat.subscribed_topic_names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif beat.member_epoch < LEAVING:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
