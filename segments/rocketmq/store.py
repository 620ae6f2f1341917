"""
A whole RocketMQ store: commit log, consume queues, index, checkpoint and tables of one directory.

The order of opening is Java's (``DefaultMessageStore.load`` and ``start``): lock, abort file,
commit log, consume queues, checkpoint, index, recovery, the table of queue offsets. A clean stop
flushes all, writes checkpoint and tables and removes the abort file last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.errors import OffsetMismatchError, OffsetOutOfRangeError, StorageError
from logstore.host import Host
from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.cleaning import StoreCleaning
from logstore.segments.rocketmq.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.directory import StoreDirectory, looks_like_store
from logstore.segments.rocketmq.dispatch import ArrivalListener, Dispatch
from logstore.segments.rocketmq.found_sizes import found_sizes
from logstore.segments.rocketmq.get_message import (
    MAX_PULL_BYTES,
    GetMessageLimits,
    GetMessageResult,
    GetMessageStatus,
    get_message,
)
from logstore.segments.rocketmq.loading import StoreTables, load_parts
from logstore.segments.rocketmq.message_query import QueryMessageResult, message_at, query_message
from logstore.segments.rocketmq.put_path import PutPath
from logstore.segments.rocketmq.put_result import PutResult
from logstore.segments.rocketmq.queue import RocketMQQueue
from logstore.segments.rocketmq.recovering import StoreRecoverer
from logstore.segments.rocketmq.release import Release
from logstore.segments.rocketmq.running_flags import RunningFlag, RunningFlags
from logstore.segments.rocketmq.store_config import StoreConfig
from logstore.segments.rocketmq.store_stats import StoreStats
from logstore.segments.rocketmq.store_syncs import StoreSync, StoreSyncs
from logstore.segments.rocketmq.table_writes import TableWrites
from logstore.segments.rocketmq.time_lookup import (
    BoundaryType,
    nearest_queue_offset,
    queue_offset_for_time,
    store_timestamp_at,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.message import Message
    from logstore.segments.rocketmq.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.message_draft import MessageDraft
    from logstore.segments.rocketmq.message_filter import MessageFilter

__all__ = ["LAYOUT", "RocketMQLayout", "RocketMQStore", "StoreOptions"]

_log = logging.getLogger(__name__)

#: consumer filters have no setting of their own (``ConsumerFilterManager``)
_FILTERS_INTERVAL_MS = 10_000
#: told (files done, files all, name of the file) while a store is loaded and recovered
Progress = Callable[[int, int, str], None]


@attrs.frozen
class StoreOptions:
    """
    How to open a store.

    `settings` are Java's keys of ``MessageStoreConfig`` (others are passed over) by name, values
    as text. A store that is not writable takes no lock and writes nothing at all. `release` is
    whose habits the files get where the releases differ. `process_id` stands in the abort file.
    `memory_bytes` is the machine's, for what counts as being in memory; None is Java's guess.
    """

    is_writable: bool = True
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    release: Release = Release.V5
    process_id: int = 0
    memory_bytes: int | None = None
    progress: Progress | None = None


class RocketMQStore:
    """
    All topics of one store directory. Implements :class:`logstore.partition.Store`.

    Public parts: `config`, `topic_table`, `subscription_groups`, `consumer_offsets`,
    `delay_offsets`, `consumer_filters` (the tables), `commit_log`, `consume_queues`, `index`,
    `checkpoint`, `queue_offsets`, `dispatching`, `putting`, `syncs`, `cleaning`, `stats`,
    `running_flags`; `recovery` says what opening found.

    Raises, on opening:
        ForeignDirectoryError: it cannot be a store directory.
        LockedError: another broker has it.
        CorruptFileError: a file has not the size or the content that it must have.
        MissingSegmentError: a commit log file is missing between others.
    """

    def __init__(self, host: Host, directory: str, options: StoreOptions | None = None) -> None:
        self.host = host
        self.directory = directory
        self.options = options = StoreOptions() if options is None else options
        self.config = StoreConfig(options.settings)
        self.running_flags = RunningFlags()
        self.stats = StoreStats(host.clock)
        self._home = StoreDirectory(host, directory, is_writable=options.is_writable)
        self.was_clean = self._home.was_clean
        try:
            self._load()
        except BaseException:
            self._home.release()
            raise
        self._is_open = True

    def _load(self) -> None:
        options, config, host = self.options, self.config, self.host
        self.tables = tables = StoreTables.load(
            host,
            self._home.path_of("config"),
            options.release,
            has_light_queues=config.boolean("enableLmq"),
        )
        self.topic_table = tables.topics
        self.subscription_groups = tables.subscription_groups
        self.consumer_offsets = tables.consumer_offsets
        self.delay_offsets = tables.delay_offsets
        self.consumer_filters = tables.consumer_filters
        parts = load_parts(
            self._home, config, options.settings, options.release, tables.is_batch_topic
        )
        self._parts = parts
        self.commit_log = parts.commit_log
        self.consume_queues = parts.consume_queues
        self.checkpoint = parts.checkpoint
        self.index = parts.index
        try:
            self._recover()
            self._assemble()
            if options.is_writable:
                self._home.mark_open(options.process_id)
        except BaseException:
            parts.close()
            raise

    def _recover(self) -> None:
        config, is_writable = self.config, self.options.is_writable
        self.delay_levels = store_rules.delay_levels(config)
        has_index = config.boolean("messageIndexEnable") and is_writable
        self.dispatching = Dispatch(
            self.commit_log,
            self.consume_queues,
            [self.index.put] if has_index else [],
            self.delay_levels.deliver_time_ms,
        )
        self.dispatching.stops_at_damage = config.is_slave
        self.recovery = StoreRecoverer(
            self.commit_log,
            self.consume_queues,
            self.dispatching,
            self.checkpoint,
            self.was_clean,
            is_writable,
            is_index_safe=has_index and config.boolean("messageIndexSafe"),
            index=self.index if has_index else None,
        ).run()
        self.queue_offsets = self.consume_queues.recovered_queue_offsets(
            self.commit_log.min_physical_offset
        )
        if is_writable:
            self.consume_queues.write()
            self.consume_queues.settle()
            self.index.write()
            if not self.was_clean:
                self.commit_log.flush()  # what is served from now on must not be lost any more

    def _assemble(self) -> None:
        """Put together what works on the recovered parts."""
        config, clock = self.config, self.host.clock
        rule = store_rules.FlushRule.of(config)
        self.dispatching.keeps_back_unflushed = (
            rule.is_sync
            and self.options.release is not Release.V4
            and not config.boolean("readUnCommitted")
        )
        self.putting = PutPath(
            self.commit_log,
            self.queue_offsets,
            self.running_flags,
            self.stats,
            clock,
            store_rules.put_rules(config, self.options.release, self.tables.is_batch_topic),
        )
        self.putting.on_put = self.dispatching.add
        self._put_message = self.putting.put_message
        if not self.options.is_writable:
            self.putting.closed_reason = f"{self.directory}: the store is open for reading only"
        self.syncs = StoreSyncs(
            clock,
            rule,
            self.commit_log,
            self.consume_queues,
            self.index,
            self.checkpoint,
            self.options.release,
        )
        self.cleaning = StoreCleaning(
            self.host,
            store_rules.cleaning_rule(config),
            self.commit_log,
            self.consume_queues,
            self.index,
            self.running_flags,
            self._lagging_groups,
        )
        memory_bytes = self.options.memory_bytes
        self.get_limits = (
            GetMessageLimits.of_settings(self.options.settings)
            if memory_bytes is None
            else GetMessageLimits.of_settings(self.options.settings, memory_bytes)
        )
        self._table_writes = TableWrites(
            clock,
            [
                (self.consumer_offsets, rule.consumer_offsets_interval_ms),
                (self.consumer_filters, _FILTERS_INTERVAL_MS),
                (self.delay_offsets, rule.delay_offsets_interval_ms),
            ],
        )

    # queues

    def topics(self) -> Mapping[str, Mapping[int, RocketMQQueue]]:
        """Return the queues of every topic by name and queue id: those configured, those stored."""
        found: dict[str, dict[int, RocketMQQueue]] = {}
        for name, config in self.topic_table.topics.items():
            count = max(config.read_queue_count, config.write_queue_count)
            found[name] = {number: RocketMQQueue(self, name, number) for number in range(count)}
        for topic, queue_id in self.consume_queues.by_key:
            queues = found.setdefault(topic, {})
            if queue_id not in queues:
                queues[queue_id] = RocketMQQueue(self, topic, queue_id)
        return found

    def queue(self, topic: str, queue_id: int) -> RocketMQQueue:
        """Return one queue, whether or not anything stands in it."""
        return RocketMQQueue(self, topic, queue_id)

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

    def delete_topics(self, topics: set[str]) -> int:
        """Remove the queues of these topics; return how many topics had any (``deleteTopics``)."""
        count = 0
        for topic in topics:
            queues = self.consume_queues.of_topic(topic)
            for queue_id in queues:
                self.consume_queues.remove(topic, queue_id)
            for queue_id in [number for name, number in self.queue_offsets if name == topic]:
                self.queue_offsets.forget(topic, queue_id)
            if queues:
                self.consume_queues.remove_topic_folders(topic)
                count += 1
        return count

    # putting

    def put_message(self, draft: MessageDraft, *, is_delivery: bool = False) -> PutResult:
        """
        Append one message; never raises for what a client or a full disk does.

        It is durable once ``commit_log.flushed_where >= result.next_physical_offset``, and can be
        read from its queue after the next :meth:`dispatch`. `is_delivery` says that its delay is
        over: the delay level that still stands in its properties sends it nowhere.
        """
        return self._put_message(draft, is_delivery=is_delivery)

    def put_batch(self, batch: MessageBatchDraft) -> PutResult:
        """Append all messages of a client's batch, one record each, as :meth:`put_message`."""
        return self.putting.put_batch(batch)

    def append_raw(self, physical_offset: int, data: Buffer) -> bool:
        """
        Append bytes of a master's commit log (``appendToCommitLog``); tell whether they fitted.

        Raises:
            WriteFailedError: the disk refused.

        """
        try:
            self.commit_log.append_raw(physical_offset, data)
        except OffsetMismatchError as error:
            _log.error("%s", error)
            return False
        return True

    # reading

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
        if not self._is_open or not self.running_flags.is_readable:
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
        if result.status is GetMessageStatus.FOUND:
            self.stats.get_found_times += 1
        else:
            self.stats.get_missed_times += 1
        return result

    def queue_offset_for_time(
        self,
        topic: str,
        queue_id: int,
        timestamp_ms: int,
        boundary: BoundaryType = BoundaryType.LOWER,
    ) -> int:
        """Return the queue offset for a time (:mod:`~logstore.segments.rocketmq.time_lookup`)."""
        queue = self.consume_queues.get(topic, queue_id)
        if not isinstance(queue, ConsumeQueue):
            return 0 if queue is None else queue.queue_offset_for_time(timestamp_ms)
        if self.options.release is Release.V4:
            return nearest_queue_offset(queue, self.commit_log, timestamp_ms)
        return queue_offset_for_time(queue, self.commit_log, timestamp_ms, boundary)

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Find messages by key (:mod:`~logstore.segments.rocketmq.message_query`)."""
        return query_message(self.index, self.commit_log, topic, key, count_max, begin_ms, end_ms)

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

    # services

    def add_arrival_listener(self, listener: ArrivalListener) -> None:
        """Have `listener` called for every message that has become readable."""
        self.dispatching.arrival_listeners.append(listener)

    def dispatch(self) -> int:
        """Fold new commit log entries into queues and index; return how many they were."""
        return self.dispatching.run()

    def write_derived(self) -> None:
        """
        Put queue units and index entries that wait into their files.

        Raises:
            WriteFailedError: the disk refused; puts are refused until it is full no more.

        """
        try:
            self.consume_queues.write()
        except (OSError, StorageError):
            if self.running_flags.raise_flag(RunningFlag.WRITE_LOGICS_QUEUE_ERROR):
                _log.exception("%s: a consume queue cannot be written", self.directory)
            raise
        self.running_flags.lower_flag(RunningFlag.WRITE_LOGICS_QUEUE_ERROR)
        self.index.write()

    def tick(self) -> None:
        """
        Run every service that is due on the host's clock, syncs included.

        Who must not wait for syncs calls :meth:`tick_without_syncs` and runs what it returns in
        another thread.
        """
        self.syncs.run_here(self.tick_without_syncs())

    def tick_without_syncs(self) -> StoreSync | None:
        """
        Run what is due but for syncs; return those, to be run in any thread, or None.

        Hand them to ``syncs.end`` afterwards.
        """
        self.dispatch()
        if not self.options.is_writable:
            return None
        self.write_derived()
        self.stats.tick()
        self.cleaning.tick()
        if self.syncs.is_running:
            return None
        return self.syncs.begin(self._table_writes.take_due())

    def runtime(self) -> dict[str, str]:
        """Return what Java's runtime table says about the store, by Java's keys."""
        ratio = str(self.cleaning.commit_log_disk_ratio)
        return {
            **self.stats.runtime(),
            "commitLogDiskRatio": ratio,
            f"commitLogDiskRatio_{self.commit_log.directory}": ratio,
            "consumeQueueDiskRatio": str(self.cleaning.consume_queue_disk_ratio),
            "commitLogMinOffset": str(self.commit_log.min_physical_offset),
            "commitLogMaxOffset": str(self.commit_log.max_physical_offset),
            "dispatchBehindBytes": str(self.dispatching.behind_bytes),
        }

    def _lagging_groups(self, physical_offset: int) -> str:
        """Name the groups that have not read all below a physical offset of what they read."""
        found = set[str]()
        for queue in self.consume_queues:
            for group in self.consumer_offsets.groups_of(queue.topic):
                read = self.consumer_offsets.query(group, queue.topic, queue.queue_id)
                units = queue.units(max(read, queue.min_queue_offset), 1) if read >= 0 else b""
                if units and int.from_bytes(units[:8], "big", signed=True) < physical_offset:
                    found.add(group)
        return ", ".join(sorted(found))

    # the end

    def abandon(self) -> None:
        """Let go of everything as it is, as if the process had been killed."""
        self._is_open = False
        self.putting.closed_reason = f"{self.directory}: the store is closed"
        self._parts.close()
        self._home.release()

    def close(self) -> None:
        """
        Stop cleanly: all durable, checkpoint, tables, no abort file, the lock released.

        Where something cannot be made durable, or puts are refused for an error, the abort file
        stays: the next start recovers.
        """
        if not self._is_open:
            return
        if not self.options.is_writable:
            self.abandon()
            return
        self._is_open = False
        self.putting.closed_reason = f"{self.directory}: the store is closed"
        try:
            self._make_durable()
        finally:
            self._parts.close()
            self._home.release()

    def _make_durable(self) -> None:
        self.commit_log.commit()
        if self.dispatching.keeps_back_unflushed:
            self.commit_log.flush()
        self.dispatch()
        self.write_derived()
        self.syncs.run_here(self.syncs.begin_all())
        for table in self.tables.all():
            table.persist_if_dirty()
        self.checkpoint.flush()
        self.commit_log.close(is_clean=True)
        if self.running_flags.is_writeable and self.dispatching.behind_bytes <= 0:
            self._home.mark_clean()
        else:
            _log.warning(
                "%s: stopped with %s and %d bytes not dispatched; the next start recovers",
                self.directory,
                self.running_flags,
                self.dispatching.behind_bytes,
            )


@attrs.frozen
class RocketMQLayout:
    """The plug of this layout (see :class:`logstore.partition.Layout`)."""

    name: str = "rocketmq"

    def recognises(self, host: Host, directory: str) -> bool:
        """Tell whether `directory` has a commit log, or consume queues with a checkpoint."""
        return looks_like_store(host, directory)

    def open(self, host: Host, directory: str, *, writable: bool = True) -> RocketMQStore:
        """
        Open the store, recovering it if its last stop was unclean.

        How large its files are is taken from them.
        """
        settings = found_sizes(host.fs, directory)
        return RocketMQStore(host, directory, StoreOptions(writable, settings))


LAYOUT = RocketMQLayout()
