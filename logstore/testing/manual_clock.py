"""Time that moves only when a test says so."""

from __future__ import annotations

from collections.abc import Callable


class ManualClock:
    """
    A :class:`logstore.host.Clock` that a test turns by hand.

    Starts at 14 November 2023, 22:13:20 UTC unless told otherwise: a round number that is easy to
    recognise in a dump.
    """

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: float = 0) -> None:
        self._wall_ms: float = wall_ms
        self._monotonic_ms = monotonic_ms
        #: called after each push: whoever sleeps until some time has to look at the clock again
        self.on_push: Callable[[], object] | None = None

    def wall_ms(self) -> int:
        """Return ms since the epoch."""
        return int(self._wall_ms)

    def monotonic_ms(self) -> float:
        """Return ms since some start."""
        return self._monotonic_ms

    def advance(self, delay_ms: float) -> None:
        """Let `delay_ms` pass on both clocks."""
        assert delay_ms >= 0, "time does not run backwards; see jump_wall"
        self._monotonic_ms += delay_ms
        self.jump_wall(delay_ms)

    def jump_wall(self, jump_ms: float) -> None:
        """Set the wall clock forth or back, as an administrator or NTP does."""
        self._wall_ms += jump_ms
        if self.on_push is not None:
            self.on_push()

    def copy(self) -> ManualClock:
        """Return a clock that shows the same time and runs on its own."""
        twin = ManualClock(0, self._monotonic_ms)
        twin._wall_ms = self._wall_ms
        return twin
