"""
The driver: the only module of the protocols that opens sockets.

It moves bytes between sockets and sans-IO connections, runs the timers and takes blocking work
(fsync) off the loop. Answers are written to the socket at once, past the transport, as long as
nothing queues there; runs of files go by ``sendfile`` and never enter this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, cast

from logstore.compat.idle_peers import IdleSweep
from logstore.compat.listener import Listener
from logstore.errors import LogStoreError
from logstore.segment import Extent

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.compat.connection import Chunk, Connection
    from logstore.compat.waiting import Timers

_log = logging.getLogger(__name__)

#: the part of a file run that is read into memory when the kernel's buffer is full
_CHUNK_BYTES = 256 * 1024
#: a run of a file up to which a copy is cheaper than a system call more
_SHORT_RUN_BYTES_MAX = 16 * 1024
_SEND_BUFFER_BYTES = 1024 * 1024
#: turns of the loop that a stop takes, so that nobody who is hung up on stays untold
_GOODBYES_MAX = 5


#: does (work, done): blocking work somewhere, then `done` with what it raised
Offload = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]


class Service(Protocol):
    """What a server serves: makes a connection per peer, has timers, offloads blocking work."""

    timers: Timers
    offload: Offload
    #: peers whose bytes have not moved for longer are hung up on; negative: nobody is
    idle_ms_max: int

    def connect(self, peer_host: str, peer_port: int) -> Connection:
        """Return the sans-IO side of a new connection."""
        ...


class _Peer(asyncio.BufferedProtocol):
    """One socket and its connection."""

    __slots__ = (
        "__weakref__",
        "_connect",
        "_connection",
        "_descriptor",
        "_has_stirred",
        "_is_blocked",
        "_is_reading",
        "_kept_bytes",
        "_server",
        "_transport",
        "quiet_since_ms",
    )

    def __init__(self, server: Server, connect: Callable[[str, int], Connection]) -> None:
        self._server = server
        self._connect = connect
        self._transport: asyncio.Transport
        self._connection: Connection
        self._descriptor = -1
        self._is_blocked = False
        self._is_reading = True
        self.quiet_since_ms = server.service.timers.clock.monotonic_ms()
        self._has_stirred = False
        self._kept_bytes: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready the socket and meet the service."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)
        plain = transport.get_extra_info("socket")
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._descriptor = plain.fileno()
        peer = transport.get_extra_info("peername")
        host, port = peer[:2] if peer else ("", 0)
        self._connection = self._connect(host, port)
        self._connection.on_output = self._on_output
        self._server.peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        """Tell the service; whatever waited for this peer is dropped."""
        self._descriptor = -1
        self._server.peers.discard(self)
        self._connection.lost()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's name
        """Receive straight into the connection's memory."""
        return self._connection.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle what came; send what came of it."""
        self._has_stirred = True
        connection = self._connection
        connection.received(nbytes)
        if connection.output:
            self._send()
        if connection.is_closing or connection.is_waiting:
            self._steer()

    def has_stirred(self) -> bool:
        """Tell whether bytes came or went since this was last asked."""
        kept_bytes: int = self._transport.get_write_buffer_size()
        has_stirred = self._has_stirred or kept_bytes != self._kept_bytes
        self._has_stirred, self._kept_bytes = False, kept_bytes
        return has_stirred

    def hang_up(self) -> None:
        """Drop the peer at once."""
        self._descriptor = -1  # the number may soon be that of another file
        self._connection.output.clear()
        self._transport.abort()

    def _on_output(self) -> None:
        if self._descriptor >= 0:
            self._send()
            self._steer()

    def _steer(self) -> None:
        """Read only while the connection can take more; hang up when it is done."""
        connection = self._connection
        if self._descriptor < 0:
            return
        if connection.is_closing and not connection.output:
            self._descriptor = -1
            self._transport.close()
            return
        wanted = not (connection.is_waiting or connection.is_closing or self._is_blocked)
        if wanted != self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The transport keeps what the kernel would not take: send and read no more for now."""
        self._is_blocked = True

    def resume_writing(self) -> None:
        """All that the transport kept has gone; go on."""
        self._is_blocked = False
        if self._descriptor >= 0:
            self._send()
            self._steer()

    def _send(self) -> None:
        """Send chunks in order until all are gone or the kernel takes no more."""
        output = self._connection.output
        try:
            while output and not self._is_blocked:
                self._has_stirred = True
                data = _taken(output)
                if data is not None:
                    self._send_bytes(data)
                    continue
                rest = self._send_extent(cast("Extent", output[0]))
                if rest is None:
                    del output[0]
                else:
                    output[0] = rest
        except (OSError, EOFError, LogStoreError) as error:
            # The peer is gone, or the file cannot be read: what was promised cannot be kept.
            _log.info("hanging up on a peer: %s", error)
            self.hang_up()
        if self._is_blocked:
            self._steer()

    def _send_bytes(self, data: Buffer) -> None:
        """Write what the kernel takes at once; the transport keeps the rest."""
        view = memoryview(data)
        try:
            sent = os.write(self._descriptor, view)
        except BlockingIOError:
            sent = 0
        if sent < len(view):
            self._transport.write(view[sent:])

    def _send_extent(self, extent: Extent) -> Extent | None:
        """Send by the kernel alone if it can; return what is left to send, None for nothing."""
        position, size_bytes = extent.position, extent.size_bytes
        source = extent.file.fileno()
        if source is not None:
            try:
                while size_bytes:
                    sent = os.sendfile(self._descriptor, source, position, size_bytes)
                    if sent == 0:
                        break
                    position += sent
                    size_bytes -= sent
            except BlockingIOError:
                pass
        if size_bytes == 0:
            return None
        data = extent.file.read(position, min(size_bytes, _CHUNK_BYTES))
        if not data:
            raise EOFError(f"the file ends {size_bytes} bytes before what was promised")
        self._transport.write(data)
        left = size_bytes - len(data)
        return Extent(extent.file, position + len(data), left) if left else None


def _taken(output: list[Chunk]) -> Buffer | None:
    """
    Take from the front of `output` what goes out in one write; None if a long run comes first.

    Short runs of files are read and go with the bytes around them: a write costs more than a read,
    and every write wakes the peer.
    """
    first = output[0]
    if len(output) == 1 and not isinstance(first, Extent):
        output.clear()
        return first
    pieces: list[Buffer] = []
    size_bytes = 0
    for chunk in output:
        if isinstance(chunk, Extent):
            if chunk.size_bytes > _SHORT_RUN_BYTES_MAX:
                break
            pieces.append(_read_whole(chunk))
            size_bytes += chunk.size_bytes
        else:
            pieces.append(chunk)
            size_bytes += len(chunk)
        if size_bytes > _CHUNK_BYTES:
            break
    del output[: len(pieces)]
    return b"".join(pieces) if pieces else None


def _read_whole(extent: Extent) -> bytes:
    data = extent.read()
    if len(data) < extent.size_bytes:
        raise EOFError(f"{extent.file.path} ends before what was promised of it")
    return data


class Server:
    """
    Listens, and drives every connection of one service on one event loop.

    All methods are to be called in the loop's thread.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.peers: set[_Peer] = set()
        self._listener: Listener | None = None
        self._is_driving = False
        self._wake: asyncio.TimerHandle | None = None
        self._workers = ThreadPoolExecutor(4, thread_name_prefix="logstore-io")
        self._loop: asyncio.AbstractEventLoop
        self._offload_before: Offload
        #: connections to others under way; the loop itself keeps only weak references to them
        self._reaching: set[asyncio.Task[None]] = set()
        self._idle_sweep = IdleSweep(service.timers, self.peers, service.idle_ms_max)

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port (chosen by the system where `port` is 0)."""
        listener = await Listener.open(host, port, lambda: _Peer(self, self.service.connect))
        self.drive()
        self._listener = listener
        return listener.port

    def drive(self) -> None:
        """Run the timers and the blocking work of a service that nobody connects to."""
        self._loop = asyncio.get_running_loop()
        self._is_driving = True
        self._offload_before, self.service.offload = self.service.offload, self._offload
        self.service.timers.on_earlier = lambda _: self._sleep()
        self.service.timers.on_soon = self._loop.call_soon
        self._idle_sweep.start()
        self._sleep()

    def reach(
        self,
        host: str,
        port: int,
        connect: Callable[[str, int], Connection],
        failed: Callable[[Exception], None],
    ) -> None:
        """
        Connect to somebody else, for a connection that `connect` makes once the peer is there.

        If that cannot be done, `failed` is told why.
        """

        async def run() -> None:
            try:
                await self._loop.create_connection(lambda: _Peer(self, connect), host, port)
            except OSError as error:
                failed(error)

        task = self._loop.create_task(run())
        self._reaching.add(task)
        task.add_done_callback(self._reaching.discard)

    def _sleep(self) -> None:
        """Wake when the next timer is due."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        due_ms = self.service.timers.next_due_ms()
        if due_ms is not None:
            delay_ms = max(0.0, due_ms - self.service.timers.clock.monotonic_ms())
            self._wake = self._loop.call_later(delay_ms / 1000, self._run_timers)

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
        """Stop listening and hang up on everybody; the service is as it was before the start."""
        if not self._is_driving:
            return
        self._is_driving = False
        if self._listener is not None:
            self._listener.close()
        for task in self._reaching:
            task.cancel()
        self.service.timers.on_earlier = self.service.timers.on_soon = None
        self._idle_sweep.stop()
        if self._wake is not None:
            self._wake.cancel()
        self.service.offload = self._offload_before
        self._workers.shutdown(wait=True)
        for _ in range(_GOODBYES_MAX):  # some may just have been accepted
            for peer in list(self.peers):
                peer.hang_up()
            await asyncio.sleep(0)
