"""A message goes from nested dicts to bytes and back, as its schema says, in any version."""

from __future__ import annotations

import struct
from typing import Any

from tests.interop.drawn.schemas import Field, Schema

_LAYOUTS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


def unsigned_varint(value: int) -> bytes:
    """Encode a number in groups of seven bits."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


#: what a struct has besides its fields: tags that nobody knows, each a number and bytes
TAGS = "+tags"


def encode(schema: Schema, version: int, values: dict[str, Any]) -> bytes:
    """Return the bytes of a message; fields that are not told have their default."""
    known = {field.name for field in schema.fields} | {TAGS}
    assert known.issuperset(values), f"{schema.name} has no {set(values) - known}"
    return _Writer(version, schema).struct(schema.fields, values)


def decode(schema: Schema, version: int, data: bytes, position: int = 0) -> dict[str, Any]:
    """Return a message's fields by name; ValueError if bytes are missing or left."""
    reader = _Reader(version, schema, data, position)
    found = reader.struct(schema.fields)
    if reader.position != len(data):
        raise ValueError(f"{schema.name}: {len(data) - reader.position} bytes are left")
    return found


def tags_of(tagged: list[tuple[int, bytes]]) -> bytes:
    """Return tagged fields, by their numbers, as they end a struct or a header."""
    pieces = [unsigned_varint(len(tagged))]
    for tag, data in sorted(tagged):
        pieces.append(unsigned_varint(tag) + unsigned_varint(len(data)) + data)
    return b"".join(pieces)


class _Writer:
    def __init__(self, version: int, schema: Schema) -> None:
        self.version = version
        self.is_flexible = schema.is_flexible(version)

    def struct(self, fields: tuple[Field, ...], values: dict[str, Any]) -> bytes:
        out = []
        tagged: list[tuple[int, bytes]] = []
        for field in fields:
            if self.version not in field.versions:
                continue
            value = values.get(field.name, _UNSET)
            value = field.initial(self.version) if value is _UNSET else value
            if self.version in field.tagged:
                if field.name in values and value != field.initial(self.version):
                    tagged.append((field.tag, self.field(field, value)))
            else:
                out.append(self.field(field, value))
        if self.is_flexible:
            out.append(tags_of([*tagged, *values.get(TAGS, ())]))
        return b"".join(out)

    def field(self, field: Field, value: Any) -> bytes:
        compact = self.is_flexible
        if field.flexible is not None:
            compact = self.version in field.flexible
        if field.is_array:
            if value is None:
                return self.length(-1, "i", compact)
            items = b"".join(self.one(field, item, compact) for item in value)
            return self.length(len(value), "i", compact) + items
        if field.is_struct and self.version in field.nullable:
            return b"\xff" if value is None else b"\1" + self.one(field, value, compact)
        return self.one(field, value, compact)

    def one(self, field: Field, value: Any, compact: bool) -> bytes:
        if field.is_struct:
            known = {one.name for one in field.fields} | {TAGS}
            assert known.issuperset(value), f"{field.name} has no {set(value) - known}"
            return self.struct(field.fields, value)
        if field.type == "uuid":
            return bytes(value)
        if field.type in _LAYOUTS:
            return struct.pack(f">{_LAYOUTS[field.type]}", value)
        width = "h" if field.type == "string" else "i"
        if value is None:
            return self.length(-1, width, compact)
        data = value.encode() if isinstance(value, str) else bytes(value)
        return self.length(len(data), width, compact) + data

    @staticmethod
    def length(count: int, width: str, compact: bool) -> bytes:
        return unsigned_varint(count + 1) if compact else struct.pack(f">{width}", count)


_UNSET = object()


class _Reader:
    def __init__(self, version: int, schema: Schema, data: bytes, position: int) -> None:
        self.version = version
        self.is_flexible = schema.is_flexible(version)
        self.data = data
        self.position = position

    def struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in fields:
            if self.version not in field.versions:
                continue
            if self.version in field.tagged:
                tagged[field.tag] = field
                found[field.name] = field.initial(self.version)
            else:
                found[field.name] = self.field(field)
        if self.is_flexible:
            for _ in range(self.unsigned()):
                tag, size = self.unsigned(), self.unsigned()
                end = self.position + size
                if tag in tagged:
                    found[tagged[tag].name] = self.field(tagged[tag])
                else:
                    found[f"tag {tag}"] = self.take(size)
                if self.position != end:
                    raise ValueError(f"tag {tag} of {size} bytes ends elsewhere")
        return found

    def field(self, field: Field) -> Any:
        compact = self.is_flexible
        if field.flexible is not None:
            compact = self.version in field.flexible
        if field.is_array:
            count = self.length("i", compact)
            return None if count < 0 else [self.one(field, compact) for _ in range(count)]
        if field.is_struct and self.version in field.nullable and self.take(1) == b"\xff":
            return None
        return self.one(field, compact)

    def one(self, field: Field, compact: bool) -> Any:
        if field.is_struct:
            return self.struct(field.fields)
        if field.type == "uuid":
            return self.take(16)
        if layout := _LAYOUTS.get(field.type):
            return struct.unpack(f">{layout}", self.take(struct.calcsize(f">{layout}")))[0]
        count = self.length("h" if field.type == "string" else "i", compact)
        if count < 0:
            return None
        data = self.take(count)
        return data.decode() if field.type == "string" else data

    def length(self, width: str, compact: bool) -> int:
        if compact:
            return self.unsigned() - 1
        return int(struct.unpack(f">{width}", self.take(struct.calcsize(f">{width}")))[0])

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, count: int) -> bytes:
        found = self.data[self.position : self.position + count]
        if count < 0 or len(found) != count:
            raise ValueError(f"{count} bytes are missing at {self.position}")
        self.position += count
        return found
