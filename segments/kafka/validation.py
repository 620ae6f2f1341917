"""
What a leader checks and changes before a produced batch enters the log.

Source: Kafka's ``LogValidator``. Everything that the header tells is checked. Records are not
visited one by one where no rule of the topic asks for it: the leader's work is per batch, so a
batch has the fields of its first record checked and the lengths of the first
:data:`RECORDS_WALKED_MAX`, and a compressed batch is decompressed for that if it is small; a topic
that demands keys or bounds old timestamps has every record decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.checksum import crc32c
from logstore.errors import RejectedAppendError
from logstore.segments.kafka.append_errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
    NotOneBatchError,
    RecordError,
    ShortHeaderError,
    UnreadableBatchError,
    UnsupportedCompressionError,
)
from logstore.segments.kafka.compression import (
    Codec,
    CompressionError,
    DecompressedTooLargeError,
    check_frames,
    decompress,
    looks_like,
)
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    check_structure,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)
from logstore.segments.kafka.usual_batch import is_one_usual_record

if TYPE_CHECKING:
    from logstore.segments.kafka.config import LogConfig

RECORDS_WALKED_MAX = 16
#: compressed batches up to this size are decompressed to be checked, of larger ones the frames
DECOMPRESSED_BATCH_BYTES_MAX = 16 * 1024
_CHECKED_BYTES_MAX = 1024 * 1024
_MESSAGE_BYTES_MIN = PREFIX_BYTES + 14  # the smallest message, one of magic 0
_MAGIC_END = 17
_NO_BOUND = 2**63 - 1
_CRC_START = 21
#: attributes that make a leader look closer
_UNUSUAL = LOG_APPEND_TIME_BIT | CONTROL_BIT
_KEYLESS = "Compacted topic cannot accept message without key"


def accepted(data: memoryview, config: LogConfig, now_ms: int, log_name: str = "") -> RecordBatch:
    """
    Return the produced batch as it enters the log, which is called `log_name` where it is refused.

    The usual batch of a usual topic passes one look at its header; all others, and those that are
    to be refused, go the long way of :func:`parse_produced` and :func:`validated`.

    Raises:
        RejectedAppendError: as those two do.

    """
    size_bytes = len(data)
    if size_bytes <= HEADER_BYTES or not config.takes_batches_as_they_are:
        return validated(parse_produced(data, config), config, now_ms, log_name)
    batch = RecordBatch(data, size_bytes)
    count, attributes = batch.record_count, batch.attributes
    is_usual = (
        batch.length_bytes == size_bytes - PREFIX_BYTES
        and size_bytes <= config.max_message_bytes
        and batch.magic == MAGIC
        and batch.base_offset == 0
        and 0 < count == batch.last_offset_delta + 1
        and not attributes & _UNUSUAL
        and (batch.producer_id < 0 or batch.base_sequence >= 0)
        and 0 <= batch.max_timestamp_ms <= now_ms + config.message_timestamp_after_max_ms
        and crc32c(data[_CRC_START:]) == batch.crc
    )
    if not is_usual:
        return validated(parse_produced(data, config), config, now_ms, log_name)
    if attributes & CODEC_MASK or count > 1 or not is_one_usual_record(data, size_bytes):
        _check_records(batch)
    return batch


def parse_produced(data: memoryview, config: LogConfig) -> RecordBatch:
    """
    Return the one batch that `data` must hold, its header and CRC checked.

    As in Kafka a batch that is cut short counts as none, and behind the one whole batch such a
    piece is cut off (``ByteBufferLogInputStream``).

    Raises:
        InvalidRecordError: not exactly one whole batch of magic 2 from a client.
        CorruptMessageError: the length or the CRC is wrong.
        MessageTooLargeError: above ``max.message.bytes``.
        UnsupportedCompressionError: an unknown codec.

    """
    size_bytes = len(data)
    if size_bytes < HEADER_BYTES or batch_size_bytes(data) != size_bytes or data[16] != MAGIC:
        data = only_batch(data)
        size_bytes = len(data)
    batch = RecordBatch(data, size_bytes)
    if batch.base_offset:
        raise InvalidRecordError(f"base offset is {batch.base_offset}; producers send 0")
    if size_bytes > config.max_message_bytes:
        raise MessageTooLargeError(
            f"the batch has {size_bytes} bytes, max.message.bytes is {config.max_message_bytes}"
        )
    if crc32c(data[21:]) != batch.crc:
        raise CorruptMessageError(
            f"CRC of the batch is {batch.computed_crc():#010x}, its header says {batch.crc:#010x}"
        )
    _check_header(batch)
    return batch


def only_batch(data: memoryview) -> memoryview:
    """
    Return the one whole batch of magic 2 at the start of `data`.

    Raises:
        NotOneBatchError: there is none, or another behind it, or one of an older magic.
        CorruptMessageError: lengths or magic are impossible.

    """
    batch_bytes = first_batch_bytes(data)
    if batch_bytes is None:
        raise NotOneBatchError(f"there is no whole record batch in {len(data)} bytes")
    if data[16] != MAGIC:
        raise NotOneBatchError(f"magic {data[16]}: only record batches of magic 2 are taken")
    try:
        has_second = first_batch_bytes(data[batch_bytes:]) is not None
    except UnreadableBatchError as error:
        raise CorruptMessageError(f"behind the first batch: {error}") from error
    if has_second:
        raise NotOneBatchError("a request holds exactly one record batch per partition")
    if batch_bytes < HEADER_BYTES:
        raise ShortHeaderError(batch_bytes)
    return data[:batch_bytes]


def first_batch_bytes(data: memoryview) -> int | None:
    """
    Return the size of the message set or batch that starts here, None if it is cut short.

    Raises:
        UnreadableBatchError: its length or its magic is impossible.

    """
    size_bytes = len(data)
    if size_bytes < PREFIX_BYTES:
        return None
    batch_bytes = batch_size_bytes(data)
    if batch_bytes < _MESSAGE_BYTES_MIN:
        raise UnreadableBatchError(
            f"Record size {batch_bytes - PREFIX_BYTES} is less than the minimum record overhead "
            f"({_MESSAGE_BYTES_MIN - PREFIX_BYTES})"
        )
    if size_bytes < _MAGIC_END:
        return None
    if data[_MAGIC_END - 1] > MAGIC:
        raise UnreadableBatchError(f"Invalid magic found in record: {data[_MAGIC_END - 1]}")
    return None if size_bytes < batch_bytes else batch_bytes


def _check_header(batch: RecordBatch) -> None:
    count = batch.record_count
    if count <= 0 or count != batch.last_offset_delta + 1:
        raise InvalidRecordError(
            f"{count} records do not fit last offset delta {batch.last_offset_delta}"
        )
    if batch.attributes & (CODEC_MASK | CONTROL_BIT):
        if batch.attributes & CONTROL_BIT:
            raise InvalidRecordError("clients do not write control batches")
        if batch.attributes & CODEC_MASK > Codec.ZSTD:
            raise UnsupportedCompressionError(f"codec {batch.codec} is unknown")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise InvalidRecordError(
            f"producer {batch.producer_id} sent base sequence {batch.base_sequence}"
        )


def validated(
    batch: RecordBatch, config: LogConfig, now_ms: int, log_name: str = ""
) -> RecordBatch:
    """
    Return the batch as it enters the log: checked, restamped or recompressed where needed.

    Raises:
        InvalidRecordError, InvalidTimestampError: with one entry per bad record where the topic's
            rules are about records.

    """
    attributes = batch.attributes
    codec = attributes & CODEC_MASK
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if attributes & LOG_APPEND_TIME_BIT or not 0 <= batch.max_timestamp_ms <= latest_ms:
        _check_timestamps(batch, config, now_ms, log_name)
    if config.needs_every_record or codec != config.target_codec(codec):
        return _rebuilt(batch, config, now_ms, log_name)
    _check_records(batch)
    return _timed(batch, config, now_ms)


def _timed(batch: RecordBatch, config: LogConfig, now_ms: int) -> RecordBatch:
    """Return the batch with the timestamp type that the topic has."""
    if config.is_log_append_time:
        batch.restamp_time(now_ms, is_log_append_time=True)
    elif batch.attributes & LOG_APPEND_TIME_BIT:
        batch.restamp_time(batch.max_timestamp_ms, is_log_append_time=False)
    return batch


def _check_records(batch: RecordBatch) -> None:
    """Check what can be told of the records without visiting all of them."""
    codec = batch.attributes & CODEC_MASK
    if codec > Codec.ZSTD:
        raise UnsupportedCompressionError(f"codec {codec} is unknown")
    if codec:
        _check_compressed(batch, Codec(codec))
        return
    try:
        check_structure(batch.data, records_max=RECORDS_WALKED_MAX)
    except CorruptRecordError as error:
        raise InvalidRecordError(str(error)) from error


def _check_compressed(batch: RecordBatch, codec: Codec) -> None:
    """Check a small batch as if it were not compressed, a larger one by its frames."""
    body = memoryview(batch.data)[HEADER_BYTES:]
    if not looks_like(codec, body):
        raise InvalidRecordError(f"the records are not {codec.name.lower()} data")
    try:
        if batch.size_bytes > DECOMPRESSED_BATCH_BYTES_MAX:
            check_frames(codec, body)
            return
        plain = decompress(codec, body, _CHECKED_BYTES_MAX)
        check_structure(bytes(batch.data[:HEADER_BYTES]) + plain, records_max=RECORDS_WALKED_MAX)
    except DecompressedTooLargeError:
        return  # as large a batch as those that are not looked into either
    except (CompressionError, CorruptRecordError) as error:
        raise InvalidRecordError(str(error)) from error


def _check_timestamps(batch: RecordBatch, config: LogConfig, now_ms: int, log_name: str) -> None:
    if batch.attributes & LOG_APPEND_TIME_BIT and (
        config.is_log_append_time or batch.max_timestamp_ms == NO_TIMESTAMP
    ):
        raise _refusal(batch, decoded(batch), config, now_ms, log_name)
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if config.is_log_append_time or 0 <= batch.max_timestamp_ms <= latest_ms:
        return
    records = decoded(batch)
    newest_ms = max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
    if newest_ms > latest_ms:
        raise _refusal(batch, records, config, now_ms, log_name)
    if batch.max_timestamp_ms != max(newest_ms, NO_TIMESTAMP):  # the header told no truth
        batch.restamp_time(max(newest_ms, NO_TIMESTAMP), is_log_append_time=False)


def decoded(batch: RecordBatch) -> list[Record]:
    """
    Return every record of the batch.

    Raises:
        InvalidRecordError: they cannot be read.

    """
    try:
        return list(decode_records(batch.data))
    except (CorruptRecordError, CompressionError) as error:
        raise InvalidRecordError(str(error)) from error


def _refusal(
    batch: RecordBatch, records: list[Record], config: LogConfig, now_ms: int, log_name: str
) -> InvalidRecordError:
    """
    Return the error for a batch some of whose records the topic does not take, with all of them.

    Of a record without a key, where it needs one, the time does not matter
    (``LogValidator.validateRecord``, ``processRecordErrors``).
    """
    keyless: list[RecordError] = []
    untimely: list[RecordError] = []
    for index, record in enumerate(records):
        if config.is_compacted and record.key is None:
            keyless.append(RecordError(index, f"{_KEYLESS} in topic partition {log_name}"))
        elif (reason := _untimeliness(batch, record, config, now_ms)) is not None:
            untimely.append(RecordError(index, reason))
    errors = tuple(sorted(keyless + untimely, key=lambda error: error.batch_index))
    if untimely:
        return InvalidTimestampError(
            "One or more records have been rejected due to invalid timestamp", errors
        )
    shown = ", ".join(f"RecordError(batchIndex={i}, message='{text}')" for i, text in errors[:3])
    return InvalidRecordError(
        f"One or more records have been rejected due to {len(errors)} record errors in total, and "
        f"only showing the first three errors at most: [{shown}]",
        errors,
    )


def _untimeliness(batch: RecordBatch, record: Record, config: LogConfig, now_ms: int) -> str | None:
    """Return what is wrong with a record's time, None if nothing is."""
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if not config.is_log_append_time and record.timestamp_ms != NO_TIMESTAMP:
        if earliest_ms <= record.timestamp_ms <= latest_ms:
            return None
        return (
            f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of "
            f"range. The timestamp should be within [{earliest_ms}, {latest_ms}]"
        )
    if batch.attributes & LOG_APPEND_TIME_BIT:
        return (
            f"Invalid timestamp type in message {_shown(batch, record, config)}. Producer should "
            "not set timestamp type to LogAppendTime."
        )
    return None


def _shown(batch: RecordBatch, record: Record, config: LogConfig) -> str:
    """Return a record as Kafka writes it; of one that stays compressed it has only the sizes."""
    is_partial = batch.codec != Codec.NONE and config.target_codec(batch.codec) == batch.codec
    none = -1 if is_partial else 0
    key, value = (none if it is None else len(it) for it in (record.key, record.value))
    return (
        f"{'Partial' if is_partial else ''}DefaultRecord(offset={record.offset}, "
        f"timestamp={record.timestamp_ms}, key={key} bytes, value={value} bytes)"
    )


def _check_encodable(batch: RecordBatch, records: list[Record]) -> None:
    """Refuse what Kafka takes as it comes, and stumbles over when it has to encode it anew."""
    if batch.is_transactional and batch.producer_id == -1:
        raise RejectedAppendError("a batch of a transaction has no producer")
    if batch.producer_id != -1 and (batch.producer_epoch == -1 or batch.base_sequence < 0):
        raise RejectedAppendError("a producer has no epoch, or a sequence number below 0")
    if any(record.timestamp_ms < NO_TIMESTAMP for record in records):
        raise RejectedAppendError("a record has a time below -1")


def _rebuilt(batch: RecordBatch, config: LogConfig, now_ms: int, log_name: str) -> RecordBatch:
    """Decode and check every record; encode anew where the codec or the offsets must change."""
    records = decoded(batch)
    is_refused = config.is_compacted and any(record.key is None for record in records)
    if not config.is_log_append_time and config.message_timestamp_before_max_ms != _NO_BOUND:
        oldest_ms = min(
            (r.timestamp_ms for r in records if r.timestamp_ms != NO_TIMESTAMP), default=now_ms
        )
        is_refused = is_refused or oldest_ms < now_ms - config.message_timestamp_before_max_ms
    if is_refused:
        raise _refusal(batch, records, config, now_ms, log_name)
    codec = config.target_codec(batch.codec)
    in_order = [record.offset for record in records] == list(range(len(records)))
    if codec == batch.codec and in_order:
        return _timed(batch, config, now_ms)
    if codec != batch.codec:
        _check_encodable(batch, records)
    data = encode_batch(
        [record._replace(offset=index) for index, record in enumerate(records)],
        codec=Codec(codec),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        level=config.compression_level(codec),
    )
    rebuilt = _timed(RecordBatch(memoryview(data), len(data)), config, now_ms)
    if rebuilt.size_bytes > config.max_message_bytes:
        raise MessageTooLargeError(
            f"recompressed, the batch has {rebuilt.size_bytes} bytes, "
            f"max.message.bytes is {config.max_message_bytes}"
        )
    return rebuilt
