"""Where a node is, told to whoever must learn who leads a partition (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.nodes.node import Node
    from logstore.compat.kafka.security.listener import Listener


def write_node(node: Node, listener: Listener, writer: Writer, *, has_rack: bool = True) -> None:
    """Write one node, as the clients of a listener reach it."""
    reached = node.listener_like(listener)
    writer.i32(node.node_id)
    writer.string(reached.advertised_host.encode())
    writer.i32(reached.advertised_port)
    if has_rack:
        writer.string(node.rack.encode() if node.rack else None)
    writer.tags()


def write_node_endpoints(
    broker: Broker, listener: Listener, writer: Writer, node_ids: Iterable[int] | None = None
) -> None:
    """Write the nodes that are up, or those of them that are named."""
    nodes = [one for one in broker.nodes.up if node_ids is None or one.node_id in node_ids]
    writer.count(len(nodes))
    for node in nodes:
        write_node(node, listener, writer)


def node_endpoints(
    broker: Broker, listener: Listener, node_ids: Iterable[int] | None = None
) -> bytes:
    """Return the same as bytes."""
    writer = Writer(is_flexible=True)
    write_node_endpoints(broker, listener, writer, node_ids)
    return writer.body()
