"""What Spark does with a store: read, count, verify, plan, convert; each timed from outside."""

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

from logstore.tools.bench.cores import only
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.layout_cells import LayoutCell, Workplace
from logstore.tools.bench.layout_data import KIB_RECORDS, SMALL_RECORDS, TIME_MS
from logstore.tools.bench.spark_data import DAY_MS, make_day, make_segments
from logstore.tools.bench.spark_turns import in_turns, seconds_of, warm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: the cells that need a broker and another Spark
PEER_SCENARIOS = ("kafka-source", "kafka-sink")
#: what is read before anything is timed: the JVM has compiled its loops, and workers theirs
_WARM_BYTES = 100_000_000
#: the same of a partition, where a broker serves the records
_WARM_RECORDS = 50_000
_PARTITIONS = 4
#: what is written at most: staged, synced, read again and appended
_WRITTEN_BYTES = 200_000_000
#: so that each core's worker takes part in it
_WARM_TASKS = "8"
_METADATA = ("topic", "partition", "offset", "timestamp")
_SHAPES = {"100 B": SMALL_RECORDS, "1 KiB": KIB_RECORDS}
# Not getrusage(): its figure starts with what the process had that started this one.
_MEASURED = """
import re, sys
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import HereRunner
from logstore.compat.spark.convert.options import ConvertOptions
convert(HereRunner(), ConvertOptions(*sys.argv[1:]))
with open("/proc/self/status") as status:
    print(int(re.search("VmHWM:\\s+([0-9]+)", status.read())[1]) * 1024)
"""


class SparkPlace(Workplace):
    """Stores of a day, made once; `size_bytes` each."""

    def __init__(self, directory: str, size_bytes: int) -> None:
        super().__init__(directory)
        self.size_bytes = size_bytes
        self._counts: dict[str, int] = {}

    def day(self, name: str) -> tuple[str, int, int]:
        """Return a store of that shape, how many records and how many bytes are in it."""
        return self._store(f"day-{name.replace(' ', '-')}", name, self.size_bytes)

    def warm(self, name: str) -> tuple[str, int]:
        """Return a small store of that shape, and how many records are in it."""
        size_bytes = min(_WARM_BYTES, self.size_bytes)
        path, count, _ = self._store(f"warm-{name.replace(' ', '-')}", name, size_bytes)
        return path, count

    def _store(self, folder: str, name: str, size_bytes: int) -> tuple[str, int, int]:
        path = f"{self.directory}/{folder}"
        if folder not in self._counts:
            self._counts[folder] = make_day(path, _SHAPES[name], size_bytes, _PARTITIONS)
        size_bytes = sum(file.stat().st_size for file in Path(path).glob("*/*.log"))
        return path, self._counts[folder], size_bytes

    def fresh(self, name: str) -> str:
        """Return a path at which nothing stands."""
        path = f"{self.directory}/{name}"
        shutil.rmtree(path, ignore_errors=True)
        return path


def _session(core_count: int = 2) -> SparkSession:
    from logstore.compat.spark import local_session

    spark = local_session(f"local[{core_count}]", {"spark.ui.showConsoleProgress": "false"})
    spark.range(100).rdd.map(lambda row: row.id).count()  # workers are up before anything is timed
    return spark


def _every_column(spark: SparkSession, path: str, **options: str) -> DataFrame:
    from logstore.compat.spark import read

    return read(spark, path, includeHeaders="true", **options)


@attrs.frozen
class ReadAll:
    """Every column to `noop`, beside a Python source of ready Arrow batches."""

    name: str

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return MB/s of both, and their ratio."""
        from logstore.tools.bench.ready_source import ReadySource

        path, count, size_bytes = place.day(self.name)
        warm_path, warm_count = place.warm(self.name)
        spark = _session()
        spark.dataSource.register(ReadySource)
        value_bytes = _SHAPES[self.name].record_bytes - 19

        def ready(rows: int) -> DataFrame:
            return spark.read.format("ready").options(rows=rows, valueBytes=value_bytes).load()

        try:
            few = _every_column(spark, warm_path, minPartitions=_WARM_TASKS)
            warm(warm_count, lambda: seconds_of(few), lambda: seconds_of(ready(warm_count)))
            everything = _every_column(spark, path)
            ours, theirs = in_turns(
                lambda: seconds_of(everything), lambda: seconds_of(ready(count))
            )
        finally:
            spark.stop()
        return {
            "ours": size_bytes / ours / 1e6,
            "ready": size_bytes / theirs / 1e6,
            "share": theirs / ours * 100,
        }


def scan_metadata(place: SparkPlace) -> Mapping[str, float]:
    """Topic, partition, offset and timestamp of all records, beside ready Arrow batches of them."""
    from logstore.compat.spark import read
    from logstore.tools.bench.ready_source import ReadySource

    path, count, _ = place.day("100 B")
    warm_path, warm_count = place.warm("100 B")
    spark = _session()
    spark.dataSource.register(ReadySource)

    def ready(rows: int) -> DataFrame:
        names = ",".join(_METADATA)
        return spark.read.format("ready").options(rows=rows, columns=names).load()

    try:
        few = read(spark, warm_path, _METADATA, minPartitions=_WARM_TASKS)
        warm(warm_count, lambda: seconds_of(few), lambda: seconds_of(ready(warm_count)))
        everything = read(spark, path, _METADATA)
        ours, theirs = in_turns(lambda: seconds_of(everything), lambda: seconds_of(ready(count)))
    finally:
        spark.stop()
    return {"records": count / ours / 1e6, "ready": count / theirs / 1e6}


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
class KafkaSource:
    """Every column to `noop`, beside Spark's own Kafka source at a real broker."""

    name: str

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return MB/s of both, and how many times as fast ours is."""
        from logstore.tools.bench.spark_peer import compare

        path, count, size_bytes = place.day(self.name)
        warm_count = min(_WARM_RECORDS, count // _PARTITIONS)
        seconds = compare(path, place.fresh("kafka-source"), warm_count)
        place.fresh("kafka-source")
        return {
            "ours": size_bytes / seconds["ours"] / 1e6,
            "theirs": size_bytes / seconds["theirs"] / 1e6,
            "times": seconds["theirs"] / seconds["ours"],
        }


#: two headers a row: one of a few values, as tags are, and one of its own
_HEADERS = """array(
    named_struct('key', 'TAGS', 'value', binary(concat('tag', string(id % 7)))),
    named_struct('key', 'trace', 'value', binary(string(id * 7919)))
) as headers"""


@attrs.frozen
class KafkaSink:
    """Keys and values to a store, beside Spark's own Kafka sink at a real broker."""

    name: str

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return thousands of rows/s of both, and how many times as fast ours is."""
        from logstore.tools.bench.spark_peer import compare_writes

        value_bytes = _SHAPES[self.name].record_bytes
        count = min(place.size_bytes, _WRITTEN_BYTES) // value_bytes
        seconds = compare_writes(place.fresh("kafka-sink"), value_bytes, count, _PARTITIONS)
        place.fresh("kafka-sink")
        return {
            "ours": count / seconds["ours"] / 1e3,
            "theirs": count / seconds["theirs"] / 1e3,
            "times": seconds["theirs"] / seconds["ours"],
        }


@attrs.frozen
class WriteAll:
    """Rows that Spark makes, written to a store that is made for them."""

    name: str
    layout: str = "kafka"
    has_headers: bool = False

    def __call__(self, place: SparkPlace) -> Mapping[str, float]:
        """Return thousands of rows/s, and MB/s of values."""
        value_bytes = _SHAPES[self.name].record_bytes
        count = min(place.size_bytes, _WRITTEN_BYTES) // value_bytes
        spark = _session()

        def seconds(row_count: int) -> float:
            rows = spark.range(row_count)
            columns = ["string(id) as key", f"repeat('x', {value_bytes}) as value"]
            if self.has_headers:
                columns.append(_HEADERS)
            frame = rows.selectExpr(*columns)
            writer = frame.write.format("logstore").mode("append").option("topic", "written")
            writer = writer.option("layout", self.layout)
            path = place.fresh("written")
            began = time.perf_counter()
            writer.option("partitions", _PARTITIONS).save(path)
            return time.perf_counter() - began

        try:
            seconds(_WARM_RECORDS)
            taken = seconds(count)
        finally:
            spark.stop()
            place.fresh("written")
        return {"rows": count / taken / 1e3, "rate": count * value_bytes / taken / 1e6}


def verify_all(place: SparkPlace) -> Mapping[str, float]:
    """Every check of `verify`, the scans in Spark's workers; the session is up before."""
    from logstore.os_host import system_host
    from logstore.tools.inspection.verification.directory_check import DirectoryCheck
    from logstore.tools.inspection.verification.spark_scans import SparkScans

    path, _, size_bytes = place.day("1 KiB")
    spark = _session()
    try:
        began = time.perf_counter()
        found = list(DirectoryCheck(system_host().fs, path).findings(None, SparkScans(spark)))
        seconds = time.perf_counter() - began
    finally:
        spark.stop()
    assert not [finding for finding in found if finding.is_damage]
    return {"rate": size_bytes / seconds / 1e9}


def measure_all(place: SparkPlace) -> Mapping[str, float]:
    """The statistics of all records, in Spark's workers; the session is up before."""
    from logstore.tools.inspection.stats.store_stats import StatsOptions, measure_store

    path, count, size_bytes = place.day("1 KiB")
    spark = _session()
    try:
        began = time.perf_counter()
        found = measure_store(StatsOptions(path), spark)
        seconds = time.perf_counter() - began
    finally:
        spark.stop()
    assert sum(stats.record_count for stats in found.measured.values()) == count
    return {"rate": size_bytes / seconds / 1e9}


def convert_both_ways(place: SparkPlace) -> Mapping[str, float]:
    """From Kafka to RocketMQ and what came of it back, by one core and by two."""
    one, two = _converted(place, 1), _converted(place, 2)
    return {
        "one-there": one[0],
        "one-back": one[1],
        "there": two[0],
        "back": two[1],
        "there-times": two[0] / one[0],
        "back-times": two[1] / one[1],
    }


def _converted(place: SparkPlace, core_count: int) -> tuple[float, float]:
    """Return MB/s of the source there and back, by workers that have converted a little before."""
    source, _, size_bytes = place.day("1 KiB")
    few, _ = place.warm("1 KiB")
    with only(core_count):
        spark = _session(core_count)
        try:
            _there_and_back(place, spark, few)
            there, back = _there_and_back(place, spark, source)
        finally:
            spark.stop()
    return size_bytes / there / 1e6, size_bytes / back / 1e6


def _there_and_back(place: SparkPlace, spark: SparkSession, source: str) -> tuple[float, float]:
    """Return the seconds that both ways take."""
    from logstore.compat.spark.convert.convert import convert
    from logstore.compat.spark.convert.job import SparkRunner
    from logstore.compat.spark.convert.options import ConvertOptions

    store, back = place.fresh("rocketmq"), place.fresh("back")
    seconds: list[float] = []
    try:
        for one, other, layout in ((source, store, "rocketmq"), (store, back, "kafka")):
            began = time.perf_counter()
            convert(SparkRunner(spark), ConvertOptions(one, other, layout))
            seconds.append(time.perf_counter() - began)
    finally:
        for name in ("rocketmq", "back"):
            place.fresh(name)
    return seconds[0], seconds[1]


def measure_memory(place: SparkPlace) -> Mapping[str, float]:
    """The most that a process held which converted all of it, task by task, there and back."""
    source, _, _ = place.day("1 KiB")
    target, back = place.fresh("memory"), place.fresh("memory-back")
    found: dict[str, float] = {}
    for name, *arguments in (
        ("there", source, target, "rocketmq"),
        ("back", target, back, "kafka"),
    ):
        command = [sys.executable, "-c", _MEASURED, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = int(done.stdout.splitlines()[-1]) / 1e6
    for name in ("memory", "memory-back"):
        place.fresh(name)
    return found


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


def _below(limit: float) -> Bar:
    return Bar("value", "<", limit)


CELLS = [
    *(
        _cell("read", f"every column, {name}", ReadAll(name),
              Metric("ours", "MB/s"), Metric("ready", "MB/s of ready batches"),
              Metric("share", "% of ready batches", _at_least(70)))
        for name in _SHAPES
    ),
    _cell("read", "without values, 100 B", scan_metadata,
          Metric("records", "M records/s", _at_least(5)),
          Metric("ready", "M records/s of ready batches")),
    *(
        _cell("kafka-source", f"every column, {name}", KafkaSource(name),
              Metric("ours", "MB/s"), Metric("theirs", "MB/s of Spark's Kafka source"),
              Metric("times", "x Spark's Kafka source", _at_least(times)))
        for name, times in (("100 B", 2), ("1 KiB", 1))
    ),
    *(
        _cell("kafka-sink", f"keys and values, {name}", KafkaSink(name),
              Metric("ours", "thousand rows/s"),
              Metric("theirs", "thousand rows/s of Spark's Kafka sink"),
              Metric("times", "x Spark's Kafka sink", _at_least(1)))
        for name in _SHAPES
    ),
    _cell("count", "by topic and partition", count_all, Metric("seconds", "s", _below(5))),
    _cell("window", "a minute of a day", read_window, Metric("share", "% read", _below(1))),
    _cell("convert", "1 KiB", convert_both_ways,
          Metric("one-there", "MB/s to RocketMQ, one core"),
          Metric("one-back", "MB/s to Kafka, one core"),
          Metric("there", "MB/s to RocketMQ, two cores", _at_least(300)),
          Metric("back", "MB/s to Kafka, two cores", _at_least(300)),
          Metric("there-times", "x one core, to RocketMQ", _at_least(1.8)),
          Metric("back-times", "x one core, to Kafka", _at_least(1.8))),
    *(
        _cell("write", f"keys and values, {name}", WriteAll(name),
              Metric("rows", "thousand rows/s"), Metric("rate", "MB/s of values"))
        for name in _SHAPES
    ),
    _cell("write", "with two headers, 100 B", WriteAll("100 B", has_headers=True),
          Metric("rows", "thousand rows/s"), Metric("rate", "MB/s of values")),
    _cell("write", "as messages, 100 B", WriteAll("100 B", "rocketmq"),
          Metric("rows", "thousand rows/s"), Metric("rate", "MB/s of values")),
    _cell("write", "as messages with tags and a property, 100 B",
          WriteAll("100 B", "rocketmq", has_headers=True),
          Metric("rows", "thousand rows/s"), Metric("rate", "MB/s of values")),
    _cell("verify", "1 KiB, two cores", verify_all, Metric("rate", "GB/s", _at_least(1))),
    _cell("stats", "1 KiB, two cores", measure_all, Metric("rate", "GB/s")),
    _cell("memory", "one task after the other", measure_memory,
          Metric("there", "MB to RocketMQ", _below(400)),
          Metric("back", "MB to Kafka", _below(400))),
    *(
        _cell("plan", f"{count:,} segments", Plan(count),
              Metric("seconds", "s", _below(seconds)),
              Metric("grown", "MB more", _at_most(200)))
        for count, seconds in ((10_000, 5), (100_000, 60))
    ),
]  # fmt: skip
