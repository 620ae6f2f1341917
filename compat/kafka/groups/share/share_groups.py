"""
All share groups of a coordinator: what is asked of them, and what must happen in time.

What a request changes is on disk before it holds; a request that the disk refuses changes nothing.

Source: the share part of ``GroupMetadataManager`` and ``GroupCoordinatorService``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.cluster import metadata_hash, shapes_of
from logstore.compat.kafka.groups.consumer.member_timers import Deadline, MemberTimers
from logstore.compat.kafka.groups.group_records import GroupChange, encoded
from logstore.compat.kafka.groups.modern_group import JOINING, LEAVING
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.cluster import ShareCluster
from logstore.compat.kafka.groups.share.exchange import (
    DescribedShareGroup,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
)
from logstore.compat.kafka.groups.share.group import ShareGroup, names_wanted
from logstore.compat.kafka.groups.share.group_states import GroupStates
from logstore.compat.kafka.groups.share.heartbeat import (
    HeartbeatStep,
    Outcome,
    member_of,
    unknown_member,
)
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.share_offsets import ShareOffsets
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError

_LOG = logging.getLogger(__name__)
#: after which time something is tried again that the disk has refused
_RETRY_MS = 500


class ShareGroups:
    """
    Owns the share groups of one coordinator.

    `is_other` tells whether a group of another kind has a name; `refusal` what every request is
    refused with.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: ShareCluster,
        groups: dict[str, ShareGroup],
        is_other: Callable[[str], bool],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        self.groups = groups
        self.refusal = refusal
        self._surroundings = surroundings
        self._cluster = cluster
        self._is_other = is_other
        self._timers = MemberTimers(surroundings)
        #: begins and deletes what the groups have read
        self.states = GroupStates(self, cluster, surroundings)
        #: tells administrators where the groups start, and moves them
        self.offsets = ShareOffsets(self, cluster)

    # coming and going

    def replay(self, key: bytes, value: bytes | None) -> None:
        """
        Take over a record of the log, if it is about a share group.

        Raises:
            GroupRecordError: it cannot be read.

        """
        record = records.decoded(key, value)
        if record is None:
            return
        group_id = record.group_id
        group = self.groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = self.groups[group_id] = self._new(group_id)
        group.apply(record)
        if record.record_type == records.EPOCH and record.value is None:
            del self.groups[group_id]

    def start_timers(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        for group in self.groups.values():
            for member_id in group.members:
                self._expect_life(group.group_id, member_id)

    def close(self) -> None:
        """Give all groups up."""
        self._timers.close()
        self.groups.clear()

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
        self._expect_life(group.group_id, beat.member_id)
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
            raise RefusedRequestError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {size_max} members.",
            )

    def _leave(self, beat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        group = self.group(beat.group_id)
        if beat.member_id not in group.members:
            raise unknown_member(group, beat.member_id)
        self._remove(group, beat.member_id)
        return ShareHeartbeatAnswer(
            ErrorCode.NONE, member_id=beat.member_id, member_epoch=beat.member_epoch
        )

    # administration

    def group(self, group_id: str) -> ShareGroup:
        """
        Return a group.

        Raises:
            RefusedRequestError: 69, it is not there or of another kind.

        """
        return self._found(group_id, f"Group {group_id} not found.")

    def group_or_new(self, group_id: str, *, may_be_new: bool) -> ShareGroup:
        """
        Return a group, or a new one that nobody knows yet.

        Raises:
            RefusedRequestError: 69, it is of another kind, or not there and may not be new.

        """
        if may_be_new and group_id not in self.groups and not self._is_other(group_id):
            return self._new(group_id)
        return self._found(group_id, f"Share group {group_id} not found.")

    def describe(self, group_id: str) -> DescribedShareGroup:
        """Return a group as it stands."""
        refusal = self.refusal()
        if refusal is ErrorCode.NONE and not group_id:
            refusal = ErrorCode.INVALID_GROUP_ID
        if refusal is not ErrorCode.NONE:
            return DescribedShareGroup(group_id, refusal)
        try:
            return self.group(group_id).described()
        except RefusedRequestError as refused:
            return DescribedShareGroup(group_id, refused.code, refused.message)

    def delete(self, group_id: str) -> ErrorCode:
        """Remove an empty group, and what is known of what it has read."""
        group = self.groups[group_id]
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        try:
            self.states.delete_all(group)
        except RefusedRequestError as refused:
            return refused.code
        error = self._surroundings.write(group_id, group.tombstones())
        if error is ErrorCode.NONE:
            del self.groups[group_id]
        return error

    # what the steps are made of

    def commit(self, group: ShareGroup, changes: Sequence[GroupChange]) -> None:
        """Write records and let them hold; raises RefusedRequestError if the disk refuses."""
        if not changes:
            return
        error = self._surroundings.write(group.group_id, [encoded(one) for one in changes])
        if error is not ErrorCode.NONE:
            raise RefusedRequestError(error)
        self.groups[group.group_id] = group
        for record in changes:
            group.apply(record)

    def _new(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id, self._surroundings.now_ms)

    def _found(self, group_id: str, unknown: str) -> ShareGroup:
        group = self.groups.get(group_id)
        if group is not None:
            return group
        is_other = self._is_other(group_id)
        text = f"Group {group_id} is not a share group." if is_other else unknown
        raise RefusedRequestError(ErrorCode.GROUP_ID_NOT_FOUND, text)

    def _expect_life(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._cluster.share_settings_of(group_id).session_timeout_ms
        lapse = partial(self._lapse, group_id, member_id)
        self._timers.start(group_id, member_id, Deadline.SESSION, timeout_ms, lapse)

    def _lapse(self, group_id: str, member_id: str) -> None:
        group = self.groups.get(group_id)
        if group is None or member_id not in group.members:
            return
        _LOG.info("group %s: %s is removed: its session has ended", group_id, member_id)
        try:
            self._remove(group, member_id)
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            again = partial(self._lapse, group_id, member_id)
            self._timers.start(group_id, member_id, Deadline.SESSION, _RETRY_MS, again)

    def _remove(self, group: ShareGroup, member_id: str) -> None:
        """Take a member out; the others get what it had with their next heartbeats."""
        left: dict[str, ShareMember] = dict(group.members)
        del left[member_id]
        hashed = metadata_hash(shapes_of(self._cluster, names_wanted(left)))
        changes = [
            *records.no_member(group.group_id, member_id),
            records.group_epoch(group.group_id, group.epoch + 1, hashed),
        ]
        self.commit(group, changes)
        self._timers.stop_all(group.group_id, member_id)


def check_heartbeat(beat: ShareHeartbeat) -> None:
    """
    Refuse a heartbeat that contradicts itself.

    Raises:
        RefusedRequestError: 42, with the reason.

    """
    if not beat.group_id:
        raise _invalid("GroupId can't be empty.")
    if beat.rack_id == "":
        raise _invalid("RackId can't be empty.")
    if beat.member_epoch == JOINING:
        if not beat.subscribed_topic_names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif beat.member_epoch < LEAVING:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
