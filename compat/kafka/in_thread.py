"""A Kafka broker in a thread of this process, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.faults.faulty_connection import make_faulty
from logstore.compat.running import ServerThread
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.faults.request_faults import RequestFaults

#: what a test wants otherwise than a production broker
TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


class KafkaInThread:
    """Opened by the constructor, served between :meth:`start` and :meth:`stop`."""

    def __init__(
        self, host: Host, directory: str, settings: Mapping[str, str], emulate: str | None = None
    ) -> None:
        self.broker = Broker.open(
            host, directory, {**TEST_SETTINGS, **settings}, emulated_release=emulate
        )
        self.thread = ServerThread(self.broker, self._advertise)

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self.broker.advertised_port

    @property
    def proxy_port(self) -> int:
        """There is no proxy."""
        return 0

    @property
    def ports(self) -> tuple[int, ...]:
        """What :meth:`start` is told to serve where it serves now."""
        return self.port, 0

    def make_faulty(self, faults: RequestFaults) -> None:
        """Let requests meet `faults`; to be called before the start."""
        make_faulty(self.broker, faults)

    def start(self, port: int, broker_port: int) -> None:
        """Serve on `port`; there is no second one."""
        assert not broker_port, "a Kafka broker has one port"
        self.thread.start("127.0.0.1", port)

    def _advertise(self, port: int) -> None:
        self.broker.advertised_port = port
        self.broker.start_housekeeping()

    def stop(self) -> None:
        """Hang up on everybody."""
        self.thread.stop()

    def close(self) -> None:
        """Stop cleanly."""
        self.broker.close()

    def abandon(self) -> None:
        """Stop without a word to the disk."""
        self.broker.abandon()
