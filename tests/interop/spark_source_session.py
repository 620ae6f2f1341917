"""
Spark's own Kafka source and ours, asked the same in one session: over a broker, and over its files.

Run with the pyspark that has such a source; prints a line of JSON for each question::

    python -m tests.interop.spark_source_session JAR,JAR < questions

A question is a line of JSON, too: the options. Answered is ``[theirs, ours]``, each the number of
tasks, how many rows there are and a hash of them, or what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from logstore.compat import TestBroker
from logstore.compat.spark import local_session

#: the time of record 0; record n is 100 n ms younger
T = 1_700_000_000_000
RECORDS = 600
#: errors are given up on soon, and records waited for that are not there
_HASTE = {
    "fetchOffset.numRetries": "1",
    "kafkaConsumer.pollTimeoutMs": "3000",
    "kafka.request.timeout.ms": "4000",
    "kafka.default.api.timeout.ms": "5000",
}
Answer = list[Any]


def fill(bootstrap: str) -> None:
    """Make the topics: one, three and gap with a part removed, empty, and transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"segment.ms": "20000", "retention.ms": "-1"}
    counts = {"one": 1, "three": 3, "gap": 2, "empty": 2, "txn": 1}
    made = admin.create_topics([NewTopic(name, n, config=config) for name, n in counts.items()])
    for topic in made.values():
        topic.result()
    producer, chance = Producer({"bootstrap.servers": bootstrap}), random.Random(5)
    for number in range(RECORDS):
        time = T + number * 100
        headers: Any = [("h", b"x"), ("h", None)] if number % 5 == 0 else None
        key = None if number % 7 == 0 else b"k%d" % (number % 9)
        producer.produce("one", b"v%d" % number, key, 0, timestamp=time, headers=headers)
        producer.produce(
            "three",
            None if number % 11 == 0 else b"v%d" % number,
            b"k%d" % (number % 50),
            number % (3 if number < 500 else 2),
            timestamp=time + chance.randrange(-300, 300),
        )
        producer.produce("gap", b"g%d" % number, partition=number % 2, timestamp=time)
        if number % 40 == 0:
            producer.flush()
    producer.flush()
    _fill_transactions(bootstrap)
    removed = [TopicPartition("gap", 0, 50), TopicPartition("gap", 1, 120)]
    for partition in admin.delete_records(removed).values():
        partition.result()


def _fill_transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for record in range(10):
            producer.produce("txn", b"%d-%d" % (number, record), timestamp=T + number)
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)()
    producer.begin_transaction()
    producer.produce("txn", b"open", timestamp=T + 9000)
    producer.flush()


def answer(frame: Any) -> Answer:
    """Return what a query gives: tasks, rows, and a hash of them; or its error."""
    try:
        loaded: DataFrame = frame()
        rows = sorted(repr(tuple(row)) for row in loaded.collect())
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        return [loaded.rdd.getNumPartitions(), len(rows), digest]
    except Exception as error:  # noqa: BLE001 - a kind of Spark's, or what its gateway raises
        lines = [line for line in str(error).splitlines() if "Error" in line or "Exception" in line]
        return [(lines or str(error).splitlines() or [""])[-1].strip()]


def ask(spark: SparkSession, options: dict[str, str], broker: TestBroker) -> list[Answer]:
    """Return what both sources say."""
    theirs = spark.read.format("kafka").options(**_HASTE)
    theirs = theirs.option("kafka.bootstrap.servers", broker.bootstrap).options(**options)
    ours = spark.read.format("logstore").options(**options)
    if "kafka.isolation.level" not in options:
        ours = ours.option("isolation", "read_uncommitted")
    return [answer(theirs.load), answer(lambda: ours.load(broker.directory))]


def main() -> None:
    """Answer the questions."""
    settings = {"spark.jars": sys.argv[1], "spark.ui.showConsoleProgress": "false"}
    spark = local_session("local[2]", settings)
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as directory:
        with TestBroker(f"{directory}/data") as broker:
            fill(broker.bootstrap)
        # A broker that starts anew has written down by then which records were removed.
        with TestBroker(f"{directory}/data") as broker:
            for line in sys.stdin:
                sys.stdout.write(json.dumps(ask(spark, json.loads(line), broker)) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
