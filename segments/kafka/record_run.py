"""
Batches of magic 2 as rows, without an object a record: for whoever has many, or wants their parts.

:func:`logstore.segments.kafka.record.encode_batch` makes the same bytes of records, and
:func:`logstore.segments.kafka.record.decode_records` finds the same in them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from logstore.checksum import crc32c
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
)
from logstore.segments.kafka.varint import encode_varint, encode_varlong, wrapped_long

#: timestamp in ms, key, value, headers
Row = tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_POSITION = 17
_CRC_START = 21
#: lengths and offset deltas are small: most of them stand here ready
_SMALL_COUNT = 4096
_SMALL = tuple(encode_varint(value) for value in range(_SMALL_COUNT))
#: so many offset deltas take two bytes at most
_COUNT_MAX = 1 << 13
_NULL = b"\x01"
_NO_HEADERS = b"\x00"


def encode_run(base_offset: int, rows: Sequence[Row], leader_epoch: int = 0) -> bytearray:
    """
    Return one uncompressed batch of at least one row, the first at `base_offset`.

    Raises:
        VarintError: a key, value or header is longer than a record can tell.

    """
    base_timestamp_ms = max_timestamp_ms = rows[0][0]
    pieces: list[bytes] = [b""]
    for delta, (timestamp_ms, key, value, headers) in enumerate(rows):
        if timestamp_ms > max_timestamp_ms:
            max_timestamp_ms = timestamp_ms
        body = b"".join(
            (
                b"\x00",
                encode_varlong(wrapped_long(timestamp_ms - base_timestamp_ms)),
                _SMALL[delta] if delta < _SMALL_COUNT else encode_varint(delta),
                _NULL if key is None else _field(key),
                _NULL if value is None else _field(value),
                _headers(headers) if headers else _NO_HEADERS,
            )
        )
        pieces += (_length(len(body)), body)
    count = len(rows)
    size_bytes = sum(map(len, pieces)) + HEADER_BYTES
    pieces[0] = _HEADER.pack(
        base_offset, size_bytes - PREFIX_BYTES, leader_epoch, MAGIC, 0, 0, count - 1,
        base_timestamp_ms, max_timestamp_ms, -1, -1, -1, count,
    )  # fmt: skip
    batch = bytearray().join(pieces)
    checksum = crc32c(memoryview(batch)[_CRC_START:])
    batch[_CRC_POSITION:_CRC_START] = checksum.to_bytes(4, "big")
    return batch


def _length(value: int) -> bytes:
    return _SMALL[value] if value < _SMALL_COUNT else encode_varint(value)


def _field(data: bytes) -> bytes:
    return _length(len(data)) + data


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    pieces = [_length(len(headers))]
    for name, value in headers:
        pieces.append(_field(name.encode("utf-8", "surrogateescape")))
        pieces.append(_NULL if value is None else _field(value))
    return b"".join(pieces)


def decode_run(batch: RecordBatch) -> list[Row]:
    """
    Return the rows of a whole batch.

    Raises:
        CorruptRecordError: as for :func:`logstore.segments.kafka.record.decode_records`.

    """
    if batch.magic == MAGIC and not batch.attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT):
        rows = _plain_rows(bytes(batch.data), batch.record_count, batch.base_timestamp_ms)
        if rows is not None:
            return rows
    return [
        (record.timestamp_ms, record.key, record.value, record.headers)
        for record in decode_records(batch.data)
    ]


def _plain_rows(  # noqa: C901 - the loop of every append to a foreign layout calls nothing
    data: bytes, count: int, base_timestamp_ms: int
) -> list[Row] | None:
    """
    Read records whose lengths and deltas take one or two bytes each, and that have no headers.

    None where one is other, or wrong: somebody else looks at it closely.
    """
    if count > _COUNT_MAX:
        return None
    rows: list[Row] = []
    position = end = HEADER_BYTES
    try:
        for _ in range(count):
            low, position = data[position], position + 1
            if low >= 128:
                high, position = data[position], position + 1
                if high >= 128:
                    return None
                low = low & 127 | high << 7
            end = position + (low >> 1) if not low & 1 else len(data) + 1
            low, position = data[position + 1], position + 2  # past the attributes
            if low >= 128:
                high, position = data[position], position + 1
                if high >= 128:
                    return None
                low = low & 127 | high << 7
            timestamp_ms = base_timestamp_ms + ((low >> 1) ^ -(low & 1))
            position += 1 if data[position] < 128 else 2  # which record it is, is known
            fields: list[bytes | None] = []
            for _ in (0, 1):
                low, position = data[position], position + 1
                if low >= 128:
                    high, position = data[position], position + 1
                    if high >= 128:
                        return None
                    low = low & 127 | high << 7
                start, position = position, position + (low >> 1)
                if low & 1 and low != 1:  # another way to say null
                    return None
                fields.append(None if low == 1 else data[start:position])
            if position != end - 1 or data[position]:
                return None
            position = end
            rows.append((timestamp_ms, fields[0], fields[1], ()))
    except IndexError:
        return None
    return rows if end == len(data) else None
