"""
``spark.readStream``: a live store, followed micro-batch by micro-batch.

An offset of the stream is ``{topic: {"partition": next offset}}``; Spark keeps it in the checkpoint
and hands it back after a restart, so that every record comes once. The store is opened anew for
each look, only to be read: the broker that writes it is not disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from logstore.compat.spark.options import EARLIEST, LATEST, Bound, OptionError
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.reader import UnitPartition, read_rows
from logstore.compat.spark.work_unit import gathered
from logstore.compat.spark.worker_process import SentToWorker

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions

#: topic -> partition, as text -> next offset; Spark takes texts for keys only
StreamOffset = dict[str, dict[str, int]]


class LogStoreStreamReader(SentToWorker, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the wanted partitions of a store; new topics and partitions are taken in."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: StreamOffset | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return where a new query starts; one with a checkpoint goes on there."""
        from logstore.compat.spark.stores import bounds, open_for_reading

        with open_for_reading(self._options.path) as store:
            return _nested(bounds(store, self._options, self._options.start))

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return how far the next micro-batch goes: to the end of what is there, or the limit."""
        latest = self._target if self._target is not None else self._latest()
        for topic, places in start.items():
            for index, place in places.items():
                found = latest.setdefault(topic, {})
                found[index] = max(found.get(index, place), place)
        if isinstance(limit, ReadMaxRows):
            return _limited(start, latest, limit.max_rows)
        if isinstance(limit, ReadMaxBytes):
            raise OptionError("limit", limit, "is not kept; set maxOffsetsPerTrigger")
        return latest

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the option maxOffsetsPerTrigger."""
        row_count = self._options.offsets_per_trigger_max
        return ReadMaxRows(row_count) if row_count else ReadAllAvailable()

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
        from logstore.compat.spark.kafka_plan import check_kept
        from logstore.compat.spark.stores import open_for_reading, plan

        options = attrs.evolve(
            self._options,
            start=Bound(EARLIEST, _flat(start)),
            end=Bound(EARLIEST, _flat(end)),
            assigned=frozenset(_flat(end)),
        )
        with open_for_reading(options.path) as store:
            if options.fails_on_loss:
                check_kept(store, _flat(start))
            units = plan(store, options, Where())
        tasks = gathered(units, options.split_bytes, options.partition_count_min)
        return [UnitPartition(task) for task in tasks]

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


def _limited(start: StreamOffset, latest: StreamOffset, row_count_max: int) -> StreamOffset:
    """
    Return an offset about `row_count_max` behind `start`, shared out by what is waiting where.

    Every partition that has something gets at least one, or the query would never end.
    """
    begun = _flat(start)
    waiting = {key: place - begun.get(key, 0) for key, place in _flat(latest).items()}
    total = sum(waiting.values())
    if total <= row_count_max:
        return latest
    reached = {
        key: begun.get(key, 0) + (max(1, count * row_count_max // total) if count else 0)
        for key, count in waiting.items()
    }
    return _nested(reached)
