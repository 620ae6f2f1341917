"""Consumer groups on a stage: a coordinator with topics, and members that send heartbeats."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.consumer.exchange import ConsumerHeartbeat, HeartbeatAnswer
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.groups.memory_offsets_log import MemoryOffsetsLog
from logstore.compat.kafka.groups.modern.cluster import MemoryCluster, TopicShape
from logstore.compat.kafka.groups.modern.group import TopicIdPartition
from logstore.compat.kafka.groups.modern.member import JOINING
from tests.compat.kafka.groups.rehearsal import GROUP, Rehearsal

SESSION_MS = 45_000
INTERVAL_MS = 5_000
REBALANCE_MS = 60_000


def topic_id(name: str) -> uuid.UUID:
    """Return the id that a topic of that name has here."""
    return uuid.uuid5(uuid.NAMESPACE_URL, name)


#: by itself there is no pause between two assignments
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"


class ConsumerRehearsal(Rehearsal):
    """One coordinator over topics that a test makes; heartbeats are in one group."""

    def __init__(
        self, topics: Mapping[str, int], log: MemoryOffsetsLog | None = None, **settings: Any
    ) -> None:
        self.cluster = MemoryCluster()
        for name, count in topics.items():
            self.make_topic(name, count)
        self.cluster.broker_settings[ASSIGNMENT_INTERVAL] = 0
        super().__init__(log, **settings)

    def _coordinator(self) -> GroupCoordinator:
        config = GroupConfig(**self.settings)
        return GroupCoordinator(config, self.timers, self.rng, self.log, self.cluster)

    def make_topic(self, name: str, partition_count: int) -> None:
        """Make a topic, or let it grow."""
        self.cluster.topics[name] = TopicShape(name, topic_id(name), partition_count)

    @property
    def consumer_group(self) -> ConsumerGroup:
        """The group, which must exist."""
        return self.groups.consumers.groups[GROUP]

    @property
    def content(self) -> dict[str, Any]:
        """All that the group is, and that a restart must not change."""
        group = self.consumer_group
        assignor = self.groups.consumers.assignor_of(group)
        return {
            "state": group.state,
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor": assignor,
            "members": list(group.members.values()),
            "targets": dict(group.targets),
        }

    def beat(self, member_id: str, epoch: int, /, **changes: Any) -> HeartbeatAnswer:
        """Send a heartbeat that says nothing but that the member lives."""
        beat = ConsumerHeartbeat(GROUP, member_id, epoch, "client", "/127.0.0.1")
        return self.groups.consumers.heartbeat(attrs.evolve(beat, **changes))

    def consumer(self, member_id: str, *topics: str, **changes: Any) -> Consumer:
        """Let a member join, whatever it is told."""
        consumer = Consumer(self, member_id, topics, changes)
        consumer.join()
        return consumer

    def settle(self, *consumers: Consumer) -> None:
        """Let every consumer send heartbeats until nothing changes any more."""
        for _ in range(20):
            before = [(one.epoch, one.owned) for one in consumers]
            for consumer in consumers:
                consumer.beat()
            if before == [(one.epoch, one.owned) for one in consumers]:
                return
        raise AssertionError("the group does not come to rest")


class Consumer:
    """A well-behaved member: it has what it was told to have, and says so when that changes."""

    def __init__(
        self,
        stage: ConsumerRehearsal,
        member_id: str,
        topics: tuple[str, ...],
        changes: Mapping[str, Any],
    ) -> None:
        self.stage = stage
        self.member_id = member_id
        self.topics = topics
        self.changes = changes
        self.epoch = JOINING
        self.owned: frozenset[TopicIdPartition] = frozenset()
        self.answer = HeartbeatAnswer(ErrorCode.NONE)
        self._told: frozenset[TopicIdPartition] | None = None

    def join(self, **changes: Any) -> HeartbeatAnswer:
        """Join with a full request and take what is given."""
        self.epoch, self.owned = JOINING, frozenset()
        full: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": frozenset(self.topics),
            "owned": frozenset(),
        }
        return self._send(**full | dict(self.changes) | changes)

    def beat(self, **changes: Any) -> HeartbeatAnswer:
        """Say what the member has, if that has changed, and take what is given."""
        owned = None if self.owned == self._told else self.owned
        return self._send(**{"owned": owned} | changes)

    def leave(self, epoch: int = -1) -> HeartbeatAnswer:
        """Leave, for good or for a while."""
        self.epoch = epoch
        return self._send()

    def _send(self, **changes: Any) -> HeartbeatAnswer:
        instance_id = self.changes.get("instance_id")
        fields = {"instance_id": instance_id} | changes
        answer = self.stage.beat(self.member_id, self.epoch, **fields)
        self.answer = answer
        if answer.error_code is ErrorCode.NONE:
            if changes.get("owned") is not None:
                self._told = self.owned
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = frozenset(
                    (one, index) for one, indexes in answer.assignment.items() for index in indexes
                )
        return answer

    def has(self, topic: str) -> set[int]:
        """Return which partitions of a topic the member has."""
        return {index for one, index in self.owned if one == topic_id(topic)}
