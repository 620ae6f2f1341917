"""How many records there are: by batch headers alone, in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from logstore.compat.spark.log_end import check_end
from logstore.compat.spark.options import FAILFAST, parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.work_unit import WorkUnit
from logstore.compat.spark.worker_tasks import run_in_workers
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT_SCHEMA = (
    "topic STRING, partition INT, count BIGINT, firstOffset BIGINT, lastOffset BIGINT, "
    "sizeBytes BIGINT"
)
#: as the schema says
Row = tuple[Any, ...]


def counts(spark: SparkSession, path: str, **options: str) -> DataFrame:
    """
    Return records, first and last offset and bytes of every topic and partition of a store.

    The options are those of a read. Values are never read, only the headers of their batches; where
    an option cuts a batch in two, or legacy messages stand in it, that batch is decoded. Of a
    RocketMQ store the consume queues tell, and the bytes are unknown. It is counted at once, and
    the frame holds a row a partition.
    """
    from logstore.compat.spark.data_loss import check_bounds
    from logstore.compat.spark.stores import bounds, open_for_reading, plan

    parsed = parse_options({**options, "path": path})
    with open_for_reading(path) as store:
        check_bounds(store, parsed)
        if not isinstance(store, KafkaStore):
            if isinstance(store, RocketMQStore) and parsed.mode == FAILFAST:
                check_end(store)
            start, end = bounds(store, parsed, parsed.start), bounds(store, parsed, parsed.end)
            return _frame_of(spark, _queue_rows(start, end))
        units = [unit for unit in plan(store, parsed, Where()) if isinstance(unit, WorkUnit)]
    scan_bytes = sum(unit.size_bytes for unit in units)
    found = run_in_workers(spark, partial(_count_all, path, scan_bytes), units)
    return _frame_of(spark, partition_rows(found))


def _frame_of(spark: SparkSession, rows: list[Row]) -> DataFrame:
    session: Any = spark  # whose overloads are typed in part
    found: DataFrame = session.createDataFrame(rows, COUNT_SCHEMA)
    return found


def _queue_rows(
    start: Mapping[tuple[str, int], int], end: Mapping[tuple[str, int], int]
) -> list[Row]:
    return [
        (topic, index, end[topic, index] - first, first, end[topic, index] - 1, None)
        for (topic, index), first in sorted(start.items())
        if end[topic, index] > first
    ]


def _count_all(path: str, scan_bytes: int, units: list[WorkUnit]) -> list[Row]:
    """Return a row a unit that has records."""
    from logstore.compat.spark.header_count import count_unit
    from logstore.compat.spark.stores import file_system_of

    fs = file_system_of(path, scan_bytes)
    counted = ((unit, count_unit(fs, unit)) for unit in units)
    return [
        (
            unit.topic,
            unit.partition,
            found.record_count,
            found.first_offset,
            found.last_offset,
            found.size_bytes,
        )
        for unit, found in counted
        if found.record_count
    ]


def partition_rows(units: Iterable[Row]) -> list[Row]:
    """Put the rows of units together to one a partition."""
    found: dict[tuple[str, int], Row] = {}
    for row in units:
        topic, index, count, first, last, size_bytes = row
        known = found.get((topic, index))
        if known is not None:
            count, first, last = count + known[2], min(first, known[3]), max(last, known[4])
            size_bytes += known[5]
        found[topic, index] = (topic, index, count, first, last, size_bytes)
    return [row for _, row in sorted(found.items())]
