"""
How long the handler of a request had the thread.

An answer that comes later costs no more than what was done at once: who waits takes nobody's time.

Source: ``RequestChannel.Request.requestThreadTimeNanos``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import Clock


class Stopwatch:
    """Runs from its making until it is stopped or read."""

    def __init__(self, clock: Clock, record: Callable[[float], int]) -> None:
        self._clock = clock
        self._record = record
        self._started_ms = clock.monotonic_ms()
        self._elapsed_ms: float | None = None

    def stop(self) -> float:
        """Return for how long it ran."""
        if self._elapsed_ms is None:
            self._elapsed_ms = self._clock.monotonic_ms() - self._started_ms
        return self._elapsed_ms

    def throttle_ms(self) -> int:
        """Count the time; return for how long the client has to keep still."""
        return self._record(self.stop())
