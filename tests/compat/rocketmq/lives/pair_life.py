"""
A life of two brokers: a master as in any other life, and a slave that follows it.

The slave crashes, loses power, has bad disks and is cut off, whatever its master does. What it has
of the commit log is the master's byte for byte, its queues are, too, and what a sender was told by
a SYNC_MASTER the slave has. At the end the master's machine is gone, and the slave's store serves
all that clients were told.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.replication.slave_role import SlaveRole
from logstore.errors import LogStoreError
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss, PowerLost
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import a_broker
from tests.compat.rocketmq.lives.audit import Audit
from tests.compat.rocketmq.lives.life import Life
from tests.compat.rocketmq.lives.reader import Reader
from tests.compat.rocketmq.replication.network import (
    MASTER,
    MASTER_HA,
    SLAVE,
    SYNC,
    Network,
    log_of,
)

_ASYNC = {"brokerRole": "ASYNC_MASTER"}
_OPERATIONS_MAX = 120


class PairLife(Life):
    """One life of a master and its slave."""

    def __init__(self, seed: int) -> None:
        self.network = Network()
        self.slave: Broker | None = None
        super().__init__(seed)
        self.is_replicated = self.settings["brokerRole"] == "SYNC_MASTER"
        self.network.clock = self.host.clock
        self.world.carry = self._carry
        #: counts what may have cost the slave something that it had
        self.slave_losses = 0
        self._slave_faulty_steps = 0
        #: its disk has refused something since it started: it may want a start
        self._is_slave_ill = False
        #: how many losses the slave had had when a sender was told that it has a message
        self._told: dict[bytes, int] = {}
        self.slave_host = self._empty_host()
        self._slave_settings = {**self.settings, **SLAVE, "transientStorePoolEnable": "false"}
        self._start_slave()

    def _drawn_settings(self) -> dict[str, str]:
        role = SYNC if self.dice.random() < 0.7 else _ASYNC
        return {**super()._drawn_settings(), **role}

    def _empty_host(self) -> SimulatedHost:
        return SimulatedHost(self.dice.getrandbits(30), clock=self.host.clock)

    def _rare_deeds(self) -> dict[Callable[[], None], float]:
        return super()._rare_deeds() | {
            self._jump_clock: 0,  # the other's clock is the same
            self._break_disk: 0.01,
            self._plan_crash: 0.02,
            self._audit: 0.01,
            self._cut_off: 0.03,
            self._break_slave_disk: 0.02,
            self._plan_slave_crash: 0.03,
            self._restart_slave: 0.01,
            self._audit_slave: 0.04,
        }

    def _step(self) -> None:
        losses = self.slave_losses
        super()._step()
        for sent in self.chronicle.sent.values():
            if sent.is_told and sent.body not in self._told:
                self._told[sent.body] = losses
        self._check_told()
        if self._slave_faulty_steps:
            self._slave_faulty_steps -= 1
            if not self._slave_faulty_steps:
                self._mend_slave()

    # the master

    def _opened(self) -> Broker:
        for line in self.network.lines:
            line.is_open = False
            line.client.lost()
        self.network.lines = []
        broker = super()._opened()
        self.network.listen(broker)
        self.network.brokers = [broker, *([self.slave] if self.slave else [])]
        return broker

    def _recovered(self, durable: int) -> None:
        """What the master had not synced may be gone, or other than what the slave got of it."""
        super()._recovered(durable)
        end = self._slave_end
        if end > durable and (end > self.world.log_end or not self._is_prefix()):
            self._make_slave_anew()
        else:
            assert self._is_prefix(), "the logs differ in what the master had synced"

    # the slave

    @property
    def _slave_broker(self) -> Broker:
        assert self.slave is not None
        return self.slave

    @property
    def _slave_end(self) -> int:
        return int(self._slave_broker.store.commit_log.max_physical_offset)

    def _carry(self) -> None:
        try:
            self.network.settle()
        except PowerLost:
            if self.host.fs.is_off:
                raise
            self._slave_comes_back()

    def _start_slave(self) -> None:
        """Start the slave on what its disk has; its connections are gone."""
        for line in self.network.lines:
            line.is_open = False
            line.server.lost()
        self.network.lines = []
        slave = a_broker(self.slave_host, self._slave_settings)
        slave.start_housekeeping()
        self.slave, self._is_slave_ill = slave, False
        self.network.brokers = [self.broker, slave]
        self._role = SlaveRole(slave, self.network.reach)
        self._role.master_found(MASTER, MASTER_HA)

    def _slave_comes_back(self, loss: PowerLoss | None = None) -> None:
        self._slave_faulty_steps = 0
        self.slave_host.fs.faults.clear()
        may_be_torn = False
        while True:
            if loss is None:
                random_loss = PowerLoss.random(self.dice.getrandbits(30))
                loss = self.dice.choice((LOSE_UNSYNCED, random_loss, KEEP_EVERYTHING))
            if loss != KEEP_EVERYTHING:
                self.slave_losses += 1
                # Only bodies have a checksum: nobody sees that a power loss took properties.
                may_be_torn = self.settings["enabledAppendPropCRC"] == "false"
            self.events.append(f"slave: crash {loss}")
            self.slave_host.power_loss(loss)
            if self.dice.random() < 0.2:
                self._plan_slave_crash()
            try:
                self._start_slave()
            except PowerLost:
                loss = None
                continue
            if may_be_torn and not self._is_prefix():
                self._make_slave_anew()
            assert self._is_prefix(), "the slave's log is another one"
            self._check_told()
            return

    def _make_slave_anew(self) -> None:
        """Give the slave an empty disk: its log is no part of the master's any more."""
        self.events.append("slave: made anew")
        self.slave_host = self._empty_host()
        self.slave_losses += 1
        self._start_slave()

    def _plan_slave_crash(self) -> None:
        self.slave_host.fs.cut_power_after(self.dice.randrange(_OPERATIONS_MAX))

    def _restart_slave(self) -> None:
        if self.slave_host.fs.faults.planned:
            return
        try:
            self._role.stop()
            self._slave_broker.close()
        except PowerLost:
            self._slave_comes_back()
            return
        except (LogStoreError, OSError):  # a failed sync is final
            self._slave_comes_back(KEEP_EVERYTHING)
            return
        self.slave_host.fs.process_death()
        self._start_slave()

    def _cut_off(self) -> None:
        """Break the connections; for some time nobody may be reached."""
        self.network.cut()
        if self.dice.random() < 0.5:
            self.network.listening.clear()
            self._let_pass(self.dice.choice((100, 3000, 30_000)))
            self.network.listen(self.broker)

    def _break_slave_disk(self) -> None:
        kinds: list[FaultKind] = ["write", "write", "write", "sync", "open", "rename"]
        kind = self.dice.choice(kinds)
        code = self.dice.choice((errno.ENOSPC, errno.EIO))
        faults, after = self.slave_host.fs.faults, self.dice.randrange(6)
        if kind == "sync":
            faults.fail_next_sync(code, after=after, drops_unsynced=self.dice.random() < 0.5)
            self.slave_losses += 1
        else:
            faults.fail_next(
                kind, code, after=after, count=self.dice.choice((1, 1, 3)),
                partial_bytes=self.dice.choice((0, 10, 70)) if kind == "write" else 0,
            )  # fmt: skip
        self.events[-1] += f" {kind} {errno.errorcode[code]} after {after}"
        self._slave_faulty_steps, self._is_slave_ill = self.dice.randrange(1, 8), True

    def _mend_slave(self) -> None:
        self.slave_host.fs.faults.clear()
        self.events.append("slave: mended")
        self.slave_losses += 1  # a sync that failed may have dropped what came before it
        if self.dice.random() < 0.7:
            self._slave_comes_back(KEEP_EVERYTHING)

    # the truth

    def _is_prefix(self) -> bool:
        """Tell whether the slave's log is a part of its master's."""
        master, slave = self.broker.store.commit_log, self._slave_broker.store.commit_log
        start = max(master.min_physical_offset, slave.min_physical_offset)
        end = min(master.max_physical_offset, slave.max_physical_offset)
        if end <= start:
            return True
        pieces = [
            log_of(one)[start - one.store.commit_log.min_physical_offset :][: end - start]
            for one in (self.broker, self._slave_broker)
        ]
        return pieces[0] == pieces[1]

    def _check_told(self) -> None:
        """A SYNC_MASTER says that a message is stored when the slave has it, too."""
        if not self.is_replicated:
            return
        end = self._slave_end
        for sent in self.chronicle.sent.values():
            if sent.is_told and self._told.get(sent.body) == self.slave_losses:
                assert sent.physical_offset < end, f"{sent} is told; the slave ends at {end}"

    def _audit_slave(self) -> None:
        """Hold the slave's log and queues against its master's."""
        if self.slave_host.fs.faults.planned or self.host.fs.faults.planned:
            return
        if not (self.world.is_healthy and self.broker.store.running_flags.is_writeable):
            return
        self._let_pass(11_000)  # tables come over every ten seconds
        self.world.listen()
        assert self._is_prefix(), "the logs differ"
        if self._is_slave_ill or self._faulty_steps:
            return
        slave, end = self._slave_broker, self._slave_end
        start = int(slave.store.commit_log.min_physical_offset)
        if slave.store.dispatching.reput_from < slave.store.commit_log.wrote_where:
            return  # a message that came in part
        for place in sorted(self.chronicle.places):
            if slave.topics.get(place[0]) is None:
                continue
            wanted = [
                one for one in Reader(self.broker, self.dice).read(*place)
                if start <= one.physical_offset < end
            ]  # fmt: skip
            found = Reader(slave, self.dice).read(*place)
            first = self.broker.store.commit_log.min_physical_offset
            found = [one for one in found if one.physical_offset >= first]
            if place[0] in self.chronicle.dropped | self.chronicle.emptied:
                # A slave has what its master has removed until a queue begins at 0 again.
                found = found[len(found) - len(wanted) :]
            assert found == wanted, f"{place}: the slave has {found}, not {wanted}"

    def _end(self) -> None:
        """The slave comes to have everything, and is the master then."""
        self.slave_host.fs.faults.clear()
        self._slave_comes_back(KEEP_EVERYTHING)
        if self._slave_end < self.broker.store.commit_log.min_physical_offset:
            self._make_slave_anew()  # what it would go on with is past its time, and gone
        self._let_pass(30_000)
        super()._end()

    def _close(self) -> None:
        self.network.run(30_000)
        ends = self.world.log_end, self._slave_end
        assert ends[0] == ends[1], f"the logs end at {ends}"
        self._audit_slave()
        super()._close()
        self._role.stop()
        self._slave_broker.abandon()
        self.slave_host.power_loss(KEEP_EVERYTHING)
        # What only the slave knows stays: a master that crashed may have forgotten that somebody
        # had committed anything.
        offsets = self.chronicle.offsets
        self.chronicle.offsets = {key: one for key, one in offsets.items() if one.newest >= 0}
        successor = a_broker(
            self.slave_host, {**self._slave_settings, "brokerRole": "ASYNC_MASTER"}
        )
        Audit(successor, self.chronicle, self.dice).run()
        successor.close()
