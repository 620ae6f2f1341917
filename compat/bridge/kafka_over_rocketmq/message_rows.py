"""Stored messages as rows of record batches: what a fetch over queues answers."""

from __future__ import annotations

import struct

from logstore.compat.bridge.reserved_names import (
    RECORD_REST_NEEDLE,
    RECORD_REST_PROPERTY,
    rest_of_text,
)
from logstore.compat.record_mapping import MappingError, MessageParts, restored_record
from logstore.segments.kafka.record_run import Row, encode_run
from logstore.segments.rocketmq.messages.body_compression import (
    BodyCompressionError,
    decompress_body,
)
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_FIELDS,
    SYS_FLAG_POSITION,
    VERSIONS,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import CRC32, KEYS, parse_properties
from logstore.segments.rocketmq.messages.system_flags import (
    BORN_HOST_IPV6,
    COMPRESSED,
    STORE_HOST_IPV6,
    compression_type,
)

_KEYS_NEEDLE = b"KEYS\x01"
#: total size, magic, born timestamp, size of the body of a record whose hosts are IPv4
_IPV4_FIELDS = struct.Struct(">i4s32xq36xi")
_IPV6_OR_COMPRESSED = BORN_HOST_IPV6 | STORE_HOST_IPV6 | COMPRESSED
_V1 = MessageVersion.V1.magic
_NOTHING: tuple[tuple[str, bytes | None], ...] = ()


def encode_messages(data: bytes, base_offset: int) -> bytes:
    """Return the record batch of whole messages whose queue offsets follow each other."""
    return bytes(encode_run(base_offset, message_rows(data)))


def message_rows(data: bytes) -> list[Row]:
    """Return a row of each of the whole messages that `data` holds."""
    rows: list[Row] = []
    position, end = 0, len(data)
    unpack = _IPV4_FIELDS.unpack_from
    while position < end:
        if not data[position + SYS_FLAG_POSITION + 3] & _IPV6_OR_COMPRESSED:
            size_bytes, magic, born_ms, body_bytes = unpack(data, position)
            body_at = position + _IPV4_FIELDS.size
            body_end = body_at + body_bytes
            topic_at = body_end + (1 if magic == _V1 else 2)
            text_at = topic_at + int.from_bytes(data[body_end:topic_at], "big") + 2
            position += size_bytes
            body = data[body_at:body_end]
            if text_at == position:
                rows.append((born_ms, None, body, _NOTHING))
            else:
                rows.append((born_ms, *_record(data[text_at:position], body)))
            continue
        fields = FIXED_FIELDS[data[position + SYS_FLAG_POSITION + 3] >> 4 & 3]
        found = fields.unpack_from(data, position)
        size_bytes, sys_flag, born_ms = found[0], found[7], found[8]
        body_at = position + fields.size
        body_end = body_at + found[14]
        topic_at = body_end + VERSIONS[found[1]].topic_length_bytes
        text_at = topic_at + int.from_bytes(data[body_end:topic_at], "big") + 2
        position += size_bytes
        body = data[body_at:body_end]
        if sys_flag & COMPRESSED:
            body = _plain(body, sys_flag)
        rows.append((born_ms, *_record(data[text_at:position], body)))
    return rows


def _plain(body: bytes, sys_flag: int) -> bytes:
    """Return a body as it was before; one that cannot be decompressed is shown as it is stored."""
    try:
        return decompress_body(compression_type(sys_flag), body)
    except BodyCompressionError:
        return body


def _record(
    text: bytes, body: bytes
) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    """Return key, value and headers."""
    if not text:
        return None, body, _NOTHING
    if text.startswith(_KEYS_NEEDLE) and text.isascii() and text.find(b"\x02") == len(text) - 1:
        key = text[5:-1]
        if key:
            return key, body, _NOTHING
    properties = parse_properties(text)
    properties.pop(CRC32, None)  # it is one of how the message is stored
    rest = None
    if RECORD_REST_NEEDLE in text and RECORD_REST_PROPERTY in properties:
        try:
            rest = rest_of_text(properties[RECORD_REST_PROPERTY])
            natural = {k: v for k, v in properties.items() if k != RECORD_REST_PROPERTY}
            return restored_record(MessageParts(body, natural), rest)
        except MappingError:  # somebody else's property of that name
            rest = None
    found = properties.pop(KEYS, None)
    headers = tuple((name, value.encode("utf-8", "replace")) for name, value in properties.items())
    return None if found is None else found.encode("utf-8", "replace"), body, headers
