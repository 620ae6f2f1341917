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
from typing import Protocol

from logstore.compat.rocketmq.outbox import Outbox
from logstore.compat.waiting import Timers

_log = logging.getLogger(__name__)

Offload = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]
#: told whether the data is durable
Flushed = Callable[[bool], None]


class FlushTask(Protocol):
    """One flush, begun: `run` does the waiting and may do so in another thread."""

    @property
    def offset(self) -> int:
        """Up to where it makes the log durable."""
        ...

    def run(self) -> None:
        """Sync."""
        ...


class FlushedLog(Protocol):
    """The part of a commit log that can be made durable."""

    @property
    def flushed_where(self) -> int:
        """Everything below is durable."""
        ...

    def begin_flush(self) -> FlushTask:
        """Say what is to be synced."""
        ...

    def end_flush(self, task: FlushTask) -> None:
        """Take note that it is."""
        ...


class GroupCommit:
    """Makes the commit log durable for whoever waits, one flush at a time."""

    def __init__(
        self,
        log: FlushedLog,
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
        """Start a flush for those who wait, unless one runs: after a read's requests, not each."""
        if self._waiting and not self._is_running:
            self._start()

    def _start(self) -> None:
        self._is_running = True
        task = self._log.begin_flush()
        self._offload()(task.run, lambda error: self._ended(task, error))

    def _ended(self, task: FlushTask, error: BaseException | None) -> None:
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
