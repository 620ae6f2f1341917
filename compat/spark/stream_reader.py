"""
``spark.readStream``: a live store, followed micro-batch by micro-batch.

An offset of the stream is ``{topic: {"partition": next offset}}``; Spark keeps it in the checkpoint
and hands it back after a restart, so that every record comes once. The store is opened anew for
each look, only to be read: the broker that writes it is not disturbed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from logstore.compat.spark.offset_bounds import EARLIEST, LATEST, Bound
from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.reader import UnitPartition, read_rows
from logstore.compat.spark.topic_choice import TopicChoice
from logstore.compat.spark.worker_process import SentToWorker
from logstore.os_host import SystemClock

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions
    from logstore.host import Clock

#: topic -> partition, as text -> next offset; Spark takes texts for keys only
StreamOffset = dict[str, dict[str, int]]


class LogStoreStreamReader(SentToWorker, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the wanted partitions of a store; new topics and partitions are taken in."""

    _clock: Clock = SystemClock()

    def __init__(
        self, options: ReadOptions, schema: StructType, clock: Clock | None = None
    ) -> None:
        self._options = options
        self._schema = schema
        self._target: StreamOffset | None = None
        if clock is not None:
            self._clock = clock
        #: the first one is not waited for
        self._started_ms = -math.inf

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return where a new query starts; one with a checkpoint goes on there."""
        from logstore.compat.spark.data_loss import check_bounds
        from logstore.compat.spark.stores import bounds, open_for_reading

        with open_for_reading(self._options.path) as store:
            check_bounds(store, self._options)
            return _nested(bounds(store, self._options, self._options.start))

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """
        Return how far the next micro-batch goes: to the end of what is there, or the limit.

        Where less waits than minOffsetsPerTrigger it goes nowhere for up to maxTriggerDelay.
        """
        latest = self._target if self._target is not None else self._latest()
        for topic, places in start.items():
            for index, place in places.items():
                found = latest.setdefault(topic, {})
                found[index] = max(found.get(index, place), place)
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
        return self._latest()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take what is there now for the end of the query."""
        self._target = self._latest()

    def _latest(self) -> StreamOffset:
        from logstore.compat.spark.stores import bounds, open_for_reading

        with open_for_reading(self._options.path) as store:
            return _nested(bounds(store, self._options, Bound(LATEST)))

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """
        Return the tasks between two offsets.

        Raises:
            DataLossError: retention has removed records that the query has not seen, and
                `failOnDataLoss` is not false.

        """
        from logstore.compat.spark.data_loss import check_kept
        from logstore.compat.spark.stores import open_for_reading, plan_tasks

        with open_for_reading(self._options.path) as store:
            if self._options.fails_on_loss:
                check_kept(store, _flat(start))
            topics = store.topics()
            kept = frozenset(place for place in _flat(end) if place[0] in topics)
            options = attrs.evolve(
                self._options,
                start=Bound(EARLIEST, _flat(start)),
                end=Bound(EARLIEST, _flat(end)),
                choice=TopicChoice(assigned=kept),
            )
            return [UnitPartition(task) for task in plan_tasks(store, options, Where())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as Arrow batches."""
        yield from read_rows(partition, self._options, self._schema, Where())


def _nested(places: Mapping[tuple[str, int], int]) -> StreamOffset:
    offset: StreamOffset = {}
    for (topic, index), place in sorted(places.items()):
        offset.setdefault(topic, {})[str(index)] = place
    return offset


def _flat(offset: StreamOffset) -> dict[tuple[str, int], int]:
    return {
        (topic, int(index)): place
        for topic, places in offset.items()
        for index, place in places.items()
    }


def _counts(start: StreamOffset, latest: StreamOffset) -> dict[tuple[str, int], int]:
    begun = _flat(start)
    return {key: place - begun.get(key, 0) for key, place in _flat(latest).items()}


def _limited(start: StreamOffset, latest: StreamOffset, row_count_max: int) -> StreamOffset:
    """
    Return an offset about `row_count_max` behind `start`, shared out by what is waiting where.

    Every partition that has something gets at least one, or the query would never end.
    """
    begun = _flat(start)
    waiting = _counts(start, latest)
    total = sum(waiting.values())
    if total <= row_count_max:
        return latest
    reached = {
        key: begun.get(key, 0) + (max(1, count * row_count_max // total) if count else 0)
        for key, count in waiting.items()
    }
    return _nested(reached)
