"""
The partitions of one topic in a Produce request: their batches, and what is told of usual ones.

Requests that spread over many partitions bring hundreds of small batches. In front of each stand
its partition's number and its length, and right behind them the batch's header: so one look reads
all three, and the batch about which nothing is special is known before it is handed on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from logstore.checksum import crc32c
from logstore.compat.kafka.framing import Reader
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
)
from logstore.segments.kafka.usual_batch import (
    USUAL_FIELDS,
    UsualBatch,
    has_sound_records,
    is_one_usual_record,
    usual_header,
)

#: as :data:`UsualBatch`; of others the last offset delta is :data:`UNUSUAL`, null has no bytes
PartitionBatch = UsualBatch
UNUSUAL = -1
#: beside the attributes of all batches, if any of them is that: more than a byte of them has
SOME_UNUSUAL = 0x100
#: the version of Produce from which on batches may be compressed by zstd
ZSTD_SINCE = 7

_USUAL = struct.Struct(f">iH{USUAL_FIELDS}")
_unpack_usual: Callable[[memoryview, int], tuple[int, ...]] = _USUAL.unpack_from
#: partition number and the two bytes that most compact lengths take (127 bytes to 16 KiB)
_PREFIX_BYTES = 6
_MAGIC_AT = 16
_CRC_START = 21
_ATTRIBUTES_AT = 22  # the low byte of a batch's attributes
_VARINT_MAX = 2**14 - 1
#: by number what a varint of two bytes is as one big-endian integer; -1 where it takes more or less
_TWO_BYTES = [
    *[-1] * 0x80,
    *[low | high for high in range(1, 0x80) for low in range(0x8000, 0x10000, 0x100)],
    *[-1] * (_VARINT_MAX + 1),
]
#: what the length of a batch says, of those whose compact length takes two bytes
_LENGTH_BYTES_MIN, _LENGTH_BYTES_MAX = HEADER_BYTES, _VARINT_MAX - PREFIX_BYTES - 1
#: what the length of a batch says of its only record, above what that one's length says
_OUTSIDE_BYTES = HEADER_BYTES + 2 - PREFIX_BYTES


def read_batches(
    reader: Reader, count: int, *, is_known: bool = False
) -> tuple[list[PartitionBatch], int]:
    """
    Read so many partitions; return their batches, and all bits set in attributes of any of them.

    What makes a batch usual stands here once more (:func:`usual_header`), as calls are their cost.
    Of single records the first is looked into, none if it `is_known` how they are encoded.
    """
    data, position, two_bytes = reader.data, reader.position, _TWO_BYTES
    usual_max = len(data) - _USUAL.size - 1 if reader.is_flexible else -1
    found: list[PartitionBatch] = []
    all_attributes = 0
    for _ in range(count):
        if position <= usual_max:
            (
                index, compact_length, base_offset, length_bytes, magic, crc, attributes,
                last_delta, timestamp_ms, producer_id, record_count, record_length,
            ) = _unpack_usual(data, position)  # fmt: skip
            if (
                not attributes
                and not base_offset
                and magic == MAGIC
                and 0 < record_count == last_delta + 1
                and timestamp_ms >= 0
                and _LENGTH_BYTES_MIN <= length_bytes <= _LENGTH_BYTES_MAX
                and compact_length == two_bytes[length_bytes + PREFIX_BYTES + 1]
            ):
                end = (start := position + _PREFIX_BYTES) + length_bytes + PREFIX_BYTES
                records = data[start:end]
                is_one = (
                    record_count == 1
                    and record_length == two_bytes[2 * (length_bytes - _OUTSIDE_BYTES)]
                    and (is_known or is_one_usual_record(records, end - start))
                )
                if (
                    crc32c(records[_CRC_START:]) == crc
                    and not data[end]  # no tags
                    and (is_one or has_sound_records(records))
                ):
                    found.append((index, records, last_delta, timestamp_ms, producer_id))
                    position = end + 1
                    is_known = True
                    continue
        reader.position = position
        bits, batch = _read_by_itself(reader)
        position, all_attributes = reader.position, all_attributes | bits
        found.append(batch)
    reader.position = position
    return found, all_attributes


def _read_by_itself(reader: Reader) -> tuple[int, PartitionBatch]:
    """Read a partition; return its batch's attributes, :data:`SOME_UNUSUAL` among them, and it."""
    index, records = reader.batch()
    attributes = records[_ATTRIBUTES_AT] if len(records) >= HEADER_BYTES else 0
    usual = usual_header(records)
    if usual is None:
        return attributes | SOME_UNUSUAL, (index, records, UNUSUAL, 0, -1)
    return attributes, (index, records, *usual)


def is_zstd(records: memoryview) -> bool:
    """Tell whether a batch says that zstd has compressed it."""
    return (
        len(records) >= HEADER_BYTES
        and records[_ATTRIBUTES_AT] & CODEC_MASK == Codec.ZSTD
        and records[_MAGIC_AT] == MAGIC
    )


def has_transaction_bit(records: memoryview) -> bool:
    """Tell whether a batch, of whatever magic, says that it belongs to a transaction."""
    return len(records) >= HEADER_BYTES and records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
