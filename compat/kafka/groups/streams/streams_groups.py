"""
All streams groups of a coordinator: what is asked of them, and what must happen in time.

Source: the streams part of ``GroupMetadataManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order
from logstore.compat.kafka.groups.modern.member import JOINING, LEAVING
from logstore.compat.kafka.groups.modern.member_timers import Deadline
from logstore.compat.kafka.groups.modern.modern_groups import RETRY_MS, ModernGroups
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.creation_errors import CreationErrors
from logstore.compat.kafka.groups.streams.endpoints import endpoints_of
from logstore.compat.kafka.groups.streams.exchange import (
    EndpointPartitions,
    HeartbeatAnswer,
    Status,
    StreamsHeartbeat,
)
from logstore.compat.kafka.groups.streams.group import StreamsGroup
from logstore.compat.kafka.groups.streams.group_settings import StreamsSettings
from logstore.compat.kafka.groups.streams.heartbeat import (
    Circumstances,
    HeartbeatStep,
    Outcome,
)
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.request_check import check_heartbeat
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.target_assignment import new_target
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError

_LOG = logging.getLogger(__name__)
#: whom the whole group's timer is about
_EVERYBODY = ""


class StreamsGroups(ModernGroups[StreamsGroup, StreamsMember]):
    """
    Owns the streams groups of one coordinator.

    An empty classic group becomes a streams group as soon as somebody joins it as such.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        cluster: Cluster,
        groups: dict[str, StreamsGroup],
        classic: dict[str, Group],
        is_taken: Callable[[str], bool],
        refusal: Callable[[], ErrorCode],
    ) -> None:
        super().__init__(records.KIND, surroundings, groups, classic, is_taken, refusal)
        self._cluster = cluster
        #: why internal topics could not be made
        self.creation_errors = CreationErrors()

    # what members ask

    def heartbeat(self, beat: StreamsHeartbeat) -> HeartbeatAnswer:
        """Note that a member lives, joins or leaves; tell it what it shall run."""
        try:
            check_heartbeat(beat)
            refusal = self.refusal()
            if refusal is not ErrorCode.NONE:
                return HeartbeatAnswer(refusal)
            return self._leave(beat) if beat.member_epoch == LEAVING else self._beat(beat)
        except RefusedRequestError as refused:
            return HeartbeatAnswer(refused.code, refused.message)
        finally:
            self._surroundings.answers.give()

    def _beat(self, beat: StreamsHeartbeat) -> HeartbeatAnswer:
        group = self._group_for(beat)
        member = self._member_for(group, beat)
        settings = self.settings(group.group_id)
        is_new = group.is_empty and settings.initial_rebalance_delay_ms > 0
        outcome = HeartbeatStep(
            group, member, beat,
            Circumstances(
                self._cluster, settings, self._surroundings.now_ms(),
                is_delayed=is_new or self._is_waiting(group.group_id),
            ),
        ).outcome()  # fmt: skip
        must_tell = beat.member_epoch == JOINING or member.assigned != outcome.after.assigned
        # As in Kafka a new group starts over once it is on disk: this is the epoch of a draft.
        is_known = group.group_id in self.groups
        is_listed = is_known or group.group_id in self._classic
        endpoint_epoch = group.endpoint_epoch
        if must_tell and outcome.after.user_endpoint is not None:
            endpoint_epoch += 1
        if is_known:  # even if what follows is refused
            group.configured, group.endpoint_epoch = outcome.configured, endpoint_epoch
            if beat.shuts_down_application and group.shutdown_member_id is None:
                group.shutdown_member_id = beat.member_id
        endpoints = None
        if endpoint_epoch != beat.endpoint_epoch:
            endpoints = self._endpoints(group, outcome)
        self.commit(group if is_known else self._new(group.group_id), outcome.records)
        self._note(group.group_id, outcome)
        if is_new and not self._is_waiting(group.group_id):
            self._wait_for_members(group.group_id, settings.initial_rebalance_delay_ms)
        after, error = outcome.after, outcome.configured.error
        shutdown = group.shutdown_member_id or (
            beat.member_id if beat.shuts_down_application else None
        )
        return HeartbeatAnswer(
            ErrorCode.NONE,
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            statuses=_statuses(outcome, shutdown),
            tasks=after.assigned if must_tell else None,
            endpoint_epoch=endpoint_epoch if is_listed else 0,
            endpoints=endpoints,
            missing={} if error is None else outcome.configured.missing,
        )

    def _endpoints(self, group: StreamsGroup, outcome: Outcome) -> tuple[EndpointPartitions, ...]:
        after = outcome.after
        others = [
            group.members[one]
            for one in members_in_timeline_order(group.members)
            if one != after.member_id
        ]
        return endpoints_of([*others, after], outcome.configured, self._cluster)

    def _group_for(self, beat: StreamsHeartbeat) -> StreamsGroup:
        """Return the group, a new one that nobody knows yet if somebody joins."""
        group_id = beat.group_id
        group = self.groups.get(group_id)
        is_joining = beat.member_epoch == JOINING
        if group is None:
            classic = self._classic.get(group_id)
            may_replace = classic is None or classic.is_empty
            if not is_joining or not may_replace or self._is_taken(group_id):
                raise self._not_joined(group_id)
            group = self._new(group_id)
        size_max = self._cluster.integer("group.streams.max.size")
        if is_joining and len(group.members) >= size_max:
            raise self._full(size_max)
        return group

    def _member_for(self, group: StreamsGroup, beat: StreamsHeartbeat) -> StreamsMember:
        if beat.member_epoch == JOINING:
            return group.members.get(beat.member_id) or StreamsMember(beat.member_id)
        member = group.member(beat.member_id)
        _check_epoch(group, member, beat)
        return member

    def _leave(self, beat: StreamsHeartbeat) -> HeartbeatAnswer:
        group = self.group(beat.group_id)
        if beat.shuts_down_application and group.shutdown_member_id is None:
            group.shutdown_member_id = beat.member_id
        self._remove(group, group.member(beat.member_id))
        return HeartbeatAnswer(
            ErrorCode.NONE, member_id=beat.member_id, member_epoch=beat.member_epoch
        )

    # offsets

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Return NONE if these may commit offsets to a group of ours, else what to tell them."""
        group = self.groups[commit.group_id]
        is_transactional = commit.producer is not None
        if (
            commit.member_id in group.members
            and not is_transactional
            and not commit.knows_epochs
            and not (commit.generation_id < 0 and group.is_empty)
        ):
            return ErrorCode.UNSUPPORTED_VERSION
        error = group.commit_error(
            commit.member_id, commit.generation_id, commit.offsets,
            is_anonymous_allowed=is_transactional and commit.group_instance_id is None,
        )  # fmt: skip
        if is_transactional and error is ErrorCode.STALE_MEMBER_EPOCH:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    # administration

    def settings(self, group_id: str) -> StreamsSettings:
        """Return the settings that hold for a group."""
        return StreamsSettings.of(self._cluster, group_id)

    def forget(self, group_id: str) -> None:
        """Take note that an empty group was removed from the log."""
        super().forget(group_id)
        self._timers.stop_all(group_id, _EVERYBODY)

    # what must happen in time

    def _is_waiting(self, group_id: str) -> bool:
        return self._timers.is_running(group_id, _EVERYBODY, Deadline.INITIAL_REBALANCE)

    def _wait_for_members(self, group_id: str, delay_ms: int) -> None:
        self._timers.start(
            group_id, _EVERYBODY, Deadline.INITIAL_REBALANCE, delay_ms,
            partial(self._assign_first, group_id),
        )  # fmt: skip

    def _assign_first(self, group_id: str) -> None:
        """Work out the first target of a group that has waited for its members."""
        group = self.groups.get(group_id)
        if group is None or group.is_empty or group.epoch <= group.assignment_epoch:
            return
        if group.configured is None:
            _LOG.warning("group %s: no first assignment, its topics are not known yet", group_id)
            return
        now_ms = self._surroundings.now_ms()
        if not group.may_assign(self.settings(group_id).assignment_interval_ms, now_ms):
            return
        made = new_target(
            group, group.epoch, None, group.configured, group.assignment_configs, now_ms
        )
        try:
            self.commit(group, made.records)
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            self._wait_for_members(group_id, RETRY_MS)

    # what the steps are made of

    def _new(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(group_id)

    def _session_timeout_ms(self, group_id: str) -> int:
        return self.settings(group_id).session_timeout_ms

    def _note(self, group_id: str, outcome: Outcome) -> None:
        """Expect what must come next."""
        before, after = outcome.before, outcome.after
        self.expect_life(group_id, after.member_id)
        if not after.is_giving_back:
            self._timers.stop(group_id, after.member_id, Deadline.REBALANCE)
        elif (after.member_epoch, after.assigned, after.pending_revocation) != (
            before.member_epoch, before.assigned, before.pending_revocation,
        ):  # fmt: skip
            self._expect_revocation(group_id, after)

    def _epoch_with(
        self, group: StreamsGroup, left: Mapping[str, StreamsMember]
    ) -> list[GroupChange]:
        del left
        epoch = records.group_epoch(
            group.group_id, group.epoch + 1, group.metadata_hash, group.validated_topology_epoch,
            group.assignment_configs,
        )  # fmt: skip
        return [epoch]


def _statuses(outcome: Outcome, shutdown_member_id: str | None) -> tuple[Status, ...]:
    """Return what the member is told, in Kafka's order."""
    found = list(outcome.statuses)
    error = outcome.configured.error
    if error is not None:
        found.append(Status(error.status, error.detail))
    if shutdown_member_id is not None:
        detail = (
            f"Streams group member {shutdown_member_id} encountered a fatal error and requested a "
            "shutdown for the entire application."
        )
        found.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
    return tuple(found)


def _check_epoch(group: StreamsGroup, member: StreamsMember, beat: StreamsHeartbeat) -> None:
    epoch = beat.member_epoch
    if epoch == member.member_epoch:
        return
    owned = beat.owned
    is_behind = epoch == member.previous_member_epoch < member.member_epoch
    if is_behind and owned is not None and owned.are_all_in(member.assigned):
        return  # the answer with the new epoch may have been lost
    raise group.fenced(member, epoch)
