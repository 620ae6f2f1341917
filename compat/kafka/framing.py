"""
Request and response headers, and the primitive types that hand-read requests need.

A request header is ``apiKey i16 | apiVersion i16 | correlationId i32 | clientId nullable string``,
in flexible versions followed by tagged fields; the client id keeps its i16 length even there
(KIP-482). All integers are big-endian; `uvarint` is unsigned LEB128.
"""

from __future__ import annotations

import struct

from logstore.errors import LogStoreError

REQUEST_HEADER = struct.Struct(">hhi")
RESPONSE_PREFIX = struct.Struct(">ii")
I16 = struct.Struct(">h")
I32 = struct.Struct(">i")
#: a string that is shorter has its length in one byte
_SHORT_BYTES = 127


class MalformedRequestError(LogStoreError):
    """A request cannot be read as its header claims; the connection is closed."""


def read_uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the unsigned varint at `position` and the position after it."""
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    for index in range(position + 1, position + 5):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
    raise MalformedRequestError(f"the varint at position {position} has more than five bytes")


def skip_tags(data: memoryview, position: int) -> int:
    """Return the position after the tagged fields at `position`."""
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size_bytes, position = read_uvarint(data, position)
        position += size_bytes
    if position > len(data):
        raise MalformedRequestError(f"a tagged field ends {position - len(data)} bytes too late")
    return position


def uvarint(value: int) -> bytes:
    """Return the unsigned varint of `value`."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(correlation_id: int, body: bytes, *, has_tags: bool) -> bytes:
    """Return a whole response: length, header (with empty tagged fields if flexible), body."""
    if has_tags:
        return RESPONSE_PREFIX.pack(len(body) + 5, correlation_id) + b"\x00" + body
    return RESPONSE_PREFIX.pack(len(body) + 4, correlation_id) + body


class Reader:
    """Reads a request field by field, in the compact encoding where the version is flexible."""

    __slots__ = ("data", "is_flexible", "position")

    def __init__(self, data: memoryview, position: int, *, is_flexible: bool) -> None:
        self.data = data
        self.position = position
        self.is_flexible = is_flexible

    def i8(self) -> int:
        """Read a signed byte."""
        value = self.data[self.position]
        self.position += 1
        return value - 256 if value > 127 else value

    def i16(self) -> int:
        """Read a signed 16-bit integer."""
        value: int = I16.unpack_from(self.data, self.position)[0]
        self.position += 2
        return value

    def i32(self) -> int:
        """Read a signed 32-bit integer."""
        value: int = I32.unpack_from(self.data, self.position)[0]
        self.position += 4
        return value

    def i64(self) -> int:
        """Read a signed 64-bit integer."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def take(self, size_bytes: int) -> memoryview:
        """Read so many bytes as a view."""
        start = self.position
        self.position = start + size_bytes
        if size_bytes < 0 or self.position > len(self.data):
            raise MalformedRequestError(f"{size_bytes} bytes at position {start} are not there")
        return self.data[start : self.position]

    def length(self, fixed_bytes: int) -> int:
        """Read a length or count; -1 for null. `fixed_bytes` is its size where not compact."""
        if self.is_flexible:
            value, self.position = read_uvarint(self.data, self.position)
            return value - 1
        return self.i16() if fixed_bytes == 2 else self.i32()

    def string(self) -> bytes | None:
        """Read a nullable string as its UTF-8 bytes."""
        size_bytes = self.length(2)
        return None if size_bytes < 0 else bytes(self.take(size_bytes))

    def text(self) -> bytes:
        """Read a string that must not be null."""
        if self.is_flexible:
            start = self.position + 1
            end = start + self.data[start - 1] - 1
            if start <= end < start + _SHORT_BYTES and end <= len(self.data):
                self.position = end
                return bytes(self.data[start:end])
        size_bytes = self.length(2)
        if size_bytes < 0:
            raise MalformedRequestError("a string is null that must not be")
        return bytes(self.take(size_bytes))

    def count(self) -> int:
        """Read an array's length. Null, and more entries than bytes are left, are refused."""
        count = self.nullable_count()
        if count is None:
            raise MalformedRequestError("an array is null that must not be")
        return count

    def nullable_count(self) -> int | None:
        """Read an array's length, None for null. More entries than bytes are left are refused."""
        count = self.length(4)
        if count > len(self.data) - self.position:
            raise MalformedRequestError(f"an array of {count} entries does not fit the request")
        return None if count < 0 else count

    def batch(self) -> tuple[int, memoryview]:
        """Read one partition of a produced topic: its number, its record bytes (none for null)."""
        index = self.i32()
        size_bytes = self.length(4)
        records = self.take(max(size_bytes, 0))
        self.tags()
        return index, records

    def tags(self) -> None:
        """Skip tagged fields, if the version has them."""
        if self.is_flexible:
            if self.data[self.position]:
                self.position = skip_tags(self.data, self.position)
            else:
                self.position += 1  # there is none, as nearly always
