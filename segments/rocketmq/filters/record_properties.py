"""The properties of a stored message, found without decoding the rest of it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_BYTES,
    SYS_FLAG_POSITION,
    VERSIONS,
)
from logstore.segments.rocketmq.messages.properties import parse_properties

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["properties_of_record"]

_LENGTH = struct.Struct(">i")


def properties_of_record(record: Buffer) -> dict[str, str]:
    """
    Return the properties of a whole stored message (``MessageDecoder.decodeProperties``).

    Raises:
        CorruptMessageError: it is none: its parts are longer than it is.

    """
    view = memoryview(record).cast("B")
    if len(view) < FIXED_BYTES[0]:
        raise CorruptMessageError(0, f"{len(view)} bytes are no message")
    version = VERSIONS.get(bytes(view[4:8]))
    body_at = FIXED_BYTES[view[SYS_FLAG_POSITION + 3] >> 4 & 3]
    if version is None or len(view) < body_at:
        raise CorruptMessageError(0, "this is no message")
    (body_bytes,) = _LENGTH.unpack_from(view, body_at - 4)
    topic_at = body_at + max(body_bytes, 0)
    prefix = version.topic_length_bytes
    topic_bytes = int.from_bytes(view[topic_at : topic_at + prefix], "big", signed=True)
    text_at = topic_at + prefix + topic_bytes + 2
    if topic_bytes < 0 or text_at > len(view):
        raise CorruptMessageError(0, "its topic runs out of the message")
    text_bytes = int.from_bytes(view[text_at - 2 : text_at], "big", signed=True)
    if text_at + text_bytes > len(view):
        raise CorruptMessageError(0, "its properties run out of the message")
    return parse_properties(bytes(view[text_at : text_at + max(text_bytes, 0)]))
