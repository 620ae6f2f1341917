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

from logstore.errors import OffsetMismatchError, StorageError
from logstore.host import Host
from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.dispatch import ArrivalListener, Dispatch
from logstore.segments.rocketmq.opening.directory import StoreDirectory, looks_like_store
from logstore.segments.rocketmq.opening.found_sizes import found_sizes
from logstore.segments.rocketmq.opening.loading import StoreTables, load_parts
from logstore.segments.rocketmq.opening.recovering import StoreRecoverer
from logstore.segments.rocketmq.putting.put_path import PutPath
from logstore.segments.rocketmq.putting.put_result import PutResult
from logstore.segments.rocketmq.queue import RocketMQQueue
from logstore.segments.rocketmq.readable_store import ReadableStore
from logstore.segments.rocketmq.reading.get_message_limits import (
    MEMORY_BYTES_UNKNOWN,
    GetMessageLimits,
)
from logstore.segments.rocketmq.reading.message_query import QueryMessageResult
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.settings.store_config import StoreConfig
from logstore.segments.rocketmq.store_rules import FlushRule
from logstore.segments.rocketmq.upkeep.cleaning import StoreCleaning
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag, RunningFlags
from logstore.segments.rocketmq.upkeep.store_stats import StoreStats
from logstore.segments.rocketmq.upkeep.store_syncs import StoreSync, StoreSyncs
from logstore.segments.rocketmq.upkeep.table_writes import TableWrites

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import MessageRun
    from logstore.segments.rocketmq.tables.topics import TopicConfig

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


class RocketMQStore(ReadableStore):
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
        self.release = options.release
        self.config = StoreConfig(options.settings)
        self.running_flags = RunningFlags()
        self.stats = StoreStats(host.clock)
        self._home = StoreDirectory(host, directory, is_writable=options.is_writable)
        self.was_clean = self._home.was_clean
        #: something that belongs to the store could not be made durable: the next start recovers
        self.stays_unclean = False
        try:
            self._load()
        except BaseException:
            self._home.release()
            raise
        self.is_open = True

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
        has_index = is_writable and store_rules.builds_index(config)
        self.dispatching = Dispatch(
            self.commit_log,
            self.consume_queues,
            self.index if has_index else None,
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
            progress=self.options.progress,
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
        rule = FlushRule.of(config)
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
        memory_bytes = self.options.memory_bytes or MEMORY_BYTES_UNKNOWN
        self.get_limits = GetMessageLimits.of_settings(self.options.settings, memory_bytes)
        self._assemble_services(rule)

    def _assemble_services(self, rule: FlushRule) -> None:
        config, clock = self.config, self.host.clock
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
            self.lagging_groups,
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

    def prepare_topic(self, config: TopicConfig) -> None:
        """Make room for a new topic: a deleted one may have left queues of the other kind."""
        topic, is_batch = config.topic_name, config.attributes.get("queue.type") == "BatchCQ"
        for queue_id in self.consume_queues.remove_other_kind(topic, is_batch=is_batch):
            self.queue_offsets.forget(topic, queue_id)

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

    def put_run(self, run: MessageRun) -> bool:
        """
        Append plain messages together; False, and nothing done, where they go one by one only.

        Each of `run.stored` says where a message stands; for the rest it is as :meth:`put_message`.
        """
        return self.putting.put_run(run)

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

    # services

    def add_arrival_listener(self, listener: ArrivalListener) -> None:
        """Have `listener` called for every message that has become readable."""
        self.dispatching.arrival_listeners.append(listener)

    def follow_index_settings(self) -> None:
        """Begin or end to put keys into the index; what was put until now is in it, or is not."""
        self.dispatch()
        is_built = self.options.is_writable and store_rules.builds_index(self.config)
        self.dispatching.index = self.index if is_built else None

    def query_message(
        self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Find messages by key, if the index may be read (``indexFileReadEnable``)."""
        if not self.config.boolean("indexFileReadEnable"):
            return QueryMessageResult()
        return super().query_message(topic, key, count_max, begin_ms, end_ms)

    def dispatch(self, *, defers_index: bool = False) -> int:
        """
        Fold new commit log entries into queues and index; return how many they were.

        With `defers_index` the index may follow at the next call without it, which is to come soon.

        Where the disk refuses an index file puts are refused, too, until a later call succeeds;
        what was not dispatched is then.
        """
        try:
            count = self.dispatching.run(defers_index=defers_index)
        except (OSError, StorageError):
            self._note_trouble(RunningFlag.WRITE_INDEX_FILE_ERROR, "a message cannot be dispatched")
            return 0
        if count and not self.running_flags.is_writeable:
            self.running_flags.lower_flag(RunningFlag.WRITE_INDEX_FILE_ERROR)
        return count

    def write_derived(self) -> None:
        """
        Put queue units and index entries that wait into their files.

        Raises:
            OSError, WriteFailedError: the disk refused; puts are refused until a later call
                succeeds.

        """
        try:
            self.consume_queues.write()
        except (OSError, StorageError):
            self._note_trouble(
                RunningFlag.WRITE_LOGICS_QUEUE_ERROR, "a consume queue cannot be written"
            )
            raise
        self.running_flags.lower_flag(RunningFlag.WRITE_LOGICS_QUEUE_ERROR)
        try:
            self.index.write()
        except (OSError, StorageError):
            self._note_trouble(RunningFlag.WRITE_INDEX_FILE_ERROR, "the index cannot be written")
            raise
        if self.dispatching.behind_bytes <= 0:
            self.running_flags.lower_flag(RunningFlag.WRITE_INDEX_FILE_ERROR)

    def _note_trouble(self, flag: RunningFlag, what: str) -> None:
        if self.running_flags.raise_flag(flag):
            _log.exception("%s: %s", self.directory, what)

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

    # the end

    def abandon(self) -> None:
        """Let go of everything as it is, as if the process had been killed."""
        self.is_open = False
        self.putting.closed_reason = f"{self.directory}: the store is closed"
        self._parts.close()
        self._home.release()

    def close(self) -> None:
        """
        Stop cleanly: all durable, checkpoint, tables, no abort file, the lock released.

        Where something cannot be made durable, or puts are refused for an error, the abort file
        stays: the next start recovers.
        """
        if not self.is_open:
            return
        if not self.options.is_writable:
            self.abandon()
            return
        self.is_open = False
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
        is_durable = not (self.index.has_failed_sync or self.stays_unclean)
        is_whole = self.dispatching.behind_bytes <= 0 and self.running_flags.is_writeable
        if is_whole and is_durable:
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
        """Tell whether `directory` has a commit log, or a checkpoint and its company."""
        return looks_like_store(host, directory)

    def open(self, host: Host, directory: str, *, writable: bool = True) -> RocketMQStore:
        """
        Open the store, recovering it if its last stop was unclean.

        How large its files are is taken from them.
        """
        settings = found_sizes(host.fs, directory)
        return RocketMQStore(host, directory, StoreOptions(writable, settings))


LAYOUT = RocketMQLayout()
