"""Both protocols on one store of either layout: real clients read what the other kind wrote."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from confluent_kafka import Consumer, Producer

from logstore.compat.test_broker import TestBroker
from tests.interop.java_programs import rocketmq_program
from tests.interop.rocketmq_programs import JAVA_SOURCES, cpp_environment, run_program

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

Layout = Literal["kafka", "rocketmq"]
LAYOUTS: tuple[Layout, Layout] = ("kafka", "rocketmq")
ROCKETMQ: tuple[Layout, ...] = ("rocketmq",)
BOTH: tuple[Layout, Layout] = ("kafka", "rocketmq")
PROGRAM = str(Path(__file__).parent / "rocketmq_bridge_client.py")
COUNT = 60
PATIENCE_SECONDS = 30


@pytest.fixture(params=LAYOUTS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestBroker]:
    """Both protocols on a store of either layout, with two partitions a topic."""
    with TestBroker(
        str(tmp_path / "data"),
        layout=request.param,
        protocols=BOTH,
        settings={"num.partitions": "2"},
    ) as served:
        yield served


def produce(broker: TestBroker, topic: str, count: int = COUNT) -> list[bytes | None]:
    """
    Produce with librdkafka: keys, headers, null and binary values; return the values.

    None has a zero byte: Python's side of the C++ client ends a body there.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    values: list[bytes | None] = [
        None if number % 7 == 0 else bytes((number % 255 + 1, 128, 255)) * number
        for number in range(count)
    ]
    for number, value in enumerate(values):
        headers: list[tuple[str, str | bytes | None]] = [
            ("color", b"blue"),
            ("TAGS", b"even" if number % 2 == 0 else b"odd"),
        ]
        producer.produce(topic, value, key=f"key-{number}", headers=headers)
    assert producer.flush(PATIENCE_SECONDS) == 0
    return values


def consume(broker: TestBroker, topic: str, group: str, count: int) -> list[Any]:
    """Consume so many records with librdkafka, commit, and return them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message)
    if found:
        consumer.commit(asynchronous=False)
    consumer.close()
    return found


def rocketmq(broker: TestBroker, *words: str) -> list[str]:
    """Run the C++ client; return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, PROGRAM, broker.name_server, *words],
        env=cpp_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def in_order(places: list[tuple[int, int]]) -> bool:
    """Tell whether the offsets of every partition are 0, 1, 2, ... in the order of reading."""
    seen: dict[int, int] = {}
    for partition, offset in places:
        if offset != seen.get(partition, 0):
            return False
        seen[partition] = offset + 1
    return True


def test_kafka_to_rocketmq(broker: TestBroker) -> None:
    """What a Kafka client wrote a RocketMQ client pulls: equal bytes, in order, keys and tags."""
    values = produce(broker, "orders")
    rows = [line.split(" ") for line in rocketmq(broker, "pull", "orders")]
    assert in_order([(int(queue), int(offset)) for queue, offset, *_ in rows])
    found = {key: (bytes.fromhex(body), tags, color) for _, _, body, tags, key, color in rows}
    assert found == {
        f"key-{number}": (value or b"", "odd" if number % 2 else "even", "blue")
        for number, value in enumerate(values)
    }


def test_rocketmq_to_kafka(broker: TestBroker) -> None:
    """What a RocketMQ client sent a Kafka client consumes: bytes, key, properties as headers."""
    rocketmq(broker, "send", "invoices", str(COUNT))
    found = consume(broker, "invoices", "readers", COUNT)
    assert in_order([(message.partition(), message.offset()) for message in found])
    bodies = {message.key().decode(): message.value() for message in found}
    assert bodies == {
        f"key-{number}": (b"body %d" % number) * (number + 1) for number in range(COUNT)
    }
    headers = [dict(message.headers()) for message in found]
    assert {header["color"] for header in headers} == {b"blue"}
    assert not any(name.startswith("__") for header in headers for name in header)


def test_own_clients_see_what_they_wrote(broker: TestBroker) -> None:
    """Null and empty stay apart for Kafka clients, on a foreign layout too; RocketMQ sees all."""
    values = produce(broker, "orders")
    rocketmq(broker, "send", "orders", "3")
    found = consume(broker, "orders", "readers", COUNT + 3)
    by_key = {message.key().decode(): message.value() for message in found[:] if message.key()}
    assert [by_key[f"key-{number}"] for number in range(3, COUNT)] == values[3:]
    assert len(rocketmq(broker, "pull", "orders")) == COUNT + 3


def test_tags_select(broker: TestBroker) -> None:
    """A RocketMQ consumer that subscribes to a tag gets the records with that header only."""
    produce(broker, "orders")
    rows = rocketmq(broker, "push", "orders", "taggers", "odd", str(COUNT // 2))
    assert len(rows) == COUNT // 2


def test_groups_share_offsets(broker: TestBroker) -> None:
    """Where a Kafka group has committed, a RocketMQ group of that name goes on, and back."""
    produce(broker, "orders")
    assert len(consume(broker, "orders", "sharing", COUNT)) == COUNT
    rocketmq(broker, "send", "orders", "4")
    assert len(rocketmq(broker, "push", "orders", "sharing", "*", "4")) == 4
    produce(broker, "orders", 5)
    assert len(consume(broker, "orders", "sharing", 5)) == 5


@pytest.mark.slow
def test_waiting_clients_are_woken(broker: TestBroker) -> None:
    """A fetch, and a pull, that wait at the end are answered by what the other side writes."""
    produce(broker, "orders", 2)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "waiting",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20_000,
            "session.timeout.ms": 30_000,
        }
    )
    consumer.subscribe(["orders"])
    seen = 0
    while seen < 2:
        message = consumer.poll(PATIENCE_SECONDS)
        seen += message is not None and message.error() is None
    rocketmq(broker, "send", "orders", "1")
    started = time.monotonic()
    message = consumer.poll(PATIENCE_SECONDS)
    assert message is not None
    assert message.key() == b"key-0"
    assert time.monotonic() - started < 10
    consumer.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_restart_keeps_all(layout: Layout, tmp_path: Path) -> None:
    """Records, topics and committed offsets of both sides are there after a restart."""
    data = str(tmp_path / "data")
    with TestBroker(data, layout=layout, protocols=BOTH) as broker:
        values = produce(broker, "orders")
        rocketmq(broker, "send", "invoices", "5")
        assert len(consume(broker, "orders", "readers", COUNT)) == COUNT
    with TestBroker(data, layout=layout, protocols=BOTH) as broker:
        assert len(rocketmq(broker, "pull", "orders")) == len(values)
        assert len(consume(broker, "invoices", "readers", 5)) == 5
        rocketmq(broker, "send", "orders", "2")
        assert len(consume(broker, "orders", "readers", 2)) == 2


JAVA_SCENARIOS = ("produce", "tags", "transactions", "delay", "retry")


def java_scenario(broker: TestBroker, version: str, scenario: str, home: Path) -> list[str]:
    """Run a scenario with the Java client of that release; return what it says."""
    address = f"127.0.0.1:{broker.rocketmq.advertised_port}"
    words = (broker.name_server, address, f"c{version}", scenario)
    command = rocketmq_program(JAVA_SOURCES, "Scenarios", *words, version=version, home=home)
    return run_program(command).get(scenario, [])


@pytest.mark.slow
@pytest.mark.parametrize("scenario", JAVA_SCENARIOS)
@pytest.mark.parametrize("version", ["5", "4"])
def test_java_client_over_kafka(version: str, scenario: str, tmp_path: Path) -> None:
    """A scenario of the official Java client goes over Kafka's layout as over RocketMQ's."""
    seen: dict[str, list[str]] = {}
    for layout in LAYOUTS:
        with TestBroker(
            str(tmp_path / layout),
            layout=layout,
            protocols=ROCKETMQ,
            settings={"brokerName": "broker-a", "brokerClusterName": "DefaultCluster"},
        ) as broker:
            seen[layout] = java_scenario(broker, version, scenario, tmp_path / "home")
    assert seen["rocketmq"]
    assert seen["kafka"] == seen["rocketmq"]
