"""
The store of a RocketMQ broker over a Kafka store: a RocketMQ store beside it, without the data.

The messages of topics that both sides know are records of Kafka's partitions. All else a broker
keeps stands in a directory of its own in RocketMQ's layout: its tables, and the topics by which it
works (delayed, half, retried and dead messages). So a message that is delayed, or part of an open
transaction, is nowhere in Kafka until it is delivered or committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.bridge.late_loops import LateLoops
from logstore.compat.bridge.memory_file import extent_of
from logstore.compat.bridge.rocketmq_over_kafka.message_records import record_batch_of
from logstore.compat.bridge.rocketmq_over_kafka.partition_places import (
    PartitionPlaces,
    is_place_of_record,
)
from logstore.compat.bridge.rocketmq_over_kafka.partition_pulls import pull
from logstore.compat.bridge.rocketmq_over_kafka.partition_reads import PartitionReads
from logstore.compat.bridge.rocketmq_over_kafka.partition_runs import PartitionRuns
from logstore.compat.bridge.rocketmq_over_kafka.shown_partition import ShownPartition
from logstore.errors import RejectedAppendError, StorageError
from logstore.segments.rocketmq.index.index_keys import TAG_PREFIX
from logstore.segments.rocketmq.messages.body_compression import BodyCompressionError
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import CorruptMessageError, Message, decode_message
from logstore.segments.rocketmq.messages.message_draft import MessageDraft
from logstore.segments.rocketmq.messages.properties import PROPERTIES_SIZE_BYTES_MAX
from logstore.segments.rocketmq.messages.system_flags import is_queued
from logstore.segments.rocketmq.putting.put_redirection import (
    DELAY_NEEDLE,
    TIMER_NEEDLE,
    redirect,
)
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus, PutResult
from logstore.segments.rocketmq.putting.put_rules import RefusedPutError
from logstore.segments.rocketmq.reading.get_message import (
    MAX_PULL_BYTES,
    GetMessageResult,
)
from logstore.segments.rocketmq.reading.message_query import QueryMessageResult
from logstore.segments.rocketmq.reading.time_lookup import BoundaryType
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.host import Host
    from logstore.segment import Extent
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

_log = logging.getLogger(__name__)
#: so many records of a partition are looked at for a key: there is no index of them
_QUERIED_COUNT_MAX = 10_000
#: so many messages that were born before a time are looked at for one that was stored after it
_STORED_LATER_COUNT_MAX = 1_000
_HERE = HostAddress.of("127.0.0.1", 0)


class PartitionStore(RocketMQStore):
    """
    All topics of a RocketMQ broker over `kafka`; `directory` is its own.

    `windows` are the partitions of the topics that both sides know, by name and number; who opens
    the store fills it.
    """

    def __init__(self, host: Host, directory: str, options: StoreOptions, kafka: Broker) -> None:
        self.kafka = kafka
        self.windows: dict[str, Mapping[int, KafkaPartition]] = {}
        #: where messages that were none are said to come from
        self.host_address = _HERE
        super().__init__(host, directory, options)
        self.places = PartitionPlaces(host, f"{directory}/config", kafka)
        self.places.load()
        loops = LateLoops()
        self.reads = PartitionReads(self.places, lambda: self.host_address, loops)
        self._runs = PartitionRuns(self)

    def window(self, topic: str, queue_id: int) -> KafkaPartition | None:
        """Return the partition that a queue is; None for the queues of the store itself."""
        partitions = self.windows.get(topic)
        return None if partitions is None else partitions.get(queue_id)

    # putting

    def put_message(self, draft: MessageDraft, *, is_delivery: bool = False) -> PutResult:
        """Append a message to its partition, unless it is to come later, or is the broker's own."""
        text = draft.properties_text
        if (
            draft.topic in self.windows
            and not is_delivery
            and (DELAY_NEEDLE in text or TIMER_NEEDLE in text)
        ):
            try:
                redirect(draft, self.putting.rules, self._now_ms(), self.putting.timer)
            except RefusedPutError as refusal:
                return PutResult(refusal.status, reason=refusal.reason)
        if draft.topic not in self.windows or not is_queued(draft.sys_flag):
            return super().put_message(draft, is_delivery=is_delivery)
        result = self._append(draft)
        if result.is_ok:
            draft.stamp(result.queue_offset, result.store_timestamp_ms)
            draft.physical_offset = result.physical_offset
        return result

    def put_batch(self, batch: MessageBatchDraft) -> PutResult:
        """Append all messages of a client's batch to their partition, as one record batch."""
        if batch.topic not in self.windows:
            return super().put_batch(batch)
        result = self._append(batch)
        if result.is_ok:
            first = result.physical_offset
            batch.stamp(result.queue_offset, result.store_timestamp_ms)
            batch.physical_offsets = list(range(first, first + result.count))
            result.physical_offsets = batch.physical_offsets
        return result

    def put_run(self, run: MessageRun) -> bool:
        """Append plain messages, those of a partition as one batch; False where they go singly."""
        topics = {topic for topic, _ in run.queue_keys}
        if not topics <= self.windows.keys():
            return not topics & self.windows.keys() and super().put_run(run)
        if self.putting.closed_reason:
            return False
        started_ms = self._now_ms()
        try:
            if not self._runs.put(run, started_ms):
                return False
        except (StorageError, OSError) as error:
            _log.error("a put of %d messages failed: %s", len(run), error)
            return False
        self.kafka.readers.wake()
        self.stats.count_run(run.stored, self._now_ms() - started_ms)
        return True

    def _append(self, draft: MessageDraft | MessageBatchDraft) -> PutResult:
        """Append to a partition; a refusal says why."""
        refusal = self._refusal(draft)
        if refusal is not None:
            return refusal
        partition = self.windows[draft.topic][draft.queue_id]
        now_ms = self._now_ms()
        try:
            self.expect_rests(draft.topic)
            place = self.places.first_place(partition)
            data = record_batch_of(draft, now_ms)
            done = partition.append_produced(memoryview(data), now_ms)
            self.kafka.flusher.flush_due_here()
        except (RejectedAppendError, BodyCompressionError) as error:
            self.stats.put_failed_times += 1
            return PutResult(PutMessageStatus.MESSAGE_ILLEGAL, reason=str(error))
        except (StorageError, OSError) as error:
            self.stats.put_failed_times += 1
            return PutResult(PutMessageStatus.UNKNOWN_ERROR, reason=str(error))
        self.kafka.readers.wake()
        count = draft.message_count
        self.stats.count_batch(draft.topic, count, draft.size_bytes)
        return PutResult(
            PutMessageStatus.PUT_OK,
            place + done.base_offset,
            done.base_offset,
            draft.size_bytes,
            count,
            now_ms,
            draft.store_host,
        )

    def expect_rests(self, topic: str) -> None:
        """Have Kafka's reads of a topic leave out rests, before the first one stands there."""
        topic_id = self.kafka.topics[topic].topic_id
        if not self.places.has_rests(topic_id):
            self.places.note_rests(topic_id)
            self.leave_out_rests(topic)

    def leave_out_rests(self, topic: str) -> None:
        """Have the partitions of a topic look for rests in what they show."""
        for partition in self.windows[topic].values():
            if isinstance(partition, ShownPartition):
                partition.has_rests = True

    def _refusal(self, draft: MessageDraft | MessageBatchDraft) -> PutResult | None:
        """Return the answer to a put that cannot be; None if it can."""
        status, reason = PutMessageStatus.MESSAGE_ILLEGAL, ""
        bytes_max = self.putting.rules.message_size_bytes_max
        if self.putting.closed_reason:
            status, reason = PutMessageStatus.SERVICE_NOT_AVAILABLE, self.putting.closed_reason
        elif draft.queue_id not in self.windows[draft.topic]:
            reason = f"{draft.topic} has no partition {draft.queue_id}"
        elif draft.properties_size_bytes > PROPERTIES_SIZE_BYTES_MAX:
            status = PutMessageStatus.PROPERTIES_SIZE_EXCEEDED
            reason = f"the properties take {draft.properties_size_bytes} bytes"
        elif draft.body_size_bytes > bytes_max:
            reason = f"the body has {draft.body_size_bytes} bytes, {bytes_max} are allowed"
        return PutResult(status, reason=reason) if reason else None

    def _now_ms(self) -> int:
        return self.host.clock.wall_ms()

    # reading

    def min_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset that can be read."""
        partition = self.window(topic, queue_id)
        if partition is None:
            return super().min_queue_offset(topic, queue_id)
        return partition.start_offset

    def max_queue_offset(self, topic: str, queue_id: int, *, is_committed: bool = True) -> int:
        """Return the last stable offset, or where the next record comes."""
        partition = self.window(topic, queue_id)
        if partition is None:
            return super().max_queue_offset(topic, queue_id, is_committed=is_committed)
        return partition.last_stable_offset if is_committed else partition.end_offset

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        size_bytes_max: int = MAX_PULL_BYTES,
        message_filter: MessageFilter | None = None,
    ) -> GetMessageResult | None:
        """Return what a pull gets."""
        partition = self.window(topic, queue_id)
        if partition is None:
            return super().get_message(
                group, topic, queue_id, queue_offset, count_max, size_bytes_max, message_filter
            )
        if not self.is_open:
            return None
        limits = self.get_limits
        result = pull(
            partition,
            self.reads,
            queue_offset,
            min(count_max, limits.in_memory_count_max),
            min(max(size_bytes_max, 100), limits.in_memory_bytes_max),
            message_filter,
        )
        self.stats.count_get(result)
        return result

    def queue_offset_for_time(
        self,
        topic: str,
        queue_id: int,
        timestamp_ms: int,
        boundary: BoundaryType = BoundaryType.LOWER,
    ) -> int:
        """Return the queue offset for a time, by the records' times."""
        partition = self.window(topic, queue_id)
        if partition is None:
            return super().queue_offset_for_time(topic, queue_id, timestamp_ms, boundary)
        if boundary is BoundaryType.LOWER:
            return self._first_stored(partition, timestamp_ms)
        return max(self._first_stored(partition, timestamp_ms + 1) - 1, partition.start_offset)

    def _first_stored(self, partition: KafkaPartition, timestamp_ms: int) -> int:
        """
        Return the offset of the first message stored then or later, or where the next one comes.

        Kafka's time index knows when messages were born. They are stored a little later, so what
        stands right before the one that was born in time is looked at.
        """
        found = partition.offset_for_timestamp(timestamp_ms)
        offset = partition.last_stable_offset if found is None else found
        if isinstance(partition, ShownPartition) and partition.has_rests:
            last = max(partition.start_offset, offset - _STORED_LATER_COUNT_MAX)
            topic, index = partition.topic, partition.index
            while (
                offset > last and self.store_timestamp_at(topic, index, offset - 1) >= timestamp_ms
            ):
                offset -= 1
        return offset

    def tags_codes(
        self, topic: str, queue_id: int, queue_offset: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Yield queue offset and tags code of the messages of a partition between two offsets."""
        partition = self.window(topic, queue_id)
        while partition is not None and queue_offset < end:
            chunk = self.reads.chunk(partition, queue_offset)
            for index in range(chunk.index_of(queue_offset), chunk.index_of(end)):
                yield chunk.offsets[index], chunk.tags_codes[index]
            queue_offset = max(chunk.next_offset, queue_offset + 1)

    def message_extent(self, physical_offset: int) -> Extent | None:
        """Return the message at a place."""
        if not is_place_of_record(physical_offset):
            return super().message_extent(physical_offset)
        found = self.places.find(physical_offset)
        if found is None:
            return None
        partition, offset = found
        if not partition.start_offset <= offset < partition.last_stable_offset:
            return None
        chunk = self.reads.chunk(partition, offset)
        index = chunk.index_of(offset)
        if index == len(chunk.offsets) or chunk.offsets[index] != offset:
            return None
        return extent_of(chunk.message(index))

    def message_at(self, physical_offset: int) -> Message | None:
        """Return the message at a place, None if there is none."""
        if not is_place_of_record(physical_offset):
            return super().message_at(physical_offset)
        extent = self.message_extent(physical_offset)
        try:
            return None if extent is None else decode_message(extent.read())
        except CorruptMessageError:
            return None

    def is_first_recent(self, topic: str, queue_id: int) -> bool:
        """Tell whether a consumer that never was here starts at the first record: it does."""
        if topic not in self.windows:
            return super().is_first_recent(topic, queue_id)
        return self.max_queue_offset(topic, queue_id) > 0

    def store_timestamp_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when the message at `queue_offset` was stored, -1 if it cannot be read."""
        partition = self.window(topic, queue_id)
        if partition is None:
            return super().store_timestamp_at(topic, queue_id, queue_offset)
        message = self.message_at(self.places.first_place(partition) + queue_offset)
        return -1 if message is None else message.store_timestamp_ms

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Find messages by key; of records the first so many since `begin_ms` are looked at."""
        if topic not in self.windows:
            return super().query_message(topic, key, count_max, begin_ms, end_ms)
        result = QueryMessageResult()
        for partition in self.windows[topic].values():
            result.pieces += self._pieces_of_key(partition, key, begin_ms, end_ms)
        result.pieces = result.pieces[:count_max]
        return result

    def _pieces_of_key(
        self, partition: KafkaPartition, key: str, begin_ms: int, end_ms: int
    ) -> list[Extent]:
        offset = partition.offset_for_timestamp(begin_ms)
        if offset is None:
            return []
        found: list[Extent] = []
        needle = key.removeprefix(TAG_PREFIX).encode()
        last_offset = min(partition.last_stable_offset, offset + _QUERIED_COUNT_MAX)
        while offset < last_offset:
            chunk = self.reads.chunk(partition, offset)
            for index in range(chunk.index_of(offset), len(chunk.offsets)):
                data = chunk.message(index)
                if needle not in data:
                    continue
                message = decode_message(data)
                is_timely = begin_ms <= message.store_timestamp_ms <= end_ms
                if is_timely and _is_called(message, key):
                    found.append(extent_of(data))
            offset = chunk.next_offset
        return found


def _is_called(message: Message, key: str) -> bool:
    """Tell whether the index of the other layout would have the message under that key."""
    names = (*message.keys, message.unique_key, f"{TAG_PREFIX}{message.tags or ''}")
    return key in names
