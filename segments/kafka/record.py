"""
Records, and how a batch of magic 2 is made of them and taken apart.

A record (``DefaultRecord``) has no fixed header; *v* marks variable-length integers::

    length v | attributes i8 = 0 | timestamp delta v | offset delta v
    key length v (-1: null) key | value length v (-1: null) value
    header count v, then per header: name length v, name, value length v (-1: null), value

Deltas count from the batch's base timestamp and base offset. The batch header is read by
:mod:`logstore.segments.kafka.record_batch`; CRCs are checked there, not here.

Source: ``DefaultRecord``, ``DefaultRecordBatch``, ``MemoryRecordsBuilder``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from logstore.checksum import crc32c
from logstore.errors import LogStoreError
from logstore.segments.kafka.compression import (
    DECOMPRESSED_BYTES_MAX,
    Codec,
    CompressionError,
    compress,
    decompress,
)
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from logstore.segments.kafka.varint import (
    VarintError,
    decode_small_varint,
    decode_varint,
    decode_varlong,
    encode_varint,
    encode_varlong,
    wrapped_long,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC = struct.Struct(">I")
_SEQUENCE_MODULUS = 1 << 31
_MAGIC_POSITION = 16
_RECORD_BODY_BYTES_MIN = 6  # attributes, two deltas, two lengths, header count
_NULL = b"\x01"  # varint -1


class CorruptRecordError(LogStoreError):
    """The records of a batch cannot be read, or cannot be written as asked."""


class TimestampType(IntEnum):
    """Whose clock the timestamps are of: bit 3 of a batch's attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Record(NamedTuple):
    """
    One record of a partition.

    Header names are text; bytes in them that are no UTF-8 are kept as lone surrogates
    (``surrogateescape``), so that they survive a rewrite. `sequence` is the producer's, -1 without
    one.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    sequence: int = -1


# decoding


def decode_records(batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """
    Return the records of one whole batch, or of a message of magic 0 or 1.

    The records of a LogAppendTime batch all have its maximal timestamp, those of magic 0 have -1.
    Compressed records may grow to `size_bytes_max`.

    Raises:
        CorruptRecordError: anything but exactly ``recordCount`` whole records.

    """
    data = batch if isinstance(batch, bytes) else bytes(batch)
    if len(data) > _MAGIC_POSITION and data[_MAGIC_POSITION] < MAGIC:
        # Few logs still hold such; whoever has none does not load what reads them.
        from logstore.segments.kafka.legacy.message_set import decode_message

        return decode_message(data, size_bytes_max=size_bytes_max)
    header, data, position = opened_batch(data, size_bytes_max)
    records: list[Record] = []
    try:
        for _ in range(header.record_count):
            record, position = _decode_record(data, position, header)
            records.append(record)
    except (VarintError, IndexError) as error:
        raise CorruptRecordError(f"record {len(records)} is cut short: {error}") from None
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes follow the last record")
    if header.attributes & LOG_APPEND_TIME_BIT:
        timestamp_ms = header.max_timestamp_ms
        records = [record._replace(timestamp_ms=timestamp_ms) for record in records]
    return records


def opened_batch(data: bytes, size_bytes_max: int) -> tuple[RecordBatch, bytes, int]:
    """
    Return the header of a whole batch of magic 2, what holds its records, and where they begin.

    Raises:
        CorruptRecordError: it is none, or its records cannot be decompressed.

    """
    header = _checked_header(data)
    codec = header.attributes & CODEC_MASK
    if not codec:
        return header, data, HEADER_BYTES
    try:
        return header, decompress(Codec(codec), memoryview(data)[HEADER_BYTES:], size_bytes_max), 0
    except (CompressionError, ValueError) as error:
        raise CorruptRecordError(str(error)) from error


def check_structure(batch: Buffer, *, records_max: int = 16) -> None:
    """
    Walk the length prefixes of the first records of an uncompressed batch; read the first one.

    Looks at `records_max` records at most; only if that is all of them must they fill the batch.
    Who encodes records wrongly encodes all of them so: the fields of the others are not looked at.
    Raises CorruptRecordError.
    """
    view = memoryview(batch)
    end = len(view)
    if end < HEADER_BYTES:
        raise CorruptRecordError(f"{end} bytes are less than a batch header")
    record_count: int = _RECORD_COUNT.unpack_from(view, HEADER_BYTES - 4)[0]
    position = HEADER_BYTES
    for index in range(min(record_count, records_max)):
        # Lengths of one or two bytes are read here: this stands in the path of every append.
        low = view[position] if position < end else 0x80
        high = view[position + 1] if low >= 0x80 and position + 1 < end else 0x80
        if low < 0x80:
            length, position = (low >> 1) ^ -(low & 1), position + 1
        elif high < 0x80:
            length, position = ((low & 0x7F | high << 7) >> 1) ^ -(low & 1), position + 2
        else:
            try:
                length, position = decode_varint(view, position)
            except VarintError as error:
                raise CorruptRecordError(f"record {index} is cut short: {error}") from None
        if length < _RECORD_BODY_BYTES_MIN or length > end - position:
            raise CorruptRecordError(
                f"record {index} claims {length} bytes, {end - position} are left"
            )
        if index == 0:
            check_fields(view, position, position + length)
        position += length
    if record_count <= records_max and position != end:
        raise CorruptRecordError(f"{end - position} bytes follow the last record")


_RECORD_COUNT = struct.Struct(">i")


def check_fields(view: memoryview, position: int, end: int) -> None:
    """
    Check that the fields of one record, behind its length, end where it does.

    Raises:
        CorruptRecordError: they do not, or a length in it is impossible.

    """
    start = position
    try:
        # Written out, as this stands in the path of every append: attributes, of which none are
        # defined; two deltas, which do not matter here; key; value; headers.
        position += 1
        while view[position] > 0x7F:
            position += 1
        position += 1
        while view[position] > 0x7F:
            position += 1
        position += 1
        length = view[position]
        if length < 0x80:
            position += 1 if length & 1 else 1 + (length >> 1)
        else:
            length, position = decode_small_varint(view, position)
            position += max(length, 0)
        length = view[position]
        if length < 0x80:
            position += 1 if length & 1 else 1 + (length >> 1)
        else:
            length, position = decode_small_varint(view, position)
            position += max(length, 0)
        if view[position]:
            position = (
                start + _decode_headers(bytes(view[start:end]), position - start, end - start)[1]
            )
        else:
            position += 1
    except (VarintError, IndexError) as error:
        raise CorruptRecordError(f"a record of {end - start} bytes is cut short: {error}") from None
    if position != end:
        raise CorruptRecordError(f"a record of {end - start} bytes takes {position - start}")


def _checked_header(data: bytes) -> RecordBatch:
    if len(data) < HEADER_BYTES:
        raise CorruptRecordError(f"{len(data)} bytes are less than a batch header")
    header = RecordBatch(data, len(data))
    length = int.from_bytes(data[8:12], "big", signed=True)
    if header.magic != MAGIC:
        raise CorruptRecordError(f"magic {header.magic}, expected {MAGIC}")
    if PREFIX_BYTES + length != len(data):
        raise CorruptRecordError(f"batch length {length} does not fit {len(data)} bytes")
    if header.record_count < 0:
        raise CorruptRecordError(f"record count {header.record_count}")
    return header


def _decode_record(data: bytes, position: int, header: RecordBatch) -> tuple[Record, int]:
    """
    Return (the record at `position`, the position after it).

    Raises VarintError or IndexError where `data` ends, CorruptRecordError otherwise.
    """
    length, position = decode_small_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise CorruptRecordError(f"a record of {length} bytes, {len(data) - position} are left")
    position += 1  # attributes: none are defined
    byte = data[position]
    if byte < 128:
        timestamp_delta = (byte >> 1) ^ -(byte & 1)
        position += 1
    else:
        timestamp_delta, position = decode_varlong(data, position)
    offset_delta, position = decode_small_varint(data, position)
    key, position = _decode_bytes(data, position, end)
    value, position = _decode_bytes(data, position, end)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if data[position] == 0:
        position += 1
    else:
        headers, position = _decode_headers(data, position, end)
    if position != end:
        raise CorruptRecordError(f"a record of {length} bytes takes {position - end + length}")
    sequence = max(header.base_sequence, -1)
    if sequence >= 0:
        sequence = (sequence + offset_delta) % _SEQUENCE_MODULUS
    offset = header.base_offset + offset_delta
    timestamp_ms = wrapped_long(header.base_timestamp_ms + timestamp_delta)
    return Record(offset, timestamp_ms, key, value, headers, sequence), position


def _decode_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Return (bytes behind their length or None, position after them); any length < 0 is null."""
    byte = data[position]
    if byte == 1:
        return None, position + 1
    size_bytes, start = decode_small_varint(data, position)
    if size_bytes < 0:
        return None, start
    position = start + size_bytes
    if position > end:
        raise CorruptRecordError(f"a field of {size_bytes} bytes runs out of its record")
    return data[start:position], position


def _decode_headers(
    data: bytes, position: int, end: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = decode_varint(data, position)
    if not 0 <= count <= end - position:
        raise CorruptRecordError(f"{count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _decode_bytes(data, position, end)
        if name is None:
            raise CorruptRecordError("a header name is null")
        value, position = _decode_bytes(data, position, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


# encoding


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    leader_epoch: int = -1,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp_ms: int | None = None,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """
    Return the batch of these records; their offsets are absolute and increase from `base_offset`.

    The last three are what compaction keeps: maximal timestamp (also a LogAppendTime), last offset
    covered, when tombstones may go. CorruptRecordError if offsets fall or a number does not fit.
    """
    records = list(records)
    base_timestamp_ms = records[0].timestamp_ms if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp_ms = delete_horizon_ms
    if max_timestamp_ms is None:
        max_timestamp_ms = max((r.timestamp_ms for r in records), default=NO_TIMESTAMP)
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset - 1
    codec = codec if records else Codec.NONE
    attributes = codec | timestamp_type * LOG_APPEND_TIME_BIT | is_control * CONTROL_BIT
    attributes |= is_transactional * TRANSACTIONAL_BIT
    attributes |= (delete_horizon_ms is not None) * DELETE_HORIZON_BIT
    try:
        body = _encode_records(records, base_offset, last_offset, base_timestamp_ms)
    except (struct.error, VarintError, UnicodeEncodeError) as error:
        raise CorruptRecordError(f"the records do not fit a batch: {error}") from None
    return sealed_batch(
        compress(codec, body, level),
        len(records),
        attributes=attributes,
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        leader_epoch=leader_epoch,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer=(producer_id, producer_epoch, base_sequence),
    )


def sealed_batch(
    body: bytes,
    record_count: int,
    *,
    attributes: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """
    Return the batch of records that are encoded already, under its CRC.

    `producer` is its id, its epoch and the first sequence. CorruptRecordError if a number does not
    fit.
    """
    try:
        header = _HEADER.pack(
            base_offset, HEADER_BYTES - PREFIX_BYTES + len(body), leader_epoch, MAGIC, 0,
            attributes, last_offset_delta, base_timestamp_ms, max_timestamp_ms,
            *producer, record_count,
        )  # fmt: skip
    except struct.error as error:
        raise CorruptRecordError(f"the records do not fit a batch: {error}") from None
    batch = bytearray(header + body)
    _CRC.pack_into(batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


def _encode_records(
    records: list[Record], base_offset: int, last_offset: int, base_timestamp_ms: int
) -> bytes:
    pieces: list[bytes] = []
    previous = base_offset - 1
    for record in records:
        if not previous < record.offset <= last_offset:
            raise CorruptRecordError(
                f"offset {record.offset} is not in ({previous}, {last_offset}]"
            )
        previous = record.offset
        body = _encode_record(
            record, record.timestamp_ms - base_timestamp_ms, record.offset - base_offset
        )
        pieces += (encode_varint(len(body)), body)
    return b"".join(pieces)


def _encode_record(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    key, value, headers = record.key, record.value, record.headers
    pieces = [b"\x00", encode_varlong(wrapped_long(timestamp_delta)), encode_varint(offset_delta)]
    if key is None:
        pieces.append(_NULL)
    else:
        pieces += (encode_varint(len(key)), key)
    if value is None:
        pieces.append(_NULL)
    else:
        pieces += (encode_varint(len(value)), value)
    pieces.append(encode_varint(len(headers)))
    for name, header_value in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        pieces += (encode_varint(len(encoded)), encoded)
        if header_value is None:
            pieces.append(_NULL)
        else:
            pieces += (encode_varint(len(header_value)), header_value)
    return b"".join(pieces)
