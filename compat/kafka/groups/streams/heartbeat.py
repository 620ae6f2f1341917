"""
A heartbeat on its way through a group: who speaks, what has changed, what follows from it.

1. The member is new, or says something new about itself; the first one brings the topology.
2. The topology is held against the topics that there are. If one of the two has changed, or a
   setting, or a member, the group's epoch grows.
3. If the target assignment is of an older epoch, a new one is worked out, unless it is too early.
4. The member goes one step towards its target.

Nothing is changed here: the outcome has the records that do it, once they are on disk.

Source: ``GroupMetadataManager.streamsGroupHeartbeat``.
"""

from __future__ import annotations

from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.exchange import UNTOLD_MS, Status, StreamsHeartbeat
from logstore.compat.kafka.groups.streams.group import StreamsGroup
from logstore.compat.kafka.groups.streams.group_settings import StreamsSettings
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.reconciliation import Reconciliation
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.target_assignment import new_target
from logstore.compat.kafka.groups.streams.tasks import NO_TASKS, TargetTasks, Tasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import (
    ConfiguredTopology,
    configured,
)
from logstore.compat.kafka.groups.streams.topology import StreamsTopology
from logstore.compat.kafka.refused_request import RefusedRequestError


@attrs.frozen
class Circumstances:
    """What a heartbeat meets besides its group; `is_delayed`: the group waits for more members."""

    cluster: Cluster
    settings: StreamsSettings
    now_ms: int
    is_delayed: bool


@attrs.frozen
class Outcome:
    """What a heartbeat leads to: the member before and after, and the records in between."""

    before: StreamsMember
    after: StreamsMember
    records: list[GroupChange]
    statuses: list[Status]
    configured: ConfiguredTopology


def told(member: StreamsMember, beat: StreamsHeartbeat) -> StreamsMember:
    """Return a member with what a heartbeat says about it."""
    tags = None
    if beat.client_tags is not None:
        tags = {one.key: one.value for one in beat.client_tags}
        if len(tags) < len(beat.client_tags):
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    untold = beat.rebalance_timeout_ms == UNTOLD_MS
    changes: dict[str, Any] = {
        "rack_id": beat.rack_id,
        "rebalance_timeout_ms": None if untold else beat.rebalance_timeout_ms,
        "topology_epoch": None if beat.topology is None else beat.topology.epoch,
        "process_id": beat.process_id,
        "client_tags": tags,
        "user_endpoint": beat.user_endpoint,
    }
    return attrs.evolve(
        member,
        client_id=beat.client_id,
        client_host=beat.client_host,
        **{name: value for name, value in changes.items() if value is not None},
    )


class HeartbeatStep:
    """Works out what follows from a `member` of a group saying something; asked once."""

    def __init__(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        beat: StreamsHeartbeat,
        circumstances: Circumstances,
    ) -> None:
        self._group = group
        self._before = member
        self._updated = told(member, beat)
        self._beat = beat
        self._world = circumstances
        self._records: list[GroupChange] = []
        self._statuses: list[Status] = []

    def outcome(self) -> Outcome:
        """
        Return what follows.

        Raises:
            RefusedRequestError: 42, 110, 130 or -1, with the reason.

        """
        group, updated = self._group, self._updated
        if updated != self._before:
            self._records.append(records.member_metadata(group.group_id, updated))
        topology = self._topology()
        known = group.topology
        if known is not None and updated.topology_epoch < known.epoch:
            self._tell(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {updated.topology_epoch} is behind the group's "
                f"topology epoch {known.epoch}.",
            )
        shapes, hashed = group.seen(topology, self._world.cluster)
        found = group.configured
        if known is None or found is None or hashed != group.metadata_hash:
            found = group.configured = configured(topology, shapes)
        validated_epoch = -1
        if found.is_ready:
            validated_epoch = topology.epoch
            self._check_tasks(found)
        configs = self._world.settings.assignment_configs
        epoch = group.epoch
        if (
            updated != self._before
            or hashed != group.metadata_hash
            or validated_epoch != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            epoch += 1
            change = records.group_epoch(group.group_id, epoch, hashed, validated_epoch, configs)
            self._records.append(change)
        target_epoch, target = self._target(epoch, found)
        owned = self._beat.owned
        is_read = owned is not None and not updated.is_reconciled_to(target_epoch)
        if is_read and self._beat.names_twice:  # over which Kafka stumbles
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        reconciliation = Reconciliation(target, target_epoch, owned, group.owners)
        after = reconciliation.next_of(updated)
        if after != updated:
            self._records.append(records.current_assignment(group.group_id, after))
        return Outcome(self._before, after, self._records, self._statuses, found)

    def _tell(self, code: StatusCode, detail: str) -> None:
        self._statuses.append(Status(code, detail))

    def _topology(self) -> StreamsTopology:
        """Return the group's topology, with the record of a first one."""
        group, value = self._group, self._beat.topology
        if value is None:
            if group.topology is None:
                raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return group.topology
        asked = StreamsTopology.of(value)
        if group.topology is None:
            self._records.append(records.topology(group.group_id, value))
            return asked
        if group.topology.epoch <= asked.epoch and not group.topology.is_same(asked):
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."
            )
        return group.topology

    def _check_tasks(self, found: ConfiguredTopology) -> None:
        """Refuse a member that says it has tasks which do not exist (42)."""
        beat = self._beat
        for tasks in (beat.active, beat.standby, beat.warmup):
            _check_tasks(tasks or {}, found)

    def _target(self, epoch: int, found: ConfiguredTopology) -> tuple[int, TargetTasks]:
        """Return the target's epoch and the member's target, with the records of a new one."""
        group, world = self._group, self._world
        if world.is_delayed:
            self._tell(
                StatusCode.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured initial rebalance delay.",
            )
            return group.assignment_epoch, NO_TASKS
        last = group.assignment_epoch, group.target_of(self._updated.member_id)
        if group.assignment_epoch >= epoch:
            return last
        if not group.may_assign(world.settings.assignment_interval_ms, world.now_ms):
            self._tell(
                StatusCode.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured assignment interval.",
            )
            return last
        configs = world.settings.assignment_configs
        made = new_target(group, epoch, self._updated, found, configs, world.now_ms)
        self._records += made.records
        return epoch, made.targets[self._updated.member_id]


def _check_tasks(tasks: Tasks, found: ConfiguredTopology) -> None:
    for name, partitions in tasks.items():
        subtopology = (found.subtopologies or {}).get(name)
        if subtopology is None:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology."
            )
        for partition in sorted(partitions):
            if not 0 <= partition < subtopology.task_count:
                raise RefusedRequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {name} is invalid. Number of tasks for "
                    f"this subtopology: {subtopology.task_count}",
                )
