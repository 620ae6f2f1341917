"""A Kafka broker in a thread of this process, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.faults.faulty_connection import make_faulty
from logstore.compat.running import ServerThread
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.faults.request_faults import RequestFaults
    from logstore.compat.kafka.security.opening import OpenedListener
    from logstore.compat.running import Entrance

#: what a test wants otherwise than a production broker
TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
_HOST = "127.0.0.1"


class KafkaInThread:
    """Opened by the constructor, served between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        host: Host,
        directory: str,
        settings: Mapping[str, str],
        emulate: str | None = None,
        node_count: int = 1,
    ) -> None:
        given = {**TEST_SETTINGS, "offsets.topic.num.partitions": str(node_count), **settings}
        self.broker = Broker.open(
            host, directory, given, emulated_release=emulate, node_count=node_count
        )
        #: those that the settings name; none is the one that everybody has
        self._opened: list[OpenedListener] = []
        if "listeners" in settings:
            self._opened = self._open_listeners(settings)
        self.thread = ServerThread(self.broker, self._advertise)

    def _open_listeners(self, settings: Mapping[str, str]) -> list[OpenedListener]:
        from logstore.compat.kafka.security.opening import (
            listened_at,
            open_listeners,
            open_node_listeners,
        )

        try:
            points = listened_at(settings)
            opened = open_listeners(self.broker, points, settings)
            # Nobody knows whether the ports behind are free.
            free = [point._replace(port=0) for point in points]
            return opened + open_node_listeners(self.broker, free, {})
        except BaseException:
            self.broker.abandon()
            raise

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
        first, *more = [one.listener.port for one in self._opened] or self.node_ports
        return first, 0, *more

    @property
    def node_ports(self) -> list[int]:
        """The ports of the nodes that clients see."""
        return [node.listeners[0].advertised_port for node in self.broker.nodes.by_id.values()]

    def make_faulty(self, faults: RequestFaults) -> None:
        """Let requests meet `faults`; to be called before the start."""
        make_faulty(self.broker, faults)

    def start(self, port: int, broker_port: int, *more: int) -> None:
        """Serve on `port`, and on those in `more` by further listeners; 0 is what they say."""
        assert not broker_port, "a Kafka broker has one port"
        if self._opened:
            self._set_entrances((port, *more))
        elif not self.broker.nodes.is_alone:
            self._set_node_entrances((port, *more))
        self.thread.start(_HOST, port)
        self.broker.nodes.doors = self.thread.server

    def _set_entrances(self, ports: Sequence[int]) -> None:
        from logstore.compat.kafka.security.entrances import entrances

        found = entrances(self._opened, _HOST)
        for index, port in enumerate(ports):
            found[index] = found[index]._replace(port=port or found[index].port)
        self._enter_by(found)

    def _set_node_entrances(self, ports: Sequence[int]) -> None:
        from logstore.compat.kafka.nodes.entrances import node_entrances

        wanted = [*ports, *[0] * (len(self.broker.nodes.by_id) - len(ports))]
        self._enter_by(list(node_entrances(self.broker, _HOST, wanted)))

    def _enter_by(self, entrances: Sequence[Entrance]) -> None:
        self.thread = ServerThread(
            self.broker,
            lambda _: self.broker.start_housekeeping(),
            listens=False,
            entrances=entrances,
        )

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
