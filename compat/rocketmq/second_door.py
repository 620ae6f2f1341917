"""
The broker's second port, two below its first: the same requests, another listener.

Slaves of 5.5.0 ask there for their master's topics, and clients with ``vipChannelEnabled`` send
there. (``BrokerController.fastRemotingServer``)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.waiting import Timers

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import RemotingConnection


class SecondDoor:
    """A service that lets in to a broker; timers and threads are those of the broker's server."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.timers = Timers(broker.host.clock)
        self.offload = broker.offload
        self.idle_ms_max = broker.idle_ms_max

    def connect(self, peer_host: str, peer_port: int) -> RemotingConnection:
        """Return the sans-IO side of a new connection."""
        return self._broker.connect(peer_host, peer_port)
