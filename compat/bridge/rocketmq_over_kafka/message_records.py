"""Messages on their way into a partition: each a record, what records cannot hold in a header."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.bridge.reserved_names import MESSAGE_REST_HEADER
from logstore.compat.record_mapping import record_parts
from logstore.segments.kafka.record_run import Row, encode_run
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
from logstore.segments.rocketmq.messages.message_draft import MessageDraft


def record_batch_of(draft: MessageDraft | MessageBatchDraft, stored_ms: int) -> bytearray:
    """
    Return the record batch of the messages, stored at `stored_ms`.

    Raises:
        BodyCompressionError: the body of one cannot be decompressed.

    """
    return encode_run(0, [_row(message) for message in _messages(draft, stored_ms)])


def _row(message: Message) -> Row:
    record, rest = record_parts(message)
    headers = (*record.headers, (MESSAGE_REST_HEADER, rest))
    return record.timestamp_ms, record.key, record.value, headers


def _messages(draft: MessageDraft | MessageBatchDraft, stored_ms: int) -> Iterator[Message]:
    if isinstance(draft, MessageDraft):
        yield _message(
            draft, bytes(draft.body), draft.properties_text, draft.body_crc, draft.flag, stored_ms
        )
        return
    _, crcs, flags, bodies, texts = draft.columns
    for crc, flag, body, text in zip(crcs, flags, bodies, texts, strict=True):
        yield _message(draft.model, body, text[2:], crc, flag, stored_ms)


def _message(
    draft: MessageDraft, body: bytes, text: bytes, crc: int, flag: int, stored_ms: int
) -> Message:
    return Message(
        topic=draft.topic,
        body=body,
        queue_id=draft.queue_id,
        properties_text=text,
        flag=flag,
        sys_flag=draft.sys_flag,
        born_timestamp_ms=draft.born_timestamp_ms,
        born_host=draft.born_host,
        store_timestamp_ms=stored_ms,
        store_host=draft.store_host,
        reconsume_times=draft.reconsume_times,
        prepared_transaction_offset=draft.prepared_transaction_offset,
        queue_offset=0,
        physical_offset=0,
        size_bytes=0,
        body_crc=crc,
        version=draft.version,
    )
