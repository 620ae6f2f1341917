"""
Headers in RocketMQ's own binary form, for clients that ask for it.

``code i16 | language i8 | version i16 | opaque i32 | flag i32 | remark length i32, remark |
fields length i32, fields``; a field is ``name length i16, name | value length i32, value``, all
text in UTF-8. Codes above 32767 do not fit: they lose their high bits, in Java too.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.languages import LANGUAGES, language_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.rocketmq.wire.json_header import Header

_FIXED = struct.Struct(">hbhiii")
_FIXED_BYTES = _FIXED.size
_LENGTH = struct.Struct(">i")
_NAME_LENGTH = struct.Struct(">h")
_unpack_fixed = _FIXED.unpack_from
_unpack_length = _LENGTH.unpack_from


def read_binary_header(data: bytes | memoryview) -> Header:
    """
    Return what a binary header says. Text of no length is null, in Java too: such fields are gone.

    Raises:
        ValueError: a length does not fit.

    """
    data = bytes(data)
    size_bytes = len(data)
    if size_bytes < _FIXED_BYTES + 4:
        raise ValueError(f"a header of {size_bytes} bytes ends too early")
    language: int
    code, language, version, opaque, flag, remark_bytes = _unpack_fixed(data)
    position = _FIXED_BYTES
    remark: str | None = None
    if remark_bytes:
        if not 0 < remark_bytes <= size_bytes - position - 4:
            raise ValueError(f"a remark of {remark_bytes} bytes does not fit")
        remark = data[position : position + remark_bytes].decode(errors="replace")
        position += remark_bytes
    fields_bytes: int = _unpack_length(data, position)[0]
    position += 4
    if not 0 <= fields_bytes <= size_bytes - position:
        raise ValueError(f"fields of {fields_bytes} bytes do not fit")
    fields = _read_fields(data, position, position + fields_bytes) if fields_bytes else {}
    name = LANGUAGES[language] if 0 <= language < len(LANGUAGES) else "OTHER"
    return code, opaque, flag, name, version, remark, fields


def _read_fields(data: bytes, position: int, end: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    # One text with a character a byte is cut up; what is not ASCII, which is rare, is decoded.
    text = data.decode("latin-1")
    try:
        while position < end:
            # Two bytes of the name's length, then the name; names are short.
            start = position + 2
            position = start + (data[position] << 8 | data[position + 1])
            name = text[start:position]
            start = position + 4
            length = _unpack_length(data, position)[0]
            position = start + length
            if length > 0:
                value = text[start:position]
                if not (value.isascii() and name.isascii()):
                    name, value = _decoded(name), _decoded(value)
                fields[name] = value
            elif length < 0:
                break
    except (IndexError, struct.error):
        position = -1
    if position != end:
        raise ValueError("the fields do not end where they should")
    fields.pop("", None)
    return fields


def _decoded(text: str) -> str:
    # Java, too, replaces what is no UTF-8.
    return text.encode("latin-1").decode(errors="replace")


def write_binary_header(
    code: int,
    opaque: int,
    flag: int,
    language: str,
    version: int,
    remark: str | None,
    fields: Mapping[str, str] | None,
) -> bytes:
    """Return a header; `fields` are written in the order that they come in."""
    remark_data = remark.encode(errors="replace") if remark else b""
    pieces: list[bytes] = []
    if fields:
        for name, value in fields.items():
            name_data, value_data = name.encode(errors="replace"), value.encode(errors="replace")
            pieces += (
                _NAME_LENGTH.pack(len(name_data)),
                name_data,
                _LENGTH.pack(len(value_data)),
                value_data,
            )
    fields_data = b"".join(pieces)
    short_code = (code + 0x8000 & 0xFFFF) - 0x8000
    fixed = _FIXED.pack(
        short_code, language_number(language), version, opaque, flag, len(remark_data)
    )
    return b"".join((fixed, remark_data, _LENGTH.pack(len(fields_data)), fields_data))
