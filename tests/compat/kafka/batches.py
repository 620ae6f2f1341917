"""Record batches as producers send them, and as they must not be."""

from __future__ import annotations

import struct

from logstore.checksum import crc32c
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, encode_batch

#: what the manual clock shows at first
NOW_MS = 1_700_000_000_000
CRC_POSITION, ATTRIBUTES_POSITION, RECORD_COUNT_POSITION = 17, 21, 57
LAST_DELTA_POSITION = 23


def batch(
    *values: bytes | None,
    key: bytes | None = b"key",
    timestamp_ms: int = NOW_MS,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Return a batch of one record per value; `producer` is (id, epoch, first sequence)."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return bytes(
        encode_batch(
            [
                Record(index, timestamp_ms, key, value)
                for index, value in enumerate(values or (b"value",))
            ],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
            is_control=is_control,
        )
    )


def altered(data: bytes, position: int, form: str, value: int, *, mend_crc: bool = True) -> bytes:
    """Return `data` with one big-endian number in it replaced, and the CRC made right for it."""
    changed = bytearray(data)
    struct.pack_into(f">{form}", changed, position, value)
    if mend_crc:
        struct.pack_into(">I", changed, CRC_POSITION, crc32c(changed[21:]))
    return bytes(changed)


def old_message(magic: int, timestamp_ms: int = NOW_MS) -> bytes:
    """Return a message set of one message of magic 0 or 1, as clients of 2015 sent it."""
    times = struct.pack(">q", timestamp_ms) if magic else b""
    body = struct.pack(">bb", magic, 0) + times + struct.pack(">i", -1)
    body += struct.pack(">i", 40) + bytes(40)
    body = struct.pack(">I", 0) + body
    return struct.pack(">qi", 0, len(body)) + body


def stamped(data: bytes, offset: int, leader_epoch: int = 0) -> bytes:
    """Return a produced batch as the log has it."""
    return struct.pack(">q", offset) + data[8:12] + struct.pack(">i", leader_epoch) + data[16:]
