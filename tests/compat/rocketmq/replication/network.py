"""Brokers on simulated hosts, and connections between them that no socket carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from logstore.compat.connection import Connection
from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, a_broker
from tests.compat.rocketmq.frames import joined

MASTER, MASTER_HA = "127.0.0.1:10911", "127.0.0.1:10912"


@attrs.define(eq=False)
class Line:
    """One connection: two ends, and the bytes that lie between them."""

    client: Connection
    server: Connection
    is_open: bool = True

    def carry(self) -> bool:
        """Move what either end says to the other; tell whether there was anything."""
        is_told = self._carry_one(self.client, self.server)
        return self._carry_one(self.server, self.client) or is_told

    def _carry_one(self, source: Connection, target: Connection) -> bool:
        data, source.output[:] = joined(source.output), []
        left = data
        while left and not target.is_closing:
            memory = target.writable()
            count = min(len(left), len(memory))
            memory[:count] = left[:count]
            target.received(count)
            left = left[count:]
        return bool(data)

    def cut(self) -> None:
        """Close the connection, for both ends."""
        if self.is_open:
            self.is_open = False
            self.client.lost()
            self.server.lost()


class Network:
    """Who listens where, who is connected with whom, and the clock that all share."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.brokers: list[Broker] = []
        self.listening: dict[str, Callable[[str, int], Connection]] = {}
        self.lines: list[Line] = []
        #: every address that somebody wanted to reach
        self.reached: list[str] = []

    def broker(
        self, settings: Mapping[str, str] | None = None, host: SimulatedHost | None = None
    ) -> Broker:
        """Return a broker on this network's clock."""
        host = SimulatedHost(clock=self.clock) if host is None else host
        broker = a_broker(host, settings)
        self.brokers.append(broker)
        return broker

    def listen(self, broker: Broker) -> None:
        """Have a broker reached as the master, at both of its addresses."""
        self.listening = {MASTER: broker.connect, MASTER_HA: broker.replication.connect}

    def reach(
        self,
        host: str,
        port: int,
        connect: Callable[[str, int], Connection],
        failed: Callable[[Exception], None],
    ) -> None:
        """Make both ends of a connection."""
        address = f"{host}:{port}"
        self.reached.append(address)
        if address not in self.listening:
            failed(ConnectionRefusedError("nobody listens"))
            return
        self.lines.append(Line(connect(host, port), self.listening[address]("127.0.0.1", 50001)))

    def settle(self) -> None:
        """Carry bytes and run timers until nothing moves any more."""
        for _ in range(10_000):
            self._close_ended()
            carried = [line.carry() for line in self.lines]
            ran = [broker.timers.run() for broker in self.brokers]
            if not any(carried) and not any(ran):
                return
        raise AssertionError("it never comes to rest")

    def run(self, ms: float) -> None:
        """Let time pass in steps of 100 ms."""
        self.settle()
        while ms > 0:
            step = min(ms, 100)
            self.clock.advance(step)
            ms -= step
            self.settle()

    def cut(self) -> None:
        """Close all connections."""
        for line in self.lines:
            line.cut()
        self._close_ended()

    def _close_ended(self) -> None:
        for line in self.lines:
            ends = (line.client, line.server)
            if any(end.is_closing and not end.output for end in ends):
                line.cut()
        self.lines = [line for line in self.lines if line.is_open]


SYNC = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
SLAVE = {"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true"}


class Pair:
    """A master and a slave that follows it."""

    def __init__(
        self,
        master: Mapping[str, str] | None = None,
        slave: Mapping[str, str] | None = None,
    ) -> None:
        self.network = Network()
        self.master = self.network.broker(master)
        self.master.topics.ensure(TOPIC, 4)
        self.slave = self.network.broker({**SLAVE, **(slave or {})})
        self.network.listen(self.master)
        self.role = SlaveRole(self.slave, self.network.reach)

    def connect(self) -> None:
        """Have the slave learn where its master is, and follow."""
        self.role.master_found(MASTER, MASTER_HA)
        self.network.settle()

    def logs(self) -> tuple[bytes, bytes]:
        """Return all bytes of both commit logs."""
        return log_of(self.master), log_of(self.slave)


def log_of(broker: Broker) -> bytes:
    """Return the bytes of a broker's commit log."""
    log = broker.store.commit_log
    position, pieces = log.min_physical_offset, [b""]
    while position < log.max_physical_offset:
        pieces.append(log.rest_of_file(position).read())
        position += len(pieces[-1])
    return b"".join(pieces)
