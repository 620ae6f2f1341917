"""A broker for tests: in this process, on a free port, in milliseconds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from logstore.compat.kafka.broker import Broker
from logstore.compat.running import ServerThread
from logstore.host import Host
from logstore.os_host import system_host

ResultT = TypeVar("ResultT")

#: what a test wants otherwise than a production broker
TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


class TestBroker:
    """
    A Kafka broker in a thread of this process.

    ::

        with TestBroker() as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

    Without `directory` the data lives in a temporary directory that goes away at the end.
    `settings` are those of ``server.properties``; they win over :data:`TEST_SETTINGS`.
    """

    __test__ = False  # a class named Test... is not a test

    def __init__(
        self,
        directory: str | None = None,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        host: Host | None = None,
    ) -> None:
        self.directory = directory or ""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._wanted_port = port
        self._settings = {**TEST_SETTINGS, **(settings or {})}
        self._host = system_host() if host is None else host
        self._thread: ServerThread | None = None
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker:
        """The broker itself; touch it only through :meth:`call`."""
        assert self._broker is not None, "the broker runs only within the with statement"
        return self._broker

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self.broker.advertised_port

    @property
    def bootstrap(self) -> str:
        """What clients call ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    def call(self, work: Callable[[], ResultT]) -> ResultT:
        """Run `work` in the broker's thread; return what it returns, raise what it raises."""
        assert self._thread is not None, "the broker runs only within the with statement"
        return self._thread.call(work)

    def start(self) -> Self:
        """
        Open the store and serve it.

        Raises:
            ConfigError: a setting has a value that is not allowed.
            StorageError: the directory cannot be served.
            AddressError: the port is taken.

        """
        assert self._broker is None, "the broker runs already"
        if not self.directory:
            self._temporary = tempfile.TemporaryDirectory(prefix="logstore-")
            self.directory = self._temporary.name
        try:
            self._broker = Broker.open(self._host, self.directory, self._settings)
            self._thread = ServerThread(self._broker, self._advertise)
            self._thread.start("127.0.0.1", self._wanted_port)
        except BaseException:
            self.stop()
            raise
        return self

    def _advertise(self, port: int) -> None:
        self.broker.advertised_port = port
        self.broker.start_housekeeping()

    def stop(self) -> None:
        """Stop cleanly; a temporary directory goes away. Fine if it does not run."""
        thread, self._thread = self._thread, None
        broker, self._broker = self._broker, None
        try:
            if thread is not None:
                thread.stop()
        finally:
            self._close(broker)

    def _close(self, broker: Broker | None) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is None:
            if broker is not None:
                broker.close()
            return
        self.directory = ""
        with temporary:
            if broker is not None:
                broker.abandon()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
