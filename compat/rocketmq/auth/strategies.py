"""
Whether every request is judged anew, or a judgement holds for a while (Java's two strategies).

The one that remembers takes what it found for a connection for granted until its time is over.
That is so for good and bad signatures alike, as it is in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.auth.access_error import AccessError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.settings import Memory
    from logstore.host import Clock


class Strategy:
    """Judges by `judge`, which raises AccessError, unless it remembers."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        #: until when what holds; oldest first
        self._judged: dict[Hashable, tuple[float, AccessError | None]] = {}

    def evaluate(self, key: Hashable, judge: Callable[[], None]) -> None:
        """Raise AccessError if what `key` stands for is refused."""
        if not self._memory.is_on:
            judge()
            return
        now_ms = self._clock.monotonic_ms()
        found = self._judged.get(key)
        if found is None or found[0] <= now_ms:
            found = now_ms + self._memory.ms, _judgement(judge)
            self._judged.pop(key, None)
            self._judged[key] = found
            while len(self._judged) > self._memory.count_max:
                del self._judged[next(iter(self._judged))]
        if found[1] is not None:
            raise AccessError(str(found[1]))


def _judgement(judge: Callable[[], None]) -> AccessError | None:
    try:
        judge()
    except AccessError as error:
        return error
    return None
