"""Waiting for the disk: one sync for all who wait, told in order, or told that it took too long."""

from __future__ import annotations

from collections.abc import Callable

from logstore.compat.rocketmq.sending.group_commit import GroupCommit
from logstore.compat.rocketmq.wire.outbox import Outbox
from logstore.compat.waiting import Timers
from logstore.testing.manual_clock import ManualClock


class Task:
    """One flush of the log."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def run(self) -> None:
        """Cost nothing."""


class Log:
    """A commit log whose end the test moves."""

    def __init__(self) -> None:
        self.end = 0
        self.flushed_where = 0

    @property
    def max_physical_offset(self) -> int:
        """Where the next message will stand."""
        return self.end

    def begin_flush(self) -> Task:
        """Say what is to be synced."""
        return Task(self.end)

    def end_flush(self, task: Task) -> None:
        """Take note."""
        self.flushed_where = task.offset


class Stage:
    """Group commit whose syncs a test ends by hand."""

    def __init__(self) -> None:
        self.log = Log()
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.running: list[Callable[[BaseException | None], None]] = []
        self.told: list[tuple[int, bool]] = []
        self.commit = GroupCommit(
            self.log,
            lambda: self._offload,
            self.timers,
            Outbox(),
            timeout_ms=5000,
        )

    def _offload(
        self, work: Callable[[], None], done: Callable[[BaseException | None], None]
    ) -> None:
        work()
        self.running.append(done)

    def put(self, size_bytes: int = 100) -> None:
        """Append, and wait."""
        self.log.end += size_bytes
        end = self.log.end
        self.commit.wait(end, lambda is_durable: self.told.append((end, is_durable)))

    def end_sync(self, error: BaseException | None = None) -> None:
        """End the sync that runs."""
        self.running.pop(0)(error)


def test_a_hundred_who_wait_share_one_sync() -> None:
    """Everybody who waits when a sync begins is told by its end; there is one sync."""
    stage = Stage()
    for _ in range(100):
        stage.put()
    stage.commit.begin()
    assert len(stage.running) == 1
    stage.end_sync()
    assert stage.told == [(end, True) for end in range(100, 10_100, 100)]
    assert stage.running == []


def test_who_comes_during_a_sync_waits_for_the_next() -> None:
    """A message that was put after a sync began is not told by its end, but by the next one's."""
    stage = Stage()
    stage.put()
    stage.commit.begin()
    stage.put()
    stage.commit.begin()
    assert len(stage.running) == 1
    stage.end_sync()
    assert (stage.told, len(stage.running)) == ([(100, True)], 1)
    stage.end_sync()
    assert stage.told == [(100, True), (200, True)]


def test_what_is_durable_already_waits_for_nothing() -> None:
    """Whoever asks for what a sync has covered before is told at once."""
    stage = Stage()
    stage.log.end = stage.log.flushed_where = 500
    stage.commit.wait(500, lambda is_durable: stage.told.append((500, is_durable)))
    assert (stage.told, stage.commit.has_waiting) == ([(500, True)], False)


def test_a_sync_that_takes_too_long_is_told() -> None:
    """After five seconds whoever waits is told no; the end of the sync tells them nothing more."""
    stage = Stage()
    stage.put()
    stage.commit.begin()
    stage.clock.advance(3000)
    stage.put()
    stage.clock.advance(2000)
    stage.timers.run()
    assert stage.told == [(100, False)]
    stage.clock.advance(3000)
    stage.timers.run()
    assert stage.told == [(100, False), (200, False)]
    stage.end_sync()
    assert (len(stage.told), stage.running) == (2, [])


def test_a_sync_that_fails_is_told_to_those_it_was_for() -> None:
    """A failed sync tells no to whom it would have covered, and the next sync is tried."""
    stage = Stage()
    stage.put()
    stage.commit.begin()
    stage.put()
    stage.end_sync(OSError(5, "Input/output error"))
    assert stage.told == [(100, False)]
    stage.end_sync()
    assert stage.told == [(100, False), (200, True)]
