"""SQL over transactions, holes of compaction and old formats: what real consumers read."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from logstore.compat.spark import counts, read
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

TRANSACTIONS = [GoldenCase(name, "transactions") for name in ("kafka-4.3", "transactions-4.3")]
COMPACTED = [GoldenCase(name, "compacted") for name in ("kafka-4.3", "transactions-4.3")]
LEGACY = [
    GoldenCase("legacy-3.9", folder.name)
    for folder in sorted((GOLDEN / "legacy-3.9" / "cases").iterdir())
]
OLDER = [GoldenCase("kafka-3.9", name) for name in ("transactions", "compacted")]
SETS = {
    name: [case for case in (*TRANSACTIONS, *COMPACTED, *OLDER, *LEGACY) if case.set_name == name]
    for name in ("kafka-4.3", "transactions-4.3", "kafka-3.9", "legacy-3.9")
}
TIMESTAMP_TYPES = {None: -1, "CreateTime": 0, "LogAppendTime": 1}
#: of messages of magic 0, which have none
NO_TIMESTAMP_MS = -1
ISOLATIONS = ("read_committed", "read_uncommitted")


def view(spark: SparkSession, cases: list[GoldenCase], name: str = "log", **options: str) -> None:
    """Make the topics of some cases of one set a table; it is read in small pieces."""
    directory = str(GOLDEN / cases[0].set_name / "data")
    topics = ",".join(case.topic for case in cases)
    frame = read(spark, directory, subscribe=topics, splitBytes="20000", **options)
    frame.createOrReplaceTempView(name)


def answer(spark: SparkSession, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    return [tuple(row) for row in spark.sql(statement).collect()]


def expected_of(case: GoldenCase, isolation: str) -> list[dict[str, Any]]:
    """Return what a consumer of that isolation got."""
    return [r for r in case.expected if isolation == "read_uncommitted" or r["read_committed"]]


def digest(record: dict[str, Any]) -> str | None:
    """Return the SHA-256 of an expected value, None if it is null."""
    if "value_sha256" in record:
        found: str = record["value_sha256"]
        return found
    value: str | None = record["value"]
    return None if value is None else hashlib.sha256(base64.b64decode(value)).hexdigest()


def content(case: GoldenCase, record: dict[str, Any]) -> tuple[Any, ...]:
    """Return an expected record as the statement of :data:`EVERYTHING` gives it."""
    kind = TIMESTAMP_TYPES[record["timestamp_type"]]
    time_ms = record["timestamp"] if kind >= 0 else NO_TIMESTAMP_MS
    place = (case.topic, record["partition"], record["offset"])
    key = None if record["key"] is None else base64.b64decode(record["key"]).hex().upper()
    return (*place, time_ms, kind, key, digest(record))


EVERYTHING = (
    "select topic, partition, offset, unix_millis(timestamp), timestampType, hex(key), "
    "sha2(value, 256) from log order by topic, partition, offset"
)


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", SETS)
def test_every_column_is_as_the_consumer_read_it(
    name: str, isolation: str, spark: SparkSession
) -> None:
    """Of every record that a consumer of that isolation got, and no other row."""
    view(spark, SETS[name], isolation=isolation)
    expected = [content(case, r) for case in SETS[name] for r in expected_of(case, isolation)]
    assert answer(spark, EVERYTHING) == sorted(expected, key=lambda row: row[:3])


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("case", TRANSACTIONS, ids=lambda case: case.id)
def test_groups_count_what_is_committed(
    case: GoldenCase, isolation: str, spark: SparkSession
) -> None:
    """By SQL over rows as by the headers of batches alone; markers are nobody's records."""
    view(spark, [case], isolation=isolation)
    found = answer(
        spark,
        "select topic, partition, count(*), min(offset), max(offset) from log group by all "
        "order by all",
    )
    offsets: dict[int, list[int]] = defaultdict(list)
    for record in expected_of(case, isolation):
        offsets[record["partition"]].append(record["offset"])
    expected = [(case.topic, p, len(o), min(o), max(o)) for p, o in sorted(offsets.items())]
    assert found == expected
    directory = str(GOLDEN / case.set_name / "data")
    counted = counts(spark, directory, subscribe=case.topic, isolation=isolation)
    assert [tuple(row)[:5] for row in counted.collect()] == expected


@pytest.mark.parametrize("case", TRANSACTIONS, ids=lambda case: case.id)
def test_what_only_the_uncommitted_reader_sees(case: GoldenCase, spark: SparkSession) -> None:
    """Aborted records, and all behind the first of a transaction that is open."""
    for isolation in ISOLATIONS:
        view(spark, [case], isolation, isolation=isolation)
    found = answer(
        spark,
        "select u.partition, u.offset from read_uncommitted u left anti join read_committed c "
        "on u.partition = c.partition and u.offset = c.offset order by all",
    )
    gone = [r for r in case.expected if not r["read_committed"]]
    assert found == [(r["partition"], r["offset"]) for r in gone]
    assert found


@pytest.mark.parametrize("case", [TRANSACTIONS[1], COMPACTED[0]], ids=lambda case: case.id)
def test_ranges_of_offsets_join(case: GoldenCase, spark: SparkSession) -> None:
    """Each range has as many records as a consumer got from there, wherever it cuts a batch."""
    view(spark, [case])
    spark.range(0, 400, 7).selectExpr("id as low", "id + 7 as high").createOrReplaceTempView(
        "spans"
    )
    found = answer(
        spark,
        "select low, count(*) from spans join log on offset >= low and offset < high "
        "where offset < 400 group by low order by low",
    )
    offsets = [r["offset"] for r in expected_of(case, "read_committed") if r["offset"] < 400]
    assert found == sorted(Counter(offset // 7 * 7 for offset in offsets).items())
    assert found


@pytest.mark.parametrize(
    "case",
    [TRANSACTIONS[1], COMPACTED[0], GoldenCase("legacy-3.9", "magic-upgrade")],
    ids=lambda case: case.id,
)
def test_a_filter_that_is_pushed_down_changes_nothing(
    case: GoldenCase, spark: SparkSession
) -> None:
    """Offsets and times that lead to the middle of batches, into holes and behind the end."""
    view(spark, [case])
    expected = [content(case, one) for one in expected_of(case, "read_committed")]
    low, high = expected[len(expected) // 4], expected[len(expected) // 2]
    middle, last = expected[len(expected) // 3][2], expected[-1][2]
    times = f"timestamp_millis({low[3]}) and timestamp_millis({high[3]})"
    filters: dict[str, Callable[[tuple[Any, ...]], bool]] = {
        f"offset between {low[2]} and {high[2]}": lambda row: low[2] <= row[2] <= high[2],
        f"offset in ({middle}, {last}, {last + 5})": lambda row: row[2] in (middle, last),
        f"timestamp between {times}": lambda row: low[3] <= row[3] <= high[3],
        f"partition = 0 and offset > {last}": lambda row: row[2] > last,
    }
    for condition, is_wanted in filters.items():
        found = answer(spark, EVERYTHING.replace(" order", f" where {condition} order"))
        assert found == [row for row in expected if is_wanted(row)], condition


@pytest.mark.parametrize("case", COMPACTED, ids=lambda case: case.id)
def test_holes_of_a_compaction_are_seen(case: GoldenCase, spark: SparkSession) -> None:
    """Which offsets are gone, and what the last value of each key is, a tombstone included."""
    view(spark, [case])
    holes = answer(
        spark,
        "select before + 1, offset - 1 from (select offset, lag(offset) over (partition by "
        "partition order by offset) as before from log) where offset - before > 1 order by all",
    )
    offsets = [record["offset"] for record in case.expected]
    assert holes == [(one + 1, other - 1) for one, other in pairwise(offsets) if other - one > 1]
    assert holes
    newest = answer(
        spark,
        "select base64(key), max(offset), sha2(max_by(value, offset), 256) from log group by key "
        "order by 1",
    )
    last = {record["key"]: record for record in case.expected}
    assert newest == sorted((key, r["offset"], digest(r)) for key, r in last.items())


def test_old_formats_have_their_kinds_of_times(spark: SparkSession) -> None:
    """All topics of a store of magic 0, 1 and 2 in one statement: -1, 0 and 1, as many as sent."""
    view(spark, LEGACY)
    found = answer(
        spark,
        "select topic, timestampType, count(*), count_if(unix_millis(timestamp) < 0) from log "
        "group by all order by all",
    )
    expected = Counter(
        (case.topic, TIMESTAMP_TYPES[record["timestamp_type"]])
        for case in LEGACY
        for record in case.expected
    )
    assert found == sorted((*one, n, n if one[1] < 0 else 0) for one, n in expected.items())
    assert {kind for _, kind in expected} == {-1, 0, 1}
