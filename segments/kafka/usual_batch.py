"""
The batch about which nothing is special, told by one look at its header.

Most of what producers send is such a batch, and requests that spread over many partitions bring
hundreds of small ones. Whatever is not told here at a glance goes the long way of
:func:`~logstore.segments.kafka.validation.accepted`, which also knows why something is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from logstore.checksum import crc32c
from logstore.segments.kafka.record import CorruptRecordError, check_structure
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES

if TYPE_CHECKING:
    from logstore.segments.kafka.config import LogConfig

#: partition number, the batch, its last offset delta, its largest timestamp and its producer, below
#: 0 for none
UsualBatch = tuple[int, memoryview, int, int, int]
_CRC_START = 21
_SIZE_BYTES_MIN = HEADER_BYTES + 2
#: all of the header but leader epoch, base timestamp, producer epoch and base sequence, and the
#: first two bytes of the records
USUAL_FIELDS = "qi4xbIhi8xqq6xiH"
_unpack_from = struct.Struct(f">{USUAL_FIELDS}").unpack_from
#: as many records as a leader walks of any batch
_RECORDS_WALKED_MAX = 16
#: length, attributes, two deltas and the length of the key, where each takes as little as it may
_unpack_record_head = struct.Struct("6B").unpack_from
_RECORD_HEAD_END = HEADER_BYTES + 6


def usual_header(data: memoryview) -> tuple[int, int, int] | None:
    """
    Return (last offset delta, largest timestamp, producer) of a batch with nothing special.

    None for any other: whole, valid batches of magic 2, uncompressed, of no transaction, with
    timestamps of their own, only are usual. Of the topic nothing is asked, and nothing of the
    producer, which is below 0 if there is none.
    """
    size_bytes = len(data)
    if size_bytes < _SIZE_BYTES_MIN:
        return None
    (
        base_offset, length_bytes, magic, crc, attributes, last_delta, timestamp_ms, producer_id,
        count, _,
    ) = _unpack_from(data)  # fmt: skip
    if (
        base_offset
        or attributes
        or magic != MAGIC
        or count <= 0
        or count != last_delta + 1
        or timestamp_ms < 0
        or length_bytes != size_bytes - PREFIX_BYTES
        or crc32c(data[_CRC_START:]) != crc
    ):
        return None
    is_one = count == 1 and is_one_usual_record(data, size_bytes)
    return (last_delta, timestamp_ms, producer_id) if is_one or has_sound_records(data) else None


def is_one_usual_record(data: memoryview, size_bytes: int) -> bool:
    """
    Tell at a glance that the batch is one right record of a usual kind.

    Its length takes two bytes, its deltas are 0, its key is short, it has no headers.
    """
    try:
        low, high, _, time_delta, offset_delta, key = _unpack_record_head(data, HEADER_BYTES)
        length = (low & 0x7F | high << 7) >> 1  # zig-zag of a positive number
        if low & 0x81 != 0x80 or high > 0x7F or HEADER_BYTES + 2 + length != size_bytes:
            return False
        if time_delta or offset_delta or key > 0x7F:
            return False
        position = _RECORD_HEAD_END if key & 1 else _RECORD_HEAD_END + (key >> 1)
        value = data[position]
        if value < 0x80:
            position += 1 if value & 1 else 1 + (value >> 1)
        else:
            high = data[position + 1]
            if value & 1 or high > 0x7F:
                return False
            position += 2 + ((value & 0x7F | high << 7) >> 1)
        return position == size_bytes - 1 and not data[position]
    except (struct.error, IndexError):
        return False


def has_sound_records(data: memoryview) -> bool:
    """Tell whether the first records of an uncompressed batch are whole, as a leader asks."""
    try:
        check_structure(data, records_max=_RECORDS_WALKED_MAX)
    except CorruptRecordError:
        return False
    return True


def usual_batch(data: memoryview, config: LogConfig, now_ms: int) -> tuple[int, int, int] | None:
    """
    Return what :func:`usual_header` does of a batch that enters the log as it is.

    None for any other, and for what a topic of this `config` has rules about.
    """
    if not config.has_usual_batches or len(data) > config.max_message_bytes:
        return None
    usual = usual_header(data)
    if usual is None or usual[1] > now_ms + config.message_timestamp_after_max_ms:
        return None
    return usual
