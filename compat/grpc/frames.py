"""
Frames of HTTP/2.

::

    connection := preface frame*             preface: 24 bytes, from the client alone
    frame      := length u24 | type u8 | flags u8 | stream u32 | payload
    DATA       := [pad u8] data [padding]                       flags: END_STREAM 1, PADDED 8
    HEADERS    := [pad u8] [depends u32 | weight u8] block [padding]
                                        flags: END_STREAM 1, END_HEADERS 4, PADDED 8, PRIORITY 32
    CONTINUATION := block                                       flags: END_HEADERS 4
    RST_STREAM := error u32                  SETTINGS := (key u16 | value u32)*   flags: ACK 1
    PING       := 8 bytes    flags: ACK 1    GOAWAY   := last stream u32 | error u32 | text
    WINDOW_UPDATE := increment u32

Numbers are big-endian; the highest bit of a stream's number is reserved.

Source: RFC 9113, sections 4 to 7.
"""

from __future__ import annotations

import enum
import struct

from logstore.errors import LogStoreError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
#: what every peer takes, and nobody has to take more of (SETTINGS_MAX_FRAME_SIZE)
PAYLOAD_BYTES_MAX = 16 * 1024
#: what nobody may take more of
FRAME_SIZE_MAX = 2**24 - 1
WINDOW_BYTES_INITIAL = 65_535
WINDOW_BYTES_MAX = 2**31 - 1

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20

_BUFFER_BYTES = 64 * 1024
#: a frame that has come in part stands at the front before less room than this is offered
_ROOM_BYTES_MIN = HEAD_BYTES + PAYLOAD_BYTES_MAX
_HEAD = struct.Struct(">HBBBL")
_NUMBER = struct.Struct(">L")
_STREAM_MASK = 2**31 - 1
_PRIORITY_BYTES = 5


class FrameType(enum.IntEnum):
    """What a frame is for."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(enum.IntEnum):
    """What peers tell each other of themselves."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(enum.IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Http2Error(LogStoreError):
    """A peer broke the rules, and the connection cannot go on; `code` is what it is told."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class FrameInbox:
    """The bytes that have come of one connection; views of frames hold until the next turn."""

    __slots__ = ("_buffer", "_end", "_start")

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = self._end = 0

    def writable(self) -> memoryview:
        """Return where to put the next bytes; there is always room."""
        start, end = self._start, self._end
        if start == end:
            self._start = self._end = 0
        elif start and _BUFFER_BYTES - start < _ROOM_BYTES_MIN:
            self._buffer[: end - start] = self._buffer[start:end]
            self._start, self._end = 0, end - start
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        """Say that `count` bytes now stand where :meth:`writable` said."""
        self._end += count

    def pending(self) -> bytes:
        """Return what has come and is not taken."""
        return bytes(self._buffer[self._start : self._end])

    def take(self, count: int) -> bytes | None:
        """Take so many bytes, None if fewer have come."""
        start = self._start
        if self._end - start < count:
            return None
        self._start = start + count
        return bytes(self._buffer[start : self._start])

    def next_frame(self) -> tuple[int, int, int, memoryview] | None:
        """
        Take the next whole frame: its type, flags, stream and payload; None if it has not come.

        Raises:
            Http2Error: it is larger than anybody may send.

        """
        start = self._start
        if self._end - start < HEAD_BYTES:
            return None
        high, low, kind, flags, stream_id = _HEAD.unpack_from(self._buffer, start)
        length = high << 8 | low
        if length > PAYLOAD_BYTES_MAX:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
        payload_at = start + HEAD_BYTES
        if self._end - payload_at < length:
            return None
        self._start = payload_at + length
        return kind, flags, stream_id & _STREAM_MASK, self._buffer[payload_at : self._start]


def head(kind: FrameType, flags: int, stream_id: int, length: int) -> bytes:
    """Return what stands before a payload of `length` bytes."""
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


def frame(kind: FrameType, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Return a whole frame."""
    return head(kind, flags, stream_id, len(payload)) + payload


def settings_frame(values: dict[Setting, int]) -> bytes:
    """Return a frame that tells what we can do."""
    payload = b"".join(struct.pack(">HL", key, value) for key, value in values.items())
    return frame(FrameType.SETTINGS, 0, 0, payload)


def window_frame(stream_id: int, increment: int) -> bytes:
    """Return a frame that lets the peer send so much more."""
    return frame(FrameType.WINDOW_UPDATE, 0, stream_id, _NUMBER.pack(increment))


def reset_frame(stream_id: int, code: ErrorCode) -> bytes:
    """Return a frame that ends one stream at once."""
    return frame(FrameType.RST_STREAM, 0, stream_id, _NUMBER.pack(code))


def goaway_frame(last_stream_id: int, code: ErrorCode, text: str) -> bytes:
    """Return a frame that ends the connection, and says why."""
    payload = struct.pack(">LL", last_stream_id, code) + text.encode()
    return frame(FrameType.GOAWAY, 0, 0, payload)


def number_of(payload: memoryview) -> int:
    """
    Return the number that is all of a payload, without the reserved bit.

    Raises:
        Http2Error: it is not all of it.

    """
    if len(payload) != _NUMBER.size:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"{len(payload)} bytes where 4 belong")
    number: int = _NUMBER.unpack(payload)[0]
    return number & _STREAM_MASK


def check_setting(key: int, value: int) -> None:
    """Raise Http2Error for a setting that nobody may have."""
    if key == Setting.INITIAL_WINDOW_SIZE and value > WINDOW_BYTES_MAX:
        raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"a window of {value} bytes")
    if key == Setting.MAX_FRAME_SIZE and not PAYLOAD_BYTES_MAX <= value <= FRAME_SIZE_MAX:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frames of {value} bytes")
    if key == Setting.ENABLE_PUSH and value > 1:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a push of {value}")


def check_priority(number: int, payload: memoryview) -> None:
    """Raise Http2Error for a stream that depends on itself, or says no such thing."""
    if not number:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a priority of no stream")
    if len(payload) != _PRIORITY_BYTES:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a priority of {len(payload)} bytes")
    if number_of(payload[: _NUMBER.size]) == number:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"stream {number} depends on itself")


def settings_of(payload: memoryview) -> list[tuple[int, int]]:
    """Return what a peer tells of itself. Raises Http2Error: it ends within a setting."""
    if len(payload) % 6:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"settings of {len(payload)} bytes")
    return [(key, value) for key, value in struct.iter_unpack(">HL", payload)]


def unpadded(payload: memoryview, flags: int, *, has_priority: bool = False) -> memoryview:
    """
    Return what stands between the numbers at the front of a payload and its padding.

    Raises:
        Http2Error: that is less than nothing.

    """
    start, end = 0, len(payload)
    if flags & PADDED:
        start = 1
        end -= payload[0] if payload else 1
    if has_priority and flags & PRIORITY:
        start += _PRIORITY_BYTES
    if start > end:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"padding longer than its frame ({end})")
    return payload[start:end]
