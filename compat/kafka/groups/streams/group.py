"""One streams group: what its records say, and what can be asked about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.cluster import (
    Cluster,
    TopicShape,
    metadata_hash,
    shapes_of,
)
from logstore.compat.kafka.groups.consumer.hash_order import members_in_timeline_order
from logstore.compat.kafka.groups.exchange import ListedGroup
from logstore.compat.kafka.groups.group_records import GroupChange, encoded
from logstore.compat.kafka.groups.modern_group import LEAVING
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.exchange import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
)
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.states import MemberState, StreamsGroupState
from logstore.compat.kafka.groups.streams.task_owners import TaskOwners
from logstore.compat.kafka.groups.streams.tasks import NO_TASKS, NONE_HELD, TargetTasks
from logstore.compat.kafka.groups.streams.topics.configured_topology import ConfiguredTopology
from logstore.compat.kafka.groups.streams.topology import StreamsTopology

STREAMS_PROTOCOL_TYPE = "streams"
#: that of a group in which nobody does anything yet; it has no record
_FIRST_EPOCH = 1


class StreamsGroup:
    """
    The state of a streams group; only :meth:`apply` changes what is on disk.

    Source: ``StreamsGroup`` and ``GroupMetadataManager.replay``.
    """

    #: how clients call this kind of group
    group_type = "streams"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        #: that of the topology that could run with the topics of the time; -1 if none could
        self.validated_topology_epoch = 0
        #: what the assignor was last told
        self.assignment_configs: Mapping[str, str] = {}
        self.assignment_epoch = _FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, TargetTasks] = {}
        self.owners = TaskOwners()
        # What follows is not on disk, as in Kafka: the next coordinator finds it out anew.
        self.configured: ConfiguredTopology | None = None
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        self._hashed: tuple[Mapping[str, TopicShape], int] = ({}, 0)
        self._appliers: dict[int, Callable[[Any, Any], None]] = {
            records.EPOCH: self._apply_epoch,
            records.MEMBER: self._apply_member,
            records.TARGET_EPOCH: self._apply_target_epoch,
            records.TARGET: self._apply_target,
            records.CURRENT: self._apply_current,
            records.TOPOLOGY: self._apply_topology,
        }

    # what it is

    @property
    def is_empty(self) -> bool:
        """Tell whether it has no members."""
        return not self.members

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody is in it or about to be."""
        return self.is_empty

    @property
    def is_of_consumers(self) -> bool:
        """Tell whether the broker knows what the members read: it does."""
        return True

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

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int:
        """Return from when on the retention time of a committed offset counts: its commit."""
        return commit_timestamp_ms

    def seen(
        self, topology: StreamsTopology, cluster: Cluster
    ) -> tuple[Mapping[str, TopicShape], int]:
        """Return the topics that a topology needs and that are there, and their hash."""
        shapes = shapes_of(cluster, topology.required_topics)
        if shapes != self._hashed[0]:
            self._hashed = (shapes, metadata_hash(shapes))
        return self._hashed

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return NONE if these may ask for offsets, else what to tell; who says nothing may."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_current = member.member_epoch == member_epoch
        return ErrorCode.NONE if is_current else ErrorCode.STALE_MEMBER_EPOCH

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

    def listed(self) -> ListedGroup:
        """Return the group's line in a list."""
        return ListedGroup(self.group_id, STREAMS_PROTOCOL_TYPE, self.state, self.group_type)

    def described(self) -> DescribedStreamsGroup:
        """Return the group as administrators see it."""
        configured = self.configured
        return DescribedStreamsGroup(
            group_id=self.group_id,
            error_code=ErrorCode.NONE,
            state=self.state,
            epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            topology=configured if configured and configured.is_ready else self.topology,
            members=tuple(
                DescribedStreamsMember(self.members[one], self.target_of(one))
                for one in members_in_timeline_order(self.members)
            ),
        )

    def tombstones(self) -> list[GroupRecord]:
        """Return what takes the group out of the log."""
        return [encoded(record) for record in records.no_group(self.group_id, list(self.members))]

    # what its records change

    def apply(self, record: GroupChange) -> None:
        """Take in the next record."""
        self._appliers[record.record_type](record.key, record.value)

    def _apply_epoch(self, key: Any, value: Any) -> None:
        del key
        if value is not None:
            self.epoch = value.epoch
            self.metadata_hash = value.metadata_hash
            self.validated_topology_epoch = value.validated_topology_epoch
            pairs = value.last_assignment_configs or ()
            self.assignment_configs = {pair.key: pair.value for pair in pairs}

    def _apply_topology(self, key: Any, value: Any) -> None:
        del key
        self.topology = None if value is None else StreamsTopology.of(value)

    def _apply_target_epoch(self, key: Any, value: Any) -> None:
        del key
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _apply_target(self, key: Any, value: Any) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = records.target_in(value)

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
