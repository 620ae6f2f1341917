"""
A batch of magic 2 out of rows whose offsets follow each other, without an object a record.

:func:`logstore.segments.kafka.record.encode_batch` makes the same bytes of records; this is for
whoever has only their parts, and many of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from logstore.checksum import crc32c
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES
from logstore.segments.kafka.varint import encode_varint, encode_varlong

#: timestamp in ms, key, value, headers
Row = tuple[int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_POSITION = 17
_CRC_START = 21
#: lengths and offset deltas are small: most of them stand here ready
_SMALL_COUNT = 4096
_SMALL = tuple(encode_varint(value) for value in range(_SMALL_COUNT))
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
                encode_varlong(timestamp_ms - base_timestamp_ms),
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
