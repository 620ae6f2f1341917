"""Where the clients of each node come in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from logstore.compat.running import Entrance

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import KafkaConnection
    from logstore.compat.kafka.security.listener import Listener

_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - it is where the user listens
_HOME: Final = "127.0.0.1"


def node_entrances(broker: Broker, host: str, ports: Sequence[int]) -> Iterator[Entrance]:
    """Yield an entrance for each node, which tells clients where it is; port 0 is a free one."""
    for node, port in zip(broker.nodes.by_id.values(), ports, strict=True):
        (listener,) = node.listeners
        yield Entrance(
            host, port, partial(_connect, broker, listener), partial(_advertise, listener, host)
        )


def _connect(
    broker: Broker, listener: Listener, peer_host: str, peer_port: int = 0
) -> KafkaConnection:
    broker.connection_quotas.admit(listener, peer_host, peer_port)
    connection = broker.make_connection(broker, peer_host)
    connection.client.listener = listener
    return connection


def _advertise(listener: Listener, host: str, port: int) -> None:
    # Who listens everywhere is found at home.
    listener.advertised_host = _HOME if host in _EVERYWHERE else host
    listener.advertised_port = listener.port = port
