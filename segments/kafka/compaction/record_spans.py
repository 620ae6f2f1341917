"""
Records as pieces of their batch: found without decoding them, copied without encoding them.

Of a record only the time delta depends on which records are its neighbours; what stands behind it,
from the offset delta on, is copied as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from logstore.checksum import crc32c
from logstore.segments.kafka.compression import Codec, CompressionError, compress, decompress
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    RecordBatch,
)
from logstore.segments.kafka.varint import (
    VarintError,
    decode_small_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
    wrapped_long,
)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC = struct.Struct(">I")
_CRC_START = 21
_KNOWN_BITS = 0x7F


class RecordSpan(NamedTuple):
    """One record; ``body[tail_start:end]`` is all that stands behind its time delta."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    has_value: bool
    tail_start: int
    end: int


def batch_body(batch: RecordBatch) -> bytes:
    """Return the records of a batch of magic 2, decompressed. Raises CorruptRecordError."""
    body = bytes(memoryview(batch.data)[HEADER_BYTES : batch.size_bytes])
    if not batch.codec:
        return body
    try:
        return decompress(Codec(batch.codec), body)
    except (CompressionError, ValueError) as error:
        raise CorruptRecordError(str(error)) from error


def find_records(batch: RecordBatch, body: bytes) -> list[RecordSpan]:
    """Return where the records of `batch` stand in its `body`. Raises CorruptRecordError."""
    spans: list[RecordSpan] = []
    base_offset, base_ms = batch.base_offset, batch.base_timestamp_ms
    is_append_time = batch.is_log_append_time
    position = 0
    try:
        for _ in range(batch.record_count):
            length, position = decode_small_varint(body, position)
            end = position + length
            time_delta, tail = decode_varlong(body, position + 1)
            offset_delta, position = decode_small_varint(body, tail)
            key_bytes, position = decode_small_varint(body, position)
            key: bytes | None = None
            if key_bytes >= 0:
                key = body[position : position + key_bytes]
                position += key_bytes
            value_bytes, position = decode_small_varint(body, position)
            if length < 0 or position + max(value_bytes, 0) >= end or end > len(body):
                raise CorruptRecordError(f"record {len(spans)} runs out of its batch")
            timestamp_ms = batch.max_timestamp_ms if is_append_time else base_ms + time_delta
            timestamp_ms = wrapped_long(timestamp_ms)
            spans.append(
                RecordSpan(
                    base_offset + offset_delta, timestamp_ms, key, value_bytes >= 0, tail, end
                )
            )
            position = end
    except (VarintError, IndexError) as error:
        raise CorruptRecordError(f"record {len(spans)} is cut short: {error}") from None
    if position != len(body):
        raise CorruptRecordError(f"{len(body) - position} bytes follow the last record")
    return spans


def rebuilt_batch(
    batch: RecordBatch, body: bytes, kept: Sequence[RecordSpan], delete_horizon_ms: int | None
) -> RecordBatch:
    """
    Return `batch` with only the records `kept`, at least one.

    It covers the same offsets and sequences. As `MemoryRecords.buildRetainedRecordsInto` does, the
    times are counted from the delete horizon, or from the first record that is left.
    """
    base_ms = kept[0].timestamp_ms if delete_horizon_ms is None else delete_horizon_ms
    pieces: list[bytes] = []
    for span in kept:
        delta = encode_varlong(wrapped_long(span.timestamp_ms - base_ms))
        tail = body[span.tail_start : span.end]
        pieces += (encode_varint(1 + len(delta) + len(tail)), b"\0", delta, tail)
    max_timestamp_ms = batch.max_timestamp_ms
    if not batch.is_log_append_time:
        max_timestamp_ms = max(NO_TIMESTAMP, *(span.timestamp_ms for span in kept))
    new_body = compress(Codec(batch.codec), b"".join(pieces), None)
    attributes = batch.attributes & _KNOWN_BITS & ~DELETE_HORIZON_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    return _assembled(batch, attributes, base_ms, max_timestamp_ms, len(kept), new_body)


def emptied_batch(batch: RecordBatch) -> RecordBatch:
    """Return `batch` without records: its offsets, its producer and its sequences stay known."""
    attributes = batch.attributes & _KNOWN_BITS & ~(DELETE_HORIZON_BIT | CODEC_MASK)
    return _assembled(batch, attributes, NO_TIMESTAMP, batch.max_timestamp_ms, 0, b"")


def _assembled(
    batch: RecordBatch,
    attributes: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    record_count: int,
    body: bytes,
) -> RecordBatch:
    header = _HEADER.pack(
        batch.base_offset, HEADER_BYTES - PREFIX_BYTES + len(body), batch.leader_epoch, 2, 0,
        attributes, batch.last_offset_delta, base_timestamp_ms, max_timestamp_ms,
        batch.producer_id, batch.producer_epoch, batch.base_sequence, record_count,
    )  # fmt: skip
    data = bytearray(header + body)
    _CRC.pack_into(data, 17, crc32c(memoryview(data)[_CRC_START:]))
    return RecordBatch(data, len(data))
