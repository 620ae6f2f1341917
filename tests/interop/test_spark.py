"""Spark itself on stores of the real Kafka: SQL, filters, counts, damage, and without a Java."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from logstore.compat import TestBroker
from logstore.compat.spark import counts, read
from tests.interop.clients import settings
from tests.interop.conftest import new_topic
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data, golden_cases

pytestmark = pytest.mark.interop

DATA = GOLDEN / "kafka-4.3" / "data"


def offsets_of(frame: DataFrame) -> list[tuple[str, int, int]]:
    """Return where the rows come from, in order."""
    return sorted((row.topic, row.partition, row.offset) for row in frame.collect())


def test_every_golden_record_is_a_row(spark: SparkSession) -> None:
    """Topic, partition and offset of all that a read_committed consumer got, and key and value."""
    frame = spark.read.format("logstore").load(str(DATA))
    found = {(row.topic, row.partition, row.offset) for row in frame.collect()}
    expected = {
        (case.topic, record["partition"], record["offset"])
        for case in golden_cases()
        if case.set_name == "kafka-4.3" and not case.topic.startswith("__")
        for record in case.expected
        if record["read_committed"]
    }
    assert found == expected
    assert len(expected) > 3000


def test_the_schema_is_that_of_sparks_kafka_source(spark: SparkSession) -> None:
    """Names, order and types; headers when asked for."""
    frame = spark.read.format("logstore").option("includeHeaders", "true").load(str(DATA))
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]


def test_filters_narrow_what_is_read(spark: SparkSession) -> None:
    """The rows are those of the filter; many tasks become one, or one with nothing to do."""
    frame = read(spark, str(DATA), ["topic", "partition", "offset"], splitBytes="1000")
    assert frame.rdd.getNumPartitions() > 100
    some = frame.where("topic = 'plain-1mib' and offset between 100 and 120")
    assert offsets_of(some) == [("plain-1mib", 0, offset) for offset in range(100, 121)]
    assert some.rdd.getNumPartitions() < 30
    none = frame.where("topic = 'plain-1mib' and offset < 0")
    assert (none.rdd.getNumPartitions(), none.count()) == (1, 0)


def test_a_time_window_is_answered_rightly(spark: SparkSession) -> None:
    """The same rows with the window pushed down as without."""
    frame = read(spark, str(DATA), ["topic", "partition", "offset", "timestamp"])
    low, high = datetime(2023, 11, 14, 22, 20), datetime(2023, 11, 14, 22, 30)
    everything = frame.collect()
    wanted = [row for row in everything if low <= row.timestamp <= high]
    pushed = frame.where(f"timestamp between '{low}' and '{high}'")
    assert offsets_of(pushed) == sorted((r.topic, r.partition, r.offset) for r in wanted)
    assert 0 < len(wanted) < len(everything)


def test_sql_over_aborted_transactions(spark: SparkSession) -> None:
    """What was aborted is not counted, unless somebody asks for it."""
    case = GoldenCase("kafka-4.3", "transactions")
    for isolation, is_wanted in (("read_committed", True), ("read_uncommitted", False)):
        read(spark, str(DATA), subscribe=case.topic, isolation=isolation).createOrReplaceTempView(
            "transactions"
        )
        (row,) = spark.sql("select count(*) as n, max(offset) as last from transactions").collect()
        expected = [r for r in case.expected if r["read_committed"] or not is_wanted]
        assert (row.n, row.last) == (len(expected), expected[-1]["offset"])


def test_counts_come_from_headers(spark: SparkSession) -> None:
    """The same as counting rows, in every partition of every topic."""
    by_rows = read(spark, str(DATA), ["topic", "partition"]).groupBy("topic", "partition").count()
    expected = sorted((row.topic, row.partition, row["count"]) for row in by_rows.collect())
    found = counts(spark, str(DATA)).collect()
    assert sorted((row.topic, row.partition, row["count"]) for row in found) == expected


def test_damage_is_told_with_file_and_position(spark: SparkSession, tmp_path: Path) -> None:
    """A query fails with both in its message; in permissive mode one row has them."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    path = directory / "plain-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    with pytest.raises(PySparkException, match=path.name) as caught:
        read(spark, str(directory), ["offset"], subscribe="plain").collect()
    assert "position 0" in str(caught.value)
    told = read(
        spark, str(directory), ["offset", "_corrupt"], subscribe="plain", mode="permissive"
    ).collect()
    assert [row.offset for row in told if row["_corrupt"]] == [None]
    assert len(told) > 100


def test_a_wrong_option_is_named(spark: SparkSession) -> None:
    """Where it is made, not in a worker's log."""
    with pytest.raises(PySparkException, match="failfast, permissive, dropmalformed"):
        spark.read.format("logstore").option("mode", "lenient").load(str(DATA)).collect()


@pytest.mark.slow
def test_a_stream_that_is_stopped_again_and_again_gets_every_record_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A live broker under load, ten queries from one checkpoint, one sink: no loss, no repeat."""
    sink, checkpoint = str(tmp_path / "sink"), str(tmp_path / "checkpoint")
    with TestBroker(str(tmp_path / "data"), settings={"log.segment.bytes": "1048576"}) as broker:
        new_topic(broker.bootstrap, "live", 3, {})
        producer = Producer(settings(broker.bootstrap))
        for number in range(10):
            for record in range(200):
                producer.produce("live", f"{number}-{record}", partition=record % 3)
            producer.flush(20)
            stream = (
                spark.readStream.format("logstore")
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", "150")
                .load(str(tmp_path / "data"))
                .selectExpr("cast(value as string) as value", "partition", "offset")
            )
            query = (
                stream.writeStream.format("parquet")
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start(sink)
            )
            if number % 3 == 2:
                query.stop()  # wherever it is
            else:
                assert query.awaitTermination(60)
    rows = spark.read.parquet(sink).collect()
    assert len(rows) == 2000
    assert {row.value for row in rows} == {f"{n}-{r}" for n in range(10) for r in range(200)}
    assert len({(row.partition, row.offset) for row in rows}) == 2000
