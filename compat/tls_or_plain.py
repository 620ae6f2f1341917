"""
A port at which peers may speak TLS or not, before a server that knows of none.

The first byte tells: TLS begins with a handshake, HTTP/2 with a letter. It is looked at and left in
the socket, so that either way begins at the beginning. What then comes is passed on to the server
behind, over the loopback, and its answers back; who the peer is can be asked by the port from which
that one is reached. Nothing of TLS is loaded before somebody speaks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import cast

from logstore.compat.listener import Address, Listener
from logstore.errors import LogStoreError

_log = logging.getLogger(__name__)

#: the type of a TLS record with a handshake in it
_HANDSHAKE = b"\x16"
#: who has not said a word for so long is hung up on
_SILENCE_SECONDS_MAX = 60.0
_BEHIND_HOST = "127.0.0.1"

MakeContext = Callable[[], ssl.SSLContext]


class TlsOrPlain:
    """Passes peers on to `behind_port`; to be used on one event loop."""

    def __init__(self, behind_port: int, make_context: MakeContext) -> None:
        self._behind_port = behind_port
        self._make_context = make_context
        self._context: ssl.SSLContext | None = None
        self._listener: Listener | None = None
        self._meetings: set[asyncio.Task[None]] = set()
        self._sides: set[_Side] = set()
        self._origins: dict[int, Address] = {}

    @property
    def open_count(self) -> int:
        """How many connections there are, to either side, and how many peers about to get one."""
        return len(self._sides) + len(self._meetings)

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError: the address cannot be had."""
        self._listener = await Listener.open(host, port, self._connect)
        return self._listener.port

    def origin(self, port: int) -> Address | None:
        """Return who talks by the connection that comes from `port`, None if nobody does."""
        return self._origins.get(port)

    def stop(self) -> None:
        """Hang up on everybody."""
        if self._listener is not None:
            self._listener.close()
        for meeting in self._meetings:
            meeting.cancel()
        for side in tuple(self._sides):
            side.close()

    def _connect(self, peer: socket.socket, address: Address) -> None:
        meeting = asyncio.get_running_loop().create_task(self._meet(peer, address))
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)

    async def _meet(self, peer: socket.socket, address: Address) -> None:
        """Learn what a peer speaks, and join it with the server behind."""
        front = _Side(self._sides)
        try:
            async with asyncio.timeout(_SILENCE_SECONDS_MAX):
                first = await _first_byte(peer)
            if not first:
                peer.close()
                return
            context = self._secure() if first == _HANDSHAKE else None
            await self._join(front, peer, address, context)
        except (OSError, TimeoutError, LogStoreError) as error:  # ssl.SSLError is an OSError
            _log.info("not connected with %s: %s", address, error)
            peer.close()
            front.hang_up()
        except asyncio.CancelledError:
            peer.close()
            front.hang_up()
            raise

    def _secure(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = self._make_context()
            except LogStoreError as error:
                _log.error("no TLS: %s", error)
                raise
        return self._context

    async def _join(
        self, front: _Side, peer: socket.socket, address: Address, context: ssl.SSLContext | None
    ) -> None:
        loop = asyncio.get_running_loop()
        back = _Side(self._sides)
        front.other, back.other = back, front
        behind, _ = await loop.create_connection(lambda: back, _BEHIND_HOST, self._behind_port)
        port: int = behind.get_extra_info("sockname")[1]
        self._origins[port] = address
        back.on_lost = lambda: self._origins.pop(port, None)
        await loop.connect_accepted_socket(lambda: front, peer, ssl=context)


class _Side(asyncio.Protocol):
    """One of two connections, whose bytes go to the other one."""

    def __init__(self, open_sides: set[_Side]) -> None:
        self._open_sides = open_sides
        self._transport: asyncio.Transport | None = None
        #: what there was to say before there was a connection
        self._early: list[bytes] = []
        self._is_over = False
        self.other: _Side | None = None
        self.on_lost: Callable[[], object] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what has gathered."""
        self._transport = cast("asyncio.Transport", transport)
        self._open_sides.add(self)
        if self._is_over:
            self._transport.abort()
        for data in self._early:
            self._transport.write(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self.other is not None:
            self.other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Hang up on the other one, too, once it has been sent all that came."""
        del exc
        self._open_sides.discard(self)
        self.on_lost()
        self.hang_up()

    def pause_writing(self) -> None:
        """Read no more of the other one: this one does not take it."""
        if self.other is not None:
            self.other.read(is_wanted=False)

    def resume_writing(self) -> None:
        """Go on."""
        if self.other is not None:
            self.other.read(is_wanted=True)

    def write(self, data: bytes) -> None:
        """Send it as soon as that is possible."""
        if self._transport is None:
            self._early.append(data)
        else:
            self._transport.write(data)

    def read(self, *, is_wanted: bool) -> None:
        """Stop to read, or go on; a connection that is lost does neither."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            with contextlib.suppress(RuntimeError):  # it does so already
                (transport.resume_reading if is_wanted else transport.pause_reading)()

    def close(self) -> None:
        """Hang up when all is sent; at once if there is no connection yet."""
        self._is_over = True
        if self._transport is not None:
            self._transport.close()

    def hang_up(self) -> None:
        """Hang up on the other one."""
        other, self.other = self.other, None
        if other is not None:
            other.other = None
            other.close()


async def _first_byte(peer: socket.socket) -> bytes:
    """Return the first byte that a peer says, and leave it there; nothing if it hangs up."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return peer.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            said: asyncio.Future[None] = loop.create_future()
            loop.add_reader(peer.fileno(), _tell, said)
            try:
                await said
            finally:
                loop.remove_reader(peer.fileno())


def _tell(said: asyncio.Future[None]) -> None:
    if not said.done():
        said.set_result(None)
