"""
All that a session of Spark does with stores, in a process of its own.

Of Spark Connect and of a classic session a process has one kind, and of PySpark one release. Prints
one JSON object::

    python -m tests.interop.spark_tour sc://HOST:PORT FOLDER KAFKA ROCKETMQ DAMAGED
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from logstore.compat.spark import local_session, read, sql
from logstore.compat.spark.connect import core_count
from logstore.compat.spark.convert.convert import convert
from logstore.compat.spark.convert.job import SparkRunner
from logstore.compat.spark.convert.options import ConvertOptions
from logstore.compat.spark.query import QueryError
from logstore.compat.spark.used_columns import used_columns
from logstore.compat.spark.worker_tasks import run_in_workers
from logstore.errors import LogStoreError
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

KAFKA = GOLDEN / "kafka-4.3" / "data"
ROCKETMQ = RocketMQCase("plain", "5.5.0")
PLAIN = len(GoldenCase("kafka-4.3", "plain").expected)
#: and the columns that they use
QUERIES: dict[str, list[str]] = {
    "SELECT count(*) FROM records": [],
    "SELECT topic FROM records WHERE value IS NOT NULL": ["topic", "value"],
    "SELECT key FROM records UNION SELECT value FROM records": ["key", "value"],
    "SELECT max(partition) FROM (SELECT * FROM records UNION ALL SELECT * FROM records)": [
        "partition"
    ],
    "SELECT topic, (SELECT max(offset) FROM records) FROM records": ["offset", "topic"],
    "SELECT a.key FROM records a JOIN records b ON a.offset = b.partition": [
        "key", "offset", "partition"
    ],
}  # fmt: skip


def toured(master: str, folder: Path, packages: str = "") -> dict[str, Any]:
    """Return what a session did, by the pyspark in `packages` if that is said."""
    damaged = copy_of_data("kafka-4.3", folder / "damaged")
    log = damaged / "plain-0" / "00000000000000000000.log"
    log.write_bytes(b"x" * log.stat().st_size)
    path = [one for one in (packages, os.getcwd(), os.environ.get("PYTHONPATH", "")) if one]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    environment["PYSPARK_PYTHON"] = sys.executable
    environment.pop("SPARK_HOME", None)
    words = [master, str(folder), str(KAFKA), str(ROCKETMQ.lean_store), str(damaged)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.interop.spark_tour", *words],
        capture_output=True, text=True, check=False, timeout=600, env=environment,
    )  # fmt: skip
    assert not ran.returncode, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


class Piece:
    """So many bytes of work."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.size_bytes = 10


def doubled(pieces: list[Piece]) -> list[int]:
    """Work."""
    return [piece.number * 2 for piece in pieces]


def rows_of(frame: Any) -> list[list[Any]]:
    """Return rows as JSON has them."""
    return [list(row) for row in frame.collect()]


def failure_of(ask: Callable[[], Any]) -> list[str]:
    """Return the kind and the text of what goes wrong."""
    try:
        ask()
    except LogStoreError as error:
        return [type(error).__name__, str(error)]
    return []


def used(spark: SparkSession, store: str) -> dict[str, Any]:
    """Return which columns queries use, by the text of their plans."""
    read(spark, store).createOrReplaceTempView("records")
    found = {query: used_columns(spark.sql(query)) for query in QUERIES}
    return {query: names if names is None else sorted(names) for query, names in found.items()}


def asked(spark: SparkSession, kafka: str, rocketmq: str) -> dict[str, Any]:
    """Ask in SQL: a query means its own store for good."""
    count = "SELECT topic, count(*) AS n FROM records GROUP BY topic ORDER BY topic"
    one = sql(spark, count, kafka)
    other = sql(spark, count, rocketmq)
    parts = sql(spark, "SELECT topic, sum(count) FROM partitions GROUP BY 1 ORDER BY 1", kafka)
    joined = "SELECT count(*) FROM Records r JOIN copy_records c ON r.topic = c.topic"
    both = sql(spark, joined, kafka, {"copy": kafka}, subscribe="plain")
    return {
        "kafka": rows_of(one),
        "rocketmq": rows_of(other),
        "partitions": rows_of(parts),
        "joined": rows_of(both),
        "described": [row[0] for row in rows_of(sql(spark, "DESCRIBE records", kafka))],
        "wrong": failure_of(lambda: sql(spark, "SELECT nothing FROM records", kafka)),
    }


def copied(spark: SparkSession, kafka: str, folder: Path) -> list[list[Any]]:
    """Write by a batch, go on with it by a stream; return what stands in the second store."""
    first, second = str(folder / "first"), str(folder / "second")
    rows = spark.read.format("logstore").option("subscribe", "plain").load(kafka)
    rows.write.format("logstore").mode("append").option("topic", "copies").save(first)
    live = spark.readStream.format("logstore").option("startingOffsets", "earliest").load(first)
    stream = live.writeStream.format("logstore").trigger(availableNow=True)
    stream.option("checkpointLocation", str(folder / "checkpoint")).start(second).awaitTermination()
    return rows_of(sql(spark, "SELECT topic, count(*) FROM records GROUP BY topic", second))


def main(url: str, folder: str, kafka: str, rocketmq: str, damaged: str) -> None:
    """Do it all."""
    assert issubclass(QueryError, LogStoreError)
    spark = local_session(url, {"spark.sql.session.timeZone": "UTC"})
    runner, target = SparkRunner(spark), Path(folder)
    told: list[tuple[int, int]] = []
    pieces = [Piece(number) for number in range(100)]
    converted = convert(runner, ConvertOptions(kafka, f"{folder}/converted", "rocketmq"))
    refused = ConvertOptions(damaged, f"{folder}/refused", "rocketmq")
    done = {
        "cores": core_count(spark),
        "pieces": run_in_workers(spark, doubled, pieces, lambda *done: told.append(done)),
        "told": told,
        "used": used(spark, kafka),
        "asked": asked(spark, kafka, rocketmq),
        "copied": copied(spark, kafka, target),
        "converted": converted["messages"],
        "refused": failure_of(lambda: convert(runner, refused)),
    }
    sys.stdout.write(json.dumps(done) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
