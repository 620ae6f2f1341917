"""What Spark does with a store: read, count, plan and convert, each timed from outside."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.layout_cells import LayoutCell, Workplace
from logstore.tools.bench.layout_data import KIB_RECORDS, SMALL_RECORDS, TIME_MS
from logstore.tools.bench.spark_data import DAY_MS, make_day, make_segments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METADATA = ("topic", "partition", "offset", "timestamp")
_SHAPES = {"100 B": SMALL_RECORDS, "1 KiB": KIB_RECORDS}
_MEASURED = """
import resource, sys
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
convert(HereRunner(), ConvertOptions(*sys.argv[1:]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


class SparkPlace(Workplace):
    """Stores of a day, made once; `size_bytes` each."""

    def __init__(self, directory: str, size_bytes: int) -> None:
        super().__init__(directory)
        self.size_bytes = size_bytes
        self._counts: dict[str, int] = {}

    def day(self, name: str) -> tuple[str, int, int]:
        """Return a store of that shape, how many records and how many bytes are in it."""
        path = f"{self.directory}/day-{name.replace(' ', '-')}"
        if name not in self._counts:
            self._counts[name] = make_day(path, _SHAPES[name], self.size_bytes)
        size_bytes = sum(file.stat().st_size for file in Path(path).glob("*/*.log"))
        return path, self._counts[name], size_bytes

    def fresh(self, name: str) -> str:
        """Return a path at which nothing stands."""
        path = f"{self.directory}/{name}"
        shutil.rmtree(path, ignore_errors=True)
        return path


def _seconds(frame: DataFrame) -> float:
    """Return how long it takes to read all rows and look at none."""
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def _session(core_count: int = 2) -> SparkSession:
    from logstore.compat.spark import local_session

    spark = local_session(f"local[{core_count}]", {"spark.ui.showConsoleProgress": "false"})
    spark.range(100).rdd.map(lambda row: row.id).count()  # workers are up before anything is timed
    return spark


@attrs.frozen
class ReadAll:
    """Every column to `noop`, beside a Python source of ready Arrow batches."""

    name: str

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return MB/s of both, and their ratio."""
        from logstore.compat.spark import read
        from logstore.tools.bench.ready_source import ReadySource

        path, count, size_bytes = place.day(self.name)
        spark = _session()
        try:
            ours = _seconds(read(spark, path, includeHeaders="true"))
            spark.dataSource.register(ReadySource)
            value_bytes = _SHAPES[self.name].record_bytes - 19
            ready = spark.read.format("ready").options(rows=count, valueBytes=value_bytes).load()
            theirs = _seconds(ready)
        finally:
            spark.stop()
        return {
            "ours": size_bytes / ours / 1e6,
            "ready": size_bytes / theirs / 1e6,
            "share": theirs / ours * 100,
        }


def scan_metadata(place: SparkPlace) -> Mapping[str, float]:
    """Topic, partition, offset and timestamp of all records, without values."""
    from logstore.compat.spark import read

    path, count, _ = place.day("100 B")
    spark = _session()
    try:
        return {"records": count / _seconds(read(spark, path, _METADATA)) / 1e6}
    finally:
        spark.stop()


def count_all(place: SparkPlace) -> Mapping[str, float]:
    """Records by topic and partition."""
    from logstore.compat.spark import counts

    path, count, _ = place.day("1 KiB")
    spark = _session()
    try:
        began = time.perf_counter()
        rows = counts(spark, path).collect()
        seconds = time.perf_counter() - began
    finally:
        spark.stop()
    assert sum(row["count"] for row in rows) == count
    return {"seconds": seconds}


def read_window(place: SparkPlace) -> Mapping[str, float]:
    """One minute of the day: what of the files is read, planning included."""
    from logstore.compat.spark.columns import arrow_schema
    from logstore.compat.spark.kafka_plan import plan_units
    from logstore.compat.spark.kafka_rows import RowReader
    from logstore.compat.spark.options import parse_options
    from logstore.compat.spark.predicates import Where
    from logstore.compat.spark.stores import open_for_reading
    from logstore.tools.bench.counted_files import CountedFileSystem

    path, _, size_bytes = place.day("1 KiB")
    low = TIME_MS + DAY_MS // 2
    where = Where(timestamp_ms_min=low, timestamp_ms_max=low + 60_000)
    options = parse_options({"path": path})
    with open_for_reading(path) as store:
        units = plan_units(store, options, where)  # type: ignore[arg-type]
    files = CountedFileSystem()
    schema = arrow_schema(("key", "value", "timestamp"))
    reader = RowReader(files, schema, where, "failfast", options.timestamp_slack_ms)
    count = sum(len(batch) for unit in units for batch in reader.read(unit))
    assert count > 0
    return {"share": files.read_bytes / size_bytes * 100}


@attrs.frozen
class Convert:
    """From Kafka to RocketMQ, and what came of it back, by so many cores."""

    core_count: int

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return MB/s of the source there and back."""
        from logstore.compat.spark.convert.convert import convert
        from logstore.compat.spark.convert.job import SparkRunner
        from logstore.compat.spark.convert.options import ConvertOptions

        source, _, size_bytes = place.day("1 KiB")
        store, back = place.fresh("rocketmq"), place.fresh("back")
        spark = _session(self.core_count)
        try:
            found: dict[str, float] = {}
            for name, one, other, layout in (
                ("there", source, store, "rocketmq"),
                ("back", store, back, "kafka"),
            ):
                began = time.perf_counter()
                convert(SparkRunner(spark), ConvertOptions(one, other, layout))
                found[name] = size_bytes / (time.perf_counter() - began) / 1e6
        finally:
            spark.stop()
            for name in ("rocketmq", "back"):
                place.fresh(name)
        return found


def measure_memory(place: SparkPlace) -> Mapping[str, float]:
    """The most that a process held which converted all of it, task by task."""
    source, _, _ = place.day("1 KiB")
    target = place.fresh("memory")
    command = [sys.executable, "-c", _MEASURED, source, target, "rocketmq"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    place.fresh("memory")
    return {"bytes": int(done.stdout.splitlines()[-1]) / 1e6}


@attrs.frozen
class Plan:
    """The tasks of a query over so many segments."""

    segment_count: int

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return how long it takes, and by how much the driver grows."""
        from logstore.compat.spark.options import parse_options
        from logstore.compat.spark.predicates import Where
        from logstore.compat.spark.stores import open_for_reading, plan
        from logstore.compat.spark.work_unit import gathered

        path = f"{place.directory}/segments-{self.segment_count}"
        if not os.path.isdir(path):
            make_segments(path, self.segment_count)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        options = parse_options({"path": path})
        with open_for_reading(path) as store:
            units: list[Any] = plan(store, options, Where())
        tasks = gathered(units, options.split_bytes, 0)
        seconds = time.perf_counter() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert len(units) == self.segment_count
        assert tasks
        return {"seconds": seconds, "grown": grown * 1024 / 1e6}


def _cell(scenario: str, name: str, run: Any, *metrics: Metric) -> LayoutCell:
    return LayoutCell(scenario, name, metrics, run)


def _at_least(limit: float) -> Bar:
    return Bar("value", ">=", limit)


def _at_most(limit: float) -> Bar:
    return Bar("value", "<=", limit)


CELLS = [
    *(
        _cell("read", f"every column, {name}", ReadAll(name),
              Metric("ours", "MB/s"), Metric("ready", "MB/s of ready batches"),
              Metric("share", "% of ready batches", _at_least(70)))
        for name in _SHAPES
    ),
    _cell("read", "without values, 100 B", scan_metadata,
          Metric("records", "M records/s", _at_least(5))),
    _cell("count", "by topic and partition", count_all, Metric("seconds", "s", _at_most(5))),
    _cell("window", "a minute of a day", read_window, Metric("share", "% read", _at_most(1))),
    *(
        _cell("convert", f"1 KiB, {cores} core(s)", Convert(cores),
              Metric("there", "MB/s to RocketMQ", _at_least(300) if cores == 2 else None),
              Metric("back", "MB/s to Kafka", _at_least(300) if cores == 2 else None))
        for cores in (1, 2)
    ),
    _cell("memory", "one task after the other", measure_memory,
          Metric("bytes", "MB", _at_most(400))),
    *(
        _cell("plan", f"{count:,} segments", Plan(count),
              Metric("seconds", "s", _at_most(seconds)),
              Metric("grown", "MB more", _at_most(200)))
        for count, seconds in ((10_000, 5), (100_000, 60))
    ),
]  # fmt: skip
