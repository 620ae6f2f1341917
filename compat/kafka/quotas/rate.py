"""
How fast something goes, by samples of equal length; and tokens that come back with time.

Source: ``Rate``, ``SampledStat``, ``TokenBucket``, ``QuotaUtils``.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs

_SECOND_MS = 1000


class Window(NamedTuple):
    """Over how many samples of which length is measured."""

    sample_count: int
    sample_ms: int


@attrs.define
class _Sample:
    start_ms: int
    last_ms: int
    amount: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.amount = 0.0


class WindowedRate:
    """
    The amount a second that was recorded of late.

    What has been going on for a shorter time than all samples but one counts as if it had been
    going on for that long, so that the first burst is no violation.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Take note of an amount."""
        samples, window = self._samples, self._window
        if not samples:
            samples.append(_Sample(now_ms, now_ms))
        elif now_ms - samples[self._current].start_ms >= window.sample_ms:
            self._current = (self._current + 1) % (window.sample_count + 1)
            if self._current == len(samples):
                samples.append(_Sample(now_ms, now_ms))
            else:
                samples[self._current].reset(now_ms)
        sample = samples[self._current]
        sample.amount += amount
        sample.last_ms = now_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return for how long nothing may come, that the rate be at its limit again."""
        age_max_ms = self._window.sample_count * self._window.sample_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= age_max_ms:
                sample.reset(now_ms)
        size_ms = self._size_ms(now_ms)
        rate = sum(sample.amount for sample in self._samples) * _SECOND_MS / size_ms
        return round((rate - limit) / limit * size_ms) if rate > limit else 0

    def _size_ms(self, now_ms: int) -> int:
        oldest_ms = min((sample.start_ms for sample in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        sample_ms = self._window.sample_ms
        missing = self._window.sample_count - 1 - elapsed_ms // sample_ms
        return max(elapsed_ms + max(missing, 0) * sample_ms, 1)


class TokenBucket:
    """
    Tokens that come back at a rate, up to what a whole window brings.

    They may go below zero: the next one who asks has to wait.
    """

    def __init__(self, window: Window) -> None:
        self._window_seconds = window.sample_count * window.sample_ms / _SECOND_MS
        self._tokens: float | None = None  # full
        self._updated_ms = 0

    def take(self, count: float, rate: float, now_ms: int) -> None:
        """Take tokens, whether they are there or not."""
        self._tokens = self._refilled(rate, now_ms) - count

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """Return in how long there is no debt any more."""
        self._tokens = self._refilled(rate, now_ms)
        return round(-self._tokens / rate * _SECOND_MS) if self._tokens < 0 else 0

    def _refilled(self, rate: float, now_ms: int) -> float:
        full = self._window_seconds * rate
        tokens = full if self._tokens is None else self._tokens
        elapsed_ms, self._updated_ms = now_ms - self._updated_ms, now_ms
        return min(full, tokens + rate * elapsed_ms / _SECOND_MS)
