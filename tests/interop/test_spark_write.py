"""Spark writes to stores, and converts on a cluster of which a worker is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from tests.interop.eventually import eventually
from tests.interop.spark_cluster import Cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_rows_written_are_rows_read(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    """From eight tasks into a new store and again into that; a key is always in one partition."""
    store = str(tmp_path / "store")
    rows = spark.range(0, 5000, numPartitions=8).selectExpr(
        "cast(id % 97 as string) as key", "cast(id as string) as value"
    )
    settings = {"set.mappedFileSizeCommitLog": "4194304"} if layout == "rocketmq" else {}
    for _ in range(2):
        rows.write.format("logstore").mode("append").options(
            layout=layout, topic="t", partitions="3", **settings
        ).save(store)
    found = spark.read.format("logstore").load(store)
    assert found.count() == 10_000
    assert found.selectExpr("count(distinct cast(value as string)) as n").first()["n"] == 5000  # type: ignore[index]
    homes = found.groupBy("key").agg({"partition": "min"}).count()
    spread = found.select("key", "partition").distinct().count()
    assert (homes, spread) == (97, 97)
    assert not Path(f"{store}.writing").exists()
    if layout == "rocketmq":
        assert {file.stat().st_size for file in Path(store, "commitlog").iterdir()} == {4_194_304}


def test_a_stream_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """From store to store, stopped after every trigger and started again from its checkpoint."""
    source, target = tmp_path / "source", tmp_path / "target"
    store = KafkaStore(system_host(), str(source))
    store.create_topic("t", 1)
    store.close()
    rows = spark.range(0, 60).selectExpr("cast(id as string) as key", "cast(id as string) value")
    for _ in range(2):
        rows.write.format("logstore").mode("append").option("topic", "t").save(str(source))
        query = (
            spark.readStream.format("logstore")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "40")
            .load(str(source))
            .select("key", "value", "topic")
            .writeStream.format("logstore")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(target))
        )
        assert query.awaitTermination(120)
    found = spark.read.format("logstore").load(str(target))
    assert found.count() == 120
    assert found.select("key").distinct().count() == 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A standalone cluster."""
    found = Cluster(tmp_path)
    yield found
    found.stop()


def test_a_conversion_outlives_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    """On a standalone master with two workers, one of which is killed when a task is done."""
    source, target = tmp_path / "source", tmp_path / "target"
    store = KafkaStore(system_host(), str(source))
    topic = store.create_topic("t", 2)
    for partition in topic.partitions.values():
        for number in range(2000):
            partition.append_records([Record(None, b"%06d" % number * 150, 1000 + number)])
    store.close()
    command = [sys.executable, "-m", "logstore.tools.cli", "convert", str(source), str(target)]
    more = ("--set", "mappedFileSizeCommitLog=65536", "--master", cluster.url)
    process = subprocess.Popen(
        [*command, "--to", "rocketmq", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    done = tmp_path / "target.converting" / "done"
    eventually(
        lambda: process.poll() is not None or (done.is_dir() and any(done.iterdir())),
        150,
        what="a task that is done",
    )
    cluster.kill(1)
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err[-3000:]
    assert b"4,000 records" in out
    assert sum(1 for _ in (target / "commitlog").iterdir()) > 50
