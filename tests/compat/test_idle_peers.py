"""Who is hung up on for being quiet, on a clock that the test turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.idle_peers import IdleSweep
from logstore.compat.waiting import Timers
from logstore.testing import ManualClock


class Visitor:
    """A peer that stirs when the test says so, and notes when it was hung up on."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._stirred = False
        self.quiet_since_ms = room.clock.monotonic_ms()
        self.last_stirred_ms = self.quiet_since_ms
        self.left_ms: float | None = None
        room.visitors.add(self)

    def stir(self) -> None:
        """Send or take something."""
        self._stirred = True
        self.last_stirred_ms = self._room.clock.monotonic_ms()

    def has_stirred(self) -> bool:
        """Tell whether something was sent or taken since the last question."""
        stirred, self._stirred = self._stirred, False
        return stirred

    def hang_up(self) -> None:
        """Be gone, as a server's peers are: from the set that is being swept."""
        assert self.left_ms is None, "hung up on twice"
        self.left_ms = self._room.clock.monotonic_ms()
        self._room.visitors.discard(self)


class Room:
    """A clock, its timers and a sweep of some visitors."""

    def __init__(self, idle_ms_max: float) -> None:
        self.clock = ManualClock(monotonic_ms=50_000)
        self.timers = Timers(self.clock)
        self.visitors: set[Visitor] = set()
        self.sweep = IdleSweep(self.timers, self.visitors, idle_ms_max)
        self.sweep.start()

    def let_pass(self, delay_ms: float, step_ms: float = 10) -> None:
        """Turn the clock in small steps and run what is due."""
        end_ms = self.clock.monotonic_ms() + delay_ms
        while self.clock.monotonic_ms() < end_ms:
            self.clock.advance(min(step_ms, end_ms - self.clock.monotonic_ms()))
            self.timers.run()


def test_who_never_says_a_word_is_hung_up_on() -> None:
    """Ten minutes after the connection was made, a second late at most."""
    room = Room(600_000)
    visitor = Visitor(room)
    room.let_pass(600_000, 1000)
    assert visitor.left_ms is None
    room.let_pass(1000)
    assert visitor.left_ms == 50_000 + 601_000
    assert room.visitors == set()


def test_whoever_stirs_in_time_stays() -> None:
    """The limit counts from the last byte, however long the connection has been there."""
    room = Room(1000)
    lively, quiet = Visitor(room), Visitor(room)
    for _ in range(20):
        room.let_pass(900)
        lively.stir()
    assert quiet.left_ms is not None
    assert lively.left_ms is None
    room.let_pass(1300)
    assert lively.left_ms is not None


def test_no_limit_is_no_sweep() -> None:
    """With a negative limit nobody is asked and no timer runs."""
    room = Room(-1)
    assert room.timers.next_due_ms() is None
    room.sweep.stop()


def test_a_stopped_sweep_lets_everybody_be() -> None:
    """After the stop no timer is left that would hang up."""
    room = Room(1000)
    visitor = Visitor(room)
    room.let_pass(500)
    room.sweep.stop()
    assert room.timers.next_due_ms() is None
    room.let_pass(5000)
    assert visitor.left_ms is None


def test_a_peer_that_fails_does_not_end_the_sweep() -> None:
    """The next sweep is planned before anybody is asked."""
    room = Room(1000)
    quiet, broken = Visitor(room), Visitor(room)
    broken.has_stirred = lambda: 1 / 0 > 0  # type: ignore[method-assign]
    for _ in range(40):
        try:
            room.let_pass(100)
        except ZeroDivisionError:
            room.visitors.discard(broken)
    assert quiet.left_ms is not None


@given(
    st.sampled_from([150, 1000, 5000, 60_000]),
    st.lists(st.integers(0, 12_000), max_size=10),
)
def test_nobody_goes_early_and_nobody_stays_long(idle_ms_max: int, pauses_ms: list[int]) -> None:
    """Never before the limit has passed since the last byte, and within two sweeps after it."""
    room = Room(idle_ms_max)
    visitor = Visitor(room)
    for pause_ms in pauses_ms:
        room.let_pass(pause_ms)
        if visitor.left_ms is None:
            visitor.stir()
    room.let_pass(idle_ms_max + 2 * room.sweep.interval_ms + 10)
    assert visitor.left_ms is not None
    idle_ms = visitor.left_ms - visitor.last_stirred_ms
    assert idle_ms_max < idle_ms <= idle_ms_max + 2 * room.sweep.interval_ms + 10
