"""
The first record of a batch that is young enough, found without reading what records hold.

A batch may hold a thousand records, and a question about a time is answered by one of them: of the
others nothing but length, timestamp delta and offset delta is read.

Source: ``FileRecords.searchForTimestamp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from logstore.segments.kafka.compression import DECOMPRESSED_BYTES_MAX
from logstore.segments.kafka.record import CorruptRecordError, decode_records, opened_batch
from logstore.segments.kafka.record_batch import LOG_APPEND_TIME_BIT, MAGIC
from logstore.segments.kafka.varint import (
    VarintError,
    decode_small_varint,
    decode_varlong,
    wrapped_long,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MAGIC_POSITION = 16
#: to such a time no delta of few bytes can be added that is too much for 64 bits
_USUAL_TIME_MAX_MS = 1 << 62


class TimedOffset(NamedTuple):
    """A record's timestamp and offset."""

    timestamp_ms: int
    offset: int


def first_at_or_after(batch: Buffer, timestamp_ms: int, start_offset: int) -> TimedOffset | None:
    """
    Return the first record at or above `start_offset` that is at least that young, None without.

    Raises:
        CorruptRecordError: a record on the way there cannot be read.

    """
    data = batch if isinstance(batch, bytes) else bytes(batch)
    if len(data) <= _MAGIC_POSITION or data[_MAGIC_POSITION] < MAGIC:
        return _first_of_all(data, timestamp_ms, start_offset)
    header, data, position = opened_batch(data, DECOMPRESSED_BYTES_MAX)
    base_ms, base_offset = header.base_timestamp_ms, header.base_offset
    if not -_USUAL_TIME_MAX_MS < base_ms < _USUAL_TIME_MAX_MS:
        return _first_of_all(bytes(batch), timestamp_ms, start_offset)
    has_one_time = bool(header.attributes & LOG_APPEND_TIME_BIT)
    if has_one_time and header.max_timestamp_ms < timestamp_ms:
        return None
    index = 0
    try:
        for index in range(header.record_count):
            # Integers of one and two bytes, nearly all, are read here: a call costs as much again.
            byte, second = data[position], data[position + 1]
            if byte >= 0x80 > second:
                value, position = byte & 0x7F | second << 7, position + 2
                size_bytes = (value >> 1) ^ -(value & 1)
            else:
                size_bytes, position = decode_small_varint(data, position)
            end = position + size_bytes
            if size_bytes < 0 or end > len(data):
                raise CorruptRecordError(f"record {index} claims {size_bytes} bytes")
            byte, second = data[position + 1], data[position + 2]  # behind the attributes
            if byte < 0x80:
                time_ms, position = base_ms + ((byte >> 1) ^ -(byte & 1)), position + 2
            elif second < 0x80:
                value, position = byte & 0x7F | second << 7, position + 3
                time_ms = base_ms + ((value >> 1) ^ -(value & 1))
            else:
                delta_ms, position = decode_varlong(data, position + 1)
                time_ms = wrapped_long(base_ms + delta_ms)
            if time_ms >= timestamp_ms or has_one_time:
                offset = base_offset + decode_small_varint(data, position)[0]
                if offset >= start_offset:
                    return TimedOffset(header.max_timestamp_ms if has_one_time else time_ms, offset)
            position = end
    except (VarintError, IndexError) as error:
        raise CorruptRecordError(f"record {index} is cut short: {error}") from None
    return None


def _first_of_all(data: bytes, timestamp_ms: int, start_offset: int) -> TimedOffset | None:
    """Do the same by reading all records."""
    for record in decode_records(data):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return TimedOffset(record.timestamp_ms, record.offset)
    return None
