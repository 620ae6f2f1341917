"""
Produce requests of an idempotent producer: the same batch again and again, each with its number.

Java's producers number their batches unless told otherwise. Nothing of such a request can be sent
twice, so all of them are made beforehand, with two numbers put into copies of one request.
"""

from __future__ import annotations

import struct

from logstore.checksum import crc32c
from logstore.tools.bench.frames import produce_frame

_CRC_AT, _CRC_START = 17, 21
_PRODUCER_AT = 43
_SEQUENCE_AT = 53
_pack_producer = struct.Struct(">qhi").pack_into  # id, epoch, first sequence
_pack_sequence = struct.Struct(">i").pack_into
_pack_crc = struct.Struct(">I").pack_into


def numbered_frames(
    topic: str, batch: bytes, *, producer_id: int, first: int, count: int
) -> list[bytes]:
    """Return so many requests to partition 0, each with one batch of one record."""
    own = bytearray(batch)
    _pack_producer(own, _PRODUCER_AT, producer_id, 0, 0)
    frame = bytearray(produce_frame(topic, [0], bytes(own)))
    start = frame.index(own)
    checked = memoryview(frame)[start + _CRC_START : start + len(own)]
    found: list[bytes] = []
    for sequence in range(first, first + count):
        _pack_sequence(frame, start + _SEQUENCE_AT, sequence)
        _pack_crc(frame, start + _CRC_AT, crc32c(checked))
        found.append(bytes(frame))
    return found
