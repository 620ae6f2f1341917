"""How many records there are: by batch headers alone, in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.work_unit import WorkUnit
from logstore.segments.kafka.store import KafkaStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT_SCHEMA = (
    "topic STRING, partition INT, count BIGINT, firstOffset BIGINT, lastOffset BIGINT, "
    "sizeBytes BIGINT"
)


def counts(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """
    Return records, first and last offset and bytes of every topic and partition of a store.

    The options are those of a read. Values are never read, only the headers of their batches; where
    an option cuts a batch in two, or legacy messages stand in it, that batch is decoded. Of a
    RocketMQ store the consume queues tell, and the bytes are unknown.
    """
    from logstore.compat.spark.stores import bounds, open_for_reading, plan
    from logstore.compat.spark.work_unit import gathered

    parsed = parse_options({**options, "path": path})
    with open_for_reading(path) as store:
        if not isinstance(store, KafkaStore):
            start, end = bounds(store, parsed, parsed.start), bounds(store, parsed, parsed.end)
            return _frame_of(spark, _queue_rows(start, end))
        units = [unit for unit in plan(store, parsed, Where()) if isinstance(unit, WorkUnit)]
    slots = spark.sparkContext.defaultParallelism * 4
    tasks = gathered(units, parsed.split_bytes, slots)
    rdd = spark.sparkContext.parallelize(tasks, max(1, len(tasks)))
    rows = rdd.flatMap(lambda task: _count_all(path, task))
    frame = _frame_of(spark, rows)
    from pyspark.sql import functions

    return frame.groupBy("topic", "partition").agg(
        functions.sum("count").alias("count"),
        functions.min("firstOffset").alias("firstOffset"),
        functions.max("lastOffset").alias("lastOffset"),
        functions.sum("sizeBytes").alias("sizeBytes"),
    )


def _frame_of(spark: Any, rows: Any) -> DataFrame:
    """Return a frame of a list of rows, or of an RDD of them."""
    frame: DataFrame = spark.createDataFrame(rows, COUNT_SCHEMA)
    return frame


def _queue_rows(
    start: Mapping[tuple[str, int], int], end: Mapping[tuple[str, int], int]
) -> list[tuple[Any, ...]]:
    return [
        (topic, index, end[topic, index] - first, first, end[topic, index] - 1, None)
        for (topic, index), first in sorted(start.items())
        if end[topic, index] > first
    ]


def _count_all(path: str, units: list[WorkUnit]) -> Iterator[tuple[Any, ...]]:
    """Yield a row a unit that has records."""
    from logstore.compat.spark.header_count import count_unit
    from logstore.compat.spark.stores import file_system_of

    fs = file_system_of(path)
    for unit in units:
        found = count_unit(fs, unit)
        if found.record_count:
            yield (
                unit.topic,
                unit.partition,
                found.record_count,
                found.first_offset,
                found.last_offset,
                found.size_bytes,
            )
