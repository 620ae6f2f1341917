"""
The driver: the only module of the protocols that opens sockets.

It brings sockets and sans-IO connections together, runs the timers and takes blocking work (fsync)
off the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from logstore.compat.idle_peers import IdleSweep
from logstore.compat.listener import Address, Listener
from logstore.compat.offload import Offload
from logstore.compat.turns import Turns

if TYPE_CHECKING:
    from logstore.compat.connection import Connection
    from logstore.compat.waiting import Timers

_log = logging.getLogger(__name__)

_SEND_BUFFER_BYTES = 1024 * 1024
#: how long a stop waits for peers to read their last answers; most take a millisecond
_PATIENCE_SECONDS = 0.2
_STEP_SECONDS = 0.001
#: turns of the loop that a stop takes, so that nobody who is hung up on stays untold
_GOODBYES_MAX = 5


#: returns the sans-IO side of a new connection, of a peer with that host and port
Connect = Callable[[str, int], "Connection"]


class Service(Protocol):
    """What a server serves: makes a connection per peer, has timers, offloads blocking work."""

    timers: Timers
    offload: Offload
    #: peers whose bytes have not moved for longer are hung up on; negative: nobody is
    idle_ms_max: int

    def connect(self, peer_host: str, peer_port: int) -> Connection:
        """Return the sans-IO side of a new connection."""
        ...


class Server:
    """
    Listens, and drives every connection of one service on one event loop.

    All methods are to be called in the loop's thread. One that `is_alone` in its process may look
    for the next request for a moment before it sleeps.
    """

    def __init__(self, service: Service, *, is_alone: bool = False) -> None:
        self.service = service
        self._looks = is_alone and _processor_count() > 1
        self._turns: Turns
        self._listeners: list[Listener] = []
        self._is_driving = False
        self._wake: asyncio.TimerHandle | None = None
        self._workers = ThreadPoolExecutor(4, thread_name_prefix="logstore-io")
        self._loop: asyncio.AbstractEventLoop
        self._offload_before: Offload
        #: connections to others under way; the loop itself keeps only weak references to them
        self._reaching: set[asyncio.Task[None]] = set()
        self._idle_sweep: IdleSweep

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port (chosen by the system where `port` is 0)."""
        listener = await self._listener(host, port, self.service.connect)
        self.drive()
        self._listeners.append(listener)
        return listener.port

    async def listen(self, host: str, port: int, connect: Connect) -> int:
        """Let peers in by one more address, for connections that `connect` makes."""
        assert self._is_driving, "what is served must be driven"
        listener = await self._listener(host, port, connect)
        self._listeners.append(listener)
        return listener.port

    def shut(self, port: int) -> None:
        """Let nobody in by a port any more, and hang up on those who came in by it."""
        self._listener_at(port).close()
        for peer in list(self._turns.peers):
            if peer.port == port:
                peer.hang_up()

    def reopen(self, port: int) -> None:
        """
        Let peers in again by a port that was shut.

        Raises:
            OSError: it has been taken by somebody else.

        """
        self._listener_at(port).reopen()

    def _listener_at(self, port: int) -> Listener:
        return next(one for one in self._listeners if one.port == port)

    async def _listener(self, host: str, port: int, connect: Connect) -> Listener:
        return await Listener.open(
            host, port, lambda plain, address: self._meet(plain, address, connect)
        )

    def drive(self) -> None:
        """Run the timers and the blocking work of a service that nobody connects to."""
        self._loop = asyncio.get_running_loop()
        self._is_driving = True
        self._offload_before, self.service.offload = self.service.offload, self._offload
        self.service.timers.on_earlier = lambda _: self._sleep()
        self.service.timers.on_soon = self._loop.call_soon
        self._turns = Turns(self._loop, looks=self._looks)
        self._idle_sweep = IdleSweep(
            self.service.timers, self._turns.peers, self.service.idle_ms_max
        )
        self._idle_sweep.start()
        self._sleep()

    def reach(
        self,
        host: str,
        port: int,
        connect: Connect,
        failed: Callable[[Exception], None],
    ) -> None:
        """
        Connect to somebody else, for a connection that `connect` makes once the peer is there.

        If that cannot be done, `failed` is told why.
        """

        async def run() -> None:
            try:
                plain = await _reached(host, port)
            except OSError as error:
                failed(error)
                return
            self._meet(plain, plain.getpeername(), connect)

        task = self._loop.create_task(run())
        self._reaching.add(task)
        task.add_done_callback(self._reaching.discard)

    def _meet(self, plain: socket.socket, address: Address, connect: Connect) -> None:
        """Ready the socket of somebody who is connected and serve him."""
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        except OSError as error:
            _log.info("a peer left before it was served: %s", error)
            plain.close()
            return
        connection = connect(address[0], address[1])
        self._turns.join(plain, connection, self.service.timers.clock.monotonic_ms())

    def _sleep(self) -> None:
        """Wake when the next timer is due."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        due_ms = self.service.timers.next_due_ms()
        if due_ms is not None:
            delay_ms = max(0.0, due_ms - self.service.timers.clock.monotonic_ms())
            # uvloop counts whole milliseconds: for less than half of one it would be back at once.
            self._wake = self._loop.call_later(math.ceil(delay_ms) / 1000, self._run_timers)

    def _run_timers(self) -> None:
        self._wake = None
        try:
            self.service.timers.run()
        except Exception:  # noqa: BLE001 - logged; the other timers must go on
            _log.exception("a timer failed")
        self._sleep()

    def _offload(
        self, work: Callable[[], None], done: Callable[[BaseException | None], None]
    ) -> None:
        """Run `work` in a thread, then `done` (with what it raised) in the loop."""

        def run() -> None:
            error: BaseException | None = None
            try:
                work()
            except Exception as failure:  # noqa: BLE001 - handed to `done`, whatever it is
                error = failure
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(done, error)

        self._workers.submit(run)

    async def stop(self) -> None:
        """
        Stop listening, let everybody read what was answered, and hang up on them.

        The service is as it was before the start.
        """
        if not self._is_driving:
            return
        self._is_driving = False
        for listener in self._listeners:
            listener.close()
        for task in self._reaching:
            task.cancel()
        self.service.timers.on_earlier = self.service.timers.on_soon = None
        self._idle_sweep.stop()
        if self._wake is not None:
            self._wake.cancel()
        self.service.offload = self._offload_before
        self._workers.shutdown(wait=True)
        await asyncio.sleep(0)  # those who waited for that work get their answers
        self._turns.part()
        deadline = self._loop.time() + _PATIENCE_SECONDS
        while self._turns.peers and self._loop.time() < deadline:
            self._turns.discard()
            await asyncio.sleep(_STEP_SECONDS)
        for _ in range(_GOODBYES_MAX):  # some may just have been accepted
            for peer in list(self._turns.peers):
                peer.hang_up()
            await asyncio.sleep(0)
        self._turns.close()


def _processor_count() -> int:
    """Return how many processors this process may have."""
    if not (hasattr(os, "sched_getaffinity") and hasattr(os, "sched_yield")):
        return 1
    return len(os.sched_getaffinity(0))


async def _reached(host: str, port: int) -> socket.socket:
    """Return a socket that is connected; the reason of the last address tried if none answers."""
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        plain = socket.socket(family, kind, protocol)
        plain.setblocking(False)
        try:
            await loop.sock_connect(plain, address)
        except OSError as error:
            plain.close()
            failure = error
        except BaseException:
            plain.close()
            raise
        else:
            return plain
    raise failure
