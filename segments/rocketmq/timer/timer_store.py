"""
Timer messages on their way through the time wheel: in from the timer topic, out when due.

Nothing runs by itself and nothing is put here. :meth:`TimerStore.enqueue` and
:meth:`TimerStore.dequeue` return what has come due; who called puts those messages and says so by
:meth:`TimerStore.commit_enqueue` and :meth:`TimerStore.commit_dequeue`. What was not committed
comes again, also after a crash: a timer message may be delivered twice, never lost. That is the
order of Java's services, without their threads and queues. (``TimerMessageStore``)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

import attrs

from logstore.errors import CorruptEntryError, CorruptFileError, WriteFailedError
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.timer.due_tick import DueTick
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from logstore.segments.rocketmq.timer.timer_log import TimerLog
from logstore.segments.rocketmq.timer.timer_metrics import TimerMetrics
from logstore.segments.rocketmq.timer.timer_rules import (
    NEVER_ENQUEUED_MS,
    TimerSettings,
    due_ms_of,
    is_unit_of,
)
from logstore.segments.rocketmq.timer.timer_steps import (
    EnqueueStep,
    TimerDelivery,
    TimerSync,
)
from logstore.segments.rocketmq.timer.timer_unit import (
    TIMER_UNIT_BYTES,
    TimerUnit,
)
from logstore.segments.rocketmq.timer.timer_wheel import TimerWheel
from logstore.segments.rocketmq.timer.unit_batch import UnitBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from logstore.host import Host
    from logstore.segments.rocketmq.messages.message import Message

__all__ = ["TimerQueue", "TimerStore"]

_log = logging.getLogger(__name__)
_BLANK_SLOTS = 60
_MANY_TICKS = 1000


class TimerQueue(Protocol):
    """What is asked of queue 0 of the timer topic."""

    @property
    def min_queue_offset(self) -> int:
        """The first message that is still there."""
        ...

    @property
    def max_queue_offset(self) -> int:
        """Behind the last message."""
        ...

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """Return units of 20 bytes."""
        ...


class TimerStore:
    """
    Wheel, log, checkpoint and metrics of one store directory.

    `message_at` reads a message by physical offset and size, None if it is gone; `queue` returns
    queue 0 of the timer topic, None before there is one. `runs_dequeue` is False on a slave,
    `is_clean` says that the last stop was clean.

    A wheel of another length than it must have is kept aside, and made anew from the log.

    Raises, on construction:
        CorruptFileError: a file of the log has not the size that it must have.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        settings: TimerSettings,
        message_at: Callable[[int, int], Message | None],
        queue: Callable[[], TimerQueue | None],
        *,
        runs_dequeue: bool = True,
        is_clean: bool = False,
    ) -> None:
        self.host = host
        self.settings = settings
        self.runs_dequeue = runs_dequeue
        self._message_at = message_at
        self._queue = queue
        self._checkpoint_path = f"{directory}/config/timercheck"
        self.checkpoint = TimerCheckpoint.load(host, self._checkpoint_path)
        self.metrics = TimerMetrics(host, f"{directory}/config")
        self.metrics.load()
        self.wheel = self._open_wheel(f"{directory}/timerwheel")
        self.log = TimerLog(host, f"{directory}/timerlog", file_size_bytes=settings.log_file_bytes)
        #: the next tick that is taken out, and the tick up to which messages may be put in
        self.read_time_ms = 0
        self.write_time_ms = 0
        #: the next message of the timer topic
        self.queue_offset = 0
        self._committed_queue_offset = 0
        self._told = (0, 0)
        #: units of the log were lost: messages of before come in again
        self._is_cut = False
        #: messages below the queue offset that were due before the time need not come in again
        self._done_before = (0, 0)
        self._recover(is_clean=is_clean)

    def _open_wheel(self, path: str) -> TimerWheel:
        """Open the wheel; one that cannot be one, as after a change of its size, goes aside."""
        settings, fs = self.settings, self.host.fs

        def opened() -> TimerWheel:
            return TimerWheel(
                self.host,
                path,
                slot_count=settings.slot_count,
                precision_ms=settings.precision_ms,
            )

        try:
            return opened()
        except CorruptFileError as error:
            fs.rename(path, f"{path}.damaged")
            fs.sync_directory(path.rpartition("/")[0])
            _log.warning("%s; kept as %s.damaged, and made anew", error, path)
            return opened()

    # recovery

    def _recover(self, *, is_clean: bool) -> None:
        """Find the end of the log, and let the wheel lead to what the log holds (``recover``)."""
        checkpoint, log = self.checkpoint, self.log
        start = max(checkpoint.last_timer_log_flush_where - log.file_size_bytes, 0)
        if not self.wheel.is_used:
            start = 0  # a new one knows of no unit
        last = self._revise_slots(start)
        if log.max_timer_offset < checkpoint.last_timer_log_flush_where:
            self._is_cut = True
        if self._is_cut and last is None and start:
            last = self._revise_slots(0)
        self.queue_offset = self._revised_queue_offset(last, is_clean=is_clean)
        now_tick_ms = self._tick(self.host.clock.wall_ms())
        oldest = now_tick_ms - (self.settings.slot_count - _BLANK_SLOTS) * self.wheel.precision_ms
        self.read_time_ms = max(checkpoint.last_read_time_ms, oldest)
        self._mend_slots()
        self._committed_queue_offset = self.queue_offset
        if self._is_cut:
            self._done_before = (checkpoint.last_timer_queue_offset, checkpoint.last_read_time_ms)
        # Where the clock was set back slots before the read time are over: nobody looks there.
        self.write_time_ms = self.read_time_ms
        self.move_write_time()

    def _mend_slots(self) -> None:
        """
        Let no slot lead behind the end of the log.

        Its units there are lost, and their places are taken again: a slot that still led there
        would take over other slots' messages. Those that were lost come in from the timer topic.
        """
        wheel, end = self.wheel, self.log.max_timer_offset
        if not wheel.is_used:
            return
        lost = wheel.first_unit_above(self.read_time_ms, end - 1)
        if lost is not None and lost < end:
            self._revise_slots(lost)
        for slot in wheel.pending(self.read_time_ms):
            if slot.last_timer_offset >= end:
                wheel.put(slot.time_ms, -1, -1, 0)

    def _revise_slots(self, start: int) -> TimerUnit | None:
        """
        Let each slot end with the last unit of the log that belongs there; return the last of all.

        What stands behind damage goes (``recoverAndRevise``).
        """
        last, end = None, max(start, self.log.min_timer_offset)
        try:
            for timer_offset, last in self.log.units(start):
                self.wheel.revise(last.due_ms, timer_offset)
                end = timer_offset + TIMER_UNIT_BYTES
        except CorruptEntryError as error:
            _log.warning("%s; the timer log ends there", error)
            self.log.truncate(end)
            self._is_cut = True
        return last

    def _revised_queue_offset(self, last: TimerUnit | None, *, is_clean: bool) -> int:
        """
        Return the queue offset behind the message of the log's last unit.

        Messages that were late are in no unit: after a clean stop the checkpoint knows of them.
        Where units were lost all messages behind the last that is left come in again (Java: not if
        none is left).
        """
        found = 0 if self._is_cut else self.checkpoint.last_timer_queue_offset
        if last is not None:
            message = self._message_at(last.physical_offset, last.size_bytes)
            is_known = message is not None and is_unit_of(last, message)
            behind = message.queue_offset + 1 if message is not None and is_known else found
            found = max(found, behind) if is_clean else behind
        found = min(found, self.checkpoint.master_timer_queue_offset)
        queue = self._queue()
        if queue is None:
            return found
        return min(max(found, queue.min_queue_offset), queue.max_queue_offset)

    def _tick(self, time_ms: int) -> int:
        return time_ms // self.wheel.precision_ms * self.wheel.precision_ms

    def move_write_time(self) -> None:
        """Let the write time follow the clock; it never goes back (``maybeMoveWriteTime``)."""
        self.write_time_ms = max(self.write_time_ms, self._tick(self.host.clock.wall_ms()))

    # in

    def enqueue(self, count_max: int = 1000) -> EnqueueStep | None:
        """
        Put up to `count_max` new messages of the timer topic into the wheel.

        None if there are none. :meth:`commit_enqueue` must follow before the next call.

        Raises:
            WriteFailedError: the disk refused; those messages come again.

        """
        queue = self._queue()
        if queue is None:
            return None
        start = max(self.queue_offset, queue.min_queue_offset)
        end = queue.max_queue_offset
        if not self.runs_dequeue:  # a slave does not go ahead of its master
            end = min(end, self.checkpoint.master_timer_queue_offset)
        units = queue.units(start, min(count_max, end - start)) if start < end else b""
        if not units:
            self.move_write_time()
            return None
        late: list[TimerDelivery] = []
        batch = UnitBatch(
            self.wheel, self.log, self.metrics, self.write_time_ms, self.settings.roll_slots
        )
        for queue_offset, unit in enumerate(UNIT.iter_unpack(units), start):
            physical_offset, size_bytes, _ = unit
            message = self._message_at(physical_offset, size_bytes)
            due_ms = None if message is None else due_ms_of(message)
            if message is None or due_ms is None:
                continue  # it is gone, or nobody said when it is due
            if queue_offset < self._done_before[0] and due_ms < self._done_before[1]:
                continue  # it comes in again, but was delivered before units were lost
            if self.runs_dequeue and due_ms < self.write_time_ms:
                now_ms = self.host.clock.wall_ms()
                late.append(TimerDelivery.of(message, NEVER_ENQUEUED_MS, now_ms, is_roll=False))
            else:
                batch.add(message, physical_offset, size_bytes, due_ms)
        batch.put()
        return EnqueueStep(start + len(units) // UNIT.size, late)

    def commit_enqueue(self, step: EnqueueStep) -> None:
        """Say that what was late in a step is put."""
        self.queue_offset = self._committed_queue_offset = step.next_queue_offset
        self.move_write_time()

    # out

    def dequeue(self) -> DueTick | None:
        """
        Return the next tick with messages, None if none is over.

        Ticks without messages are passed by. :meth:`commit_dequeue` must follow.
        """
        if not self.runs_dequeue:
            return None
        self._pass_by()
        while self.read_time_ms < self.write_time_ms:
            slot = self.wheel.slot(self.read_time_ms)
            if slot.time_ms != -1:
                clock = self.host.clock
                return DueTick(slot, self.log, self._message_at, self.settings, clock)
            self.read_time_ms += self.wheel.precision_ms
        return None

    def _pass_by(self) -> None:
        """Pass many ticks without messages at once, as there are after a long stop."""
        if self.write_time_ms - self.read_time_ms > _MANY_TICKS * self.wheel.precision_ms:
            pending = self.wheel.pending(self.read_time_ms)
            first_ms = pending[0].time_ms if pending else self.write_time_ms
            self.read_time_ms = max(self.read_time_ms, min(first_ms, self.write_time_ms))

    def commit_dequeue(self, tick: DueTick) -> None:
        """Say that all of a tick is put: the wheel goes on to the next one."""
        for topic, change in tick.changes:
            self.metrics.add(topic, change)
        self.read_time_ms = tick.time_ms + self.wheel.precision_ms

    # lasting

    def congestion(self, due_ms: int) -> int:
        """Return how many messages the slot of a time holds (``getCongestNum``)."""
        return self.wheel.slot(due_ms).count

    @property
    def has_limit(self) -> bool:
        """Tell whether slots can be full (``timerCongestNumEachSlot``)."""
        return self.settings.has_congestion

    def is_full_at(self, deliver_ms: int) -> bool:
        """
        Tell whether the slot of a time takes no more (``isReject``).

        Above the limit some are refused, by chance, above twice the limit all.
        """
        limit = self.settings.congestion_count
        count = self.congestion(deliver_ms)
        if count <= limit:
            return False
        if count >= 2 * limit:
            return True
        return self.host.rng.randrange(1000) > 1000 * (count - limit) / (limit + 0.1)

    @property
    def has_waiting(self) -> bool:
        """Tell whether any message waits for its time."""
        return any(metric.count for metric in self.metrics.by_topic.values())

    def current_checkpoint(self) -> TimerCheckpoint:
        """Return how far everything is, for whoever asks; the checkpoint itself stays."""
        masters = self.checkpoint.master_timer_queue_offset
        if self.runs_dequeue:
            masters = self._committed_queue_offset
        return attrs.evolve(
            self.checkpoint,
            last_timer_log_flush_where=self.log.max_timer_offset,
            last_read_time_ms=self.read_time_ms,
            master_timer_queue_offset=masters,
            last_timer_queue_offset=min(self._committed_queue_offset, masters),
        )

    def prepare_checkpoint(self) -> None:
        """
        Let the checkpoint say how far everything is (``prepareTimerCheckPoint``).

        It is written behind a flush of the log: the log's end of now is durable by then.
        """
        checkpoint = self.checkpoint
        checkpoint.last_timer_log_flush_where = self.log.max_timer_offset
        checkpoint.last_read_time_ms = self.read_time_ms
        if self.runs_dequeue:
            checkpoint.master_timer_queue_offset = self._committed_queue_offset
            told = (self.read_time_ms, self._committed_queue_offset)
            if told != self._told:
                self._told = told
                now_ms = self.host.clock.wall_ms()
                checkpoint.data_version = checkpoint.data_version.next(now_ms)
        checkpoint.last_timer_queue_offset = min(
            self._committed_queue_offset, checkpoint.master_timer_queue_offset
        )

    def begin_flush(self, *, prepares_checkpoint: bool = True) -> TimerSync:
        """
        Return all that must be written and synced; :meth:`end_flush` follows its run.

        Without `prepares_checkpoint` it says how far things were when it was prepared last: by now
        what was delivered until then is durable.
        """
        if prepares_checkpoint:
            self.prepare_checkpoint()
        return TimerSync(
            self.host,
            self.log.begin_flush(),
            self.wheel,
            self.wheel.begin_flush(),
            self._checkpoint_path,
            attrs.evolve(self.checkpoint),
            self.metrics.begin_persist() if self.metrics.is_dirty else None,
        )

    def end_flush(self, sync: TimerSync, error: BaseException | None = None) -> None:
        """Say that a sync is through, or why it failed: then all of it is written again."""
        if sync.metrics is not None:
            self.metrics.end_persist(None if error is None else OSError(str(error)))
        if error is None:
            self.wheel.end_flush(sync.slots)
            if sync.log is not None:
                self.log.end_flush(sync.log)

    def flush(self) -> None:
        """
        Make everything durable.

        Raises:
            OSError: the disk refused.
            WriteFailedError: it refused before; the log has to be opened anew.

        """
        sync = self.begin_flush()
        try:
            sync.run()
        except (OSError, WriteFailedError) as error:
            self.end_flush(sync, error)
            raise
        self.end_flush(sync)

    def clean(self, min_physical_offset: int) -> int:
        """Remove files of the log whose messages are gone; count them."""
        return self.log.delete_below(min_physical_offset)

    def close(self) -> None:
        """Flush and let go of the files."""
        self.flush()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are, as if the process had been killed."""
        self.wheel.close()
        self.log.close()
