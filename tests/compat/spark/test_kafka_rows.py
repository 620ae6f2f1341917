"""Units of Kafka stores, planned and read: every row as the real consumer saw the record."""

from __future__ import annotations

import base64
import hashlib
import importlib
import itertools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.header_count import count_unit
from logstore.compat.spark.kafka_plan import plan_units
from logstore.compat.spark.kafka_rows import RowReader
from logstore.compat.spark.options import TIMESTAMP_SLACK_MS, parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import open_for_reading
from logstore.compat.spark.time_window import wanted_ranges
from logstore.compat.spark.work_unit import UNIT_BYTES, WorkUnit, gathered
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, TimestampType, encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import SimulatedHost
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data, golden_cases

#: it carries no types
pa: Any = importlib.import_module("pyarrow")
HASHED_VALUE_BYTES = 512
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("leaderEpoch", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(HEADER)),
    ]
)
LEGACY = [
    GoldenCase("legacy-3.9", folder.name)
    for folder in sorted((GOLDEN / "legacy-3.9" / "cases").iterdir())
]
EVERYWHERE = Where()
TIMESTAMP_TYPES = {-1: None, 0: "CreateTime", 1: "LogAppendTime"}


def units_of(
    directory: Path, options: Mapping[str, str], where: Where = EVERYWHERE
) -> list[WorkUnit]:
    """Return the units of a query."""
    with open_for_reading(str(directory)) as store:
        assert isinstance(store, KafkaStore)
        return plan_units(store, parse_options({"path": str(directory), **options}), where)


def rows_of(
    units: list[WorkUnit],
    where: Where = EVERYWHERE,
    mode: str = "failfast",
    schema: Any = SCHEMA,
) -> list[dict[str, Any]]:
    """Read units one after the other."""
    reader = RowReader(system_host().fs, schema, where, mode, TIMESTAMP_SLACK_MS)
    return [row for unit in units for batch in reader.read(unit) for row in batch.to_pylist()]


def milliseconds(row: dict[str, Any]) -> int:
    """Return the time of a row."""
    time_ms: int = round(row["timestamp"].timestamp() * 1000)
    return time_ms


def text(data: bytes | None) -> str | None:
    """Return bytes as expected.jsonl has them."""
    return None if data is None else base64.b64encode(data).decode()


def as_expected(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as expected.jsonl has it."""
    headers: list[dict[str, Any]] = row["headers"] or []
    has_time = row["timestampType"] >= 0
    line: dict[str, Any] = {
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": milliseconds(row) if has_time else 0,
        "timestamp_type": TIMESTAMP_TYPES[row["timestampType"]],
        "leader_epoch": None if row["leaderEpoch"] < 0 else row["leaderEpoch"],
        "key": text(row["key"]),
        "headers": [[header["key"], text(header["value"])] for header in headers],
    }
    value = row["value"]
    if value is not None and len(value) >= HASHED_VALUE_BYTES:
        return line | {"value_size": len(value), "value_sha256": hashlib.sha256(value).hexdigest()}
    return line | {"value": text(value)}


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("case", [*golden_cases(), *LEGACY], ids=lambda case: case.id)
def test_every_row_is_as_the_real_consumer_read_it(case: GoldenCase, isolation: str) -> None:
    """All golden topics at both isolation levels, split as finely as the index allows."""
    directory = GOLDEN / case.set_name / "data"
    options = {"subscribe": case.topic, "isolation": isolation, "splitBytes": "1000"}
    units = units_of(directory, options)
    expected = [
        {name: value for name, value in record.items() if name != "read_committed"}
        for record in case.expected
        if isolation == "read_uncommitted" or record["read_committed"]
    ]
    assert [as_expected(row) for row in rows_of(units)] == expected
    counted = [count_unit(system_host().fs, unit).record_count for unit in units]
    assert sum(counted) == len(expected)


def test_timestamp_types_and_headers_may_change_from_batch_to_batch() -> None:
    """Where all rows of a step are alike their column is a constant, and where not it is none."""
    host = SimulatedHost()
    file = host.fs.open("/log", create=True)
    kinds = [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME, TimestampType.CREATE_TIME]
    places = [0]
    for offset, kind in enumerate(kinds):
        record = Record(offset, 5, b"k", b"v", (("h", b"x"),) if offset == 1 else ())
        data = bytes(encode_batch([record], base_offset=offset, timestamp_type=kind))
        file.write(places[-1], data)
        places.append(places[-1] + len(data))
    reader = RowReader(host.fs, SCHEMA, EVERYWHERE, "failfast", TIMESTAMP_SLACK_MS)

    def told(first: int, last: int) -> list[tuple[int, list[dict[str, Any]] | None]]:
        unit = WorkUnit("/log", "t", 0, places[first], places[last], first, last)
        rows = [row for batch in reader.read(unit) for row in batch.to_pylist()]
        return [(row["timestampType"], row["headers"]) for row in rows]

    with_header = (1, [{"key": "h", "value": b"x"}])
    assert told(0, 3) == [(0, None), with_header, (0, None)]
    assert [told(0, 1), told(1, 2), told(2, 3)] == [[(0, None)], [with_header], [(0, None)]]


def test_a_segment_is_split_at_index_entries() -> None:
    """The pieces touch, and begin where the index says that batches do."""
    directory = GOLDEN / "kafka-4.3" / "data"
    whole = units_of(directory, {"subscribe": "plain-1mib"})
    pieces = units_of(directory, {"subscribe": "plain-1mib", "splitBytes": "100000"})
    assert len(pieces) > len(whole)
    for before, after in itertools.pairwise(pieces):
        if before.path == after.path:
            assert before.end_position == after.position
    assert sum(unit.size_bytes for unit in pieces) == sum(unit.size_bytes for unit in whole)
    assert rows_of(pieces) == rows_of(whole)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (100, 250), (1583, 1583), (1500, 10**9)])
def test_offsets_choose_segments_and_places_in_them(low: int, high: int) -> None:
    """Rows within the bounds are all there, and few bytes besides are read."""
    directory = GOLDEN / "kafka-4.3" / "data"
    where = Where(offset_min=low, offset_max=high)
    options = {"subscribe": "plain-1mib", "splitBytes": "50000"}
    units = units_of(directory, options, where)
    found = [row["offset"] for row in rows_of(units, where)]
    assert found == list(range(low, min(high, 1583) + 1))
    assert sum(unit.size_bytes for unit in units) < 400_000


def test_a_time_window_is_found_by_indexes_and_headers() -> None:
    """Every record of the window comes, and batches that are too old are not decoded."""
    directory = GOLDEN / "kafka-4.3" / "data"
    everything = rows_of(units_of(directory, {"subscribe": "plain-1mib"}))
    low = sorted(milliseconds(row) for row in everything)[len(everything) // 2]
    where = Where(timestamp_ms_min=low, timestamp_ms_max=low + 60_000)
    found = rows_of(units_of(directory, {"subscribe": "plain-1mib"}, where), where)
    wanted = [row for row in everything if low <= milliseconds(row) <= low + 60_000]
    assert [row for row in found if row in wanted] == wanted
    assert 0 < len(wanted) <= len(found) < 0.6 * len(everything)


@pytest.mark.parametrize(("slack_ms", "is_young_passed_over"), [(0, True), (-1, False)])
def test_in_a_large_unit_batches_behind_the_window_are_passed_over(
    slack_ms: int, is_young_passed_over: bool
) -> None:
    """Only headers are read to find the batches of a window; -1 keeps all that is not certain."""
    host = SimulatedHost()
    file = host.fs.open("/log", create=True)
    size_bytes = 0
    places: list[int] = []
    for minute in range(20):
        value = bytes(1024 * 1024)
        data = encode_batch([Record(minute, minute * 60_000, None, value)], base_offset=minute)
        file.write(size_bytes, data)
        places.append(size_bytes)
        size_bytes += len(data)
    unit = WorkUnit("/log", "t", 0, 0, size_bytes, 0, 20)
    where = Where(timestamp_ms_min=5 * 60_000, timestamp_ms_max=6 * 60_000)
    found = list(wanted_ranges(file, unit, where, slack_ms))
    assert found == [(places[5], places[7] if is_young_passed_over else size_bytes)]


def test_starting_and_ending_offsets_bound_partitions() -> None:
    """By number, by -1 and -2, and by time as offsetsForTimes answers."""
    directory = GOLDEN / "kafka-4.3" / "data"
    options = {
        "subscribe": "groups",
        "startingOffsets": '{"groups": {"0": 3, "1": -2}}',
        "endingOffsets": '{"groups": {"0": 7, "1": -1}}',
    }
    rows = rows_of(units_of(directory, options))
    places = [(row["partition"], row["offset"]) for row in rows]
    assert places == [(0, 3), (0, 4), (0, 5), (0, 6)] + [(1, offset) for offset in range(12)]
    late = rows_of(units_of(directory, {"subscribe": "groups", "startingTimestamp": str(2**50)}))
    assert late == []


_READ = """
import sys
from logstore.compat.spark.columns import DEFAULT_COLUMNS, HEADERS, arrow_schema
from logstore.compat.spark.kafka_plan import plan_units
from logstore.compat.spark.kafka_rows import RowReader
from logstore.compat.spark.options import TIMESTAMP_SLACK_MS, parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.stores import open_for_reading
from logstore.os_host import system_host
path, names = sys.argv[1], (*DEFAULT_COLUMNS, HEADERS, "producerEpoch", "isTransactional", "file")
with open_for_reading(path) as store:
    units = plan_units(store, parse_options({"path": path}), Where())
reader = RowReader(
    system_host().fs, arrow_schema(names), Where(), "failfast", TIMESTAMP_SLACK_MS
)
print(sum(len(batch) for unit in units for batch in reader.read(unit)), "pandas" in sys.modules)
"""


def test_workers_do_without_pandas() -> None:
    """It takes a quarter of a second to load, in each worker of a query."""
    pytest.importorskip("pandas", reason="pandas is missing, so that nothing could load it")
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(GOLDEN / "kafka-4.3" / "data")],
        capture_output=True,
        text=True,
    )
    count, is_loaded = done.stdout.split()
    assert int(count) > 100, done.stderr
    assert is_loaded == "False"


def test_small_units_share_a_task() -> None:
    """Tasks are filled up to the wanted size; a minimum makes more of them."""
    units = units_of(GOLDEN / "kafka-4.3" / "data", {})
    assert [unit for task in gathered(units, 2**40, 0) for unit in task] == units
    assert len(gathered(units, 2**40, 0)) == 1
    assert len(gathered(units, 2**40, 8)) >= 5


@pytest.mark.parametrize(
    ("gigabytes", "task_count", "unit_count"),
    [(1, 8, 1), (4, 32, 1), (16, 32, 4), (100, 200, 4)],
)
def test_much_to_read_makes_larger_tasks(gigabytes: int, task_count: int, unit_count: int) -> None:
    """Unless the option says how large they are to be: starting one costs time."""
    whole = WorkUnit("0.log", "t", 0, 0, UNIT_BYTES, 0, 1)
    units = [whole] * (8 * gigabytes)
    tasks = gathered(units, 0, 0)
    assert len(tasks) == task_count
    assert {len(task) for task in tasks} == {unit_count}
    assert len(gathered(units, UNIT_BYTES, 0)) == len(units)


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, WorkUnit]:
    """A store with one flipped byte in a batch in the middle, and the unit that has it."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    unit = units_of(directory, {"subscribe": "plain"})[0]
    data = bytearray(Path(unit.path).read_bytes())
    data[len(data) // 2] ^= 0xFF
    Path(unit.path).write_bytes(data)
    return directory, unit


def test_damage_fails_the_query_by_default(damaged: tuple[Path, WorkUnit]) -> None:
    """The error names the file and the position."""
    _, unit = damaged
    with pytest.raises(CorruptEntryError) as caught:
        rows_of([unit])
    assert unit.path in str(caught.value)
    assert f"position {caught.value.position}" in str(caught.value)


def test_damage_is_dropped_or_told_when_asked(damaged: tuple[Path, WorkUnit]) -> None:
    """Both modes read on behind it; the permissive one has a row that says what is missing."""
    directory, unit = damaged
    sound = {
        row["offset"]
        for row in rows_of(units_of(GOLDEN / "kafka-4.3" / "data", {"subscribe": "plain"}))
    }
    units = units_of(directory, {"subscribe": "plain"})
    dropped = {row["offset"] for row in rows_of(units, mode="dropmalformed")}
    assert dropped < sound
    assert max(dropped) == max(sound)

    schema = pa.schema(
        [*SCHEMA, pa.field("_corrupt", pa.string()), pa.field("position", pa.int64())]
    )
    told = rows_of(units, mode="permissive", schema=schema)
    (bad,) = [row for row in told if row["_corrupt"] is not None]
    assert unit.path in bad["_corrupt"]
    assert (bad["offset"], bad["value"]) == (None, None)
    assert {row["offset"] for row in told if row["_corrupt"] is None} == dropped
