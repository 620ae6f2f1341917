"""Answers that come later, and timers on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.waiting import Later, Timers
from logstore.testing import ManualClock


def test_the_listener_is_told_when_the_answer_comes() -> None:
    """A listener that came first is told at once when the answer is given, and once only."""
    heard: list[str] = []
    later: Later[str] = Later()
    later.then(heard.append)
    assert (heard, later.done) == ([], False)
    later.answer("yes")
    assert (heard, later.done) == (["yes"], True)
    later.answer("no")
    assert heard == ["yes"]


def test_a_late_listener_is_told_at_once() -> None:
    """A listener that comes after the answer hears the first answer immediately."""
    heard: list[str] = []
    later: Later[str] = Later()
    later.answer("yes")
    later.answer("no")
    later.then(heard.append)
    assert heard == ["yes"]


def test_an_answer_has_one_listener() -> None:
    """A second listener is a mistake of the caller."""
    later: Later[str] = Later()
    later.then(print)
    with pytest.raises(AssertionError, match="one listener"):
        later.then(print)


def test_a_timer_fires_when_its_time_has_come() -> None:
    """One tick before nothing happens; at the due time the call is made, once."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[str] = []
    timer = timers.after(100, lambda: made.append("rang"))
    clock.advance(99)
    assert (timers.run(), made, timer.is_pending) == (0, [], True)
    clock.advance(1)
    assert (timers.run(), made, timer.is_pending) == (1, ["rang"], False)
    clock.advance(1000)
    assert (timers.run(), made) == (0, ["rang"])


def test_a_cancelled_timer_is_silent() -> None:
    """Cancelling, twice even, means that the call is never made and nobody waits for it."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[str] = []
    timer = timers.after(5, lambda: made.append("first"))
    timers.after(9, lambda: made.append("second"))
    timer.cancel()
    timer.cancel()
    assert not timer.is_pending
    assert timers.next_due_ms() == clock.monotonic_ms() + 9
    clock.advance(20)
    assert (timers.run(), made) == (1, ["second"])
    timer.fire()
    assert made == ["second"]


def test_a_timer_fired_by_hand_does_not_fire_again() -> None:
    """An awaited event may come before the deadline; the deadline then does nothing."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[str] = []
    timers.after(5, lambda: made.append("rang")).fire()
    clock.advance(10)
    assert (timers.run(), made) == (0, ["rang"])


def test_next_due_is_none_when_nothing_is_pending() -> None:
    """A server with no timers may sleep as long as it likes."""
    timers = Timers(ManualClock())
    assert timers.next_due_ms() is None
    timers.after(5, lambda: None).cancel()
    assert timers.next_due_ms() is None


def test_an_earlier_timer_wakes_the_sleeper() -> None:
    """on_earlier hears of a timer that is due before all others, and of no other one."""
    clock = ManualClock(monotonic_ms=1000)
    timers = Timers(clock)
    heard: list[float] = []
    timers.on_earlier = heard.append
    for delay_ms in (50, 80, 50, 20):
        timers.after(delay_ms, lambda: None)
    assert heard == [1050, 1020]


def test_a_call_may_set_the_next_timer() -> None:
    """A timer set during a run fires in the same run if it is due, else in a later one."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[str] = []

    def first() -> None:
        made.append("first")
        timers.after(0, lambda: made.append("at once"))
        timers.after(1, lambda: made.append("later"))

    timers.after(10, first)
    clock.advance(10)
    assert (timers.run(), made) == (2, ["first", "at once"])
    clock.advance(1)
    assert (timers.run(), made) == (1, ["first", "at once", "later"])


def test_a_jump_of_the_wall_clock_wakes_nobody() -> None:
    """Timers run on the monotonic clock."""
    clock = ManualClock()
    timers = Timers(clock)
    timers.after(10, lambda: None)
    clock.jump_wall(1_000_000)
    assert timers.run() == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=20), st.integers(0, 25))
def test_timers_fire_in_the_order_in_which_they_are_due(
    plan: list[tuple[int, bool]], waited_ms: int
) -> None:
    """Due calls are made by due time, and in the order of setting where that is equal."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[tuple[int, int]] = []
    for number, (delay_ms, is_cancelled) in enumerate(plan):
        timer = timers.after(delay_ms, partial(made.append, (delay_ms, number)))
        if is_cancelled:
            timer.cancel()
    clock.advance(waited_ms)
    pending = sorted((delay, n) for n, (delay, cancelled) in enumerate(plan) if not cancelled)
    due = [call for call in pending if call[0] <= waited_ms]
    assert timers.run() == len(due)
    assert made == due
    rest = pending[len(due) :]
    next_due_ms = timers.next_due_ms()
    assert (None if next_due_ms is None else next_due_ms - clock.monotonic_ms()) == (
        rest[0][0] - waited_ms if rest else None
    )


def test_a_failure_is_told_instead_of_an_answer() -> None:
    """Now or later, once; without a listener for failures it is raised where it is said."""
    heard: list[object] = []
    error = RuntimeError("nothing to be found")
    early: Later[str] = Later()
    early.then(heard.append, heard.append)
    early.fail(error)
    early.answer("too late")
    late: Later[str] = Later()
    late.fail(error)
    late.then(heard.append, heard.append)
    assert heard == [error, error]

    nobody: Later[str] = Later()
    nobody.then(heard.append)
    with pytest.raises(RuntimeError, match="nothing to be found"):
        nobody.fail(error)
    assert len(heard) == 2


def test_cancelled_timers_are_cleared_away() -> None:
    """Many cancelled calls that are due in an hour take no memory; pending ones stay."""
    clock = ManualClock()
    timers = Timers(clock)
    made: list[int] = []
    for number in range(20_000):
        timer = timers.after(3_600_000 - number, partial(made.append, number))
        if number % 100:
            timer.cancel()
    assert len(timers) <= 1000
    clock.advance(3_600_000)
    assert timers.run() == 200
    assert made == list(range(19_900, -1, -100))


def test_a_call_that_is_to_come_soon_is_not_made_at_once() -> None:
    """It is made with the timers that are due, or by the server that offered to make such calls."""
    timers = Timers(ManualClock())
    made: list[str] = []
    timers.soon(lambda: made.append("by the timers"))
    assert made == []
    timers.run()
    assert made == ["by the timers"]

    offered: list[Callable[[], None]] = []
    timers.on_soon = offered.append
    timers.soon(lambda: made.append("by the server"))
    assert (timers.run(), len(made)) == (0, 1)
    offered[0]()
    assert made == ["by the timers", "by the server"]
