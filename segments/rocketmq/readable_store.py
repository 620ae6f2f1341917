"""
Reading a store: pulls, lookups by time, key and place, and what the runtime table says.

:class:`~logstore.segments.rocketmq.store.RocketMQStore` is this and what writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.errors import OffsetOutOfRangeError
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.reading.get_message import (
    MAX_PULL_BYTES,
    GetMessageResult,
    get_message,
)
from logstore.segments.rocketmq.reading.message_query import (
    QueryMessageResult,
    extent_at,
    message_at,
    query_message,
)
from logstore.segments.rocketmq.reading.time_lookup import (
    BoundaryType,
    nearest_queue_offset,
    queue_offset_for_time,
    store_timestamp_at,
)
from logstore.segments.rocketmq.settings.release import Release

if TYPE_CHECKING:
    from logstore.segment import Extent
    from logstore.segments.rocketmq.dispatch import Dispatch
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.queues.consume_queues import ConsumeQueues
    from logstore.segments.rocketmq.queues.queue_offsets import QueueOffsets
    from logstore.segments.rocketmq.reading.get_message_limits import GetMessageLimits
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter
    from logstore.segments.rocketmq.tables.consumer_offsets import ConsumerOffsetTable
    from logstore.segments.rocketmq.upkeep.cleaning import StoreCleaning
    from logstore.segments.rocketmq.upkeep.running_flags import RunningFlags
    from logstore.segments.rocketmq.upkeep.store_stats import StoreStats


class ReadableStore:
    """What can be asked of a store whose parts are loaded and recovered."""

    release: Release
    commit_log: CommitLog
    consume_queues: ConsumeQueues
    queue_offsets: QueueOffsets
    index: MessageIndex
    dispatching: Dispatch
    cleaning: StoreCleaning
    consumer_offsets: ConsumerOffsetTable
    running_flags: RunningFlags
    stats: StoreStats
    get_limits: GetMessageLimits
    is_open: bool = False

    def min_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the first queue offset that can be read; 0 for an unknown queue."""
        queue = self.consume_queues.get(topic, queue_id)
        return 0 if queue is None else queue.min_queue_offset

    def max_queue_offset(self, topic: str, queue_id: int, *, is_committed: bool = True) -> int:
        """
        Return the queue offset after the last dispatched message.

        With `is_committed` False: the queue offset that the next put gets.
        """
        if not is_committed:
            return self.queue_offsets.next_of(topic, queue_id)
        queue = self.consume_queues.get(topic, queue_id)
        return 0 if queue is None else queue.max_queue_offset

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
        """Return what a pull gets; None where the store takes no reads (Java: SYSTEM_ERROR)."""
        del group  # Java's compaction and metrics want it
        if not self.is_open or not self.running_flags.is_readable:
            return None
        result = get_message(
            self.consume_queues.get(topic, queue_id),
            self.commit_log,
            queue_offset,
            count_max,
            size_bytes_max,
            message_filter,
            self.get_limits,
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
        """Return the queue offset for a time, as :func:`.queue_offset_for_time` finds it."""
        queue = self.consume_queues.get(topic, queue_id)
        if not isinstance(queue, ConsumeQueue):
            if queue is None:
                return 0
            is_upper = boundary is BoundaryType.UPPER
            found = queue.queue_offset_for_time(timestamp_ms, is_upper=is_upper)
            return min(max(found, queue.min_queue_offset), queue.max_queue_offset)
        if self.release is Release.V4:
            return nearest_queue_offset(queue, self.commit_log, timestamp_ms)
        return queue_offset_for_time(queue, self.commit_log, timestamp_ms, boundary)

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Find messages by key (:mod:`~logstore.segments.rocketmq.reading.message_query`)."""
        return query_message(self.index, self.commit_log, topic, key, count_max, begin_ms, end_ms)

    def is_first_recent(self, topic: str, queue_id: int) -> bool:
        """Tell whether the message at queue offset 0 is likely to be in memory."""
        queue = self.consume_queues.get(topic, queue_id)
        units = b"" if queue is None else queue.units(0, 1)
        if not units:
            return False
        behind_bytes = self.commit_log.max_physical_offset - int.from_bytes(units[:8], "big")
        return behind_bytes <= self.get_limits.in_memory_bytes

    def message_extent(self, physical_offset: int) -> Extent | None:
        """Return the bytes of the message that starts at `physical_offset`, None if none can."""
        return extent_at(self.commit_log, physical_offset)

    def message_at(self, physical_offset: int) -> Message | None:
        """Return the message that starts at `physical_offset`, None if none does."""
        return message_at(self.commit_log, physical_offset)

    def store_timestamp_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Return when the message at `queue_offset` was stored, -1 if it cannot be read."""
        queue = self.consume_queues.get(topic, queue_id)
        units = b"" if queue is None else queue.units(queue_offset, 1)
        if not units:
            return -1
        physical_offset = int.from_bytes(units[:8], "big", signed=True)
        size_bytes = int.from_bytes(units[8:12], "big", signed=True)
        return store_timestamp_at(self.commit_log, physical_offset, size_bytes)

    def earliest_store_timestamp_ms(self, topic: str | None = None, queue_id: int = 0) -> int:
        """Return when the oldest message (of the queue, or of the store) was stored, or -1."""
        if topic is not None:
            minimum = self.min_queue_offset(topic, queue_id)
            return self.store_timestamp_at(topic, queue_id, minimum)
        try:
            first = self.message_at(self.commit_log.min_physical_offset)
        except OffsetOutOfRangeError:
            return -1
        return -1 if first is None else first.store_timestamp_ms

    def runtime(self) -> dict[str, str]:
        """Return what Java's runtime table says about the store, by Java's keys."""
        ratio = str(self.cleaning.commit_log_disk_ratio)
        # Java's MappedFileQueue.getMinOffset() of no files at all.
        minimum = self.commit_log.min_physical_offset if self.commit_log.files() else -1
        return {
            **self.stats.runtime(),
            "commitLogDiskRatio": ratio,
            f"commitLogDiskRatio_{self.commit_log.directory}": ratio,
            "consumeQueueDiskRatio": str(self.cleaning.consume_queue_disk_ratio),
            "commitLogMinOffset": str(minimum),
            "commitLogMaxOffset": str(self.commit_log.max_physical_offset),
            "dispatchBehindBytes": str(self.dispatching.behind_bytes),
        }

    def lagging_groups(self, physical_offset: int) -> str:
        """Name the consumer groups that have not read all below a physical offset."""
        found = set[str]()
        for queue in self.consume_queues:
            for group in self.consumer_offsets.groups_of(queue.topic):
                read = self.consumer_offsets.query(group, queue.topic, queue.queue_id)
                units = queue.units(max(read, queue.min_queue_offset), 1) if read >= 0 else b""
                if units and int.from_bytes(units[:8], "big", signed=True) < physical_offset:
                    found.add(group)
        return ", ".join(sorted(found))
