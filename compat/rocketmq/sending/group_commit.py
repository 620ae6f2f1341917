"""
Waiting for the disk by group commit (GroupCommitService): one fsync for all who wait.

While one flush runs, off the loop, further waiters gather; when it ends, those it covers are told
and one more flush is begun for the rest. Whoever waits for longer than ``syncFlushTimeout`` is
told so; the message stands in the log all the same.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from logstore.compat.offload import Offload
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Timers

_log = logging.getLogger(__name__)

#: told whether the data is durable
Flushed = Callable[[bool], None]


class SyncTask(Protocol):
    """One flush, begun."""

    @property
    def offset(self) -> int:
        """Up to where it makes the log durable."""
        ...

    def run(self) -> None:
        """Sync; may be called in any thread."""
        ...


TaskT = TypeVar("TaskT", bound=SyncTask)


class FlushedLog(Protocol[TaskT]):
    """The part of a commit log that can be made durable."""

    @property
    def flushed_where(self) -> int:
        """Everything below is durable."""
        ...

    @property
    def max_physical_offset(self) -> int:
        """Where the next message will stand."""
        ...

    def begin_flush(self) -> TaskT:
        """Say what is to be synced."""
        ...

    def end_flush(self, task: TaskT) -> None:
        """Take note that it is."""
        ...


class GroupCommit(Generic[TaskT]):
    """Makes the commit log durable for whoever waits, one flush at a time."""

    def __init__(
        self,
        log: FlushedLog[TaskT],
        offload: Callable[[], Offload],
        timers: Timers,
        outbox: Outbox,
        *,
        timeout_ms: int,
    ) -> None:
        self._log = log
        self._offload = offload
        self._timers = timers
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        #: called when more has become durable
        self.on_flushed: Callable[[], None] | None = None
        self._is_running = False
        self._has_alarm = False
        #: (physical offset, deadline, who waits); offsets and deadlines never go down
        self._waiting: deque[tuple[int, float, Flushed]] = deque()

    def wait(self, physical_offset: int, flushed: Flushed) -> None:
        """Call `flushed` once all below `physical_offset` is durable, or it took too long."""
        if self._log.flushed_where >= physical_offset:
            flushed(True)
            return
        deadline_ms = self._timers.clock.monotonic_ms() + self._timeout_ms
        self._waiting.append((physical_offset, deadline_ms, flushed))
        if not self._has_alarm:
            self._has_alarm = True
            self._timers.after(self._timeout_ms, self._look_at_deadlines)

    @property
    def has_waiting(self) -> bool:
        """Tell whether somebody waits."""
        return bool(self._waiting)

    def begin(self) -> None:
        """
        Start a flush of what is not durable, unless one runs.

        To be called after all requests of a read, not after each.
        """
        log = self._log
        if not self._is_running and log.flushed_where < log.max_physical_offset:
            self._start()

    def _start(self) -> None:
        self._is_running = True
        task = self._log.begin_flush()
        self._offload()(task.run, lambda error: self._ended(task, error))

    def _ended(self, task: TaskT, error: BaseException | None) -> None:
        self._is_running = False
        if error is None:
            self._log.end_flush(task)
            done_below = self._log.flushed_where
        else:
            _log.error("the flush of the commit log failed: %s", error)
            done_below = task.offset
        waiting = self._waiting
        with self._outbox.gathering():
            while waiting and waiting[0][0] <= done_below:
                waiting.popleft()[2](error is None)
            if error is None and self.on_flushed is not None:
                self.on_flushed()
        if waiting:
            self.begin()

    def _look_at_deadlines(self) -> None:
        now_ms = self._timers.clock.monotonic_ms()
        waiting = self._waiting
        with self._outbox.gathering():
            while waiting and waiting[0][1] <= now_ms:
                waiting.popleft()[2](False)
        self._has_alarm = bool(waiting)
        if waiting:
            self._timers.after(waiting[0][1] - now_ms, self._look_at_deadlines)
