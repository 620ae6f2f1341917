"""
How the fields of a metadata record stand in its bytes: Kafka's flexible message format.

The fields of a record's version follow each other without names. Behind them stand the *tagged*
ones: a count, then each with its tag and its size, in the order of the tags, and only where it
differs from its default. Who does not know a tag skips it. Lengths of strings and arrays are
unsigned varints one larger than the length; 0 is null.

Source: ``MessageDataGenerator``, KIP-482.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from logstore.errors import LogStoreError
from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    encode_unsigned_varint,
)

T = TypeVar("T")
_UUID_BYTES = 16


class WireError(LogStoreError, ValueError):
    """Bytes are not what a field or a record of its version must be."""


class Kind(NamedTuple, Generic[T]):
    """How values of one type are written, and read at a position; the position after comes back."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes, int], tuple[T, int]]


class Field(NamedTuple):
    """
    One field of a record: the attribute of that name.

    It is there from version `since` on. One with a `tag` is left out while it has its `default`.
    """

    name: str
    kind: Kind[Any]
    since: int = 0
    tag: int | None = None
    default: object = None


def _number(code: str) -> Kind[Any]:
    packer = struct.Struct(f">{code}")

    def decode(data: bytes, position: int) -> tuple[Any, int]:
        return packer.unpack_from(data, position)[0], position + packer.size

    return Kind(packer.pack, decode)


BOOLEAN: Kind[bool] = _number("?")
INT8: Kind[int] = _number("b")
INT16: Kind[int] = _number("h")
UINT16: Kind[int] = _number("H")
INT32: Kind[int] = _number("i")
INT64: Kind[int] = _number("q")
FLOAT64: Kind[float] = _number("d")


def take(data: bytes, position: int, size_bytes: int) -> tuple[bytes, int]:
    """Return (so many bytes at `position`, the position after them). Raises WireError."""
    end = position + size_bytes
    if end > len(data):
        raise WireError(f"{size_bytes} bytes at {position} run out of {len(data)}")
    return data[position:end], end


def _encode_uuid(value: bytes) -> bytes:
    assert len(value) == _UUID_BYTES, f"a UUID of {len(value)} bytes"
    return value


def _decode_uuid(data: bytes, position: int) -> tuple[bytes, int]:
    return take(data, position, _UUID_BYTES)


UUID: Kind[bytes] = Kind(_encode_uuid, _decode_uuid)


def _encode_nullable(value: str | None) -> bytes:
    if value is None:
        return b"\x00"
    encoded = value.encode()
    return encode_unsigned_varint(len(encoded) + 1) + encoded


def _decode_nullable(data: bytes, position: int) -> tuple[str | None, int]:
    size_bytes, position = decode_unsigned_varint(data, position)
    if size_bytes == 0:
        return None, position
    encoded, position = take(data, position, size_bytes - 1)
    return encoded.decode(), position


def _decode_string(data: bytes, position: int) -> tuple[str, int]:
    value, end = _decode_nullable(data, position)
    if value is None:
        raise WireError(f"the string at {position} must not be null")
    return value, end


NULLABLE_STRING: Kind[str | None] = Kind(_encode_nullable, _decode_nullable)
STRING: Kind[str] = Kind(_encode_nullable, _decode_string)


def _encode_bytes(value: bytes) -> bytes:
    return encode_unsigned_varint(len(value) + 1) + value


def _decode_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size_bytes, start = decode_unsigned_varint(data, position)
    if size_bytes == 0:
        raise WireError(f"the bytes at {position} must not be null")
    return take(data, start, size_bytes - 1)


BYTES: Kind[bytes] = Kind(_encode_bytes, _decode_bytes)


def array_of(kind: Kind[T]) -> Kind[tuple[T, ...] | None]:
    """Return the kind of an array; null is None."""

    def encode(values: tuple[T, ...] | None) -> bytes:
        if values is None:
            return b"\x00"
        return encode_unsigned_varint(len(values) + 1) + b"".join(map(kind.encode, values))

    def decode(data: bytes, position: int) -> tuple[tuple[T, ...] | None, int]:
        count, position = decode_unsigned_varint(data, position)
        if count == 0:
            return None, position
        if count - 1 > len(data) - position:  # the smallest element has a byte
            raise WireError(f"{count - 1} elements in {len(data) - position} bytes")
        values: list[T] = []
        for _ in range(count - 1):
            value, position = kind.decode(data, position)
            values.append(value)
        return tuple(values), position

    return Kind(encode, decode)


def struct_of(*kinds: Kind[Any]) -> Kind[tuple[Any, ...]]:
    """Return the kind of a structure with these fields; tagged ones are skipped."""

    def encode(values: tuple[Any, ...]) -> bytes:
        pieces = [kind.encode(value) for kind, value in zip(kinds, values, strict=True)]
        return b"".join(pieces) + b"\x00"

    def decode(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        for kind in kinds:
            value, position = kind.decode(data, position)
            values.append(value)
        _, position = decode_tagged((), data, position)
        return tuple(values), position

    return Kind(encode, decode)


# a whole record


def encode_fields(fields: tuple[Field, ...], version: int, value_of: Callable[[str], Any]) -> bytes:
    """Return the body of a record in `version`; `value_of` gives its fields by name."""
    plain: list[bytes] = []
    tagged: list[tuple[int, bytes]] = []
    for field in fields:
        if version < field.since:
            continue
        value = value_of(field.name)
        if field.tag is None:
            plain.append(field.kind.encode(value))
        elif value != field.default:
            tagged.append((field.tag, field.kind.encode(value)))
    plain.append(encode_unsigned_varint(len(tagged)))
    for tag, encoded in sorted(tagged):
        plain += (encode_unsigned_varint(tag), encode_unsigned_varint(len(encoded)), encoded)
    return b"".join(plain)


def decode_fields(
    fields: tuple[Field, ...], version: int, data: bytes, position: int
) -> dict[str, Any]:
    """
    Return the fields of a record whose body starts at `position`, by name.

    Those that the version or the bytes do not have are left out.

    Raises:
        WireError: the bytes end early, go on behind the record, or break a rule.

    """
    found: dict[str, Any] = {}
    try:
        for field in fields:
            if field.tag is None and version >= field.since:
                found[field.name], position = field.kind.decode(data, position)
        tagged, position = decode_tagged(fields, data, position)
    except (struct.error, VarintError, UnicodeDecodeError) as error:
        raise WireError(f"cut short or damaged: {error}") from None
    if position != len(data):
        raise WireError(f"{len(data) - position} bytes follow the last field")
    return found | tagged


def decode_tagged(
    fields: tuple[Field, ...], data: bytes, position: int
) -> tuple[dict[str, Any], int]:
    """Return (the tagged fields at `position` that are known, the position after them)."""
    found: dict[str, Any] = {}
    count, position = decode_unsigned_varint(data, position)
    for _ in range(count):
        tag, position = decode_unsigned_varint(data, position)
        size_bytes, position = decode_unsigned_varint(data, position)
        encoded, position = take(data, position, size_bytes)
        for field in fields:
            if field.tag == tag:
                found[field.name], end = field.kind.decode(encoded, 0)
                if end != size_bytes:
                    raise WireError(f"tag {tag} takes {end} of its {size_bytes} bytes")
    return found, position
