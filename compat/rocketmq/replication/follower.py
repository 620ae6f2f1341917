"""
The slave's side at the service: a connection to the master's HA port, made again and again.

What is said on it :mod:`logstore.segments.rocketmq.ha.slave` knows. (``DefaultHAClient``)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.errors import LogStoreError
from logstore.segments.rocketmq.ha.flow_monitor import FlowMonitor
from logstore.segments.rocketmq.ha.settings import RECONNECT_AFTER_MS
from logstore.segments.rocketmq.ha.slave import SlaveClient

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.registrar import Reach
    from logstore.compat.waiting import Timer, Timers
    from logstore.segments.rocketmq.ha.settings import HaSettings
    from logstore.segments.rocketmq.store import RocketMQStore

__all__ = ["Follower", "MasterPeer", "host_and_port"]

_log = logging.getLogger(__name__)

#: a master that is away, as while it restarts, is looked for this often
_LOOK_AGAIN_AFTER_MS = 1000
_TICK_INTERVAL_MS = 1000
_READ_BUFFER_BYTES = 256 * 1024


def host_and_port(address: str) -> tuple[str, int] | None:
    """Return the parts of ``host:port``, None where it is no such thing."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return None
    return host.strip("[]"), int(port)


class _ReplicaStore:
    """A store as the state machine sees it."""

    def __init__(self, store: RocketMQStore) -> None:
        self._store = store

    @property
    def max_physical_offset(self) -> int:
        """Where the commit log ends."""
        return self._store.commit_log.max_physical_offset

    def append_raw(self, physical_offset: int, data: Buffer) -> bool:
        """Append bytes of the master's log; tell whether they fitted."""
        taken: bool = self._store.append_raw(physical_offset, data)
        return taken


class MasterPeer:
    """A connection to the master; implements :class:`logstore.compat.connection.Connection`."""

    def __init__(self, follower: Follower, hello: bytes) -> None:
        self.output: list[Chunk] = [hello] if hello else []
        self.is_closing = False
        self.is_waiting = False
        self.on_output: Callable[[], None] | None = None
        self._follower = follower
        self._memory = memoryview(bytearray(_READ_BUFFER_BYTES))

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self._memory

    def received(self, count: int) -> None:
        """Take what the master sent."""
        self._follower.received(self, bytes(self._memory[:count]))

    def lost(self) -> None:
        """Take note that the master is gone."""
        self.is_closing = True
        self._follower.lost(self)

    def say(self, report: bytes) -> None:
        """Send a report."""
        if report and not self.is_closing:
            self.output.append(report)
            if self.on_output is not None:
                self.on_output()

    def hang_up(self) -> None:
        """Close the connection."""
        self.output.clear()
        self.is_closing = True
        if self.on_output is not None:
            self.on_output()


class Follower:
    """
    Keeps a slave's commit log like its master's.

    `reach` makes connections; `on_growth` is called when the log has grown. Nothing happens before
    :meth:`follow` has said where the master is.
    """

    def __init__(
        self,
        store: RocketMQStore,
        settings: HaSettings,
        timers: Timers,
        reach: Reach,
        on_growth: Callable[[], None],
    ) -> None:
        self.client = SlaveClient(_ReplicaStore(store), settings, timers.clock.monotonic_ms())
        self.flow = FlowMonitor(settings, timers.clock.monotonic_ms())
        #: the master's host and HA port, "" while nobody knows
        self.address = ""
        self.peer: MasterPeer | None = None
        #: when bytes came from and went to the master last, by the wall clock
        self.last_read_ms = self.last_write_ms = 0
        self._timers = timers
        self._reach = reach
        self._on_growth = on_growth
        self._is_reaching = False
        self._is_stopped = False
        self._retry: Timer | None = None

    @property
    def is_connected(self) -> bool:
        """Tell whether there is a connection to the master."""
        return self.peer is not None

    def follow(self, address: str) -> None:
        """Follow the master at that ``host:port``, and nobody else any more."""
        if address == self.address or self._is_stopped:
            return
        if host_and_port(address) is None:
            _log.error("%r is no address of a master", address)
            return
        is_first = not self.address
        self.address = address
        _log.info("following the master at %s", address)
        if self.peer is not None:
            self.peer.hang_up()  # the next connection goes to the new one
        elif not self._is_reaching:
            self._connect()
        if is_first:
            self._timers.after(_TICK_INTERVAL_MS, self._tick)

    def stop(self) -> None:
        """Follow nobody any more."""
        self._is_stopped = True
        if self._retry is not None:
            self._retry.cancel()
        if self.peer is not None:
            self.peer.hang_up()

    def received(self, peer: MasterPeer, data: bytes) -> None:
        """Append what the master sent, and say how far it is."""
        if peer is not self.peer or peer.is_closing:
            return
        clock = self._timers.clock
        self.last_read_ms = clock.wall_ms()
        self.flow.count(len(data), clock.monotonic_ms())
        try:
            report = self.client.receive(data, clock.monotonic_ms())
        except (LogStoreError, OSError) as error:
            _log.error("master %s: %s", self.address, error)
            self._drop(RECONNECT_AFTER_MS)
            return
        if report:
            self.last_write_ms = clock.wall_ms()
            peer.output.append(report)
            self._on_growth()

    def lost(self, peer: MasterPeer) -> None:
        """Look for the master again."""
        if peer is self.peer:
            _log.warning("master %s has gone", self.address)
            self._drop(_LOOK_AGAIN_AFTER_MS)

    def _drop(self, retry_after_ms: int) -> None:
        peer, self.peer = self.peer, None
        if peer is not None and not peer.is_closing:
            peer.hang_up()
        if not self._is_stopped:
            self._retry = self._timers.after(retry_after_ms, self._connect)

    def _connect(self) -> None:
        found = host_and_port(self.address)
        if self._is_stopped or self._is_reaching or self.peer is not None or found is None:
            return
        self._is_reaching = True
        self._reach(*found, self._reached, self._not_reached)

    def _reached(self, host: str, port: int) -> MasterPeer:
        del host, port
        self._is_reaching = False
        clock = self._timers.clock
        self.last_read_ms = self.last_write_ms = clock.wall_ms()
        peer = MasterPeer(self, self.client.connect(clock.monotonic_ms()))
        self.peer = peer
        # What is said before the driver has the connection goes out when it is asked first.
        self._timers.after(0, lambda: peer.on_output and peer.on_output())
        _log.info("connected to the master at %s", self.address)
        return peer

    def _not_reached(self, error: Exception) -> None:
        self._is_reaching = False
        _log.warning("master %s cannot be reached: %s", self.address, error)
        self._drop(_LOOK_AGAIN_AFTER_MS)

    def _tick(self) -> None:
        if self._is_stopped:
            return
        self._timers.after(_TICK_INTERVAL_MS, self._tick)
        peer, clock = self.peer, self._timers.clock
        if peer is None:
            return
        now_ms = clock.monotonic_ms()
        if self.client.is_expired(now_ms):
            _log.warning("master %s says nothing any more", self.address)
            self._drop(_LOOK_AGAIN_AFTER_MS)
            return
        report = self.client.tick(now_ms)
        if report:
            self.last_write_ms = clock.wall_ms()
            peer.say(report)
