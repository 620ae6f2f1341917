"""One streams group: what its records say, and what can be asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import (
    Cluster,
    TopicShape,
    metadata_hash,
    shapes_of,
)
from logstore.compat.kafka.groups.modern.group import ModernGroup
from logstore.compat.kafka.groups.modern.member import LEAVING
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import GroupRecordError
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.states import MemberState, StreamsGroupState
from logstore.compat.kafka.groups.streams.task_owners import TaskOwners
from logstore.compat.kafka.groups.streams.tasks import NO_TASKS, NONE_HELD, TargetTasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import ConfiguredTopology
from logstore.compat.kafka.groups.streams.topology import StreamsTopology
from logstore.compat.kafka.refused_request import RefusedRequestError


class StreamsGroup(ModernGroup[StreamsMember, TargetTasks]):
    """
    A group of the members of one application, who share its tasks.

    Source: ``StreamsGroup``.
    """

    def __init__(self, group_id: str) -> None:
        super().__init__(records.KIND, group_id, {records.TOPOLOGY: self._apply_topology})
        #: that of the topology that could run with the topics of the time; -1 if none could
        self.validated_topology_epoch = 0
        #: what the assignor was last told
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: StreamsTopology | None = None
        self.owners = TaskOwners()
        # What follows is not on disk, as in Kafka: the next coordinator finds it out anew.
        self.configured: ConfiguredTopology | None = None
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self._hashed: tuple[Mapping[str, TopicShape], int] = ({}, 0)

    # what it is

    @property
    def state(self) -> StreamsGroupState:
        """Where the group stands."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def target_of(self, member_id: str) -> TargetTasks:
        """Return what a member shall have."""
        return self.targets.get(member_id, NO_TASKS)

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether a member reads the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.reader_of

    def seen(
        self, topology: StreamsTopology, cluster: Cluster
    ) -> tuple[Mapping[str, TopicShape], int]:
        """Return the topics that a topology needs and that are there, and their hash."""
        shapes = shapes_of(cluster, topology.required_topics)
        if shapes != self._hashed[0]:
            self._hashed = (shapes, metadata_hash(shapes))
        return self._hashed

    def commit_error(
        self, member_id: str, member_epoch: int, partitions: Iterable[TopicPartition],
        *, is_anonymous_allowed: bool,
    ) -> ErrorCode:  # fmt: skip
        """
        Return NONE if offsets of these partitions may be committed, else what to tell.

        A member that has not heard of its new epoch yet may commit for the tasks that it was given
        before, and still has.
        """
        if member_epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if is_anonymous_allowed and member_epoch == -1 and not member_id:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_epoch == member.member_epoch:
            return ErrorCode.NONE
        if member_epoch > member.member_epoch or self.topology is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        for topic, partition in partitions:
            name = self.topology.reader_of.get(topic, "")
            epoch = member.assigned.active.get(name, {}).get(partition)
            if epoch is None:
                epoch = member.pending_revocation.active.get(name, {}).get(partition)
            if epoch is None or member_epoch < epoch:
                return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    # what its records change

    def _dead(self) -> list[GroupChange]:
        return records.no_group(self.group_id, list(self.members))

    def _target_in(self, value: Any) -> TargetTasks:
        return records.target_in(value)

    def _apply_epoch(self, key: Any, value: Any) -> None:
        super()._apply_epoch(key, value)
        if value is not None:
            self.validated_topology_epoch = value.validated_topology_epoch
            pairs = value.last_assignment_configs or ()
            self.assignment_configs = {pair.key: pair.value for pair in pairs}

    def _apply_topology(self, key: Any, value: Any) -> None:
        del key
        try:
            self.topology = None if value is None else StreamsTopology.of(value)
        except RefusedRequestError as error:
            raise GroupRecordError(f"the topology of group {self.group_id} cannot be") from error

    def _apply_member(self, key: Any, value: Any) -> None:
        before = self.members.get(key.member_id)
        if value is None:
            if before is not None:
                self._forget(before)
            return
        member = attrs.evolve(
            before or StreamsMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=value.user_endpoint,
            client_tags={pair.key: pair.value for pair in value.client_tags},
        )
        self._put(before, member)

    def _apply_current(self, key: Any, value: Any) -> None:
        before = self.members.get(key.member_id)
        if value is not None:
            member = attrs.evolve(
                before or StreamsMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState.of(value.state),
                assigned=records.held_in(
                    value.active_tasks, value.standby_tasks, value.warmup_tasks, value.member_epoch
                ),
                pending_revocation=records.held_in(
                    value.active_tasks_pending_revocation,
                    value.standby_tasks_pending_revocation,
                    value.warmup_tasks_pending_revocation,
                    value.member_epoch,
                ),
            )
            self._put(before, member)
        elif before is not None:
            gone = attrs.evolve(
                before,
                member_epoch=LEAVING,
                previous_member_epoch=LEAVING,
                assigned=NONE_HELD,
                pending_revocation=NONE_HELD,
            )
            self._put(before, gone)

    def _put(self, before: StreamsMember | None, member: StreamsMember) -> None:
        if before is not None:
            self.owners.remove(before)
        self.members[member.member_id] = member
        self.owners.add(member)

    def _forget(self, member: StreamsMember) -> None:
        self.owners.remove(member)
        del self.members[member.member_id]
        if not self.members:
            self.shutdown_member_id = None
