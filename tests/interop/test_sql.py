"""``logstore sql``: what stores say when they are asked in SQL, and how it is shown."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from logstore.compat.spark import sql
from logstore.compat.spark.query import QueryError
from logstore.tools.commands.sql_rows import FailedQueryError, say_csv, say_json, say_table
from tests.compat.spark.test_damaged_logs import KAFKA_DAMAGE, TOPIC, kafka_victim
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data
from tests.segments.kafka.split_directories import split_in_two
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
KAFKA = str(GOLDEN / "kafka-4.3" / "data")
PLAIN = GoldenCase("kafka-4.3", "plain")


def decoded_columns(spark: SparkSession, view: str = "records") -> list[str]:
    """Return which columns the last query had decoded."""
    return spark.table(view).columns


@pytest.mark.slow
def test_a_query_has_only_the_columns_decoded_that_it_uses(spark: SparkSession) -> None:
    """Those in conditions, groups and inner queries count; aliases and text do not."""
    query = """
        SELECT topic, count(*) AS value FROM records
        WHERE offset >= (SELECT min(partition) FROM records WHERE batchCodec <> 'key')
        GROUP BY topic HAVING topic LIKE 'codec-%'
    """
    found = {row.topic: row.value for row in sql(spark, query, KAFKA).collect()}

    names = ["codec-gzip", "codec-lz4", "codec-mixed", "codec-snappy", "codec-zstd"]
    assert found == {name: len(GoldenCase("kafka-4.3", name).expected) for name in names}
    # `value` is the name of a result, too, which costs a column at most.
    assert set(decoded_columns(spark)) - {"value"} == {
        "topic",
        "partition",
        "offset",
        "batchCodec",
    }


@pytest.mark.parametrize("name", ["partition.metadata", "00000000000000000000.log"])
def test_what_goes_wrong_is_one_line(name: str, tmp_path: Path) -> None:
    """With the file and the reason, in the driver or in a worker, and nothing of Spark's stacks."""
    data = copy_of_data("kafka-4.3", tmp_path)
    path = data / "plain-0" / name
    if path.suffix == ".log":
        path.write_bytes(b"x" * path.stat().st_size)
        reason = "position 0: "
    else:
        path.unlink()
        path.mkdir()
        reason = "Is a directory"
    command = [sys.executable, "-m", "logstore.tools.cli", "sql", str(data)]
    done = subprocess.run(
        [*command, "SELECT count(*) FROM records"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("WARNING: Using")]
    assert line.startswith(f"logstore: {path}: {reason}")


def test_of_a_part_of_a_cluster_it_is_said(tmp_path: Path) -> None:
    """Which partitions the answer is without, where a directory was forgotten."""
    first, _ = split_in_two(GOLDEN / "kafka-4.3" / "data", tmp_path)
    command = [sys.executable, "-m", "logstore.tools.cli", "sql", str(first)]
    done = subprocess.run(
        [*command, "SELECT count(*) FROM records"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"{first}: lacks partitions that the cluster has: " in done.stderr


def test_directories_of_a_node_are_one_store(spark: SparkSession, tmp_path: Path) -> None:
    """By commas between their names, or by a list of paths; counts and rows are of all."""
    parts = split_in_two(Path(KAFKA), tmp_path)
    location = ",".join(map(str, parts))
    wanted = sql(spark, "SELECT * FROM partitions ORDER BY 1, 2", KAFKA).collect()
    assert sql(spark, "SELECT * FROM partitions ORDER BY 1, 2", location).collect() == wanted
    frame = spark.read.format("logstore").load([str(part) for part in parts])
    assert frame.count() == sum(row["count"] for row in wanted) > 0


@pytest.mark.slow
def test_a_query_without_columns_reads_the_cheapest(spark: SparkSession) -> None:
    """The number of records of a topic is that of its offsets."""
    assert sql(spark, "SELECT count(*) FROM records", KAFKA, subscribe="plain").collect()[0][0] == (
        len(PLAIN.expected)
    )
    assert decoded_columns(spark) == ["offset"]


@pytest.mark.slow
def test_a_star_is_what_sparks_kafka_source_has_and_headers(spark: SparkSession) -> None:
    """Other columns are there when they are named, and when the table is described."""
    usual = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    star = sql(spark, "SELECT * FROM records", KAFKA)
    assert star.columns == [*usual, "headers"]

    described = [row.col_name for row in sql(spark, "DESCRIBE records", KAFKA).collect()]
    assert described[:8] == [*usual, "headers"]
    assert {"file", "position", "producerId"} <= set(described)
    assert not {"_corrupt", "queueOffset"} & set(described)

    named = sql(spark, "SELECT max(position) AS last FROM records", KAFKA, subscribe="plain")
    assert named.collect()[0].last > 0


def test_partitions_are_told_without_reading_records(spark: SparkSession) -> None:
    """Counts, first and last offset of a topic of several partitions."""
    query = "SELECT partition, count, firstOffset, lastOffset FROM Partitions ORDER BY partition"
    found = [tuple(row) for row in sql(spark, query, KAFKA, subscribe="plain").collect()]

    counted = Counter(record["partition"] for record in PLAIN.expected)
    assert found == [(index, count, 0, count - 1) for index, count in sorted(counted.items())]


def test_two_stores_are_joined(spark: SparkSession) -> None:
    """One of each layout; each has its own columns."""
    store = RocketMQCase("plain", "5.5.0")
    query = """
        SELECT m.topic, m.partition, m.queueOffset, m.tags FROM mq_records m
        LEFT ANTI JOIN records k ON k.value = m.value
    """
    found = sql(spark, query, KAFKA, {"mq": str(store.store)}).collect()

    expected = [(m["topic"], m["queueId"], m["queueOffset"]) for m in store.expected]
    assert sorted(tuple(row)[:3] for row in found) == sorted(expected)
    assert decoded_columns(spark, "records") == ["value", "topic", "partition"]
    assert {"value", "tags", "queueOffset"} <= set(decoded_columns(spark, "mq_records"))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELEC 1", "SELEC"),
        ("SELECT colour FROM records", "colour"),
        ("SELECT * FROM recods", "recods"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
    ],
)
def test_what_is_wrong_with_a_query_is_one_line(
    spark: SparkSession, query: str, reason: str
) -> None:
    """Spark's own words, without its plans."""
    with pytest.raises(QueryError, match=reason) as caught:
        sql(spark, query, KAFKA)
    assert "\n" not in str(caught.value)
    assert "Relation" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE copy AS SELECT * FROM records",
        "-- a comment\n DROP VIEW records",
        "WITH some AS (SELECT * FROM records) INSERT INTO records SELECT * FROM some",
        "",
    ],
)
def test_a_query_only_asks(spark: SparkSession, query: str) -> None:
    """Nothing is made, in no store and not beside it."""
    with pytest.raises(QueryError, match="only asks"):
        sql(spark, query, KAFKA)


def test_a_query_may_start_with_a_comment_or_a_bracket(spark: SparkSession) -> None:
    """As they stand in files."""
    query = "/* how\nmany */ -- (of them)\n (SELECT count(*) AS n FROM records)"
    assert sql(spark, query, KAFKA, subscribe="plain").collect()[0].n == len(PLAIN.expected)


def test_a_store_needs_a_name_that_sql_takes(spark: SparkSession) -> None:
    """It stands in front of the names of its tables."""
    with pytest.raises(QueryError, match="'my-copy' is no name"):
        sql(spark, "SELECT 1", KAFKA, {"my-copy": KAFKA})


def test_rows_are_shown_as_json(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, bytes that are none, times of any year, numbers, nested values and NULL."""
    frame = spark.sql(
        "SELECT CAST('a' AS BINARY) AS text, X'FF00' AS bytes,"
        " timestamp_millis(1700000000123) AS t, timestamp_millis(9223372036854775) AS far,"
        " 1.50 AS price, named_struct('a', 1, 'b', 'c') AS both, array(X'61', NULL) AS list,"
        " map('k', date'2024-02-29') AS days, NULL AS nothing,"
        " true AS yes"
    )
    say_json(frame)
    assert json.loads(capsys.readouterr().out) == {
        "text": "a",
        "bytes": {"base64": base64.b64encode(b"\xff\0").decode()},
        "t": "2023-11-14T22:13:20.123Z",
        "far": "+294247-01-10T04:00:54.775Z",
        "price": "1.50",
        "both": {"a": 1, "b": "c"},
        "list": ["a", None],
        "days": {"k": "2024-02-29"},
        "nothing": None,
        "yes": True,
    }
    with pytest.raises(FailedQueryError, match="two columns are called a"):
        say_json(spark.sql("SELECT 1 AS a, 2 AS a"))


def test_rows_are_shown_as_csv(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Names first; what has commas is quoted; NULL is nothing; bytes that are no text are hex."""
    say_csv(
        spark.sql("SELECT 'a,b' AS one, NULL AS two, X'FF' AS three UNION ALL SELECT 'c', 2, ''")
    )
    assert capsys.readouterr().out == 'one,two,three\n"a,b",,0xff\nc,2,\n'


def test_a_table_says_when_there_is_more(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Up to the limit, and a word on stderr; nothing is folded where no terminal is."""
    frame = spark.sql("SELECT id AS number, repeat('x', 300) AS text FROM range(3)")
    say_table(frame, 2)
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [
        ["number", "text"],
        ["0", "x" * 300],
        ["1", "x" * 300],
    ]
    assert err == "2 rows of more; --limit 0 shows all\n"

    say_table(frame, 0)
    out, err = capsys.readouterr()
    assert (len(out.splitlines()), err) == (4, "")


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command as a shell would."""
    command = [sys.executable, "-m", "logstore.tools.cli", "sql", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_answers_what_stands_on_stdin() -> None:
    """With a semicolon at its end, as it stands in files."""
    query = "SELECT string(value) AS value FROM records ORDER BY partition, offset;\n"
    done = run(KAFKA, "-", "--topics", "plain", "--master", "local[2]", "--json", stdin=query)

    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    expected = sorted(PLAIN.expected, key=lambda record: (record["partition"], record["offset"]))
    assert [row["value"] for row in found] == [
        None if record["value"] is None else base64.b64decode(record["value"]).decode()
        for record in expected
    ]


@pytest.mark.slow
def test_damage_ends_the_command_with_file_and_position(tmp_path: Path) -> None:
    """In one line; with ``--mode dropmalformed`` the rest is answered."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    victim = kafka_victim(directory, 0, 3)
    victim.suffer(KAFKA_DAMAGE["last-byte"])
    query = "SELECT count(value) AS count FROM records"
    asked = (str(directory), query, "--topics", TOPIC, "--master", "local[2]", "--csv")

    failed = run(*asked)
    passed = run(*asked, "--mode", "dropmalformed")

    assert failed.returncode == 1
    told = [line for line in failed.stderr.splitlines() if line.startswith("logstore: ")]
    assert len(told) == 1
    assert str(victim.path) in told[0]
    assert str(victim.position) in told[0]
    assert passed.returncode == 0, passed.stderr
    left = [
        record
        for record in GoldenCase("kafka-4.3", TOPIC).expected
        if (TOPIC, record["partition"], record["offset"]) not in victim.rows
        and (record.get("value") is not None or "value_sha256" in record)
    ]
    assert passed.stdout == f"count\n{len(left)}\n"
