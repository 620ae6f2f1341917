"""
Several messages in one: the body of a client's batch, and the batch on its way into the log.

Item of a batch body: total size i32, magic i32 (0), CRC i32 (0), flag i32, body i32 + bytes,
properties i16 + bytes; one after the other. A usual topic gets one record for each item; a topic
of batch queues (5.x) gets the whole body as one record, an inner batch.

Source: ``MessageDecoder.encodeMessages``, ``MessageExtEncoder.encode(MessageExtBatch)``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any

import attrs

from logstore.errors import RejectedAppendError
from logstore.segments.rocketmq.messages.batch_columns import (
    NO_COLUMNS,
    BatchColumns,
    MalformedBatchError,
    lengthened,
    split_batch_body,
)
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.equal_rows import pack_rows
from logstore.segments.rocketmq.messages.message_draft import (
    CommitLogDraft,
    MessageDraft,
    MessageEntry,
    draft_message,
)
from logstore.segments.rocketmq.messages.message_layout import FIXED_BYTES, MessageVersion
from logstore.segments.rocketmq.messages.properties import (
    CRC32_BYTES,
    PROPERTIES_SIZE_BYTES_MAX,
    TAGS,
    crc32_property,
    find_property,
    property_needle,
    tags_code,
)

if TYPE_CHECKING:
    from logstore.segments.rocketmq.columns.record_scan import IndexEntries
    from logstore.segments.rocketmq.messages.host_address import HostAddress

_ITEM = struct.Struct(">iiiii")  # total size, magic, CRC, flag, body size
_SHORT = struct.Struct(">h")
_LENGTH = struct.Struct(">i")
_TWO = struct.Struct(">ii")
_HEAD = struct.Struct(">i4siiiqq")  # total size .. physical offset
#: from the system flag to where the length of the body is told, as of :data:`FIXED_FIELDS`; a
#: batch takes no part in transactions
_SHARED_FIELDS = tuple(
    struct.Struct(f">iq{born}sq{store}si8x") for born, store in ((8, 8), (20, 8), (8, 20), (20, 20))
)
_TAGS = property_needle(TAGS)
_crc32 = zlib.crc32


@attrs.frozen
class BatchItem:
    """One message inside of a batch body."""

    body: bytes
    properties_text: bytes
    flag: int = 0


def encode_batch_body(items: Iterable[BatchItem]) -> bytes:
    """Return the body that a client sends for a batch."""
    return b"".join(
        b"".join(
            (
                _ITEM.pack(
                    22 + len(item.body) + len(item.properties_text), 0, 0, item.flag, len(item.body)
                ),
                item.body,
                _SHORT.pack(len(item.properties_text)),
                item.properties_text,
            )
        )
        for item in items
    )


def decode_batch_body(data: bytes) -> list[BatchItem]:
    """
    Return the messages in a batch body.

    Raises:
        MalformedBatchError: an item is cut short or a size in it is negative.

    """
    return [
        BatchItem(data[body_at : text_at - 2], data[text_at:end], flag)
        for flag, body_at, text_at, end in _items(data)
    ]


def count_batch_items(data: bytes) -> int:
    """
    Return how many items the sizes in a batch body lead over.

    Raises:
        MalformedBatchError: they lead out of it.

    """
    count = position = 0
    while position < len(data):
        size_bytes = int.from_bytes(data[position : position + 4], "big", signed=True)
        if size_bytes < 4 or size_bytes > len(data) - position:
            raise MalformedBatchError(f"batch: the item at {position} says {size_bytes} bytes")
        count += 1
        position += size_bytes
    return count


def _items(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield (flag, start of the body, start of the properties, end of them) of every item."""
    position, size_bytes = 0, len(data)
    unpack_item, unpack_short = _ITEM.unpack_from, _SHORT.unpack_from
    while position < size_bytes:
        try:
            _, _, _, flag, body_bytes = unpack_item(data, position)
            body_at = position + 20
            text_at = body_at + body_bytes + 2
            (text_bytes,) = unpack_short(data, text_at - 2)
        except struct.error:
            raise MalformedBatchError(f"batch: the item at {position} is cut short") from None
        end = text_at + text_bytes
        if body_bytes < 0 or text_bytes < 0 or end > size_bytes:
            raise MalformedBatchError(f"batch: a size in the item at {position} cannot be")
        yield flag, body_at, text_at, end
        position = end


class MessageBatchDraft(CommitLogDraft):
    """
    All messages of a client's batch, to become one record each, appended in one piece.

    Use :func:`draft_batch` to make one. `model` is a message that has all that they share. After
    :meth:`stamped`, `physical_offsets` has where each record starts.
    """

    __slots__ = (
        "_tags_codes",
        "born_timestamp_ms",
        "columns",
        "message_count",
        "model",
        "physical_offset",
        "physical_offsets",
        "properties_size_bytes",
        "queue_id",
        "queue_offset",
        "record_bytes",
        "size_bytes",
        "store_host",
        "store_timestamp_ms",
        "sys_flag",
        "topic",
    )

    def __init__(self, model: MessageDraft) -> None:
        self.model = model
        self.topic = model.topic
        self.queue_id = model.queue_id
        self.sys_flag = model.sys_flag
        self.store_host = model.store_host
        self.born_timestamp_ms = model.born_timestamp_ms
        #: the queue offset of the first message, once it is stamped
        self.queue_offset = 0
        self.store_timestamp_ms = 0
        #: the physical offset of the first message, once it is stamped
        self.physical_offset = 0
        self.message_count = 0
        self.size_bytes = 0
        #: size of every record where they differ in nothing but content, 0 where they do
        self.record_bytes = 0
        #: the longest properties among the messages
        self.properties_size_bytes = 0
        self.physical_offsets: Sequence[int] = ()
        self.columns = NO_COLUMNS
        self._tags_codes: list[int] | None = None

    def take_columns(self, columns: BatchColumns, record_bytes: int, crc_bytes: int) -> None:
        """Hold these messages; `record_bytes` is the size of every record if they are alike."""
        self.columns, self.record_bytes = columns, record_bytes
        self.message_count = len(columns.sizes)
        if record_bytes:
            self.size_bytes = record_bytes * self.message_count
            self.properties_size_bytes = len(columns.texts[0]) - 2
        else:
            self.size_bytes = sum(columns.sizes)
            self.properties_size_bytes = max(map(len, columns.texts), default=2) - 2 + crc_bytes

    def end_with_property_crc(self) -> None:
        """Have each record end with a CRC of all of it, if they do not yet."""
        if self.model.has_property_crc:
            return
        self.model.has_property_crc = True
        columns = lengthened(self.columns, b"", CRC32_BYTES)
        sizes = [size_bytes + CRC32_BYTES for size_bytes in columns.sizes]
        MessageBatchDraft.take_columns(self, columns._replace(sizes=sizes), 0, CRC32_BYTES)

    @property
    def body_size_bytes(self) -> int:
        """How long the client's batch body is."""
        columns = self.columns
        return (
            20 * self.message_count + sum(map(len, columns.bodies)) + sum(map(len, columns.texts))
        )

    def stamp(self, queue_offset: int, store_timestamp_ms: int) -> None:
        """Say which queue offset the first message has, and when all are stored."""
        self.queue_offset = queue_offset
        self.store_timestamp_ms = store_timestamp_ms

    def stamped(self, base_offset: int) -> MessageEntry:
        """
        Return all records as they stand in the commit log from `base_offset` on.

        Raises:
            RejectedAppendError: the properties of one are longer than a record can tell.

        """
        if self.properties_size_bytes > PROPERTIES_SIZE_BYTES_MAX:
            raise RejectedAppendError(
                f"properties of {self.properties_size_bytes} bytes in a batch for {self.topic}; "
                f"a message can hold {PROPERTIES_SIZE_BYTES_MAX}"
            )
        model = self.model
        self.physical_offset = base_offset
        if self.record_bytes:
            return MessageEntry(base_offset, self.size_bytes, self._records_alike(base_offset))
        shared = self._shared_fields()
        topic_field = model.topic_field
        magic, queue_id = model.version.magic, model.queue_id
        sizes, crcs, flags, bodies, texts = self.columns
        count, queue_offset = self.message_count, self.queue_offset
        self.physical_offsets = offsets = list(accumulate(sizes, initial=base_offset))[:-1]
        heads = map(
            _HEAD.pack,
            sizes,
            repeat(magic),
            crcs,
            repeat(queue_id),
            flags,
            range(queue_offset, queue_offset + count),
            offsets,
        )
        lengths = map(_LENGTH.pack, map(len, bodies))
        records = zip(
            heads, repeat(shared), lengths, bodies, repeat(topic_field), texts, strict=False
        )
        if model.has_property_crc:
            data = b"".join(map(with_property_crc, map(b"".join, records)))
        else:
            data = b"".join(chain.from_iterable(records))
        return MessageEntry(base_offset, self.size_bytes, data)

    def _records_alike(self, base_offset: int) -> bytes:
        """Return records that have all lengths in common: they are packed in one step."""
        model, size_bytes, count = self.model, self.record_bytes, self.message_count
        _, crcs, flags, bodies, texts = self.columns
        self.physical_offsets = offsets = range(
            base_offset, base_offset + self.size_bytes, size_bytes
        )
        begin = _LENGTH.pack(size_bytes) + model.version.magic
        queue = _TWO.pack(model.queue_id, flags[0])
        shared = self._shared_fields() + _LENGTH.pack(len(bodies[0]))
        topic = model.topic_field
        values: list[Any] = [begin, 0, queue, 0, 0, shared, b"", topic, b""] * count
        values[1::9] = crcs
        values[3::9] = range(self.queue_offset, self.queue_offset + count)
        values[4::9] = offsets
        values[6::9] = bodies
        values[8::9] = texts
        form = f"8si8sqq{len(shared)}s{len(bodies[0])}s{len(topic)}s{len(texts[0])}s"
        return pack_rows(form, values, count)

    def _shared_fields(self) -> bytes:
        """Return what stands between physical offset and body of every record."""
        model = self.model
        return _SHARED_FIELDS[model.sys_flag >> 4 & 3].pack(
            model.sys_flag,
            self.born_timestamp_ms,
            model.born_host.packed,
            self.store_timestamp_ms,
            model.store_host.packed,
            model.reconsume_times,
        )

    def dispatch_requests(self) -> list[DispatchRequest]:
        """Return the requests for all messages, once they are stamped."""
        topic, queue_id, stored_ms = self.topic, self.queue_id, self.store_timestamp_ms
        sys_flag, queue_offset = self.sys_flag, self.queue_offset
        return [
            DispatchRequest(
                topic,
                queue_id,
                physical_offset,
                size_bytes,
                code,
                stored_ms,
                queue_offset + index,
                sys_flag,
                0,
                text[2:],
            )
            for index, (physical_offset, size_bytes, code, text) in enumerate(
                zip(
                    self.physical_offsets,
                    self.columns.sizes,
                    self._codes(),
                    self.columns.texts,
                    strict=True,
                )
            )
        ]

    def index_entries(self) -> IndexEntries | None:
        """Return what the index is to have of all messages at once; None: of each by itself."""
        return None

    def units(self) -> bytes:
        """Return the consume queue units of all messages, 20 bytes each, once they are stamped."""
        count = self.message_count
        values: list[Any] = [0] * (3 * count)
        values[::3], values[1::3] = self.physical_offsets, self.columns.sizes
        values[2::3] = self._codes()
        return pack_rows("qiq", values, count)

    def _codes(self) -> list[int]:
        codes = self._tags_codes
        if codes is None:
            texts = self.columns.texts
            codes = self._tags_codes = [0] * len(texts)
            for index, text in enumerate(texts if _TAGS in b"".join(texts) else ()):
                if _TAGS in text:
                    tags = find_property(text[2:], _TAGS)
                    codes[index] = 0 if tags is None else tags_code(tags)
        return codes


def batch_model(topic: str, queue_id: int, host: HostAddress) -> MessageDraft:
    """Return what messages share that no client sent: all are born and stored at `host`."""
    return draft_message(
        topic=topic,
        body=b"",
        queue_id=queue_id,
        properties_text=b"",
        born_timestamp_ms=0,
        born_host=host,
        store_host=host,
    )


def draft_batch(
    *,
    topic: str,
    body: bytes,
    queue_id: int,
    born_timestamp_ms: int,
    born_host: HostAddress,
    store_host: HostAddress,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    has_property_crc: bool = False,
    version: MessageVersion | None = None,
    shared_properties: bytes = b"",
) -> MessageBatchDraft:
    """
    Return the messages of a client's batch, to be stored as one record each.

    `shared_properties` are put behind those of every message, as 4.9.8 does with what the broker
    adds; 5.x leaves the properties alone.

    Raises:
        MalformedBatchError: `body` is not a run of whole items.

    """
    model = draft_message(
        topic=topic,
        body=b"",
        queue_id=queue_id,
        properties_text=b"",
        born_timestamp_ms=born_timestamp_ms,
        born_host=born_host,
        store_host=store_host,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
        has_property_crc=has_property_crc,
        version=version,
    )
    return draft_batch_like(model, bytes(body), born_timestamp_ms, shared_properties)


def draft_batch_like(
    model: MessageDraft, body: bytes, born_timestamp_ms: int, shared_properties: bytes = b""
) -> MessageBatchDraft:
    """
    Return a batch as :func:`draft_batch` does, of messages that have much in common with `model`.

    That is all but body, properties, flag and born timestamp. Many batches may have one model.

    Raises:
        MalformedBatchError: `body` is not a run of whole items.

    """
    batch = MessageBatchDraft(model)
    batch.born_timestamp_ms = born_timestamp_ms
    crc_bytes = CRC32_BYTES if model.has_property_crc else 0
    fixed_bytes = FIXED_BYTES[model.sys_flag >> 4 & 3] + len(model.topic_field) - 4 + crc_bytes
    columns, record_bytes = split_batch_body(body, fixed_bytes)
    if shared_properties or crc_bytes:
        columns, record_bytes = lengthened(columns, shared_properties, crc_bytes), 0
    batch.take_columns(columns, record_bytes, crc_bytes)
    return batch


def with_property_crc(record: bytes) -> bytes:
    """Return a record, of which only its property CRC is missing, with that."""
    return record + crc32_property(_crc32(record) & 0x7FFF_FFFF)
