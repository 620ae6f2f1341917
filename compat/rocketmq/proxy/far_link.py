"""A client's connection to another broker than the one beside the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.connection import Channel, PeerGoneError, RemotingConnection
from logstore.compat.rocketmq.replication.follower import host_and_port
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.found_routes import Cluster
    from logstore.compat.rocketmq.registry import Handlers
    from logstore.compat.rocketmq.wire.remoting import Command

_TIMEOUT_MS = 3_000


class FarLink:
    """
    Asks the broker at `address`, and serves what it asks by `handlers`.

    It connects when it is asked something, and anew when the broker has hung up. Also the service
    behind its connection.
    """

    def __init__(
        self, broker: Broker, cluster: Cluster, name: str, address: str, handlers: Handlers
    ) -> None:
        self.broker_name = name
        self.address = address
        self.handlers = handlers
        self.timers = broker.timers
        self.outbox = Outbox()
        self.send_run = None
        self._cluster = cluster
        self._sign = broker.sign
        self._channel: Channel | None = None
        #: who waits for the connection; None where nobody makes it
        self._waiting: list[Later[Channel]] | None = None
        self._is_closed = False

    def ask(
        self,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_ms: int = _TIMEOUT_MS,
    ) -> Later[Command]:
        """
        Send a request; return its answer to come.

        The promise fails with ``PeerGoneError`` or ``AnswerTimeoutError``.
        """
        outcome: Later[Command] = Later()

        def reached(channel: Channel) -> None:
            asked = channel.ask(code, fields, body, timeout_ms=timeout_ms)
            asked.then(outcome.answer, outcome.fail)

        self._channel_to().then(reached, outcome.fail)
        return outcome

    def tell(self, code: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request that nobody answers."""
        self._channel_to().then(lambda channel: channel.tell(code, fields, body), _ignore)

    def close(self) -> None:
        """Hang up, once what was said before is out."""
        self._is_closed = True
        if self._channel is not None:
            self._channel.hang_up()

    def _channel_to(self) -> Later[Channel]:
        later: Later[Channel] = Later()
        found = host_and_port(self.address)
        if self._channel is not None and self._channel.is_open:
            later.answer(self._channel)
        elif self._is_closed or found is None:
            later.fail(PeerGoneError(f"{self.address} is not connected"))
        elif self._waiting is not None:
            self._waiting.append(later)
        else:
            self._waiting = [later]
            self._cluster.reach(*found, self._reached, self._failed)
        return later

    def _reached(self, host: str, port: int) -> RemotingConnection:
        connection = RemotingConnection(self, host, port)
        self._channel = connection.channel
        self._channel.sign = self._sign
        # What is said before the driver has the connection goes out when it is asked first.
        self.timers.after(0, self._tell_reached)
        return connection

    def _tell_reached(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        assert self._channel is not None, "it was reached"
        for later in waiting:
            later.answer(self._channel)
        if self._is_closed:
            self._channel.hang_up()

    def _failed(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting or [], None
        for later in waiting:
            later.fail(PeerGoneError(f"{self.address} cannot be reached: {error}"))

    def requests_served(self) -> None:
        """Do nothing: every request of the broker ends with its answer."""

    def disconnected(self, channel: Channel) -> None:
        """Connect anew when there is something to ask."""
        if self._channel is channel:
            self._channel = None


def _ignore(error: Exception) -> None:
    """Do nothing: nobody waits for an answer."""
