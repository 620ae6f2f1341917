"""The port of a proxy: gRPC on the event loop of the broker behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from logstore.compat.grpc.connection import GrpcConnection
from logstore.compat.rocketmq.proxy.calls import ProxyCalls
from logstore.compat.rocketmq.secure_ports import OptionalTls
from logstore.compat.running import listen
from logstore.compat.server import Server
from logstore.compat.waiting import Timers

if TYPE_CHECKING:
    from logstore.compat.connection import Connection
    from logstore.compat.grpc.call import Call, Handling
    from logstore.compat.rocketmq.proxy.proxy import Proxy

_HTTP_2 = "h2"


class ProxyListener:
    """
    Gives a proxy the calls of its clients; to be used on one event loop.

    Who speaks TLS, and who must, is what the broker's settings say.

    Raises:
        ConfigError: everybody must, and there is no certificate for it.

    """

    def __init__(self, proxy: Proxy) -> None:
        broker = proxy.broker
        self.proxy = proxy
        self.message_bytes_max = proxy.settings.request_bytes_max
        self.timers = Timers(broker.host.clock)
        self.offload = broker.offload
        self.idle_ms_max = -1  # who listens says nothing for long
        self._calls = ProxyCalls(proxy)
        self._tls = OptionalTls.of(broker.config.settings, self._connect_within, protocol=_HTTP_2)
        self._server = Server(self)
        self._connections: WeakSet[GrpcConnection] = WeakSet()

    async def start(self, host: str, port: int) -> int:
        """
        Listen; return the port.

        Raises:
            AddressError: the address is taken, or not ours.

        """
        return await listen(self._server, host, port)

    async def stop(self) -> None:
        """Hang up on everybody, and say so: who is told calls elsewhere, or again."""
        self._calls.end_all()
        for connection in tuple(self._connections):
            connection.hang_up()
        await self._server.stop()
        self.proxy.close()

    def connect(self, peer_host: str, peer_port: int) -> Connection:
        """Return the sans-IO side of a new connection."""
        tls = self._tls
        if tls is None:
            return self._connect_within(peer_host, peer_port)
        connection = GrpcConnection(
            self,
            peer_host,
            peer_port,
            lambda data: tls.heir(peer_host, peer_port, data),
            is_plain_refused=tls.is_enforced,
        )
        self._connections.add(connection)
        return connection

    def _connect_within(self, peer_host: str, peer_port: int) -> GrpcConnection:
        connection = GrpcConnection(self, peer_host, peer_port)
        self._connections.add(connection)
        return connection

    def begin(self, call: Call) -> Handling | None:
        """Return what serves a call, None if the proxy has no such method."""
        return self._calls.begin(call)

    def send(self, on_output: Callable[[], None]) -> None:
        """Send what a connection has to say, with what others have."""
        self.proxy.broker.outbox.send(on_output)
