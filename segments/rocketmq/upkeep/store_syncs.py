"""
When what part of a store is made durable; the syncs themselves may run in any thread.

The order is a law: commit log before consume queues, index and tables, those before the checkpoint
that speaks of them. A unit on disk never leads to a message that is not there, and a checkpoint
never promises what is not durable. Nor does a table say that a half message or a delayed one is
dealt with while what was put for it may still be lost; Java's does, under ``ASYNC_FLUSH``.

Source: ``FlushRealTimeService``, ``CommitRealTimeService``, ``FlushConsumeQueueService``,
``StoreCheckpoint``. What puts wait for (``GroupCommitService``) is begun by whoever waits, with
:meth:`CommitLog.begin_flush`; all who wait share one sync.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from logstore.errors import StorageError
from logstore.segments.rocketmq.settings.release import Release

if TYPE_CHECKING:
    from logstore.host import Clock
    from logstore.segmented_log import FlushTask
    from logstore.segments.rocketmq.index.index_flush import IndexFlush
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.log.commit_log import CommitLog
    from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
    from logstore.segments.rocketmq.queues.consume_queues import AnyQueue, ConsumeQueues
    from logstore.segments.rocketmq.store_rules import FlushRule
    from logstore.segments.rocketmq.tables.json_table import JsonTable, TableWrite


@attrs.define(eq=False)
class StoreSync:
    """
    Syncs that are due together, in their order.

    `logics` are store time and physical offset of the last message whose unit is durable after
    it, None where not every queue is synced.
    """

    log_task: FlushTask | None = None
    queue_tasks: list[tuple[AnyQueue, FlushTask]] = attrs.field(
        factory=list["tuple[AnyQueue, FlushTask]"]
    )
    index_flush: IndexFlush | None = None
    checkpoint: StoreCheckpoint | None = None
    logics: tuple[int, int] | None = None
    table_writes: list[tuple[JsonTable, TableWrite]] = attrs.field(
        factory=list["tuple[JsonTable, TableWrite]"]
    )

    def run(self) -> None:
        """
        Sync; may be called in any thread.

        Raises:
            OSError, StorageError: the disk refused; what follows it in the order was not done.

        """
        if self.log_task is not None:
            self.log_task.run()
        for _, task in self.queue_tasks:
            task.run()
        if self.index_flush is not None:
            self.index_flush.run()
        if self.checkpoint is not None:
            self.checkpoint.sync()
        for _, write in self.table_writes:
            write.run()


class _Timer:
    """Tells when an interval has passed."""

    __slots__ = ("interval_ms", "next_ms")

    def __init__(self, interval_ms: int, now_ms: float) -> None:
        self.interval_ms = interval_ms
        self.next_ms = now_ms + interval_ms

    def is_due(self, now_ms: float) -> bool:
        """Tell whether it has passed, and start anew if it has."""
        if now_ms < self.next_ms:
            return False
        self.next_ms = now_ms + self.interval_ms
        return True


class StoreSyncs:
    """The sync services of one store, turned by :meth:`begin`."""

    def __init__(
        self,
        clock: Clock,
        rule: FlushRule,
        commit_log: CommitLog,
        consume_queues: ConsumeQueues,
        index: MessageIndex,
        checkpoint: StoreCheckpoint,
        release: Release,
    ) -> None:
        self.release = release
        self.clock = clock
        self.rule = rule
        self.commit_log = commit_log
        self.consume_queues = consume_queues
        self.index = index
        self.checkpoint = checkpoint
        now_ms = clock.monotonic_ms()
        self._commit = _Timer(rule.commit_interval_ms, now_ms)
        self._commit_thorough = _Timer(rule.commit_thorough_interval_ms, now_ms)
        self._log = _Timer(rule.log_interval_ms, now_ms)
        self._log_thorough = _Timer(rule.log_thorough_interval_ms, now_ms)
        self._queues = _Timer(rule.queue_interval_ms, now_ms)
        self._queues_thorough = _Timer(rule.queue_thorough_interval_ms, now_ms)
        self._checkpoint = _Timer(rule.checkpoint_interval_ms, now_ms)
        self._running: StoreSync | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether a sync is under way that was not ended yet."""
        return self._running is not None

    def begin(self, tables: Iterable[JsonTable] = ()) -> StoreSync | None:
        """
        Return what is to be synced now, with `tables`; None if nothing is.

        Run it, in any thread, then call :meth:`end`. None, too, while a sync is under way.
        """
        if self._running is not None:
            return None
        now_ms = self.clock.monotonic_ms()
        if self._commit.is_due(now_ms):
            is_thorough = self._commit_thorough.is_due(now_ms)
            self.commit_log.commit(0 if is_thorough else self.rule.commit_least_pages)
        sync = StoreSync()
        if due_tables := list(tables):
            self.commit_log.commit()
        if self._queues.is_due(now_ms):
            self._add_queues(sync, is_thorough=self._queues_thorough.is_due(now_ms))
        if due_tables:
            self._add_log(sync, is_thorough=True)
        elif self._log.is_due(now_ms):
            self._add_log(sync, is_thorough=self._log_thorough.is_due(now_ms))
        if self._checkpoint.is_due(now_ms) and self.checkpoint.write():
            sync.checkpoint = self.checkpoint
        sync.table_writes = [(table, table.begin_persist()) for table in due_tables]
        return self._started(sync)

    def begin_all(self) -> StoreSync | None:
        """Return everything that is not durable yet, as :meth:`begin` does what is due."""
        if self._running is not None:
            return None
        self.commit_log.commit()
        sync = StoreSync()
        self._add_log(sync, is_thorough=True)
        self._add_queues(sync, is_thorough=True)
        return self._started(sync)

    def _started(self, sync: StoreSync) -> StoreSync | None:
        parts = sync.log_task, sync.index_flush, sync.checkpoint, sync.logics
        if not sync.queue_tasks and not sync.table_writes and parts == (None,) * len(parts):
            return None
        self._running = sync
        return sync

    def _add_log(self, sync: StoreSync, *, is_thorough: bool) -> None:
        if sync.log_task is not None:
            return
        least_pages = 0 if is_thorough or self.rule.is_sync else self.rule.log_least_pages
        if self.commit_log.needs_flush(least_pages):
            sync.log_task = self.commit_log.begin_flush()

    def _add_queues(self, sync: StoreSync, *, is_thorough: bool) -> None:
        queues = self.consume_queues
        queues.write()
        least_pages = 0 if is_thorough else self.rule.queue_least_pages
        for queue in queues:
            if queue.needs_flush(least_pages):
                sync.queue_tasks.append((queue, queue.begin_flush()))
        if is_thorough and queues.last_physical_offset >= 0:
            sync.logics = queues.last_store_timestamp_ms, queues.last_physical_offset
        index_flush = self.index.begin_flush(is_thorough=is_thorough)
        if index_flush.files:
            sync.index_flush = index_flush
        if sync.queue_tasks or sync.index_flush is not None:
            # What a unit or an entry leads to must be durable before it is.
            self._add_log(sync, is_thorough=True)

    def end(self, sync: StoreSync, error: BaseException | None = None) -> None:
        """Take note that `sync` has run, or failed with `error`: then it is tried again later."""
        self._running = None
        for table, _ in sync.table_writes:
            table.end_persist(None if error is None else OSError(str(error)))
        if error is not None:
            return
        checkpoint = self.checkpoint
        if sync.log_task is not None:
            self.commit_log.end_flush(sync.log_task)
            stored_ms = self.commit_log.flushed_store_timestamp_ms
            if stored_ms:
                checkpoint.physic_msg_timestamp_ms = stored_ms
        for queue, task in sync.queue_tasks:
            queue.end_flush(task)
        if sync.index_flush is not None:
            self.index.end_flush(sync.index_flush)
        if sync.logics is not None:
            stored_ms, physical_offset = sync.logics
            checkpoint.logics_msg_timestamp_ms = stored_ms
            if self.release is not Release.V4:
                checkpoint.logics_physical_offset = physical_offset

    def run_here(self, sync: StoreSync | None) -> None:
        """
        Run what :meth:`begin` returned, here and now.

        Raises:
            OSError, StorageError: the disk refused.

        """
        if sync is None:
            return
        try:
            sync.run()
        except (OSError, StorageError) as error:
            self.end(sync, error)
            raise
        self.end(sync)
