"""Kafka's transactions over RocketMQ's layout: real producers, and readers of both protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pytest

from logstore.compat.test_broker import TestBroker
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.test_bridge import BOTH, rocketmq
from tests.interop.test_transactions import (
    KEPT,
    PRODUCERS,
    TIMEOUT_SECONDS,
    librdkafka_producer,
    run_java,
    values,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
COUNT = 5


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    """Both protocols on one store of RocketMQ's layout."""
    data = str(tmp_path_factory.mktemp("queues") / "data")
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with TestBroker(data, layout="rocketmq", protocols=BOTH, settings=settings) as served:
        yield served


def end_of(bootstrap: str, topic: str) -> int:
    """Return where the first partition ends."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
    partition = confluent_kafka.TopicPartition(topic, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS, cached=False)
    consumer.close()
    return int(end)


@pytest.mark.parametrize("name", PRODUCERS)
def test_readers_of_both_protocols_see_what_was_committed(broker: TestBroker, name: str) -> None:
    """Whatever their isolation level, and nothing else has an offset."""
    topic = f"plan-of-{name}"
    carry_out: Callable[[str, str, str], None] = PRODUCERS[name]
    carry_out(broker.bootstrap, f"id-of-{name}", topic)
    assert values(broker.bootstrap, topic) == KEPT
    assert values(broker.bootstrap, topic, "read_uncommitted") == KEPT
    assert end_of(broker.bootstrap, topic) == len(KEPT)
    rows = [line.split(" ") for line in rocketmq(broker, "pull", topic)]
    assert [(int(row[1]), bytes.fromhex(row[2]).decode()) for row in rows] == list(enumerate(KEPT))


def with_librdkafka(bootstrap: str, topic: str) -> list[int | None]:
    """Return the offsets that librdkafka reports for records of one batch."""
    found: list[int | None] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"id-of-{topic}", "linger.ms": 200}
    )
    producer.init_transactions(TIMEOUT_SECONDS)
    producer.begin_transaction()
    for number in range(COUNT):
        producer.produce(
            topic, b"%d" % number, partition=0,
            on_delivery=lambda _, message: found.append(message.offset()),
        )  # fmt: skip
    producer.commit_transaction(TIMEOUT_SECONDS)
    return found


def with_kafka_python(bootstrap: str, topic: str) -> list[int | None]:
    """Return what kafka-python reports; -1 is its word for an unknown offset."""
    producer: Any = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}", linger_ms=200
    )
    producer.init_transactions()
    producer.begin_transaction()
    futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(COUNT)]
    producer.commit_transaction()
    found = [future.get(TIMEOUT_SECONDS).offset for future in futures]
    producer.close()
    return [None if offset == -1 else offset for offset in found]


def with_java(bootstrap: str, topic: str) -> list[int | None]:
    """Return what the Java client reports."""
    told = run_java("offsets", bootstrap, f"id-of-{topic}", topic, str(COUNT)).split()
    return [None if word == "unknown" else int(word) for word in told]


@pytest.mark.parametrize("report", [with_librdkafka, with_kafka_python, with_java])
def test_no_producer_reports_an_offset_that_is_none(
    broker: TestBroker, report: Callable[[str, str], list[int | None]]
) -> None:
    """An offset that is not known yet is not known to the client, for every record of a batch."""
    topic = f"offsets-{report.__name__}"
    assert report(broker.bootstrap, topic) == [None] * COUNT
    assert len(values(broker.bootstrap, topic)) == COUNT


def test_a_late_transaction_holds_nobody_up(broker: TestBroker) -> None:
    """What comes behind it is read at once; it is aborted, and its producer is told."""
    late = librdkafka_producer(broker.bootstrap, "late", timeout_ms=1_000)
    late.begin_transaction()
    late.produce("punctual", b"late", partition=0)
    late.flush(TIMEOUT_SECONDS)
    good = librdkafka_producer(broker.bootstrap, "good")
    good.begin_transaction()
    good.produce("punctual", b"good", partition=0)
    good.commit_transaction(TIMEOUT_SECONDS)
    assert values(broker.bootstrap, "punctual") == ["good"]

    admin: Any = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)

    def is_aborted() -> bool:
        return "CompleteAbort" in str(admin.describe_transactions(["late"]))

    eventually(is_aborted, 60, what="the abort")
    admin.close()
    with pytest.raises(confluent_kafka.KafkaException):
        late.commit_transaction(TIMEOUT_SECONDS)
    assert values(broker.bootstrap, "punctual") == ["good"]


@pytest.mark.parametrize("is_killed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_open_transaction_outlives_the_process(tmp_path: Path, is_killed: bool) -> None:
    """Librdkafka's goes on after a stop or a kill, what Java left open is aborted."""
    over = ("--protocol", "kafka", "--layout", "rocketmq")
    broker = OurBroker(tmp_path, arguments=over).start()
    producer = librdkafka_producer(broker.bootstrap, "goes-on")
    producer.begin_transaction()
    producer.produce("t", b"before", partition=0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    run_java("hang", broker.bootstrap, "hanging", "t", "2")
    broker.stop(kill=is_killed)
    broker.start()
    assert values(broker.bootstrap, "t") == []
    producer.produce("t", b"after", partition=0)
    producer.commit_transaction(TIMEOUT_SECONDS)
    run_java("run", broker.bootstrap, "hanging", "t", "c:1")
    assert values(broker.bootstrap, "t") == ["before", "after", "0-0"]
    broker.stop(kill=is_killed)
    broker.start()
    assert values(broker.bootstrap, "t") == ["before", "after", "0-0"]
    broker.stop()
