"""The racks that nodes stand in, and how replicas are shared out among them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, cycle, islice, zip_longest

from logstore.compat.kafka.nodes.node import Node


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
