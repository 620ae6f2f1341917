"""
Messages in the data of a stream.

::

    data    := message*            however it is cut into frames
    message := compressed u8 (0 or 1) | length u32 | bytes

Source: "gRPC over HTTP2", Length-Prefixed-Message.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from logstore.compat.grpc.status import CallError, GrpcCode

_PREFIX = struct.Struct(">BL")
#: how `grpc-encoding` calls it -> what zlib has to be told
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class MessageReader:
    """Puts the messages of one stream together."""

    __slots__ = ("_bytes_max", "_encoding", "_gathered")

    def __init__(self, encoding: str, bytes_max: int) -> None:
        self._encoding = encoding
        self._bytes_max = bytes_max
        #: of a message that has come in part
        self._gathered = bytearray()

    @property
    def is_within(self) -> bool:
        """Tell whether a message has come in part."""
        return bool(self._gathered)

    def read(self, data: memoryview) -> Iterator[bytes]:
        """
        Take in some data; yield the messages that are whole with it.

        Raises:
            CallError: one is too large, or compressed in a way that was not agreed on.

        """
        if self._gathered:
            self._gathered += data
            data = memoryview(bytes(self._gathered)) if self._is_whole() else data[:0]
        start = 0
        while len(data) - start >= _PREFIX.size:
            is_compressed, length = self._prefix_at(data, start)
            end = start + _PREFIX.size + length
            if end > len(data):
                break
            message = bytes(data[start + _PREFIX.size : end])
            start = end
            yield self._inflated(message) if is_compressed else message
        if len(data):
            self._gathered = bytearray(data[start:])

    def _is_whole(self) -> bool:
        gathered = self._gathered
        if len(gathered) < _PREFIX.size:
            return False
        return len(gathered) >= _PREFIX.size + self._prefix_at(gathered, 0)[1]

    def _prefix_at(self, data: memoryview | bytearray, start: int) -> tuple[int, int]:
        is_compressed, length = _PREFIX.unpack_from(data, start)
        if is_compressed > 1:
            raise CallError(
                GrpcCode.INTERNAL, "gRPC frame header malformed: reserved bits not zero"
            )
        if length > self._bytes_max:
            raise _too_large(self._bytes_max, str(length))
        return is_compressed, length

    def _inflated(self, message: bytes) -> bytes:
        window_bits = _WINDOW_BITS.get(self._encoding)
        if window_bits is None:
            raise CallError(GrpcCode.INTERNAL, "a message is compressed, and nobody said how")
        inflating = zlib.decompressobj(window_bits)
        try:
            found = inflating.decompress(message, self._bytes_max + 1)
        except zlib.error as error:
            raise CallError(GrpcCode.INTERNAL, f"a message is no {self._encoding}") from error
        if len(found) > self._bytes_max:
            raise _too_large(self._bytes_max, "more once inflated")
        if not inflating.eof:
            raise CallError(GrpcCode.INTERNAL, f"a message is no whole {self._encoding}")
        return found


def is_encoding(name: str) -> bool:
    """Tell whether messages may be compressed so."""
    return name == "identity" or name in _WINDOW_BITS


def framed(message: bytes) -> bytes:
    """Return a message as it stands in data, as it is."""
    return _PREFIX.pack(0, len(message)) + message


def _too_large(bytes_max: int, found: str) -> CallError:
    text = f"gRPC message exceeds maximum size {bytes_max}: {found}"
    return CallError(GrpcCode.RESOURCE_EXHAUSTED, text)
