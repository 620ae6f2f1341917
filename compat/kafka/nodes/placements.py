"""
Which of the nodes of a cluster lead, hold and coordinate what.

Partitions are spread as Kafka's ``StripedReplicaPlacer`` does it, from a start that the topic's
name tells. Where they were placed and moved is kept (:mod:`.placement_log`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.placement import NOBODY, Placement
from logstore.compat.kafka.nodes.racks import striped
from logstore.compat.kafka.topics.names import (
    GROUPS_TOPIC,
    SHARE_GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.nodes.placement_log import PlacementLog
    from logstore.compat.kafka.security.listener import Listener
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.topic import Topic

#: how many replicas a topic has for which nobody named a number, by the setting that says it
_FACTORS = {
    GROUPS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
    SHARE_GROUPS_TOPIC: "share.coordinator.state.topic.replication.factor",
}
_FACTOR = "default.replication.factor"
_BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_ACKS_ALL = -1

#: partitions, and which nodes hold each
Assignments = Iterable[tuple[int, Sequence[int]]]


class Placements:
    """Where every partition of a broker is among its nodes; with one node, at home."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._nodes = broker.nodes
        self._is_alone = self._nodes.is_alone
        selector = broker.config.given["replica.selector.class"]
        #: leaders send readers to a follower in their rack
        self.select_by_rack = selector == _BY_RACK
        home = (broker.node_id,)
        self._at_home = Placement(home, home, broker.node_id)
        #: by topic id
        self._by_topic: dict[bytes, dict[int, Placement]] = {}
        self._log = None if self._is_alone else self._opened_log()

    def _opened_log(self) -> PlacementLog:
        """Return where placements are kept, once those of before are taken over."""
        from logstore.compat.kafka.nodes.placement_log import PlacementLog

        log = PlacementLog(self._broker.host.fs, self._broker.store.directory)
        topic_ids = {topic.topic_id for topic in self._broker.topics.values()}
        for topic_id, kept in log.load(topic_ids).items():
            placements = self._by_topic[topic_id] = {}
            for index, one in kept.items():
                replicas = tuple(it for it in one.replicas if it in self._nodes.by_id)
                if replicas:
                    found = Placement.among(replicas, self._nodes.ids_up)
                    leader = one.leader if one.leader in found.in_sync else found.leader
                    placements[index] = found._replace(leader=leader)
        return log

    def _keep(self, topic: Topic) -> None:
        if self._log is not None:
            self._log.note(topic.topic_id, self._by_topic[topic.topic_id])

    # where partitions are

    def find(self, topic: Topic, index: int) -> Placement:
        """Return where a topic's partition is."""
        if self._is_alone:
            return self._at_home
        placements = self._by_topic.setdefault(topic.topic_id, {})
        found = placements.get(index)
        if found is None:
            replicas = self._spread(topic.name, index, self._factor_among(placements, topic.name))
            found = placements[index] = Placement.among(replicas, self._nodes.ids_up)
        return found

    def of(self, partition: KafkaPartition) -> Placement:
        """Return where a partition is."""
        return self.find(self._broker.topics[partition.topic], partition.index)

    def leads(self, listener: Listener, partition: KafkaPartition) -> bool:
        """Tell whether the node of a listener leads a partition."""
        return self._is_alone or self.is_led_by(self._nodes.node_of(listener).node_id, partition)

    def is_led_by(self, node_id: int, partition: KafkaPartition) -> bool:
        """Tell whether a node leads a partition."""
        return self._is_alone or self.of(partition).leader == node_id

    def holds(self, listener: Listener, partition: KafkaPartition) -> bool:
        """Tell whether the node of a listener has a replica of a partition."""
        if self._is_alone:
            return True
        return self._nodes.node_of(listener).node_id in self.of(partition).replicas

    def coordinator_of(self, topic_name: str, key: str) -> int:
        """Return the node that coordinates what is kept in an internal topic under a key."""
        if self._is_alone:
            return self._broker.node_id
        from logstore.compat.kafka.groups.partitioning import partition_of

        topic = self._broker.topics.get(topic_name)
        if topic is None or not topic.partitions:
            return NOBODY
        return self.find(topic, partition_of(key, topic.partition_count)).leader

    def append_error(self, listener: Listener, partition: KafkaPartition, acks: int) -> ErrorCode:
        """Return why the node of a listener does not append to a partition."""
        placement = self.of(partition)
        if placement.leader != self._nodes.node_of(listener).node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        wanted = _effective_min(partition, placement)
        if acks == _ACKS_ALL and len(placement.in_sync) < wanted:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return ErrorCode.NONE

    # where they are put

    def place(self, topic: Topic, factor: int, assigned: Assignments = ()) -> None:
        """Say how many replicas a new topic's partitions have, or which nodes hold some."""
        if self._is_alone:
            return
        up = self._nodes.ids_up
        self._by_topic[topic.topic_id] = {
            index: Placement.among(self._spread(topic.name, index, factor), up)
            for index in topic.partitions
        }
        self.assign(topic, assigned)

    def assign(self, topic: Topic, assigned: Assignments) -> None:
        """Say which nodes hold partitions that are new."""
        if self._is_alone:
            return
        placements, up = self._by_topic.setdefault(topic.topic_id, {}), self._nodes.ids_up
        for index, node_ids in assigned:
            placements[index] = Placement.among(tuple(node_ids), up)
        self._keep(topic)

    def reassign(self, topic: Topic, index: int, replicas: Sequence[int]) -> None:
        """Move a partition to other nodes; the leader stays if it is among them."""
        before = self.find(topic, index)
        found = Placement.among(tuple(replicas), self._nodes.ids_up)
        if found.replicas == before.replicas:
            return
        if before.leader in found.in_sync:
            found = found._replace(leader=before.leader)
        self.change(topic, {index: found}, anew={index})

    def forget(self, topic: Topic) -> None:
        """Forget a topic that was deleted."""
        self._by_topic.pop(topic.topic_id, None)

    def factor_of(self, topic: str) -> int:
        """Return the replication factor of a topic for which nobody named one."""
        given = self._broker.config.given
        return max(1, min(given.integer(_FACTORS.get(topic, _FACTOR)), len(self._nodes.by_id)))

    def _factor_among(self, placements: Mapping[int, Placement], name: str) -> int:
        for placement in placements.values():
            return len(placement.replicas)
        return self.factor_of(name)

    def _spread(self, topic: str, index: int, factor: int) -> tuple[int, ...]:
        up = striped(self._nodes.up)
        down = self._nodes.down_among(self._nodes.by_id)
        start = zlib.crc32(topic.encode()) + index
        ids = [*_rotated(up, start), *_rotated(down, start)]
        return tuple(ids[:factor])

    # what changes

    def node_went(self, node_id: int) -> None:
        """Let others in sync lead what a node led that is gone."""
        up = self._nodes.ids_up
        self._change_all(lambda placement, least: placement.without(node_id, up, least))

    def node_came(self, node_id: int) -> None:
        """Let a node be in sync, and lead what nobody could lead."""
        up = self._nodes.ids_up
        self._change_all(lambda placement, least: placement.with_(node_id, up, least))

    def elect_where_fine(self) -> None:
        """Let replicas that are not in sync lead what nobody leads, where settings say so now."""
        self._change_all(lambda placement, _: placement)

    def _change_all(self, change: Callable[[Placement, int], Placement]) -> None:
        """Change every partition's placement, given how many are to be in sync at least."""
        if self._is_alone:
            return
        up = self._nodes.ids_up
        for topic in self._broker.topics.values():
            changes: dict[int, Placement] = {}
            for index, partition in topic.partitions.items():
                after = change(self.find(topic, index), self._in_sync_min(topic, index))
                if after.leader == NOBODY and partition.config.unclean_leader_election_enable:
                    after = after.uncleanly_led(up)
                changes[index] = after
            self.change(topic, changes)

    def _in_sync_min(self, topic: Topic, index: int) -> int:
        """Return below how many replicas in sync those that fall out stay eligible; 0: never."""
        if not self._broker.store.metadata.fixes_min_insync_replicas:
            return 0
        return _effective_min(topic.partitions[index], self.find(topic, index))

    def change(
        self, topic: Topic, changes: Mapping[int, Placement], anew: Iterable[int] = ()
    ) -> None:
        """Take changes over; a partition with another leader, or `anew`, is in its next epoch."""
        moved: list[KafkaPartition] = []
        for index, placement in changes.items():
            if index in anew or placement.leader != self.find(topic, index).leader:
                partition = topic.partitions[index]
                partition.become_leader(partition.leader_epoch + 1)
                moved.append(partition)
            if not self._is_alone:
                self._by_topic[topic.topic_id][index] = placement
        if moved:
            self._broker.store.metadata.adopt([topic])
            self._keep(topic)
        for partition in moved:
            self._broker.readers.abandon(partition)  # who waits for data learns of it


def _rotated(node_ids: Sequence[int], start: int) -> Sequence[int]:
    if not node_ids:
        return node_ids
    start %= len(node_ids)
    return [*node_ids[start:], *node_ids[:start]]


def _effective_min(partition: KafkaPartition, placement: Placement) -> int:
    """Return how many are to be in sync: no more than there are replicas."""
    return min(partition.config.min_insync_replicas, len(placement.replicas))
