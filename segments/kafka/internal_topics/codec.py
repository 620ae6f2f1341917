"""
Reads and writes messages in Kafka's message encoding, plain or flexible.

=========  ===========================  =====================================
field      plain                        flexible
=========  ===========================  =====================================
string     int16 length (-1: null)      unsigned varint length + 1 (0: null)
bytes      int32 length                 unsigned varint length + 1
array      int32 count                  unsigned varint count + 1
structure  its fields                   its fields, then its tagged fields
end        nothing                      tagged fields: count, then tag, size, bytes each
=========  ===========================  =====================================

Text that is no UTF-8 is kept in lone surrogates and comes back as it was.

Source: ``ByteBufferAccessor`` and the generated message classes; the reasons are their words.
"""

from __future__ import annotations

import struct
import uuid
from typing import Any

from logstore.errors import StorageError
from logstore.segments.kafka.internal_topics.schema import (
    ArrayOf,
    Field,
    Message,
    MessageT,
    Width,
    WireType,
    fields_of,
)
from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    encode_unsigned_varint,
)

_STRING_BYTES_MAX = 0x7FFF
_VERSION = struct.Struct(">h")


class MessageError(StorageError):
    """
    Bytes are no message, or a message does not fit a version.

    `reason` is what Kafka's tools print of it, None where Java has no words (a buffer's end).
    """

    def __init__(self, reason: str | None, text: str | None = None) -> None:
        super().__init__(text or reason)
        self.reason = reason


def decode_message(kind: type[MessageT], data: bytes, version: int, position: int = 0) -> MessageT:
    """
    Return the message that `data` holds from `position` on; bytes behind it are left alone.

    Raises:
        MessageError: it cannot be read.

    """
    return _Reader(data, position, version, is_flexible=kind.is_flexible(version)).message(kind)


def decode_versioned(kind: type[MessageT], data: bytes) -> tuple[int, MessageT]:
    """
    Return (version, message) of a value that starts with its version.

    Raises:
        MessageError: it cannot be read, or its version is not known.

    """
    version = decode_version(data)
    if version not in kind.VERSIONS:
        known = f"{kind.VERSIONS[0]} to {kind.VERSIONS[-1]} are"
        raise MessageError(f"version {version} of {kind.__name__} is not known, {known}")
    return version, decode_message(kind, data, version, _VERSION.size)


def decode_version(data: bytes) -> int:
    """Return the version (or type) in front of a message. Raises MessageError if cut short."""
    if len(data) < _VERSION.size:
        raise MessageError(None, f"{len(data)} bytes hold no version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def encode_message(message: Message, version: int) -> bytes:
    """
    Return the bytes of `message` in `version`, without the version in front.

    Raises:
        MessageError: a field has a value that the version cannot hold.

    """
    writer = _Writer(version, is_flexible=message.is_flexible(version))
    writer.message(message)
    return bytes(writer.data)


def encode_versioned(message: Message, version: int) -> bytes:
    """Return the version and the message behind it. Raises MessageError if it does not fit."""
    return _VERSION.pack(version) + encode_message(message, version)


class _Reader:
    def __init__(self, data: bytes, position: int, version: int, *, is_flexible: bool) -> None:
        self.data = data
        self.position = position
        self.version = version
        self.is_flexible = is_flexible

    def message(self, kind: type[MessageT]) -> MessageT:
        values: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in fields_of(kind):
            if self.version not in field.held:
                continue
            if field.held.tag is not None and self.is_flexible:
                tagged[field.held.tag] = field
            else:
                values[field.name] = self._value(field.type, field.java_name, field.is_nullable)
        unknown = self._tagged(tagged, values) if self.is_flexible else ()
        for field in fields_of(kind):
            if field.name not in values:
                values[field.name] = field.make_default()
        return kind(**values, unknown_tags=unknown)

    def _tagged(
        self, known: dict[int, Field], values: dict[str, Any]
    ) -> tuple[tuple[int, bytes], ...]:
        unknown: list[tuple[int, bytes]] = []
        for _ in range(self._varint()):
            tag, size_bytes = self._varint(), self._varint()
            field = known.get(tag)
            if field is None:
                unknown.append((tag, self._raw(size_bytes)))
            else:
                values[field.name] = self._tagged_value(field)
        return tuple(unknown)

    def _tagged_value(self, field: Field) -> Any:
        is_structure = isinstance(field.type, type) and issubclass(field.type, Message)
        if is_structure and field.is_nullable and self._varint() == 0:
            return None
        is_nullable = field.is_nullable and not is_structure
        return self._value(field.type, field.java_name, is_nullable)

    def _value(self, wire: WireType, name: str, is_nullable: bool) -> Any:
        if isinstance(wire, Width):
            return self._integer(wire)
        if isinstance(wire, ArrayOf):
            return self._array(wire, name, is_nullable)
        if wire is uuid.UUID:
            return uuid.UUID(bytes=self._exactly(16))
        if wire is str:
            return self._string(name, is_nullable)
        if wire is bytes:
            return self._bytes(name, is_nullable)
        assert issubclass(wire, Message), "the last kind that is left"
        if is_nullable and self._integer(Width.INT8) < 0:
            return None
        return self.message(wire)

    def _array(self, wire: ArrayOf, name: str, is_nullable: bool) -> tuple[Any, ...] | None:
        count = self._varint() - 1 if self.is_flexible else self._integer(Width.INT32)
        if count < 0:
            self._check_null(name, is_nullable)
            return None
        remaining = len(self.data) - self.position
        if count > remaining:
            raise MessageError(
                f"Tried to allocate a collection of size {count}, but there are only {remaining} "
                "bytes remaining."
            )
        return tuple(self._value(wire.element, f"{name} element", False) for _ in range(count))

    def _string(self, name: str, is_nullable: bool) -> str | None:
        length = self._varint() - 1 if self.is_flexible else self._integer(Width.INT16)
        if length < 0:
            self._check_null(name, is_nullable)
            return None
        if length > _STRING_BYTES_MAX:
            raise MessageError(f"string field {name} had invalid length {length}")
        return self._raw(length).decode(errors="surrogateescape")

    def _bytes(self, name: str, is_nullable: bool) -> bytes | None:
        length = self._varint() - 1 if self.is_flexible else self._integer(Width.INT32)
        if length < 0:
            self._check_null(name, is_nullable)
            return None
        return self._raw(length)

    def _check_null(self, name: str, is_nullable: bool) -> None:
        if not is_nullable:
            raise MessageError(f"non-nullable field {name} was serialized as null")

    def _integer(self, width: Width) -> int:
        layout = width.value
        value: int = layout.unpack(self._exactly(layout.size))[0]
        return value

    def _varint(self) -> int:
        try:
            value, self.position = decode_unsigned_varint(self.data, self.position)
        except VarintError as error:
            raise MessageError(None, f"no varint at byte {self.position}: {error}") from error
        return value

    def _raw(self, size_bytes: int) -> bytes:
        remaining = len(self.data) - self.position
        if size_bytes > remaining:
            raise MessageError(
                f"Error reading byte array of {size_bytes} byte(s): only {remaining} byte(s) "
                "available"
            )
        return self._exactly(size_bytes)

    def _exactly(self, size_bytes: int) -> bytes:
        end = self.position + size_bytes
        if end > len(self.data):
            raise MessageError(
                None, f"{size_bytes} bytes wanted at byte {self.position} of {len(self.data)}"
            )
        found = self.data[self.position : end]
        self.position = end
        return found


class _Writer:
    def __init__(self, version: int, *, is_flexible: bool) -> None:
        self.data = bytearray()
        self.version = version
        self.is_flexible = is_flexible

    def message(self, message: Message) -> None:
        tagged: dict[int, bytes] = dict(message.unknown_tags)
        for field in fields_of(type(message)):
            value = getattr(message, field.name)
            if self.version not in field.held:
                if value != field.make_default() and not field.held.is_ignorable:
                    raise MessageError(
                        f"{field.name} = {value!r} does not fit version {self.version} of "
                        f"{type(message).__name__}"
                    )
            elif field.held.tag is None or not self.is_flexible:
                self._value(field, field.type, value)
            elif value != field.make_default():
                tagged[field.held.tag] = self._tagged_value(field, value)
        if not self.is_flexible:
            return
        self.data += encode_unsigned_varint(len(tagged))
        for tag in sorted(tagged):
            content = tagged[tag]
            self.data += encode_unsigned_varint(tag) + encode_unsigned_varint(len(content))
            self.data += content

    def _tagged_value(self, field: Field, value: Any) -> bytes:
        writer = _Writer(self.version, is_flexible=True)
        if isinstance(field.type, type) and issubclass(field.type, Message) and field.is_nullable:
            if value is None:
                return b"\0"
            writer.data += b"\1"
            writer.message(value)
        else:
            writer._value(field, field.type, value)
        return bytes(writer.data)

    def _value(self, field: Field, wire: WireType, value: Any) -> None:
        if isinstance(wire, Width):
            self._integer(field, wire, value)
        elif isinstance(wire, ArrayOf):
            self._length(None if value is None else len(value), Width.INT32)
            for element in value or ():
                if isinstance(element, Message):
                    self.message(element)
                else:
                    self._value(field, wire.element, element)
        elif wire is uuid.UUID:
            self.data += value.bytes
        elif wire is str or wire is bytes:
            content = value.encode(errors="surrogateescape") if isinstance(value, str) else value
            self._content(field, content, Width.INT16 if wire is str else Width.INT32)
        else:
            self._structure(field, value)

    def _structure(self, field: Field, value: Message | None) -> None:
        if field.is_nullable:
            self.data += b"\xff" if value is None else b"\1"
        if value is not None:
            self.message(value)

    def _content(self, field: Field, content: bytes | None, width: Width) -> None:
        if width is Width.INT16 and content is not None and len(content) > _STRING_BYTES_MAX:
            raise MessageError(f"'{field.java_name}' field is too long to be serialized")
        self._length(None if content is None else len(content), width)
        self.data += content or b""

    def _length(self, length: int | None, width: Width) -> None:
        number = -1 if length is None else length
        if self.is_flexible:
            self.data += encode_unsigned_varint(number + 1)
        else:
            self.data += width.value.pack(number)

    def _integer(self, field: Field, width: Width, value: int) -> None:
        try:
            self.data += width.value.pack(value)
        except struct.error:
            raise MessageError(f"{field.name} = {value} does not fit {width.name}") from None
