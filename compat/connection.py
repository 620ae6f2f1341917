"""
What every protocol here shares: length-prefixed frames in, chunks out, no socket in sight.

A :class:`FrameBuffer` owns the bytes that arrive. The driver asks where to put them, says how many
came, and the protocol takes whole frames out as views of the same memory: a produced record batch
goes from the socket's buffer to the file without a copy in between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from logstore.errors import LogStoreError
from logstore.segment import Extent

_LENGTH = struct.Struct(">i")
_LENGTH_BYTES = 4

#: what goes out: bytes, or a run of a file that need not be read to be sent
Chunk = bytes | bytearray | memoryview | Extent

BUFFER_BYTES_MIN = 16 * 1024
BUFFER_BYTES_USUAL = 256 * 1024
BUFFER_BYTES_KEPT = 2 * 1024 * 1024
#: so much memory of its own a connection with shared memory gives back
_OWN_BYTES_DROPPED = 64 * 1024
_NO_MEMORY = memoryview(bytearray())


class FrameError(LogStoreError):
    """The peer sent a length that no frame can have; the connection cannot go on."""


class HeldBackError(LogStoreError):
    """Somebody who connects, and whoever comes after him, has to wait for `delay_ms`."""

    def __init__(self, delay_ms: float) -> None:
        super().__init__(
            f"there is room for another connection in {delay_ms:.0f} ms at the soonest"
        )
        self.delay_ms = delay_ms


class TurnedAwayError(LogStoreError):
    """Somebody who connects is not let in, and hung up on in `delay_ms`."""

    def __init__(self, delay_ms: float, reason: str) -> None:
        super().__init__(reason)
        self.delay_ms = delay_ms


class FrameBuffer:
    """
    Memory for incoming frames: ``length i32 | payload``, big-endian.

    Grows to the frame at hand and shrinks when a large one is done. Views from
    :meth:`next_frame` are valid until the next :meth:`writable`.

    With a `landing`, which all connections of one thread may share, bytes arrive there as long as
    whole small frames come, and a connection has no memory of its own: hundreds of them stay in the
    processor's cache. Then :meth:`settle` must follow once the frames that came are served and
    something is left over.
    """

    __slots__ = ("_buffer", "_landing", "_own", "_was_filled", "end", "frame_bytes_max", "start")

    def __init__(self, frame_bytes_max: int, landing: memoryview | None = None) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._landing = landing
        self._own = _NO_MEMORY if landing is not None else memoryview(bytearray(BUFFER_BYTES_MIN))
        #: one of the two
        self._buffer = self._own
        #: between these stand the bytes that have arrived and are not taken yet
        self.start = 0
        self.end = 0
        self._was_filled = False

    def writable(self) -> memoryview:
        """Return the (never empty) memory into which the next bytes are to be received."""
        pending = self.end - self.start
        if not pending and self._landing is not None and len(self._own) <= _OWN_BYTES_DROPPED:
            self._own, self._buffer = _NO_MEMORY, self._landing
            self.start = self.end = 0
            self._was_filled = False
            return self._landing
        needed = self._needed_bytes(pending)
        capacity = len(self._buffer)
        if needed > capacity or (self._was_filled and capacity < BUFFER_BYTES_USUAL):
            self._move(max(needed, min(capacity * 4, BUFFER_BYTES_USUAL)))
        elif capacity > BUFFER_BYTES_KEPT and needed <= BUFFER_BYTES_USUAL:
            self._move(BUFFER_BYTES_USUAL)
        elif self.start and (pending == 0 or self.start + needed > capacity):
            self._buffer[:pending] = self._buffer[self.start : self.end]
            self.start, self.end = 0, pending
        self._was_filled = False
        return self._buffer[self.end :]

    def _needed_bytes(self, pending: int) -> int:
        """Return how much memory the frame that is arriving takes; at least one byte is free."""
        if pending < _LENGTH_BYTES:
            return BUFFER_BYTES_MIN
        length: int = _LENGTH.unpack_from(self._buffer, self.start)[0]
        frame_bytes = _LENGTH_BYTES + length
        if length > self.frame_bytes_max:
            frame_bytes = 0  # next_frame() refuses it; it gets no memory
        return max(BUFFER_BYTES_MIN, frame_bytes, pending + pending // 2 + 1)

    def _move(self, capacity: int) -> None:
        pending = self.end - self.start
        grown = memoryview(bytearray(capacity))
        grown[:pending] = self._buffer[self.start : self.end]
        self._own = self._buffer = grown
        self.start, self.end = 0, pending

    def received(self, count: int) -> None:
        """Say that `count` bytes now stand in the memory that :meth:`writable` returned."""
        self.end += count
        self._was_filled = self.end == len(self._buffer)

    def settle(self) -> None:
        """Take what is left over out of the shared memory: others will receive there."""
        if self._buffer is not self._landing:
            return
        usual = BUFFER_BYTES_USUAL if self._was_filled else 0
        self._move(max(self._needed_bytes(self.end - self.start), usual))
        self._was_filled = False

    def pending(self) -> bytes:
        """Return what has arrived and is not taken yet."""
        return bytes(self._buffer[self.start : self.end])

    def clear(self) -> None:
        """Forget what has arrived: nobody will take it any more."""
        self.start = self.end = 0

    def next_frame(self) -> memoryview | None:
        """
        Take the next whole frame, without its length; None if it has not arrived yet.

        Raises:
            FrameError: the length is negative or above `frame_bytes_max`.

        """
        start = self.start
        if self.end - start < _LENGTH_BYTES:
            return None
        length: int = _LENGTH.unpack_from(self._buffer, start)[0]
        if not 0 <= length <= self.frame_bytes_max:
            raise FrameError(f"frame length {length} is not within [0, {self.frame_bytes_max}]")
        body = start + _LENGTH_BYTES
        if self.end - body < length:
            return None
        self.start = body + length
        return self._buffer[body : self.start]


class Connection(Protocol):
    """One peer, without its socket: the driver moves the bytes."""

    #: called when output appears outside of :meth:`received`
    on_output: Callable[[], None] | None

    @property
    def output(self) -> list[Chunk]:
        """Chunks to send, in order; the driver takes them out, and asks again for more."""
        ...

    @property
    def is_closing(self) -> bool:
        """Tell whether nothing more will be read; the driver sends what is left and hangs up."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Tell whether an answer is awaited: the driver stops reading."""
        ...

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        ...

    def received(self, count: int) -> None:
        """Handle the bytes that have arrived."""
        ...

    def lost(self) -> None:
        """Take note that the peer is gone."""
        ...
