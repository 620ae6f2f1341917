"""The racks that nodes stand in, and how replicas and readers are shared out among them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, cycle, islice, zip_longest
from typing import TYPE_CHECKING

from logstore.compat.kafka.nodes.node import Node
from logstore.compat.kafka.nodes.placement import NOBODY

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.listener import Listener
    from logstore.segments.kafka.partition import KafkaPartition


def racks_of(text: str, count: int) -> list[str]:
    """
    Return the racks of so many nodes, as ``broker.rack`` has them.

    That of a broker alone is what it says; several brokers have settings in common, so that it
    names their racks in turn, with commas between them.
    """
    if count == 1:
        return [text]
    return list(islice(cycle(part.strip() for part in text.split(",")), count))


def striped(nodes: Iterable[Node]) -> list[int]:
    """
    Return the ids of nodes so that neighbours stand in different racks, as far as there are any.

    Source: ``StripedReplicaPlacer``.
    """
    by_rack: dict[str, list[int]] = {}
    for node in nodes:
        by_rack.setdefault(node.rack, []).append(node.node_id)
    rounds = zip_longest(*by_rack.values())
    return [node_id for node_id in chain.from_iterable(rounds) if node_id is not None]


def preferred_replica(
    broker: Broker, listener: Listener, partition: KafkaPartition, rack: bytes
) -> int:
    """
    Return the follower in a rack that a reader there is sent to by the leader it came to.

    It is in sync; nobody, where there is none or the leader is in the rack itself.
    Source: ``RackAwareReplicaSelector``, ``ReplicaManager.findPreferredReadReplica``.
    """
    placement, name = broker.placements.of(partition), rack.decode(errors="replace")
    leader, by_id = broker.nodes.node_of(listener), broker.nodes.by_id
    if placement.leader != leader.node_id or leader.rack == name:
        return NOBODY
    there = [by_id[one] for one in placement.in_sync if one in by_id]
    return max((one.node_id for one in there if one.is_up and one.rack == name), default=NOBODY)
