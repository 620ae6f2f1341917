"""Time that runs by itself, and that a test may push."""

from __future__ import annotations

from logstore.host import Clock
from logstore.os_host import SystemClock
from logstore.testing.manual_clock import ManualClock


class RunningClock(ManualClock):
    """
    A :class:`~logstore.testing.manual_clock.ManualClock` that goes on between two pushes.

    It runs as `clock` does, the machine's if none is given.
    """

    def __init__(
        self, clock: Clock | None = None, *, wall_ms: int = 0, monotonic_ms: float = 0
    ) -> None:
        super().__init__(wall_ms, monotonic_ms)
        self._clock = SystemClock() if clock is None else clock

    def wall_ms(self) -> int:
        """Return ms since the epoch."""
        return self._clock.wall_ms() + int(self._wall_ms)

    def monotonic_ms(self) -> float:
        """Return ms since some start."""
        return self._clock.monotonic_ms() + self._monotonic_ms

    def copy(self) -> RunningClock:
        """Return a clock that shows the same time, and is pushed by others."""
        return RunningClock(
            self._clock, wall_ms=int(self._wall_ms), monotonic_ms=self._monotonic_ms
        )
