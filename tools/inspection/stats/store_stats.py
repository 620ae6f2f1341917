"""A whole store, measured: planned here, measured in this process or in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import attrs

from logstore.compat.spark.absent_partitions import tell_absent
from logstore.compat.spark.options import ReadOptions, parse_options
from logstore.compat.spark.predicates import INT64_MAX, Where
from logstore.compat.spark.rocketmq_plan import wanted_queues
from logstore.compat.spark.stores import file_system_of, open_for_reading, plan
from logstore.compat.spark.work_unit import Unit, WorkUnit
from logstore.compat.spark.worker_tasks import run_in_workers
from logstore.errors import MissingSegmentError
from logstore.host import FileSystem
from logstore.segments.kafka.data_directory import LOCK_FILE
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.tools.inspection.lock_holder import lock_holder
from logstore.tools.inspection.stats.kafka_measure import measure_kafka
from logstore.tools.inspection.stats.partition_stats import (
    Measured,
    PartitionStats,
    merge_into,
)
from logstore.tools.inspection.stats.rocketmq_measure import NOWHERE, measure_rocketmq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from logstore.partition import Store

Progress = Callable[[int, int], None]
Place: TypeAlias = tuple[str, int]
#: how often a partition is measured at most that a broker cleans or shortens meanwhile
_LOOKS_MAX = 4


@attrs.frozen
class StatsOptions:
    """What is to be measured: records of these topics, made in ``[from_ms, until_ms)``."""

    path: str
    topics: tuple[str, ...] | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    @property
    def where(self) -> Where:
        """The bounds of time."""
        low = -INT64_MAX if self.from_ms is None else self.from_ms
        high = INT64_MAX if self.until_ms is None else self.until_ms - 1
        return Where(timestamp_ms_min=low, timestamp_ms_max=high)


@attrs.frozen
class StoreStats:
    """
    What was found: `measured` has only partitions with records, `partitions` all that were asked.

    `damaged_count` is what could not be read and belongs nowhere.
    """

    path: str
    layout: str
    partitions: dict[str, list[int]]
    measured: Measured
    damaged_count: int


@attrs.frozen
class MeasureUnits:
    """Measures the units of one task; it is sent to workers."""

    path: str
    where: Where
    #: how much is read in all
    scan_bytes: int = 0

    def __call__(self, units: list[Unit]) -> list[Measured]:
        """Return one value for all of them."""
        fs, found = file_system_of(self.path, self.scan_bytes), Measured()
        for unit in units:
            merge_into(found, measure(fs, unit, self.where))
        return [found]


def measure(fs: FileSystem, unit: Unit, where: Where) -> Measured:
    """Return what is in one unit; that its file is gone, if a broker has removed it."""
    try:
        if isinstance(unit, WorkUnit):
            return {(unit.topic, unit.partition): measure_kafka(fs, unit, where)}
        return measure_rocketmq(fs, unit, where)
    except (FileNotFoundError, MissingSegmentError):
        if not isinstance(unit, WorkUnit):
            return {}  # what was too old has gone, and nothing came in its place
        return {(unit.topic, unit.partition): PartitionStats(gone_count=1)}


def measure_store(
    options: StatsOptions, spark: SparkSession | None = None, progress: Progress | None = None
) -> StoreStats:
    """
    Measure what `options` ask for; `progress` is told (done, all) bytes.

    Raises:
        ForeignDirectoryError: no store of a known layout is there.
        OptionError: a topic that is named is not in it.

    """
    given = {"path": options.path, "columns": "offset", "isolation": "read_uncommitted"}
    given["mode"] = "dropmalformed"  # damage is counted, too
    if options.topics is not None:
        given["topics"] = ",".join(options.topics)
    read = parse_options(given)
    found = _measured(options, read, spark, progress)
    for _ in range(_LOOKS_MAX - 1):
        again = _to_measure_again(found)
        if not again:
            break
        later = _measured(options, read, spark, None, again)
        kept = {place: one for place, one in found.measured.items() if place not in again}
        found = attrs.evolve(later, measured={**kept, **later.measured})
    lost = found.measured.pop(NOWHERE, None)
    damaged_count = 0 if lost is None else lost.damaged_count
    # What went at every look is told as what could not be read.
    damaged_count += sum(one.gone_count for one in found.measured.values())
    return attrs.evolve(found, damaged_count=damaged_count)


def _measured(
    options: StatsOptions,
    read: ReadOptions,
    spark: SparkSession | None,
    progress: Progress | None,
    only: set[Place] | None = None,
) -> StoreStats:
    """Measure the partitions `only`, or all that are asked for."""
    with open_for_reading(options.path) as store:
        if only is None and isinstance(store, KafkaStore):
            tell_absent(store, read.wants)
        units = plan(store, read, options.where)
        partitions = _partitions(store, read)
        layout = "rocketmq" if isinstance(store, RocketMQStore) else "kafka"
    if only is not None:
        chosen: list[Unit] = [
            unit for unit in units if isinstance(unit, WorkUnit) and _place(unit) in only
        ]
        units = chosen
    found = Measured()
    work = MeasureUnits(options.path, options.where, sum(unit.size_bytes for unit in units))
    if spark is None:
        _measure_here(work, units, found, progress)
    else:
        for one in run_in_workers(spark, work, units, progress):
            merge_into(found, one)
    return StoreStats(options.path, layout, partitions, found, 0)


def _place(unit: WorkUnit) -> Place:
    return unit.topic, unit.partition


def _to_measure_again(found: StoreStats) -> set[Place]:
    """Return the partitions whose files changed, or may have changed, while they were read."""
    is_live = found.layout == "kafka" and lock_holder(f"{found.path}/{LOCK_FILE}") is not None
    return {
        place
        for place, one in found.measured.items()
        if place != NOWHERE and (one.gone_count or (is_live and one.damaged_count))
    }


def _measure_here(
    work: MeasureUnits, units: list[Unit], found: Measured, progress: Progress | None
) -> None:
    done, total = 0, sum(unit.size_bytes for unit in units)
    for unit in units:
        merge_into(found, work([unit])[0])
        done += unit.size_bytes
        if progress is not None:
            progress(done, total)


def _partitions(store: Store, read: ReadOptions) -> dict[str, list[int]]:
    """Return all partitions that are asked for, those without records too."""
    found: dict[str, list[int]] = {}
    if isinstance(store, RocketMQStore):
        for topic, queue_id in sorted(wanted_queues(store, read, Where())):
            found.setdefault(topic, []).append(queue_id)
        return found
    for topic, indexes in store.topics().items():
        wanted = [index for index in sorted(indexes) if read.wants(topic, index)]
        if wanted:
            found[topic] = wanted
    return dict(sorted(found.items()))
