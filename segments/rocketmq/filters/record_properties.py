"""The properties of a stored message, found without decoding the rest of it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_BYTES,
    PROPERTIES_SIZE,
    SYS_FLAG_POSITION,
    VERSIONS,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import parse_properties

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["properties_of_record", "properties_place"]

_LENGTH = struct.Struct(">i")
#: magic, the low byte of the system flag, and the length of a body behind two IPv4 hosts
_HEAD = struct.Struct(f">4x4s{SYS_FLAG_POSITION - 5}xB{FIXED_BYTES[0] - SYS_FLAG_POSITION - 8}xi")
_V1 = MessageVersion.V1.magic
#: bits of the low byte: born host and store host are IPv6
_IPV6 = 0x30


def properties_of_record(record: Buffer) -> dict[str, str]:
    """
    Return the properties of a whole stored message (``MessageDecoder.decodeProperties``).

    Raises:
        CorruptMessageError: it is none: its parts are longer than it is.

    """
    data = bytes(record)
    start, end = properties_place(data, 0, len(data))
    return parse_properties(data[start:end])


def properties_place(data: bytes, start: int, end: int) -> tuple[int, int]:
    """
    Return where in `data` the properties of the stored message between two positions stand.

    Raises:
        CorruptMessageError: it is none: its parts are longer than it is.

    """
    end = min(end, len(data))
    if end - start < FIXED_BYTES[0]:
        raise CorruptMessageError(0, f"{max(end - start, 0)} bytes are no message")
    head: tuple[bytes, int, int] = _HEAD.unpack_from(data, start)
    magic, flags, body_bytes = head
    if magic == _V1 and not flags & _IPV6 and body_bytes >= 0:  # most are like this
        topic_at = start + FIXED_BYTES[0] + body_bytes
        text_at = topic_at + data[topic_at] + 3 if topic_at < end else end + 1
        if text_at <= end:
            text_end = text_at + (data[text_at - 2] << 8 | data[text_at - 1])
            if text_end <= end:
                return text_at, text_end
    return _carefully(data, start, end)


def _carefully(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the same, of a message that may be of any kind, or none."""
    head: tuple[bytes, int, int] = _HEAD.unpack_from(data, start)
    magic, flags, _ = head
    version = VERSIONS.get(magic)
    body_at = start + FIXED_BYTES[flags >> 4 & 3]
    if version is None or end < body_at:
        raise CorruptMessageError(0, "this is no message")
    body_bytes: int = _LENGTH.unpack_from(data, body_at - 4)[0]
    topic_at = body_at + body_bytes if body_bytes > 0 else body_at
    prefix = version.topic_length_bytes
    text_at = topic_at + prefix + 2
    if text_at <= end:
        topic_bytes = int.from_bytes(data[topic_at : topic_at + prefix], "big", signed=True)
        text_at = text_at + topic_bytes if topic_bytes >= 0 else end + 1
    if text_at > end:
        raise CorruptMessageError(0, "its topic runs out of the message")
    text_bytes: int = PROPERTIES_SIZE.unpack_from(data, text_at - 2)[0]
    if text_at + text_bytes > end:
        raise CorruptMessageError(0, "its properties run out of the message")
    return text_at, text_at + text_bytes if text_bytes > 0 else text_at
