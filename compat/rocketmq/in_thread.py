"""A RocketMQ name server and broker in a thread of this process, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.faults.faulty_connection import make_faulty
from logstore.compat.rocketmq.proxy_door import proxy_door
from logstore.compat.rocketmq.standalone import Standalone
from logstore.compat.running import OpenDoor, Served, ServerThread
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.faults.request_faults import RequestFaults
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.server import Server

_HOST = "127.0.0.1"
#: what a test wants otherwise than a production broker: files that cost nothing
TEST_SETTINGS: Mapping[str, str] = {
    "mappedFileSizeCommitLog": "67108864",
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
}


class RocketMQInThread:
    """
    Opened by the constructor, served between :meth:`start` and :meth:`stop`.

    With `has_proxy` gRPC clients find it, too.
    """

    def __init__(
        self, host: Host, directory: str, settings: Mapping[str, str], *, has_proxy: bool = False
    ) -> None:
        self.standalone = Standalone.open(host, directory, {**TEST_SETTINGS, **settings})
        self.standalone.broker.lingers = False  # tests look into the store themselves
        self.thread: ServerThread | None = None
        #: the name server's, which clients are given
        self.port = 0
        #: the proxy's, if there is one
        self.proxy_port = 0
        self._has_proxy = has_proxy

    @property
    def broker(self) -> Broker:
        """The broker beside the name server."""
        return self.standalone.broker

    @property
    def ports(self) -> tuple[int, ...]:
        """What :meth:`start` is told to serve where it serves now."""
        return self.port, self.broker.advertised_port, self.proxy_port

    def make_faulty(self, faults: RequestFaults) -> None:
        """Let requests to both meet `faults`; to be called before the start."""
        for service in (self.broker, self.standalone.name_server):
            if service is not None:
                make_faulty(service, faults)

    def start(self, port: int, broker_port: int, proxy_port: int = 0) -> None:
        """Serve the name server on `port`, the broker and the proxy on theirs."""
        name_server = self.standalone.name_server
        assert name_server is not None, "a test broker has a name server of its own"
        ha_port = self.standalone.ha_port_wanted(0)
        self.thread = ServerThread(
            self.broker,
            self._advertise,
            Served(self.broker.replication, ha_port, self._listening_for_slaves),
            Served(name_server, port, self._listening),
            door=self._proxy_door(proxy_port) if self._has_proxy else None,
        )
        self.thread.start(_HOST, broker_port)

    def _proxy_door(self, port: int) -> OpenDoor:
        def opened(port: int) -> None:
            self.proxy_port = port

        return proxy_door(self.broker, _HOST, port, opened)

    def _advertise(self, port: int) -> None:
        self.standalone.advertise(_HOST, port)

    def _listening_for_slaves(self, server: Server, port: int) -> None:
        del server
        self.standalone.advertise_ha(port)

    def _listening(self, server: Server, port: int) -> None:
        self.port = port
        if self.standalone.name_server is not None:
            self.standalone.name_server.config.listen_on(port)
        self.standalone.start(server.reach)

    def stop(self) -> None:
        """Hang up on everybody."""
        if self.thread is not None:
            self.thread.stop()

    def close(self) -> None:
        """Stop cleanly."""
        self.standalone.close()

    def abandon(self) -> None:
        """Stop without a word to the disk."""
        self.standalone.abandon()
