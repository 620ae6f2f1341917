"""Both brokers on one store in a thread of this process, for tests."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.kafka import in_thread as kafka_in_thread
from logstore.compat.kafka.faults.faulty_connection import make_faulty as fail_kafka
from logstore.compat.rocketmq import in_thread as rocketmq_in_thread
from logstore.compat.rocketmq.faults.faulty_connection import make_faulty as fail_rocketmq
from logstore.compat.rocketmq.proxy_door import proxy_door
from logstore.compat.running import OpenDoor, Served, ServerThread
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.faults.request_faults import RequestFaults
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.rocketmq.broker import Broker as RocketMQBroker
    from logstore.compat.server import Server

_HOST = "127.0.0.1"


class BridgeInThread:
    """
    Opened by the constructor, served between :meth:`start` and :meth:`stop`.

    Only the `protocols` named are listened for.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        layout: str,
        protocols: Collection[str],
        *,
        has_proxy: bool = False,
    ) -> None:
        self.bridge = Bridge.open(
            host,
            directory,
            layout,
            {**kafka_in_thread.TEST_SETTINGS, **rocketmq_in_thread.TEST_SETTINGS, **settings},
        )
        self._protocols = protocols
        self.thread: ServerThread | None = None
        #: the RocketMQ name server's
        self.name_server_port = 0
        #: where its gRPC clients find it, if they do
        self.proxy_port = 0
        self._has_proxy = has_proxy

    @property
    def kafka(self) -> Broker:
        """The Kafka broker, whether or not it is listened for."""
        return self.bridge.kafka

    @property
    def rocketmq(self) -> RocketMQBroker:
        """The RocketMQ broker, whether or not it is listened for."""
        return self.bridge.standalone.broker

    @property
    def port(self) -> int:
        """The port that clients are given: Kafka's, if Kafka is among the protocols."""
        if "kafka" in self._protocols:
            return self.bridge.kafka.advertised_port
        return self.name_server_port

    @property
    def ports(self) -> tuple[int, ...]:
        """What :meth:`start` is told to serve where it serves now."""
        broker_port = self.rocketmq.advertised_port if "rocketmq" in self._protocols else 0
        return self.port, broker_port, self.proxy_port, self.name_server_port

    def make_faulty(self, faults: RequestFaults) -> None:
        """Let requests to all of them meet `faults`; to be called before the start."""
        fail_kafka(self.kafka, faults)
        fail_rocketmq(self.rocketmq, faults)
        name_server = self.bridge.standalone.name_server
        if name_server is not None:
            fail_rocketmq(name_server, faults)

    def start(
        self, port: int, broker_port: int, proxy_port: int = 0, name_server_port: int = 0
    ) -> None:
        """Serve; `port` is Kafka's, or with RocketMQ alone the name server's."""
        has_kafka, has_rocketmq = "kafka" in self._protocols, "rocketmq" in self._protocols
        name_server = self.bridge.standalone.name_server
        assert name_server is not None, "a test broker has a name server of its own"
        names_port = name_server_port if has_kafka else port
        self.thread = ServerThread(
            self.bridge.standalone.broker,
            self._advertise,
            Served(name_server, names_port if has_rocketmq else None, self._listening),
            Served(self.bridge.kafka, port if has_kafka else None, self._serving_kafka),
            listens=has_rocketmq,
            door=self._proxy_door(proxy_port) if self._has_proxy else None,
        )
        self.thread.start(_HOST, broker_port)

    def _proxy_door(self, port: int) -> OpenDoor:
        def opened(port: int) -> None:
            self.proxy_port = port

        return proxy_door(self.rocketmq, _HOST, port, opened)

    def _advertise(self, port: int) -> None:
        self.bridge.standalone.advertise(_HOST, port)

    def _listening(self, server: Server, port: int) -> None:
        self.name_server_port = port
        self.bridge.start_rocketmq(server.reach)

    def _serving_kafka(self, server: Server, port: int) -> None:
        del server
        self.bridge.start_kafka(_HOST, port)

    def stop(self) -> None:
        """Hang up on everybody."""
        if self.thread is not None:
            self.thread.stop()

    def close(self) -> None:
        """Stop cleanly."""
        self.bridge.close()

    def abandon(self) -> None:
        """Stop without a word to the disk."""
        self.bridge.abandon()


def data_below(directory: str) -> str:
    """Return a directory for data in `directory`, so that what stands beside it is in there too."""
    return os.path.join(directory, "data")
