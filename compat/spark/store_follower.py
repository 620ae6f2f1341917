"""
What follows a live store: where it starts, how far it goes, the tasks between two places.

An offset of the stream is ``{topic: {"partition": next offset}}``; Spark keeps it in the checkpoint
and hands it back after a restart, so that every record comes once. The store is opened anew for
each look, only to be read: the broker that writes it is not disturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from logstore.compat.spark.offset_bounds import EARLIEST, LATEST, Bound
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.reader import UnitPartition, read_rows
from logstore.compat.spark.topic_choice import TopicChoice
from logstore.compat.spark.worker_process import SentToWorker

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from logstore.compat.spark.options import ReadOptions

#: topic -> partition, as text -> next offset; Spark takes texts for keys only
StreamOffset = dict[str, dict[str, int]]


class StoreFollower(SentToWorker, DataSourceStreamReader):
    """Follows the wanted partitions of a store; new topics and partitions are taken in."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def initialOffset(self) -> StreamOffset:  # noqa: N802 - Spark's name
        """Return where a new query starts; one with a checkpoint goes on there."""
        from logstore.compat.spark.data_loss import check_bounds
        from logstore.compat.spark.stores import bounds, open_for_reading

        with open_for_reading(self._options.path) as store:
            check_bounds(store, self._options)
            return nested(bounds(store, self._options, self._options.start))

    def end_offset(self) -> StreamOffset:
        """Return where the store ends now."""
        from logstore.compat.spark.stores import bounds, open_for_reading

        with open_for_reading(self._options.path) as store:
            return nested(bounds(store, self._options, Bound(LATEST)))

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
                check_kept(store, flat(start))
            topics = store.topics()
            kept = frozenset(place for place in flat(end) if place[0] in topics)
            options = attrs.evolve(
                self._options,
                start=Bound(EARLIEST, flat(start)),
                end=Bound(EARLIEST, flat(end)),
                choice=TopicChoice(assigned=kept),
            )
            return [UnitPartition(task) for task in plan_tasks(store, options, Where())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task as Arrow batches."""
        yield from read_rows(partition, self._options, self._schema, Where())


def not_behind(start: StreamOffset, offset: StreamOffset) -> None:
    """Put `offset` where `start` is as far as it is behind: a topic may be gone, or made anew."""
    for topic, places in start.items():
        for index, place in places.items():
            found = offset.setdefault(topic, {})
            found[index] = max(found.get(index, place), place)


def nested(places: Mapping[tuple[str, int], int]) -> StreamOffset:
    """Return places by topic and partition as Spark keeps them."""
    offset: StreamOffset = {}
    for (topic, index), place in sorted(places.items()):
        offset.setdefault(topic, {})[str(index)] = place
    return offset


def flat(offset: StreamOffset) -> dict[tuple[str, int], int]:
    """Return what Spark keeps as places by topic and partition."""
    return {
        (topic, int(index)): place
        for topic, places in offset.items()
        for index, place in places.items()
    }
