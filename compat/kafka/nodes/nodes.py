"""
The nodes of a cluster: which are up, and which of them leads, holds and coordinates what.

Partitions are spread as Kafka's ``StripedReplicaPlacer`` does it, from a start that the topic's
name tells. Where they were placed and moved is kept (:mod:`.placement_log`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.node import NOBODY, Node, Placement
from logstore.compat.kafka.nodes.racks import racks_of, striped
from logstore.compat.kafka.security.listener import Listener
from logstore.compat.kafka.topics.names import (
    GROUPS_TOPIC,
    SHARE_GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.nodes.placement_log import PlacementLog
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


class Doors(Protocol):
    """Where clients come in: what a server can do with its ports."""

    def shut(self, port: int) -> None:
        """Let nobody in by a port any more, and hang up on those who came in by it."""
        ...

    def reopen(self, port: int) -> None:
        """Let clients in by it again."""
        ...


class Nodes:
    """
    All nodes of a broker's cluster: itself, and `count` - 1 more with the ids behind its own.

    With one node everything is at home, and nothing of this is looked at.
    """

    def __init__(self, broker: Broker, count: int = 1) -> None:
        self._broker = broker
        racks = racks_of(broker.config.broker_rack or "", count)
        home = Node(broker.node_id, racks[0], broker.listeners)
        more = [
            Node(broker.node_id + number, racks[number], [Listener()]) for number in range(1, count)
        ]
        given = broker.config.given
        #: leaders send readers to a follower in their rack
        self.selects_by_rack = given["replica.selector.class"] == _BY_RACK
        self.by_id = {node.node_id: node for node in (home, *more)}
        #: there is one node, which everything is at
        self.is_alone = count == 1
        self._at_home = Placement((home.node_id,), (home.node_id,), home.node_id)
        #: of the server, once there is one
        self.doors: Doors | None = None
        #: by topic id
        self._placements: dict[bytes, dict[int, Placement]] = {}
        self._log = None if self.is_alone else self._opened_log()

    def _opened_log(self) -> PlacementLog:
        """Return where placements are kept, once those of before are taken over."""
        from logstore.compat.kafka.nodes.placement_log import PlacementLog

        log = PlacementLog(self._broker.host.fs, self._broker.store.directory)
        topic_ids = {topic.topic_id for topic in self._broker.topics.values()}
        for topic_id, kept in log.load(topic_ids).items():
            placements = self._placements[topic_id] = {}
            for index, one in kept.items():
                replicas = tuple(node_id for node_id in one.replicas if node_id in self.by_id)
                if replicas:
                    found = Placement.among(replicas, self._ids_up())
                    leader = one.leader if one.leader in found.in_sync else found.leader
                    placements[index] = found._replace(leader=leader)
        return log

    def _keep(self, topic: Topic) -> None:
        if self._log is not None:
            self._log.note(topic.topic_id, self._placements[topic.topic_id])

    # who is there

    @property
    def up(self) -> list[Node]:
        """The nodes that are up."""
        return [node for node in self.by_id.values() if node.is_up]

    @property
    def controller_id(self) -> int:
        """The node that is told to be the controller."""
        return min((node.node_id for node in self.up), default=NOBODY)

    def node_of(self, listener: Listener) -> Node:
        """Return the node by whose listener a client came in."""
        for node in self.by_id.values():
            if listener in node.listeners:
                return node
        return self.by_id[self._broker.node_id]

    def states(self) -> dict[int, bool]:
        """Return whether each node is up."""
        return {node.node_id: node.is_up for node in self.by_id.values()}

    # where partitions are

    def placement(self, topic: Topic, index: int) -> Placement:
        """Return where a partition is."""
        if self.is_alone:
            return self._at_home
        placements = self._placements.setdefault(topic.topic_id, {})
        found = placements.get(index)
        if found is None:
            replicas = self._spread(topic.name, index, self._factor_among(placements, topic.name))
            found = placements[index] = Placement.among(replicas, self._ids_up())
        return found

    def _factor_among(self, placements: Mapping[int, Placement], name: str) -> int:
        for placement in placements.values():
            return len(placement.replicas)
        return self.factor_of(name)

    def place(self, topic: Topic, factor: int, assigned: Assignments = ()) -> None:
        """Say how many replicas a new topic's partitions have, or which nodes hold some."""
        if self.is_alone:
            return
        up = self._ids_up()
        self._placements[topic.topic_id] = {
            index: Placement.among(self._spread(topic.name, index, factor), up)
            for index in topic.partitions
        }
        self.assign(topic, assigned)

    def assign(self, topic: Topic, assigned: Assignments) -> None:
        """Say which nodes hold partitions that are new."""
        if self.is_alone:
            return
        placements, up = self._placements.setdefault(topic.topic_id, {}), self._ids_up()
        for index, node_ids in assigned:
            placements[index] = Placement.among(tuple(node_ids), up)
        self._keep(topic)

    def reassign(self, topic: Topic, index: int, replicas: Sequence[int]) -> None:
        """Move a partition to other nodes; the leader stays if it is among them."""
        before = self.placement(topic, index)
        found = Placement.among(tuple(replicas), self._ids_up())
        if found.replicas == before.replicas:
            return
        if before.leader in found.in_sync:
            found = found._replace(leader=before.leader)
        self._change(topic, {index: found}, anew={index})

    def forget(self, topic: Topic) -> None:
        """Forget a topic that was deleted."""
        self._placements.pop(topic.topic_id, None)

    def factor_of(self, topic: str) -> int:
        """Return the replication factor of a topic for which nobody named one."""
        given = self._broker.config.given
        return max(1, min(given.integer(_FACTORS.get(topic, _FACTOR)), len(self.by_id)))

    def _spread(self, topic: str, index: int, factor: int) -> tuple[int, ...]:
        up = striped(self.up)
        down = self.down_among(self.by_id)
        start = zlib.crc32(topic.encode()) + index
        ids = [*_rotated(up, start), *_rotated(down, start)]
        return tuple(ids[:factor])

    def down_among(self, node_ids: Iterable[int]) -> tuple[int, ...]:
        """Return which of the nodes are down."""
        up = self._ids_up()
        return tuple(one for one in node_ids if one not in up)

    def _ids_up(self) -> set[int]:
        return {node.node_id for node in self.up}

    def coordinator_of(self, topic_name: str, key: str) -> int:
        """Return the node that coordinates what is kept in an internal topic under a key."""
        if self.is_alone:
            return self._broker.node_id
        from logstore.compat.kafka.groups.partitioning import partition_of

        topic = self._broker.topics.get(topic_name)
        if topic is None or not topic.partitions:
            return NOBODY
        return self.placement(topic, partition_of(key, max(topic.partitions) + 1)).leader

    def placement_of(self, partition: KafkaPartition) -> Placement:
        """Return where a partition is."""
        return self.placement(self._broker.topics[partition.topic], partition.index)

    def leads(self, listener: Listener, partition: KafkaPartition) -> bool:
        """Tell whether the node of a listener leads a partition."""
        return self.is_alone or self.is_led_by(self.node_of(listener).node_id, partition)

    def is_led_by(self, node_id: int, partition: KafkaPartition) -> bool:
        """Tell whether a node leads a partition."""
        return self.is_alone or self.placement_of(partition).leader == node_id

    def holds(self, listener: Listener, partition: KafkaPartition) -> bool:
        """Tell whether the node of a listener has a replica of a partition."""
        if self.is_alone:
            return True
        return self.node_of(listener).node_id in self.placement_of(partition).replicas

    def preferred_replica(self, listener: Listener, partition: KafkaPartition, rack: bytes) -> int:
        """
        Return the follower in a rack that a reader there is sent to by the leader it came to.

        It is in sync; nobody, where there is none or the leader is in the rack itself.
        Source: ``RackAwareReplicaSelector``, ``ReplicaManager.findPreferredReadReplica``.
        """
        placement, name = self.placement_of(partition), rack.decode(errors="replace")
        leader = self.node_of(listener)
        if placement.leader != leader.node_id or leader.rack == name:
            return NOBODY
        there = [self.by_id[one] for one in placement.in_sync if one in self.by_id]
        return max((one.node_id for one in there if one.is_up and one.rack == name), default=NOBODY)

    def append_error(self, listener: Listener, partition: KafkaPartition, acks: int) -> ErrorCode:
        """Return why the node of a listener does not append to a partition."""
        placement = self.placement_of(partition)
        if placement.leader != self.node_of(listener).node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        wanted = _effective_min(partition, placement)
        if acks == _ACKS_ALL and len(placement.in_sync) < wanted:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return ErrorCode.NONE

    def _in_sync_min(self, topic: Topic, index: int) -> int:
        """Return below how many replicas in sync those that fall out stay eligible; 0: never."""
        if not self._broker.store.metadata.fixes_min_insync_replicas:
            return 0
        return _effective_min(topic.partitions[index], self.placement(topic, index))

    # what changes

    def stop(self, node_id: int) -> None:
        """
        Take a node out: others in sync lead what it led. Fine if it is down.

        Raises:
            ValueError: there is no such node.

        """
        node = self._known(node_id)
        if not node.is_up:
            return
        node.is_up = False
        if self.doors is not None:
            for listener in node.listeners:
                self.doors.shut(listener.port)
        up = self._ids_up()
        self._change_all(lambda placement, least: placement.without(node_id, up, least))

    def start(self, node_id: int) -> None:
        """
        Let a node in again: it is in sync at once, and leads what nobody could lead.

        Raises:
            ValueError: there is no such node.
            OSError: its port has been taken by somebody else.

        """
        node = self._known(node_id)
        if node.is_up:
            return
        if self.doors is not None:
            for listener in node.listeners:
                self.doors.reopen(listener.port)
        node.is_up = True
        up = self._ids_up()
        self._change_all(lambda placement, least: placement.with_(node_id, up, least))

    def elect_where_fine(self) -> None:
        """Let replicas that are not in sync lead what nobody leads, where settings say so now."""
        self._change_all(lambda placement, _: placement)

    def _change_all(self, change: Callable[[Placement, int], Placement]) -> None:
        """Change every partition's placement, given how many are to be in sync at least."""
        if self.is_alone:
            return
        up = self._ids_up()
        for topic in self._broker.topics.values():
            changes: dict[int, Placement] = {}
            for index, partition in topic.partitions.items():
                after = change(self.placement(topic, index), self._in_sync_min(topic, index))
                if after.leader == NOBODY and partition.config.unclean_leader_election_enable:
                    after = after.uncleanly_led(up)
                changes[index] = after
            self._change(topic, changes)

    def _known(self, node_id: int) -> Node:
        node = self.by_id.get(node_id)
        if node is None:
            known = ", ".join(map(str, self.by_id))
            raise ValueError(f"there is no node {node_id}; there are {known}")
        return node

    def move_leaders(
        self, topic: Topic, indexes: Iterable[int], to: int | None = None
    ) -> dict[int, int]:
        """
        Let the next node in sync lead partitions, or the node `to`; return the leader epochs.

        Raises:
            ValueError: the node is not up, or not in sync.

        """
        changes: dict[int, Placement] = {}
        for index in indexes:
            before = self.placement(topic, index)
            leader = self._next_leader(before) if to is None else to
            if leader not in before.in_sync or leader not in self._ids_up():
                raise ValueError(
                    f"node {leader} cannot lead {topic.name}-{index}: of its replicas "
                    f"{list(before.replicas)} those in sync are {list(before.in_sync)}"
                )
            changes[index] = before._replace(leader=leader)
        self._change(topic, changes, anew=set(changes))
        return {index: topic.partitions[index].leader_epoch for index in changes}

    def elect(self, topic: Topic, index: int, *, is_unclean: bool) -> ErrorCode:
        """
        Let the preferred replica lead, or any if nobody does; return why that is not done.

        Source: ``ReplicationControlManager.electLeader``.
        """
        before, up = self.placement(topic, index), self._ids_up()
        if is_unclean:
            if before.leader != NOBODY:
                return ErrorCode.ELECTION_NOT_NEEDED
            after = before.uncleanly_led(up)
            if after.leader == NOBODY:
                return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            self._change(topic, {index: after})
            return ErrorCode.NONE
        leader = before.replicas[0]
        if before.leader == leader:
            return ErrorCode.ELECTION_NOT_NEEDED
        if leader not in up or leader not in before.in_sync:
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        self._change(topic, {index: before._replace(leader=leader)})
        return ErrorCode.NONE

    def _next_leader(self, placement: Placement) -> int:
        candidates = [one for one in placement.replicas if one in placement.in_sync]
        if placement.leader not in candidates:
            return placement.leader
        return candidates[(candidates.index(placement.leader) + 1) % len(candidates)]

    def _change(
        self, topic: Topic, changes: dict[int, Placement], anew: Iterable[int] = ()
    ) -> None:
        """Take changes over; a partition with another leader, or `anew`, is in its next epoch."""
        broker = self._broker
        moved: list[KafkaPartition] = []
        for index, placement in changes.items():
            if index in anew or placement.leader != self.placement(topic, index).leader:
                partition = topic.partitions[index]
                partition.become_leader(partition.leader_epoch + 1)
                moved.append(partition)
            if not self.is_alone:
                self._placements[topic.topic_id][index] = placement
        if moved:
            broker.store.metadata.adopt([topic])
            self._keep(topic)
        for partition in moved:
            broker.readers.abandon(partition)  # who waits for data learns of it


def _rotated(node_ids: Sequence[int], start: int) -> Sequence[int]:
    if not node_ids:
        return node_ids
    start %= len(node_ids)
    return [*node_ids[start:], *node_ids[:start]]


def _effective_min(partition: KafkaPartition, placement: Placement) -> int:
    """Return how many are to be in sync: no more than there are replicas."""
    return min(partition.config.min_insync_replicas, len(placement.replicas))
