"""
From messages of magic 0 and 1 to record batches.

Two ways, which differ in who gives the offsets. What stands in a log keeps its own
(:func:`up_convert`). What a client of before 0.11 sends gets them from the leader, so it becomes
one batch from offset 0 on, as a client of today would send it (:func:`up_convert_produced`).

Source: ``LogValidator.convertAndAssignOffsetsNonCompressed``,
``LogValidator.validateMessagesAndAssignOffsetsCompressed`` of Kafka 3.9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.errors import CorruptEntryError
from logstore.segments.kafka.append_errors import (
    CorruptMessageError,
    InvalidRecordError,
)
from logstore.segments.kafka.compression import DECOMPRESSED_BYTES_MAX, Codec
from logstore.segments.kafka.legacy.message import (
    MAGIC_POSITION,
    MESSAGE_BYTES_MIN,
    LegacyMessage,
    parse_message,
)
from logstore.segments.kafka.legacy.message_set import decode_message
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    TimestampType,
    encode_batch,
)
from logstore.segments.kafka.record_batch import batch_size_bytes

if TYPE_CHECKING:
    from typing_extensions import Buffer

_WHOLE_PREFIX_BYTES = 17  # what Kafka wants to see before it asks how long a message is


def up_convert(
    message: Buffer,
    *,
    leader_epoch: int = -1,
    level: int | None = None,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """
    Return the record batch that says what one stored message says.

    Offsets, keys, values, codec, timestamps and their type stay; the batch spans from the first to
    the last record. Records of magic 0 have the timestamp -1, as they read before.

    Raises:
        CorruptRecordError: the message cannot be read.

    """
    records = decode_message(message, size_bytes_max=size_bytes_max)
    header = LegacyMessage(bytes(message), memoryview(message).nbytes)
    return encode_batch(
        records,
        base_offset=records[0].offset,
        codec=Codec(header.codec),
        level=level,
        leader_epoch=leader_epoch,
        timestamp_type=TimestampType(header.is_log_append_time),
    )


def up_convert_produced(
    data: memoryview, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytearray:
    """
    Return one batch, offsets from 0 on, with the records of a produced message set.

    Its codec is the wrapper's. What the topic demands of records and times is checked where all
    batches are (:func:`logstore.segments.kafka.validation.accepted`).

    Raises:
        CorruptMessageError: a size or a CRC is wrong.
        InvalidRecordError: there is no whole message, a wrapper does not stand alone, magics are
            mixed, or a wrapper cannot be read.

    """
    messages = _produced_messages(data)
    codec = max(message.codec for message in messages)
    if codec and len(messages) > 1:
        raise InvalidRecordError("a compressed message does not stand alone")
    records: list[Record] = []
    try:
        for message in messages:
            records += decode_message(
                message.data, size_bytes_max=size_bytes_max, is_magic_uniform=True
            )
    except CorruptRecordError as error:
        raise InvalidRecordError(str(error)) from error
    return encode_batch(
        [record._replace(offset=index) for index, record in enumerate(records)],
        codec=Codec(codec),
        timestamp_type=TimestampType(any(message.is_log_append_time for message in messages)),
    )


def _produced_messages(data: memoryview) -> list[LegacyMessage]:
    """Return the whole messages in `data`; as in Kafka one that is cut short ends the set."""
    messages: list[LegacyMessage] = []
    position = 0
    while len(data) - position >= _WHOLE_PREFIX_BYTES:
        size_bytes = batch_size_bytes(data, position)
        if size_bytes < MESSAGE_BYTES_MIN[0]:
            raise CorruptMessageError(f"a message of {size_bytes} bytes")
        if size_bytes > len(data) - position:
            break
        magic = data[position + MAGIC_POSITION]
        if messages and magic != messages[0].magic:
            raise InvalidRecordError(f"magic {magic} follows magic {messages[0].magic}")
        try:
            messages.append(parse_message(data, position))
        except CorruptEntryError as error:
            raise CorruptMessageError(error.reason) from error
        position += size_bytes
    if not messages:
        raise InvalidRecordError(f"there is no whole message in {len(data)} bytes")
    return messages
