"""
Records into messages of magic 0 and 1, and back.

Source: ``AbstractLegacyRecordBatch.DeepRecordsIterator``, ``MemoryRecordsBuilder``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from logstore.segments.kafka.compression import (
    DECOMPRESSED_BYTES_MAX,
    Codec,
    CompressionError,
)
from logstore.segments.kafka.legacy.compressed_set import compress_set, decompress_set
from logstore.segments.kafka.legacy.message import (
    HEADER_BYTES,
    KNOWN_ATTRIBUTES,
    MAGIC_1,
    MAGIC_POSITION,
    MESSAGE_BYTES_MIN,
)
from logstore.segments.kafka.record import CorruptRecordError, Record, TimestampType
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    PREFIX_BYTES,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = struct.Struct(">qiIbB")
_PREFIX = struct.Struct(">qi")
_CHECKED = struct.Struct(">bB")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_OFFSET_DELTA_MAX = 2**31 - 1
#: what the oldest format may not be smaller than, whatever the magic
_LENGTH_MIN = MESSAGE_BYTES_MIN[0] - PREFIX_BYTES


@attrs.frozen
class _Message:
    """One message, its content not yet looked into."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)


# decoding


def decode_message(
    message: Buffer,
    *,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    is_magic_uniform: bool = False,
) -> list[Record]:
    """
    Return the records of one whole message: one, or those that a wrapper holds.

    A record of magic 0 has the timestamp -1. Compressed messages may grow to `size_bytes_max`. With
    `is_magic_uniform` they must be of their wrapper's magic, as a leader demands. The CRC of
    `message` itself is not looked at, those of inner messages are.

    Raises:
        CorruptRecordError: it is no whole message, or what it wraps cannot be read.

    """
    data = bytes(message)
    outer = _parse(data, 0, len(data))
    if PREFIX_BYTES + _PREFIX.unpack_from(data)[1] != len(data):
        raise CorruptRecordError(f"message size does not fit {len(data)} bytes")
    if not outer.codec:
        return [_record(outer, outer.offset, outer.timestamp_ms)]
    if outer.value is None:
        raise CorruptRecordError("a wrapper has no value")
    try:
        inside = decompress_set(Codec(outer.codec), outer.value, outer.magic, size_bytes_max)
    except (CompressionError, ValueError) as error:
        raise CorruptRecordError(str(error)) from error
    inner = list(_inner_messages(inside))
    if not inner:
        raise CorruptRecordError("a wrapper has no messages inside")
    base_offset = _base_offset(outer, inner[-1].offset)
    records: list[Record] = []
    for found in inner:
        if found.codec:
            raise CorruptRecordError("a message inside of a wrapper is compressed itself")
        if is_magic_uniform and found.magic != outer.magic:
            raise CorruptRecordError(f"magic {found.magic} stands inside of magic {outer.magic}")
        timestamp_ms = found.timestamp_ms
        if outer.is_log_append_time and found.magic == MAGIC_1:
            timestamp_ms = outer.timestamp_ms
        records.append(_record(found, base_offset + found.offset, timestamp_ms))
    return records


def _record(message: _Message, offset: int, timestamp_ms: int) -> Record:
    return Record(offset, timestamp_ms, message.key, message.value)


def _base_offset(outer: _Message, last_inner_offset: int) -> int:
    """
    Return what is added to each inner offset.

    Some versions of librdkafka sent wrappers with offset 0: their first message has 0 too.
    """
    if outer.magic != MAGIC_1 or outer.offset == 0:
        return 0
    if outer.offset < last_inner_offset:
        raise CorruptRecordError(
            f"a wrapper has offset {outer.offset}, below {last_inner_offset} of its last message"
        )
    return outer.offset - last_inner_offset


def _inner_messages(data: bytes) -> Iterator[_Message]:
    """Yield what stands in a wrapper; as in Kafka a last message that is cut short is no error."""
    position, end = 0, len(data)
    while end - position >= PREFIX_BYTES:
        size_bytes = PREFIX_BYTES + _PREFIX.unpack_from(data, position)[1]
        if size_bytes < PREFIX_BYTES + _LENGTH_MIN:
            raise CorruptRecordError(f"a message of {size_bytes} bytes inside of a wrapper")
        if size_bytes > end - position:
            return
        message = _parse(data, position, position + size_bytes)
        crc = zlib.crc32(memoryview(data)[position + MAGIC_POSITION : position + size_bytes])
        if crc != _CRC.unpack_from(data, position + PREFIX_BYTES)[0]:
            raise CorruptRecordError(f"the message at {position} inside of a wrapper is damaged")
        yield message
        position += size_bytes


def _parse(data: bytes, position: int, end: int) -> _Message:
    """Return the message in ``[position, end)``; bytes behind its value do not count."""
    if end - position < HEADER_BYTES:
        raise CorruptRecordError(f"{end - position} bytes are less than a message header")
    offset, _, _, magic, attributes = _HEADER.unpack_from(data, position)
    if magic not in KNOWN_ATTRIBUTES:
        raise CorruptRecordError(f"magic {magic}, expected 0 or 1")
    if end - position < MESSAGE_BYTES_MIN[magic]:
        raise CorruptRecordError(f"a message of {end - position} bytes and magic {magic}")
    position += HEADER_BYTES
    timestamp_ms = NO_TIMESTAMP
    if magic == MAGIC_1:
        timestamp_ms = _TIMESTAMP.unpack_from(data, position)[0]
        position += 8
    key, position = _parse_bytes(data, position, end)
    value, _ = _parse_bytes(data, position, end)
    return _Message(offset, magic, attributes & KNOWN_ATTRIBUTES[magic], timestamp_ms, key, value)


def _parse_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    if position + 4 > end:
        raise CorruptRecordError("a message ends inside of a length")
    size_bytes: int = _LENGTH.unpack_from(data, position)[0]
    position += 4
    if size_bytes < 0:
        return None, position
    if position + size_bytes > end:
        raise CorruptRecordError(f"a field of {size_bytes} bytes runs out of its message")
    return data[position : position + size_bytes], position + size_bytes


# encoding


def encode_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """
    Return these records as messages, or, with a codec, as one wrapper around them.

    Their offsets are absolute and rise. In magic 0 timestamps are left out. The records of a
    LogAppendTime set all get the largest timestamp of theirs.

    Raises:
        CorruptRecordError: there are none, offsets do not rise, a record has headers, or a number
            does not fit.
        CompressionError: the codec is zstd.

    """
    records = list(records)
    if not records:
        raise CorruptRecordError("there is no empty message set")
    _check(records)
    max_timestamp_ms = max(record.timestamp_ms for record in records)
    attributes = 0
    if magic == MAGIC_1 and timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes = LOG_APPEND_TIME_BIT
        records = [record._replace(timestamp_ms=max_timestamp_ms) for record in records]
    base_offset = records[0].offset if codec and magic == MAGIC_1 else 0
    try:
        data = b"".join(
            _encode(
                record.offset - base_offset,
                magic,
                attributes,
                record.timestamp_ms,
                record.key,
                record.value,
            )
            for record in records
        )
        if not codec:
            return data
        value = compress_set(codec, data, magic, level)
        return _encode(records[-1].offset, magic, attributes | codec, max_timestamp_ms, None, value)
    except struct.error as error:
        raise CorruptRecordError(f"the records do not fit messages: {error}") from None


def _check(records: list[Record]) -> None:
    first_offset = records[0].offset
    previous = first_offset - 1
    for record in records:
        if not previous < record.offset <= first_offset + _OFFSET_DELTA_MAX:
            raise CorruptRecordError(f"offset {record.offset} comes after {previous}")
        if record.headers:
            raise CorruptRecordError(f"offset {record.offset}: messages have no headers")
        if record.timestamp_ms < NO_TIMESTAMP:
            raise CorruptRecordError(f"offset {record.offset}: timestamp {record.timestamp_ms}")
        previous = record.offset


def _encode(
    offset: int,
    magic: int,
    attributes: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    """Return one message; struct.error if a number does not fit."""
    pieces = [_CHECKED.pack(magic, attributes)]
    if magic == MAGIC_1:
        pieces.append(_TIMESTAMP.pack(timestamp_ms))
    for field in (key, value):
        pieces.append(_LENGTH.pack(-1 if field is None else len(field)))
        if field is not None:
            pieces.append(field)
    checked = b"".join(pieces)
    crc = _CRC.pack(zlib.crc32(checked))
    return _PREFIX.pack(offset, len(crc) + len(checked)) + crc + checked
