"""
The master's side at the service: slaves connect, get the commit log, and puts wait for them.

What is sent, and when, :mod:`logstore.segments.rocketmq.ha.master` knows; here are connections,
timers and whoever waits. (``DefaultHAService``, ``DefaultHAConnection``, ``GroupTransferService``)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.offload import Offload, run_at_once
from logstore.compat.waiting import Timers
from logstore.segments.rocketmq.ha.master import ReplicationMaster
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.wire.outbox import Outbox
    from logstore.segments.rocketmq.ha.master import (
        MasterConnection,
        ReplicatedLog,
        ReplicationWait,
    )
    from logstore.segments.rocketmq.ha.settings import HaSettings

__all__ = ["MasterService", "SlavePeer"]

_log = logging.getLogger(__name__)

#: how often connections are looked at that nothing happens on
_TICK_INTERVAL_MS = 100
#: so much is handed to the driver at a time; the slave's reports ask for the next
_WINDOW_BYTES = 1024 * 1024
_READ_BUFFER_BYTES = 4096

#: told what became of a put that waited for slaves
Settled = Callable[[PutMessageStatus], None]


class SlavePeer:
    """One slave's connection; implements :class:`logstore.compat.connection.Connection`."""

    def __init__(self, service: MasterService, connection: MasterConnection) -> None:
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False
        self.on_output: Callable[[], None] | None = None
        self.connection = connection
        self._service = service
        self._memory = memoryview(bytearray(_READ_BUFFER_BYTES))

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self._memory

    def received(self, count: int) -> None:
        """Take reports; whoever waited for one is told, and what comes next is made ready."""
        self._service.received(self, bytes(self._memory[:count]))

    def lost(self) -> None:
        """Take note that the slave is gone."""
        self._service.lost(self)

    def fill(self, now_ms: float) -> bool:
        """Make ready what is to be sent, if all before is out; tell whether there is anything."""
        if self.output:
            return False  # the kernel takes no more for now
        size_bytes = 0
        while size_bytes < _WINDOW_BYTES:
            chunk = self.connection.next_chunk(now_ms)
            if chunk is None:
                break
            self.output.append(chunk.header)
            if chunk.extent is not None:
                self.output.append(chunk.extent)
            size_bytes += chunk.size_bytes
        return bool(self.output)

    def push(self, now_ms: float) -> None:
        """Send what there is to send; hang up on a slave that has been silent for too long."""
        if self.connection.is_expired(now_ms):
            _log.warning("slave %s says nothing any more", self.connection.address)
            self.output.clear()
            self.is_closing = True
        elif not self.fill(now_ms):
            return
        if self.on_output is not None:
            self.on_output()


class MasterService:
    """
    All slaves of one broker; the service behind its ``haListenPort``.

    `timers` are the broker's, and run even where nobody listens; `outbox` gathers answers.
    """

    #: slaves are let go by ``haHousekeepingInterval``
    idle_ms_max = -1

    def __init__(
        self, commit_log: ReplicatedLog, settings: HaSettings, timers: Timers, outbox: Outbox
    ) -> None:
        self.master = ReplicationMaster(commit_log, settings)
        #: what the server of this service drives: nothing, since the broker's timers do it all
        self.timers = Timers(timers.clock)
        self.offload: Offload = run_at_once
        self._broker_timers = timers
        self._outbox = outbox
        self._peers: list[SlavePeer] = []
        self._waiting: dict[ReplicationWait, Settled] = {}
        self._is_ticking = False
        self._has_alarm = False

    def _now_ms(self) -> float:
        return self._broker_timers.clock.monotonic_ms()

    # slaves

    def connect(self, peer_host: str, peer_port: int) -> SlavePeer:
        """Take in a slave."""
        address = f"[{peer_host}]:{peer_port}" if ":" in peer_host else f"{peer_host}:{peer_port}"
        peer = SlavePeer(self, self.master.accept(self._now_ms(), address))
        self._peers.append(peer)
        _log.info("slave %s has come", address)
        if not self._is_ticking:
            self._is_ticking = True
            self._broker_timers.after(_TICK_INTERVAL_MS, self._tick)
        return peer

    def lost(self, peer: SlavePeer) -> None:
        """Let go of a slave."""
        if peer in self._peers:
            self._peers.remove(peer)
            self.master.remove(peer.connection)
            _log.info("slave %s has gone", peer.connection.address)

    def received(self, peer: SlavePeer, data: bytes) -> None:
        """Take reports of a slave."""
        now_ms = self._now_ms()
        self._settle(self.master.receive(peer.connection, data, now_ms))
        peer.fill(now_ms)

    @property
    def has_slaves(self) -> bool:
        """Tell whether anybody is to be sent what is put."""
        return bool(self._peers)

    def log_grew(self) -> None:
        """Send what has come; to be called when something was put."""
        if self._peers:
            now_ms = self._now_ms()
            for peer in self._peers[:]:
                peer.push(now_ms)

    def _tick(self) -> None:
        self._is_ticking = bool(self._peers)
        if self._peers:
            self._broker_timers.after(_TICK_INTERVAL_MS, self._tick)
            self.log_grew()

    # puts

    def wait(self, next_physical_offset: int, settled: Settled) -> None:
        """Call `settled` once enough slaves have all before, or it is known that they will not."""
        now_ms = self._now_ms()
        wait = self.master.wait_for(next_physical_offset, now_ms)
        if wait.status is not None:
            settled(wait.status)
            return
        self._waiting[wait] = settled
        self._set_alarm(now_ms)

    def _settle(self, waits: list[ReplicationWait]) -> None:
        if not waits:
            return
        with self._outbox.gathering():
            for wait in waits:
                assert wait.status is not None, "it is settled"
                self._waiting.pop(wait)(wait.status)

    def _set_alarm(self, now_ms: float) -> None:
        """See to it that nobody waits for longer than ``slaveTimeout``."""
        deadline_ms = self.master.next_deadline_ms()
        if deadline_ms is not None and not self._has_alarm:
            self._has_alarm = True
            self._broker_timers.after(max(deadline_ms - now_ms, 0), self._time_up)

    def _time_up(self) -> None:
        self._has_alarm = False
        now_ms = self._now_ms()
        self._settle(self.master.settle(now_ms))
        self._set_alarm(now_ms)
