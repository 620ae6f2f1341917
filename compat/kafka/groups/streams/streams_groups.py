"""
All streams groups of a coordinator: what is asked of them, and what must happen in time.

What a request changes is on disk before it holds; a request that the disk refuses changes nothing.

Source: the streams part of ``GroupMetadataManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.consumer.cluster import Cluster
from logstore.compat.kafka.groups.consumer.member_timers import Deadline, MemberTimers
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.group_records import GroupChange, encoded
from logstore.compat.kafka.groups.modern_group import JOINING, LEAVING
from logstore.compat.kafka.groups.offsets_log import GroupRecordError
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.creation_errors import CreationErrors
from logstore.compat.kafka.groups.streams.endpoints import endpoints_of
from logstore.compat.kafka.groups.streams.exchange import (
    DescribedStreamsGroup,
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
    may_assign,
)
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.request_check import check_heartbeat
from logstore.compat.kafka.groups.streams.states import MemberState, StatusCode
from logstore.compat.kafka.groups.streams.target_assignment import new_target
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError

_LOG = logging.getLogger(__name__)
#: after which time something is tried again that the disk has refused
_RETRY_MS = 500
#: whom the whole group's timer is about
_EVERYBODY = ""


class StreamsGroups:
    """
    Owns the streams groups of one coordinator.

    `classic` are the coordinator's classic groups, of which an empty one becomes a streams group
    as soon as somebody joins it as such; `is_taken` tells whether a group of yet another kind has
    an id. `refusal` tells what every request is refused with.
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
        self.groups = groups
        #: why internal topics could not be made
        self.creation_errors = CreationErrors()
        self._surroundings = surroundings
        self._cluster = cluster
        self._classic = classic
        self._is_taken = is_taken
        self._refusal = refusal
        self._timers = MemberTimers(surroundings)

    # coming and going

    def replay(self, key: bytes, value: bytes | None) -> None:
        """
        Take over a record of the log, if it is about a streams group.

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
            group = self.groups[group_id] = StreamsGroup(group_id)
            # Offsets alone make the group of a simple consumer; it has no record of its own.
            self._classic.pop(group_id, None)
        try:
            group.apply(record)
        except RefusedRequestError as error:
            raise GroupRecordError(f"the topology of group {group_id} cannot be") from error
        if record.record_type == records.EPOCH and record.value is None:
            del self.groups[group_id]

    def start_timers(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        for group in self.groups.values():
            for member in group.members.values():
                self._expect_life(group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_TASKS:
                    self._expect_revocation(group.group_id, member)

    def close(self) -> None:
        """Give all groups up."""
        self._timers.close()
        self.groups.clear()

    # what members ask

    def heartbeat(self, beat: StreamsHeartbeat) -> HeartbeatAnswer:
        """Note that a member lives, joins or leaves; tell it what it shall run."""
        try:
            check_heartbeat(beat)
            refusal = self._refusal()
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
        endpoints = None
        if endpoint_epoch != beat.endpoint_epoch:
            endpoints = self._endpoints(group, outcome)
        self._commit(group.group_id, outcome.records)
        if is_known:
            group.configured, group.endpoint_epoch = outcome.configured, endpoint_epoch
            if beat.shuts_down_application and group.shutdown_member_id is None:
                group.shutdown_member_id = beat.member_id
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
        others = [one for one in group.members.values() if one.member_id != outcome.after.member_id]
        return endpoints_of([*others, outcome.after], outcome.configured, self._cluster)

    def _group_for(self, beat: StreamsHeartbeat) -> StreamsGroup:
        """Return the group, a new one that nobody knows yet if somebody joins."""
        group_id = beat.group_id
        group = self.groups.get(group_id)
        is_joining = beat.member_epoch == JOINING
        if group is None:
            classic = self._classic.get(group_id)
            if self._is_taken(group_id) or (
                classic is not None and not (is_joining and classic.is_empty)
            ):
                raise _not_found(f"Group {group_id} is not a streams group.")
            if not is_joining:
                raise _not_found(f"Streams group {group_id} not found.")
            group = StreamsGroup(group_id)
        size_max = self._cluster.integer("group.streams.max.size")
        if is_joining and len(group.members) >= size_max:
            raise RefusedRequestError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {size_max} members.",
            )
        return group

    def _member_for(self, group: StreamsGroup, beat: StreamsHeartbeat) -> StreamsMember:
        member = group.members.get(beat.member_id)
        if beat.member_epoch == JOINING:
            return StreamsMember(beat.member_id) if member is None else member
        if member is None:
            raise _unknown_member(group, beat.member_id)
        _check_epoch(member, beat)
        return member

    def _leave(self, beat: StreamsHeartbeat) -> HeartbeatAnswer:
        group = self.group(beat.group_id)
        if beat.shuts_down_application and group.shutdown_member_id is None:
            group.shutdown_member_id = beat.member_id
        member = group.members.get(beat.member_id)
        if member is None:
            raise _unknown_member(group, beat.member_id)
        self._remove(group, member)
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

    def fetch_error(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for a group's offsets, else what to tell them."""
        group = self.groups.get(group_id)
        return ErrorCode.NONE if group is None else group.fetch_error(member_id, member_epoch)

    # administration

    def group(self, group_id: str) -> StreamsGroup:
        """
        Return a group.

        Raises:
            RefusedRequestError: 69, it is not there or of another kind.

        """
        group = self.groups.get(group_id)
        if group is None:
            is_other = group_id in self._classic or self._is_taken(group_id)
            what = "is not a streams group" if is_other else "not found"
            raise _not_found(f"Group {group_id} {what}.")
        return group

    def describe(self, group_id: str) -> DescribedStreamsGroup:
        """Return a group as it stands."""
        refusal = self._refusal()
        if refusal is ErrorCode.NONE and not group_id:
            refusal = ErrorCode.INVALID_GROUP_ID
        if refusal is not ErrorCode.NONE:
            return DescribedStreamsGroup(group_id, refusal)
        try:
            return self.group(group_id).described()
        except RefusedRequestError as refused:
            return DescribedStreamsGroup(group_id, refused.code, refused.message)

    def settings(self, group_id: str) -> StreamsSettings:
        """Return the settings that hold for a group."""
        return StreamsSettings.of(self._cluster, group_id)

    def forget(self, group_id: str) -> None:
        """Take note that an empty group was removed from the log."""
        group = self.groups.pop(group_id)
        assert group.is_empty, f"{group_id} has members"
        self._timers.stop_all(group_id, _EVERYBODY)

    # what must happen in time

    def _expect_life(self, group_id: str, member_id: str) -> None:
        timeout_ms = self.settings(group_id).session_timeout_ms
        lapse = partial(self._lapse, group_id, member_id, None, "its session has ended")
        self._timers.start(group_id, member_id, Deadline.SESSION, timeout_ms, lapse)

    def _expect_revocation(self, group_id: str, member: StreamsMember) -> None:
        self._timers.start(
            group_id, member.member_id, Deadline.REBALANCE, member.rebalance_timeout_ms,
            partial(
                self._lapse, group_id, member.member_id, member.member_epoch,
                "it has not given its tasks back in time",
            ),
        )  # fmt: skip

    def _lapse(self, group_id: str, member_id: str, epoch: int | None, reason: str) -> None:
        """Remove a member whose time is up; if `epoch` is given, only one that is still in it."""
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return
        _LOG.info("group %s: %s is removed: %s", group_id, member_id, reason)
        try:
            self._remove(group, member)
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            again = partial(self._lapse, group_id, member_id, epoch, reason)
            deadline = Deadline.SESSION if epoch is None else Deadline.REBALANCE
            self._timers.start(group_id, member_id, deadline, _RETRY_MS, again)

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
        if not may_assign(group, self.settings(group_id).assignment_interval_ms, now_ms):
            return
        made = new_target(
            group, group.epoch, None, group.configured, group.assignment_configs, now_ms
        )
        try:
            self._commit(group_id, made.records)
        except RefusedRequestError:  # logged where it was refused; perhaps the disk recovers
            self._wait_for_members(group_id, _RETRY_MS)

    # what the steps are made of

    def _commit(self, group_id: str, changes: Sequence[GroupChange]) -> None:
        """Write records and let them hold; a group that is new takes a classic one's place."""
        if not changes:
            return
        classic = self._classic.get(group_id)
        before = [] if classic is None else classic.tombstones()
        error = self._surroundings.write(group_id, [*before, *map(encoded, changes)])
        if error is not ErrorCode.NONE:
            raise RefusedRequestError(error)
        if classic is not None:
            del self._classic[group_id]
            classic.rebalance.die(ErrorCode.REBALANCE_IN_PROGRESS)
        group = self.groups.setdefault(group_id, StreamsGroup(group_id))
        for record in changes:
            group.apply(record)

    def _note(self, group_id: str, outcome: Outcome) -> None:
        """Expect what must come next."""
        before, after = outcome.before, outcome.after
        self._expect_life(group_id, after.member_id)
        if after.state is not MemberState.UNREVOKED_TASKS:
            self._timers.stop(group_id, after.member_id, Deadline.REBALANCE)
        elif (after.member_epoch, after.assigned, after.pending_revocation) != (
            before.member_epoch, before.assigned, before.pending_revocation,
        ):  # fmt: skip
            self._expect_revocation(group_id, after)

    def _remove(self, group: StreamsGroup, member: StreamsMember) -> None:
        """Take a member out; the others get what it had with their next heartbeats."""
        change = records.group_epoch(
            group.group_id, group.epoch + 1, group.metadata_hash, group.validated_topology_epoch,
            group.assignment_configs,
        )  # fmt: skip
        self._commit(group.group_id, [*records.no_member(group.group_id, member.member_id), change])
        self._timers.stop_all(group.group_id, member.member_id)


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


def _check_epoch(member: StreamsMember, beat: StreamsHeartbeat) -> None:
    epoch = beat.member_epoch
    if epoch == member.member_epoch:
        return
    owned = beat.owned
    is_behind = epoch == member.previous_member_epoch < member.member_epoch
    if is_behind and owned is not None and owned.are_all_in(member.assigned):
        return  # the answer with the new epoch may have been lost
    which = "greater" if epoch > member.member_epoch else "smaller"
    raise RefusedRequestError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {which} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _not_found(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _unknown_member(group: StreamsGroup, member_id: str) -> RefusedRequestError:
    return RefusedRequestError(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )
