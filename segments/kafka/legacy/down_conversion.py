"""
From record batches to messages of magic 1 or 0, as brokers up to 3.9 did for old consumers.

What the old formats cannot hold is left out: headers, producers, leader epochs, in magic 0
timestamps too; control batches altogether. Offsets stay, so a consumer sees holes where markers
were.

Source: ``RecordsUtil.downConvert`` of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable

from logstore.errors import LogStoreError
from logstore.segments.kafka.compression import DECOMPRESSED_BYTES_MAX, Codec
from logstore.segments.kafka.legacy.message import KNOWN_ATTRIBUTES
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import TimestampType, decode_records
from logstore.segments.kafka.record_batch import RecordBatch


class UnsupportedDownConversionError(LogStoreError):
    """An old format has no such codec (Kafka: UNSUPPORTED_COMPRESSION_TYPE)."""


def down_convert(
    batches: Iterable[RecordBatch],
    magic: int,
    *,
    first_offset: int = 0,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """
    Return what batches of any format say as messages of at most this magic.

    Of a batch without compression the records below `first_offset`, which the reader did not ask
    for, are left out; a wrapper is all or nothing. A batch of an old enough format goes as it is.

    Raises:
        UnsupportedDownConversionError: a batch is compressed with zstd.
        CorruptRecordError: a batch cannot be read.

    """
    assert magic in KNOWN_ATTRIBUTES, f"magic {magic}"
    return b"".join(
        _converted(batch, magic, first_offset, size_bytes_max)
        for batch in batches
        if not batch.is_control
    )


def _converted(batch: RecordBatch, magic: int, first_offset: int, size_bytes_max: int) -> bytes:
    codec = batch.codec
    if codec == Codec.ZSTD:
        raise UnsupportedDownConversionError(
            f"{batch!r} is compressed with zstd, which messages of magic {magic} do not have"
        )
    if batch.magic <= magic:
        return bytes(batch.data)
    records = [
        record._replace(headers=())
        for record in decode_records(batch.data, size_bytes_max=size_bytes_max)
        if codec or record.offset >= first_offset
    ]
    if not records:
        return b""
    return encode_message_set(
        records,
        magic=magic,
        codec=Codec(codec),
        timestamp_type=TimestampType(batch.is_log_append_time),
    )
