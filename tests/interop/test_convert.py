"""Converted stores in the real brokers: they start on them, and consumers read every record."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.kafka.store import StoreOptions as KafkaOptions
from logstore.segments.rocketmq.messages.message import Message
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.store import StoreOptions as RocketMQOptions
from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import settings
from tests.interop.conftest import missing
from tests.interop.java_programs import rocketmq_program
from tests.interop.rocketmq_programs import JAVA_SOURCES
from tests.interop.rocketmq_sessions import start_real
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


def convert(source: Path, target: Path, layout: str, *more: str) -> None:
    """Run the command as a user does with much to do; it is a Spark job on this machine."""
    command = [sys.executable, "-m", "logstore.tools.cli", "convert", str(source), str(target)]
    command += ["--to", layout, "--master", "local[*]", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert " records, " in done.stdout


def kafka_records(directory: Path) -> dict[tuple[str, int], list[Record]]:
    """Return the committed records of every partition of a Kafka store."""
    store = KafkaStore(system_host(), str(directory), KafkaOptions(is_writable=False))
    found = {
        (topic, index): partition.read_records(
            partition.start_offset, 10**6, is_committed_only=True
        )
        for topic, partitions in store.topics().items()
        for index, partition in partitions.items()
        if not topic.startswith("__")
    }
    store.close()
    return found


def messages_of(case: GoldenCase) -> dict[tuple[str, int], list[Message]]:
    """Return the messages of every queue of a golden RocketMQ store."""
    options = RocketMQOptions(is_writable=False, settings=case.settings)
    store = RocketMQStore(system_host(), str(case.store), options)
    found = {
        (topic, queue_id): queue.messages(queue.start_offset, 10**6)
        for topic, queues in store.topics().items()
        for queue_id, queue in queues.items()
        if not topic.startswith(("RMQ_SYS", "SCHEDULE", "rmq_sys", "%LMQ%"))
    }
    store.close()
    return found


def pulled(bootstrap: str, topics: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return (topic, queue, offset, born, bytes, CRC) of all that the Java client reads."""
    command = rocketmq_program(JAVA_SOURCES, "PullAll", bootstrap, *topics)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return sorted((row[0], *map(int, row[1:])) for row in rows)


def consumed(bootstrap: str, ends: dict[tuple[str, int], int], count: int) -> list[tuple[Any, ...]]:
    """Return (topic, partition, offset, time, key, value) of all that librdkafka reads."""
    consumer = Consumer(
        settings(bootstrap) | {"group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, index, 0) for topic, index in ends])
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=20)
        assert messages, f"{len(found)} of {count} records came"
        for one in messages:
            assert one.error() is None
            place = (one.topic(), one.partition(), one.offset())
            found.append((*place, one.timestamp()[1], one.key(), one.value()))
    consumer.close()
    return sorted(found)


def test_a_real_rocketmq_serves_what_was_kafkas(tmp_path: Path) -> None:
    """5.5.0 starts on the target as it stands, with its own file sizes; a consumer reads all."""
    source, target = GOLDEN / "kafka-4.3" / "data", tmp_path / "store"
    convert(source, target, "rocketmq")
    files = sorted(path.stat().st_size for path in (target / "commitlog").iterdir())
    assert files[0] == 1024**3
    expected: list[tuple[Any, ...]] = []
    store = KafkaStore(system_host(), str(source), KafkaOptions(is_writable=False))
    for (topic, index), records in kafka_records(source).items():
        first = store.topics()[topic][index].start_offset
        for number, record in enumerate(records):
            value = record.value or b""
            told = (record.timestamp_ms, len(value), zlib.crc32(value))
            expected.append((topic, index, first + number, *told))
    store.close()
    real = start_real("5", tmp_path / "real", {}, target)
    try:
        found = pulled(real.bootstrap, sorted({str(row[0]) for row in expected}))
        assert found == sorted(expected)
        assert len(found) > 3000
        assert "last shutdown normally" in real.log.read_text(errors="replace")
    finally:
        real.stop()


@pytest.mark.parametrize("name", ["properties", "transactions"])
def test_a_real_kafka_serves_what_was_rocketmqs(tmp_path: Path, name: str) -> None:
    """4.3 starts on the target as it stands; a consumer reads every message that is visible."""
    case = GoldenCase(name, "5.5.0")
    target = tmp_path / "kafka"
    convert(case.store, target, "kafka")
    expected = [
        (topic, queue_id, m.queue_offset, m.born_timestamp_ms, m.plain_body())
        for (topic, queue_id), messages in messages_of(case).items()
        for m in messages
    ]
    try:
        real = KafkaPeer("4", tmp_path / "real", as_is=target).start()
    except PeerUnavailable as reason:
        missing(str(reason))
    try:
        places = {(row[0], row[1]): 0 for row in expected}
        found = consumed(real.bootstrap, places, len(expected))
    finally:
        real.stop()
    assert [(row[0], row[1], row[2], row[3], row[5]) for row in found] == sorted(expected)
    assert len(expected) > 5
