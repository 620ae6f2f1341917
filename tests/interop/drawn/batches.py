"""Record batches of every age, honest and not, as bytes; and what they say when they come back."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

import crc32c

from logstore.segments.kafka.compression import Codec, CompressionError, compress, decompress

HEADER_BYTES = 61
LARGE_BYTES = 1 << 25
TRANSACTIONAL, CONTROL, APPEND_TIME = 0x10, 0x20, 0x08
#: in a batch's place where its bytes depend on the library that compressed it
COMPRESSED = "compressed"


def varint(value: int) -> bytes:
    """Encode a zig-zag varint."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = b""
    while rest > 0x7F:
        encoded += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return encoded + bytes([rest])


def sized(data: bytes | None) -> bytes:
    """Return bytes with their size as a varint in front, -1 for none."""
    return varint(-1) if data is None else varint(len(data)) + data


def changed(data: bytes, changes: Iterable[tuple[float, int, bytes]]) -> bytes:
    """Return bytes with some replaced: (how far into it, how many, by what)."""
    for share, size_bytes, by in changes:
        position = int(share * len(data))
        data = data[:position] + by + data[position + size_bytes :]
    return data


def batch(records: list[dict[str, Any]], **header: Any) -> bytes:
    """Return a batch; `header` overrides what an honest client would say in its fields."""
    times = [record["timestamp"] for record in records] or [-1]
    body = b""
    for number, record in enumerate(records):
        data = b"\0" + varint(record["timestamp"] - times[0]) + varint(record.get("delta", number))
        data += sized(record["key"]) + sized(record["value"])
        data += varint(len(record.get("headers", ())))
        for key, value in record.get("headers", ()):
            data += sized(key) + sized(value)
        body += varint(len(data)) + data
    codec = header.get("codec", 0)
    if codec in {1, 2, 3, 4}:
        body = bytes(compress(Codec(codec), body))
    body = changed(body, header.get("changes", ()))
    after_crc = struct.pack(
        ">hiqqqhii",
        header.get("attributes", 0) | codec,
        header.get("last_offset_delta", len(records) - 1),
        header.get("base_timestamp", times[0]),
        header.get("max_timestamp", max(times)),
        header.get("producer_id", -1),
        header.get("producer_epoch", -1),
        header.get("base_sequence", -1),
        header.get("count", len(records)),
    )
    after_crc += body
    crc = header.get("crc", crc32c.crc32c(after_crc))
    front = struct.pack(
        ">qiibI",
        header.get("base_offset", 0),
        header.get("length", len(after_crc) + 9),
        header.get("leader_epoch", -1),
        header.get("magic", 2),
        crc,
    )
    return front + after_crc


def message_set(records: list[dict[str, Any]], magic: int, codec: int = 0) -> bytes:
    """Return messages of before Kafka 0.11, one by one or wrapped and compressed."""
    messages = b"".join(
        _message(number, magic, 0, record["timestamp"], record["key"], record["value"])
        for number, record in enumerate(records)
    )
    if codec not in {1, 2, 3}:
        return messages
    last = max(record["timestamp"] for record in records)
    return _message(0, magic, codec, last, None, bytes(compress(Codec(codec), messages)))


def _message(
    offset: int, magic: int, codec: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    data = struct.pack(">bb", magic, codec)
    if magic:
        data += struct.pack(">q", timestamp)
    for part in (key, value):
        data += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    data = struct.pack(">I", zlib.crc32(data)) + data
    return struct.pack(">qi", offset, len(data)) + data


def plain_batches(data: bytes) -> list[dict[str, Any]]:
    """Return what batches say apart from the moment they were written."""
    found = []
    position = 0
    while position < len(data):
        if len(data) - position < HEADER_BYTES or data[position + 16] != 2:
            rest = data[position:]  # its checksum counts made-up producer ids and times
            found.append({"rest": (rest[:17] + rest[21:]).hex()})
            break
        base_offset, length, epoch, magic, _ = struct.unpack_from(">qiibI", data, position)
        fields = struct.unpack_from(">hiqqqhii", data, position + 21)
        attributes, last, base_time, max_time, pid, pid_epoch, sequence, count = fields
        body = data[position + HEADER_BYTES : position + 12 + length]
        if attributes & CONTROL:
            base_time, max_time = 0, 0
        if attributes & APPEND_TIME:
            max_time = 0
        is_whole = position + 12 + length <= len(data)
        plain = decompressed(attributes & 7, body) if is_whole else None
        found.append(
            {
                "base_offset": base_offset, "length": COMPRESSED if plain else length,
                "leader_epoch": epoch, "magic": magic, "attributes": attributes,
                "last_offset_delta": last, "base_timestamp": base_time, "max_timestamp": max_time,
                "producer_id": pid, "producer_epoch": pid_epoch, "base_sequence": sequence,
                "count": count, "body": (plain or body).hex(), "is_whole": is_whole,
            }
        )  # fmt: skip
        position += 12 + length
    return found


def decompressed(codec: int, body: bytes) -> bytes | None:
    """Return what a compressed batch holds; None if it is none, or cannot be read."""
    if codec not in {1, 2, 3, 4}:
        return None
    try:
        return bytes(decompress(Codec(codec), body, LARGE_BYTES))
    except CompressionError:
        return None
