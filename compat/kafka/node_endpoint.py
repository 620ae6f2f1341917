"""Where this broker is, told to whoever must learn who leads a partition (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.listener import Listener


def write_node_endpoint(broker: Broker, listener: Listener, writer: Writer) -> None:
    """Write the only node there is, as the clients of a listener reach it."""
    writer.count(1)
    writer.i32(broker.node_id)
    writer.string(listener.advertised_host.encode())
    writer.i32(listener.advertised_port)
    rack = broker.config.broker_rack
    writer.string(rack.encode() if rack else None)
    writer.tags()


def node_endpoint(broker: Broker, listener: Listener) -> bytes:
    """Return the same as bytes."""
    writer = Writer(is_flexible=True)
    write_node_endpoint(broker, listener, writer)
    return writer.body()
