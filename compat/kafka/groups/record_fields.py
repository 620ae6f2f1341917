"""
The fields of a persisted record: Kafka's message encoding, plain or flexible.

=========  ===========================  =====================================
field      plain                        flexible
=========  ===========================  =====================================
string     int16 length (-1: null)      unsigned varint length + 1 (0: null)
bytes      int32 length                 unsigned varint length + 1
array      int32 count                  unsigned varint count + 1
end        nothing                      tagged fields: count, then tag, size, bytes each
=========  ===========================  =====================================

Integers are big-endian. Source: ``ByteBufferAccessor`` and the generated message classes.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping

from logstore.errors import StorageError
from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    encode_unsigned_varint,
)

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class GroupRecordError(StorageError):
    """A key or value of ``__consumer_offsets`` cannot be read; the message says where and why."""


class FieldReader:
    """Takes fields off a record, first to last. Raises :class:`GroupRecordError` where they end."""

    def __init__(self, data: bytes, *, position: int = 0, is_flexible: bool = False) -> None:
        self.data = data
        self.position = position
        self.is_flexible = is_flexible

    def int16(self) -> int:
        """Return the next two bytes as a signed integer."""
        return self._integer(_INT16)

    def int32(self) -> int:
        """Return the next four bytes as a signed integer."""
        return self._integer(_INT32)

    def int64(self) -> int:
        """Return the next eight bytes as a signed integer."""
        return self._integer(_INT64)

    def string(self) -> str:
        """Return a string that cannot be null."""
        start = self.position
        text = self.nullable_string()
        if text is None:
            raise GroupRecordError(f"null where a string must be, at byte {start}")
        return text

    def nullable_string(self) -> str | None:
        """Return a string or None."""
        start = self.position
        length = self._compact_length() if self.is_flexible else self.int16()
        if length < 0:
            return None
        try:
            return self.raw(length).decode()
        except UnicodeDecodeError as error:
            raise GroupRecordError(f"no UTF-8 in the string at byte {start}") from error

    def blob(self) -> bytes:
        """Return bytes that cannot be null."""
        start = self.position
        length = self.count()
        if length < 0:
            raise GroupRecordError(f"null where bytes must be, at byte {start}")
        return self.raw(length)

    def count(self) -> int:
        """Return the count of an array, -1 for null."""
        return self._compact_length() if self.is_flexible else self.int32()

    def tagged_fields(self) -> dict[int, bytes]:
        """Return the tagged fields, unread; none in a plain record."""
        if not self.is_flexible:
            return {}
        found: dict[int, bytes] = {}
        for _ in range(self._unsigned_varint()):
            tag = self._unsigned_varint()
            found[tag] = self.raw(self._unsigned_varint())
        return found

    def raw(self, size_bytes: int) -> bytes:
        """Return so many bytes as they are."""
        end = self.position + size_bytes
        if end > len(self.data):
            raise GroupRecordError(
                f"{size_bytes} bytes wanted at byte {self.position} of {len(self.data)}"
            )
        found = self.data[self.position : end]
        self.position = end
        return found

    def _integer(self, layout: struct.Struct) -> int:
        value: int = layout.unpack(self.raw(layout.size))[0]
        return value

    def _compact_length(self) -> int:
        return self._unsigned_varint() - 1

    def _unsigned_varint(self) -> int:
        try:
            value, self.position = decode_unsigned_varint(self.data, self.position)
        except VarintError as error:
            raise GroupRecordError(f"no varint at byte {self.position}: {error}") from error
        return value


class FieldWriter:
    """Puts fields behind each other; :meth:`to_bytes` is the record."""

    def __init__(self, *, is_flexible: bool = False) -> None:
        self._data = bytearray()
        self._is_flexible = is_flexible

    def int16(self, value: int) -> FieldWriter:
        """Add two bytes."""
        self._data += _INT16.pack(value)
        return self

    def int32(self, value: int) -> FieldWriter:
        """Add four bytes."""
        self._data += _INT32.pack(value)
        return self

    def int64(self, value: int) -> FieldWriter:
        """Add eight bytes."""
        self._data += _INT64.pack(value)
        return self

    def string(self, text: str | None) -> FieldWriter:
        """Add a string, or null."""
        data = None if text is None else text.encode()
        length = -1 if data is None else len(data)
        if self._is_flexible:
            self._data += encode_unsigned_varint(length + 1)
        elif length <= 0x7FFF:
            self.int16(length)
        else:
            raise GroupRecordError(f"a string of {length} bytes does not fit, 32767 is the most")
        self._data += data or b""
        return self

    def blob(self, data: bytes) -> FieldWriter:
        """Add bytes."""
        self.count(len(data))
        self._data += data
        return self

    def count(self, count: int) -> FieldWriter:
        """Add the count of an array."""
        if self._is_flexible:
            self._data += encode_unsigned_varint(count + 1)
        else:
            self.int32(count)
        return self

    def tagged_fields(self, fields: Mapping[int, bytes]) -> FieldWriter:
        """End a flexible record (or a structure in it); adds nothing to a plain one."""
        if self._is_flexible:
            self._data += encode_unsigned_varint(len(fields))
            for tag in sorted(fields):
                data = fields[tag]
                self._data += encode_unsigned_varint(tag) + encode_unsigned_varint(len(data))
                self._data += data
        return self

    def to_bytes(self) -> bytes:
        """Return what was written."""
        return bytes(self._data)


def uuid_or_none(data: bytes | None) -> uuid.UUID | None:
    """Return a topic id; Kafka's zero id, like a missing one, is None."""
    if data is None or not any(data):
        return None
    if len(data) != 16:
        raise GroupRecordError(f"a topic id has 16 bytes, not {len(data)}")
    return uuid.UUID(bytes=data)
