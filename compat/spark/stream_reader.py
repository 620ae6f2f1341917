"""
``spark.readStream`` since Spark 4.2: micro-batches of a live store, as large as the options say.

What a micro-batch reads is said by :mod:`logstore.compat.spark.store_follower`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.store_follower import (
    StoreFollower,
    StreamOffset,
    flat,
    nested,
    not_behind,
)
from logstore.os_host import SystemClock

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions
    from logstore.host import Clock


class LogStoreStreamReader(StoreFollower, SupportsTriggerAvailableNow):
    """Follows a store for a Spark that asks how far from where, and within which limit."""

    _clock: Clock = SystemClock()

    def __init__(
        self, options: ReadOptions, schema: StructType, clock: Clock | None = None
    ) -> None:
        super().__init__(options, schema)
        self._target: StreamOffset | None = None
        if clock is not None:
            self._clock = clock
        #: the first one is not waited for
        self._started_ms = -math.inf

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """
        Return how far the next micro-batch goes: to the end of what is there, or the limit.

        Where less waits than minOffsetsPerTrigger it goes nowhere for up to maxTriggerDelay.
        """
        latest = self._target if self._target is not None else self.end_offset()
        not_behind(start, latest)
        if not isinstance(limit, ReadAllAvailable) and self._is_to_wait(start, latest):
            return start
        if isinstance(limit, ReadMaxRows):
            return _limited(start, latest, limit.max_rows)
        if isinstance(limit, ReadMaxBytes):
            raise OptionError("limit", limit, "is not kept; set maxOffsetsPerTrigger")
        return latest

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the options maxOffsetsPerTrigger or minOffsetsPerTrigger; the latter is ours."""
        trigger = self._options.trigger
        if trigger.offset_count_max:
            return ReadMaxRows(trigger.offset_count_max)
        if trigger.offset_count_min:
            return ReadMinRows(trigger.offset_count_min)
        return ReadAllAvailable()

    def _is_to_wait(self, start: StreamOffset, latest: StreamOffset) -> bool:
        """Tell whether too little has come since the last micro-batch to begin one."""
        trigger, now_ms = self._options.trigger, self._clock.monotonic_ms()
        if self._target is not None or not trigger.offset_count_min:
            return False  # what is there now is read to its end
        due_ms = self._started_ms + trigger.delay_ms_max
        if now_ms < due_ms and sum(_counts(start, latest).values()) < trigger.offset_count_min:
            return True
        self._started_ms = now_ms
        return False

    def reportLatestOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return how far the store goes: the query's progress shows by how much it lags behind."""
        return self.end_offset()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take what is there now for the end of the query."""
        self._target = self.end_offset()


def _counts(start: StreamOffset, latest: StreamOffset) -> dict[tuple[str, int], int]:
    begun = flat(start)
    return {key: place - begun.get(key, 0) for key, place in flat(latest).items()}


def _limited(start: StreamOffset, latest: StreamOffset, row_count_max: int) -> StreamOffset:
    """
    Return an offset about `row_count_max` behind `start`, shared out by what is waiting where.

    Every partition that has something gets at least one, or the query would never end.
    """
    begun = flat(start)
    waiting = _counts(start, latest)
    total = sum(waiting.values())
    if total <= row_count_max:
        return latest
    reached = {
        key: begun.get(key, 0) + (max(1, count * row_count_max // total) if count else 0)
        for key, count in waiting.items()
    }
    return nested(reached)
