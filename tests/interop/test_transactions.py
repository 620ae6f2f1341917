"""Transactions of real producers: what read_committed readers see of them, ours beside the real."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import kafka.structs
import pytest
from aiokafka import AIOKafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from logstore.tools.dev.kafka_peer import KafkaPeer
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.clients import settings
from tests.interop.conftest import Broker, CreateTopic, RunTool, missing, new_topic
from tests.interop.eventually import eventually
from tests.interop.java_programs import kafka_program
from tests.interop.our_broker import OurBroker
from tests.interop.test_metadata_log import our_broker, real_on

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

TIMEOUT_SECONDS = 30
_JAVA = Path(__file__).with_name("Transactions.java")
#: (does it commit, how many records)
PLAN = [(True, 2), (False, 3), (True, 1), (False, 1), (True, 2)]
KEPT = [f"{turn}-{n}" for turn, (is_commit, count) in enumerate(PLAN) if is_commit
        for n in range(count)]  # fmt: skip
ALL = [f"{turn}-{n}" for turn, (_, count) in enumerate(PLAN) for n in range(count)]


def run_java(*arguments: str) -> str:
    """Run the Java producer; return what it printed."""
    try:
        command = kafka_program(_JAVA, *arguments)
    except PeerUnavailable as reason:
        missing(str(reason))
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def values(bootstrap: str, topic: str, level: str = "read_committed") -> list[str]:
    """Return the values that a consumer of that isolation level gets before it is at the end."""
    consumer = confluent_kafka.Consumer(
        settings(bootstrap)
        | {
            "group.id": "nobody", "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "isolation.level": level, "enable.partition.eof": True, "check.crcs": True,
            "fetch.wait.max.ms": 50,
        }
    )  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[str] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None, "neither a record nor the end in time"
            error = message.error()
            if error is None:
                found.append((message.value() or b"").decode())
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
            elif not error.retriable():
                raise confluent_kafka.KafkaException(error)
    finally:
        consumer.close()


def eventually_values(bootstrap: str, topic: str, expected: list[str]) -> list[str]:
    """
    Return what read_committed gets once it is what is expected, or at the end of all patience.

    The coordinator answers once the decision is written; the markers come after it.
    """
    found: list[str] = []

    def is_there() -> bool:
        found[:] = values(bootstrap, topic)
        return found == expected

    with contextlib.suppress(AssertionError):
        eventually(is_there, what=f"the markers in {topic}")
    return found


def librdkafka_producer(
    bootstrap: str, name: str, timeout_ms: int = 60_000
) -> confluent_kafka.Producer:
    """Return a transactional producer of librdkafka, ready to begin."""
    producer = confluent_kafka.Producer(
        settings(bootstrap)
        | {"transactional.id": name, "transaction.timeout.ms": timeout_ms, "linger.ms": 0}
    )
    producer.init_transactions(TIMEOUT_SECONDS)
    return producer


def with_librdkafka(bootstrap: str, name: str, topic: str) -> None:
    """Carry the plan out with confluent-kafka."""
    producer = librdkafka_producer(bootstrap, name)
    for turn, (is_commit, count) in enumerate(PLAN):
        producer.begin_transaction()
        for n in range(count):
            producer.produce(topic, f"{turn}-{n}".encode(), partition=0)
        producer.flush(TIMEOUT_SECONDS)
        if is_commit:
            producer.commit_transaction(TIMEOUT_SECONDS)
        else:
            producer.abort_transaction(TIMEOUT_SECONDS)


def with_kafka_python(bootstrap: str, name: str, topic: str) -> None:
    """Carry the plan out with kafka-python."""
    producer: Any = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    try:
        producer.init_transactions()
        for turn, (is_commit, count) in enumerate(PLAN):
            producer.begin_transaction()
            for n in range(count):
                value = f"{turn}-{n}".encode()
                producer.send(topic, value, partition=0).get(TIMEOUT_SECONDS)
            if is_commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()


def with_aiokafka(bootstrap: str, name: str, topic: str) -> None:
    """Carry the plan out with aiokafka."""

    async def run() -> None:
        producer: Any = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        await producer.start()
        try:
            for turn, (is_commit, count) in enumerate(PLAN):
                await producer.begin_transaction()
                for n in range(count):
                    await producer.send_and_wait(topic, f"{turn}-{n}".encode(), partition=0)
                if is_commit:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(run())


def with_java(bootstrap: str, name: str, topic: str) -> None:
    """Carry the plan out with the Java client, which speaks version 2 of transactions."""
    turns = [f"{'c' if is_commit else 'a'}:{count}" for is_commit, count in PLAN]
    run_java("run", bootstrap, name, topic, *turns)


PRODUCERS = {
    "librdkafka": with_librdkafka,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
    "java": with_java,
}


@pytest.mark.own_layout("a queue has what was committed only, and no markers")
@pytest.mark.parametrize("carry_out", PRODUCERS.values(), ids=PRODUCERS)
def test_committed_is_read_and_aborted_is_not(
    broker: Broker, create_topic: CreateTopic, carry_out: Callable[[str, str, str], None]
) -> None:
    """read_committed gets what was committed, read_uncommitted all; each end takes one offset."""
    topic = create_topic(broker.bootstrap)
    carry_out(broker.bootstrap, f"id-of-{topic}", topic)
    assert eventually_values(broker.bootstrap, topic, KEPT) == KEPT
    assert values(broker.bootstrap, topic, "read_uncommitted") == ALL
    consumer = confluent_kafka.Consumer(settings(broker.bootstrap) | {"group.id": "nobody"})
    partition = confluent_kafka.TopicPartition(topic, 0)

    def end() -> int:
        _, found = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS, cached=False)
        return int(found)

    eventually(lambda: end() >= len(ALL) + len(PLAN), what="the last marker")
    assert end() == len(ALL) + len(PLAN)
    consumer.close()


def test_the_java_producer_is_shut_out(broker: Broker, create_topic: CreateTopic) -> None:
    """A second one with its id takes over: the first one's records are aborted, and it is told."""
    topic = create_topic(broker.bootstrap)
    told = run_java("fence", broker.bootstrap, f"id-of-{topic}", topic)
    assert told in ("InvalidProducerEpochException", "ProducerFencedException")
    assert eventually_values(broker.bootstrap, topic, ["new"]) == ["new"]


def test_librdkafka_is_shut_out(broker: Broker, create_topic: CreateTopic) -> None:
    """The same; its error is fatal."""
    topic = create_topic(broker.bootstrap)
    old = librdkafka_producer(broker.bootstrap, f"id-of-{topic}")
    old.begin_transaction()
    old.produce(topic, b"lost", partition=0)
    old.flush(TIMEOUT_SECONDS)
    new = librdkafka_producer(broker.bootstrap, f"id-of-{topic}")
    with pytest.raises(confluent_kafka.KafkaException) as told:
        old.commit_transaction(TIMEOUT_SECONDS)
    assert told.value.args[0].fatal()
    new.begin_transaction()
    new.produce(topic, b"new", partition=0)
    new.commit_transaction(TIMEOUT_SECONDS)
    assert eventually_values(broker.bootstrap, topic, ["new"]) == ["new"]


def test_kafka_python_is_shut_out(broker: Broker, create_topic: CreateTopic) -> None:
    """The same with kafka-python."""
    topic = create_topic(broker.bootstrap)
    producers: list[Any] = [
        kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"id-of-{topic}")
        for _ in range(2)
    ]
    old, new = producers
    old.init_transactions()
    old.begin_transaction()
    old.send(topic, b"lost", partition=0).get(TIMEOUT_SECONDS)
    new.init_transactions()
    with pytest.raises(KafkaError):
        old.commit_transaction()
    new.begin_transaction()
    new.send(topic, b"new", partition=0).get(TIMEOUT_SECONDS)
    new.commit_transaction()
    for producer in producers:
        with contextlib.suppress(KafkaError):
            producer.close(1)
    assert eventually_values(broker.bootstrap, topic, ["new"]) == ["new"]


@pytest.mark.own_layout("nobody waits for a transaction that is held beside the queue")
def test_a_transaction_that_is_open_for_too_long_is_aborted(
    broker: Broker, create_topic: CreateTopic
) -> None:
    """Readers of what comes behind it wait for that, and its producer cannot commit any more."""
    topic = create_topic(broker.bootstrap)
    late = librdkafka_producer(broker.bootstrap, f"late-{topic}", timeout_ms=1_000)
    late.begin_transaction()
    late.produce(topic, b"late", partition=0)
    late.flush(TIMEOUT_SECONDS)
    good = librdkafka_producer(broker.bootstrap, f"good-{topic}")
    good.begin_transaction()
    good.produce(topic, b"good", partition=0)
    good.commit_transaction(TIMEOUT_SECONDS)
    assert values(broker.bootstrap, topic) == []
    eventually(lambda: values(broker.bootstrap, topic) == ["good"], 60, what="the abort")
    with pytest.raises(confluent_kafka.KafkaException):
        late.commit_transaction(TIMEOUT_SECONDS)


def test_java_copies_exactly_once(broker: Broker, create_topic: CreateTopic) -> None:
    """Consume, process, produce, with aborts in between: each record once, the offsets with it."""
    source = create_topic(broker.bootstrap)
    target = f"{source}-copy"
    new_topic(broker.bootstrap, target)
    producer = confluent_kafka.Producer(settings(broker.bootstrap))
    for number in range(12):
        producer.produce(source, b"%d" % number, partition=0)
    producer.flush(TIMEOUT_SECONDS)
    names = (f"id-of-{source}", source, target, f"group-of-{source}")
    assert run_java("copy", broker.bootstrap, *names, "12") == "12 12"
    expected = [str(number) for number in range(12)]
    assert eventually_values(broker.bootstrap, target, expected) == expected


def test_kafka_python_copies_exactly_once(broker: Broker, create_topic: CreateTopic) -> None:
    """An aborted copy leaves neither records nor offsets, a committed one both."""
    topic = create_topic(broker.bootstrap, partitions=2)
    group = f"group-of-{topic}"
    producer: Any = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id=f"id-of-{topic}"
    )
    consumer: Any = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    source = TopicPartition(topic, 1)
    structs: Any = kafka.structs
    producer.init_transactions()
    for is_commit, offset in ((False, 3), (True, 5)):
        producer.begin_transaction()
        producer.send(topic, b"%d" % offset, partition=0).get(TIMEOUT_SECONDS)
        producer.send_offsets_to_transaction(
            {source: OffsetAndMetadata(offset, "", -1)},
            structs.ConsumerGroupMetadata(group, -1, "", None),
        )
        if is_commit:
            producer.commit_transaction()
            # The coordinator answers once the decision is written; the markers come after it.
            eventually(lambda: consumer.committed(source) is not None, what="the offset")
        else:
            producer.abort_transaction()
        assert consumer.committed(source) == (5 if is_commit else None)
    producer.close()
    consumer.close()
    assert eventually(lambda: values(broker.bootstrap, topic), what="the commit") == ["5"]


def test_kafka_transactions_lists_and_describes(
    broker: Broker, create_topic: CreateTopic, kafka_tool: RunTool
) -> None:
    """The tool tells the states, the producer, and the partition of an open transaction."""
    topic = create_topic(broker.bootstrap)
    name = f"id-of-{topic}"
    # It must not time out while the tools look at it.
    producer = librdkafka_producer(broker.bootstrap, name, timeout_ms=600_000)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush(TIMEOUT_SECONDS)

    def rows(*arguments: str) -> list[list[str]]:
        done = kafka_tool("TransactionsCommand", "--bootstrap-server", broker.bootstrap, *arguments)
        return [line.split() for line in done.stdout.splitlines() if name in line or topic in line]

    (listed,) = rows("list")
    assert (listed[0], listed[-1]) == (name, "Ongoing")
    producer_id = listed[2]
    (described,) = rows("describe", "--transactional-id", name)
    assert described[1:5] == [name, producer_id, "0", "Ongoing"]
    assert described[-1] == f"{topic}-0"
    done = kafka_tool(
        *("TransactionsCommand", "--bootstrap-server", broker.bootstrap),
        *("describe-producers", "--topic", topic, "--partition", "0"),
    )
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith(producer_id)]
    assert row[-1] == "0"  # where the open transaction starts
    producer.abort_transaction(TIMEOUT_SECONDS)
    eventually(lambda: rows("list")[0][-1] == "CompleteAbort", what="the markers are written")


@pytest.mark.slow
@pytest.mark.parametrize("is_ours_first", [True, False])
@pytest.mark.parametrize("is_killed", [False, True])
def test_an_open_transaction_changes_brokers(
    tmp_path: Path, is_ours_first: bool, is_killed: bool
) -> None:
    """One broker takes a transaction's records and offsets, the other commits or aborts them."""
    data = tmp_path / "data"
    first: OurBroker | KafkaPeer = our_broker(tmp_path / "ours-1", data)
    if not is_ours_first:
        first.stop()
        first = real_on(data, tmp_path / "real-1", "4")
    new_topic(first.bootstrap, "t", 1)
    kept = librdkafka_producer(first.bootstrap, "kept")
    kept.begin_transaction()
    kept.produce("t", b"kept", partition=0)
    kept.flush(TIMEOUT_SECONDS)
    kept.commit_transaction(TIMEOUT_SECONDS)
    run_java("hang", first.bootstrap, "hanging", "t", "2")
    assert eventually_values(first.bootstrap, "t", ["kept"]) == ["kept"]
    first.stop(kill=is_killed)
    second: OurBroker | KafkaPeer
    if is_ours_first:
        second = real_on(data, tmp_path / "real-2", "4")
    else:
        second = our_broker(tmp_path / "ours-2", data)
    try:
        assert values(second.bootstrap, "t") == ["kept"]
        assert values(second.bootstrap, "t", "read_uncommitted") == ["kept", "open-0", "open-1"]
        run_java("run", second.bootstrap, "hanging", "t", "c:1")  # shuts the old one out
        with_librdkafka(second.bootstrap, "kept", "t")
        expected = ["kept", "0-0", *KEPT]
        assert eventually_values(second.bootstrap, "t", expected) == expected
    finally:
        second.stop()
    third = OurBroker(tmp_path / "ours-3", data=data).start()
    assert values(third.bootstrap, "t") == ["kept", "0-0", *KEPT]
    third.stop()
