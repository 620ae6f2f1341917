"""`logstore serve` on directories that real brokers left: every record comes out as it went in."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from tests.interop.clients import settings
from tests.interop.conftest import SETTINGS
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

SETS = ("kafka-4.3", "kafka-3.9", "epochs-4.3", "legacy-3.9", "transactions-4.3")
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LONG_VALUE_BYTES = 512
TIMESTAMP_TYPES = {0: None, 1: "CreateTime", 2: "LogAppendTime"}


@pytest.fixture(scope="module", params=SETS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, OurBroker]]:
    """A broker on a copy of one golden set."""
    directory = tmp_path_factory.mktemp(request.param)
    shutil.copytree(GOLDEN / request.param / "data", directory / "data")
    with OurBroker(directory, SETTINGS) as broker:
        yield request.param, broker


def described(message: Message) -> dict[str, Any]:
    """Return a consumed record as `expected.jsonl` writes it."""
    kind, timestamp_ms = message.timestamp()
    headers: Any = message.headers() or []
    value = message.value()
    assert value is None or isinstance(value, bytes)
    found: dict[str, Any] = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms,
        "timestamp_type": TIMESTAMP_TYPES[kind],
        "leader_epoch": message.leader_epoch(),
        "key": encoded(message.key()),
        "headers": [[name, encoded(one)] for name, one in headers],
    }
    if value is not None and len(value) >= LONG_VALUE_BYTES:
        digest = hashlib.sha256(value).hexdigest()
        return found | {"value_size": len(value), "value_sha256": digest}
    return found | {"value": encoded(value)}


def encoded(data: bytes | str | None) -> str | None:
    """Return base64 of some bytes; null stays null."""
    assert not isinstance(data, str)
    return None if data is None else base64.b64encode(data).decode()


def consumed(broker: OurBroker, topic: str, isolation: str) -> list[dict[str, Any]]:
    """Return all records of a topic, as a consumer of that isolation level gets them."""
    consumer = Consumer(
        settings(broker.bootstrap)
        | {"group.id": "reader", "isolation.level": isolation, "check.crcs": True}
        | {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    starts: list[TopicPartition] = []
    for partition in partitions:
        marks = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        assert marks is not None
        starts.append(TopicPartition(topic, partition, marks[0]))
    consumer.assign(starts)
    found: list[dict[str, Any]] = []
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(20)
        assert message is not None, f"{topic}: nothing more, and not the end: {len(found)} records"
        error = message.error()
        if error is None:
            found.append(described(message))
        else:
            assert error.name() == "_PARTITION_EOF", error
            ended.add(message.partition() or 0)
    consumer.close()
    return sorted(found, key=lambda record: (record["partition"], record["offset"]))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_every_record_is_served(served: tuple[str, OurBroker], isolation: str) -> None:
    """Offsets, times, leader epochs, keys, values and headers are those of the real consumer."""
    name, broker = served
    cases = sorted((GOLDEN / name / "cases").iterdir())
    wrong: list[str] = []
    for case in cases:
        about = json.loads((case / "case.json").read_text())
        expected: list[dict[str, Any]] = []
        for line in (case / "expected.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record.pop("read_committed") or isolation == "read_uncommitted":
                expected.append(record)
        expected.sort(key=lambda record: (record["partition"], record["offset"]))
        if consumed(broker, about["topic"], isolation) != expected:
            wrong.append(case.name)
    assert wrong == []
