"""
One queue of a topic: its own consume queue and the commit log that all queues share.

Implements :class:`logstore.partition.PartitionLog`; what it calls an offset is a queue offset.
A message becomes a record so: key = KEYS, value = body as the producer gave it, timestamp = when
it was born, headers = all other properties in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.errors import OffsetOutOfRangeError, RejectedAppendError, WriteFailedError
from logstore.partition import AppendResult, Header, Record
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.properties import KEYS, encode_properties
from logstore.segments.rocketmq.messages.system_flags import INNER_BATCH
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus, PutResult
from logstore.span import Span

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.store import RocketMQStore

#: where messages are said to come from that no client sent
_HERE = HostAddress.of("127.0.0.1", 0)
_UNAVAILABLE = frozenset(
    {
        PutMessageStatus.SERVICE_NOT_AVAILABLE,
        PutMessageStatus.CREATE_MAPPED_FILE_FAILED,
        PutMessageStatus.OS_PAGE_CACHE_BUSY,
        PutMessageStatus.UNKNOWN_ERROR,
    }
)
_READ_AT_ONCE = 512


class RocketMQQueue:
    """A queue as servers, tools and Spark see it. It keeps nothing: the store does."""

    __slots__ = ("index", "store", "topic")

    def __init__(self, store: RocketMQStore, topic: str, queue_id: int) -> None:
        self.store = store
        self.topic = topic
        self.index = queue_id

    @property
    def start_offset(self) -> int:
        """Return the first queue offset that may be read."""
        return self.store.min_queue_offset(self.topic, self.index)

    @property
    def end_offset(self) -> int:
        """Return the queue offset that the next message gets."""
        return self.store.max_queue_offset(self.topic, self.index)

    def append_records(self, records: Iterable[Record]) -> AppendResult:
        """
        Put each record as a message and make it readable.

        Raises:
            RejectedAppendError: a record cannot be a message; those before it stand.
            WriteFailedError: the disk refused, or the store takes no messages.

        """
        base_offset = next_offset = self.end_offset
        try:
            for record in records:
                result = self.store.put_message(
                    draft_message(
                        topic=self.topic,
                        body=record.value or b"",
                        queue_id=self.index,
                        properties_text=properties_text_of(record),
                        born_timestamp_ms=record.timestamp_ms,
                        born_host=_HERE,
                        store_host=_HERE,
                    ),
                    is_delivery=True,
                )
                self._check(result)
                next_offset = result.queue_offset + 1
        finally:
            self.store.dispatch()
        return AppendResult(base_offset, next_offset)

    def append_batch(self, batch: MessageBatchDraft) -> AppendResult:
        """
        Put messages together and make them readable.

        Raises:
            RejectedAppendError: they cannot be messages; none of them stands.
            WriteFailedError: the disk refused, or the store takes no messages.

        """
        base_offset = self.end_offset
        self._check(self.store.put_batch(batch))
        self.store.dispatch()
        return AppendResult(base_offset, base_offset + batch.message_count)

    def _check(self, result: PutResult) -> None:
        if result.is_ok:
            return
        text = f"{self.topic}-{self.index}: {result.status.name}: {result.reason}"
        if result.status in _UNAVAILABLE:
            raise WriteFailedError(text)
        raise RejectedAppendError(text)

    def read_records(self, offset: int, count_max: int) -> list[Record]:
        """
        Return up to `count_max` records from queue offset `offset` on.

        Raises:
            OffsetOutOfRangeError: the queue does not hold `offset`.

        """
        return [record_of(message) for message in self.messages(offset, count_max)]

    def messages(self, queue_offset: int, count_max: int) -> list[Message]:
        """
        Return up to `count_max` messages from `queue_offset` on, decoded; fewer only at the end.

        An inner batch is one message. What was deleted meanwhile is left out.

        Raises:
            OffsetOutOfRangeError: the queue does not hold `queue_offset`.
            CorruptMessageError: what stands in the commit log is no message.

        """
        start, end = self.start_offset, self.end_offset
        if not start <= queue_offset <= end:
            raise OffsetOutOfRangeError(queue_offset, Span(start, end))
        queue = self.store.consume_queues.get(self.topic, self.index)
        log = self.store.commit_log
        found: list[Message] = []
        while queue is not None and queue_offset < end and len(found) < count_max:
            units = queue.units(queue_offset, min(count_max - len(found), _READ_AT_ONCE))
            if not units:
                break
            unit_bytes = queue.unit_size_bytes
            for at in range(0, len(units), unit_bytes):
                unit = units[at : at + unit_bytes]
                physical_offset = int.from_bytes(unit[:8], "big", signed=True)
                size_bytes = int.from_bytes(unit[8:12], "big", signed=True)
                if unit_bytes == 20:
                    queue_offset += 1
                else:
                    queue_offset = int.from_bytes(unit[28:36], "big", signed=True)
                    queue_offset += int.from_bytes(unit[36:38], "big", signed=True)
                if physical_offset >= log.min_physical_offset:
                    found.append(decode_message(log.read(physical_offset, size_bytes)))
        return found

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the first queue offset stored at or after `timestamp_ms`, or None."""
        found = self.store.queue_offset_for_time(self.topic, self.index, timestamp_ms)
        if found >= self.end_offset:
            return None
        stored_ms = self.store.store_timestamp_at(self.topic, self.index, found)
        return found if stored_ms >= timestamp_ms else None


def properties_text_of(record: Record) -> bytes:
    """
    Return headers and key of a record as properties.

    Raises:
        RejectedAppendError: one of them is no text, or none that a property can have.

    """
    found: dict[str, str] = {}
    try:
        if record.key is not None:
            found[KEYS] = record.key.decode()
        for header in record.headers:
            found[header.name] = (header.value or b"").decode()
    except UnicodeDecodeError as error:
        raise RejectedAppendError(f"a property must be text: {error}") from error
    for name, value in found.items():
        if not name or not value or not {"\x01", "\x02"}.isdisjoint(name + value):
            raise RejectedAppendError(f"{name!r} with value {value!r} cannot be a property")
    return encode_properties(found)


def record_of(message: Message) -> Record:
    """Return a message as a record."""
    properties = message.properties
    key = properties.get(KEYS)
    value = message.body if message.sys_flag & INNER_BATCH else message.plain_body()
    headers = (Header(name, text.encode()) for name, text in properties.items() if name != KEYS)
    return Record(
        None if key is None else key.encode(),
        value,
        message.born_timestamp_ms,
        tuple(headers),
        message.queue_offset,
    )
