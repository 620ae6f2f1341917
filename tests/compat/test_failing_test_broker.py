"""The broker for tests when it is told to fail: what real clients see of it."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from logstore.compat import TestBroker
from logstore.testing import LOSE_UNSYNCED, RunningClock, SimulatedHost
from tests.compat.test_rocketmq_test_broker import ask, broker_of
from tests.compat.test_rocketmq_test_broker import send as send_message

SECONDS_MAX = 20
TOPIC = "orders"


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """Return a running broker with one topic."""
    with TestBroker() as broker:
        create(broker)
        yield broker


def create(broker: TestBroker, topic: str = TOPIC) -> None:
    """Create a topic of one partition past the protocol."""
    broker.call(lambda: broker.broker.create_topic(topic, 1))


def produce(broker: TestBroker, value: bytes, **settings: Any) -> confluent_kafka.KafkaError | None:
    """Produce one record with librdkafka; return what went wrong, if anything."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "retry.backoff.ms": 10, **settings}
    )
    told: list[confluent_kafka.KafkaError | None] = []
    producer.produce(TOPIC, value, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(SECONDS_MAX) == 0, "not delivered in time"
    return told[0]


def values(broker: TestBroker) -> list[bytes | None]:
    """Return the values of all records."""

    def work() -> list[bytes | None]:
        partition = broker.broker.topics[TOPIC].partitions[0]
        return [record.value for record in partition.read_records(partition.start_offset, 10_000)]

    return broker.call(work)


def test_a_client_retries_what_failed(broker: TestBroker) -> None:
    """Two answers say no, the third one yes; nothing is written twice."""
    fault = broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic=TOPIC, times=2)
    assert produce(broker, b"v") is None
    assert fault.is_spent
    assert values(broker) == [b"v"]


def test_a_client_gives_up_on_what_no_retry_mends(broker: TestBroker) -> None:
    """It is told by the name that the fault was given."""
    broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    error = produce(broker, b"v")
    assert error is not None
    assert error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert values(broker) == []


@pytest.mark.parametrize(("is_idempotent", "copies"), [(True, 1), (False, 2)])
def test_an_answer_is_lost(broker: TestBroker, is_idempotent: bool, copies: int) -> None:
    """The client sends again; only an idempotent one is known by the broker."""
    broker.faults.drop("Produce", when="after")
    assert produce(broker, b"v", **{"enable.idempotence": is_idempotent}) is None
    assert values(broker) == [b"v"] * copies


def test_a_group_loses_its_coordinator(broker: TestBroker) -> None:
    """And finds it again: every record is read, none twice."""
    for number in range(3):
        produce(broker, b"%d" % number)
    broker.faults.fail("Heartbeat", "NOT_COORDINATOR", client="reader")
    broker.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", client="reader")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "reader",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe([TOPIC])
    try:
        read: list[bytes | None] = []
        deadline = time.monotonic() + SECONDS_MAX
        while (len(read) < 3 or broker.faults.planned[0].struck_count == 0) and (
            time.monotonic() < deadline
        ):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                read.append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    assert read == [b"0", b"1", b"2"]
    assert [fault.is_spent for fault in broker.faults.planned] == [True, True]


def test_answers_overtake_each_other(broker: TestBroker) -> None:
    """One producer is held while another one is served."""
    fault = broker.faults.hold("Produce", client="slow")
    slow = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "client.id": "slow"})
    slow.produce(TOPIC, b"first")
    deadline = time.monotonic() + SECONDS_MAX
    while not fault.held and time.monotonic() < deadline:
        slow.poll(0.05)
    assert produce(broker, b"second") is None
    assert values(broker) == [b"second"]
    broker.faults.release()
    assert slow.flush(SECONDS_MAX) == 0
    assert values(broker) == [b"second", b"first"]


def test_a_disk_that_fails(broker: TestBroker) -> None:
    """A write that tears is told to the client, and what it left is not in the log."""
    broker.disk.fail_next("write", errno.EIO, path=f"*/{TOPIC}-0/*.log", partial_bytes=20)
    error = produce(broker, b"torn", **{"retries": 0, "enable.idempotence": False})
    assert error is not None
    broker.disk.clear()
    broker.restart()
    assert produce(broker, b"whole") is None
    assert values(broker) == [b"whole"]


def test_time_that_is_pushed(broker: TestBroker) -> None:
    """What is due by then has been done: here retention, which is looked at every five minutes."""
    topic = broker.call(
        lambda: broker.broker.create_topic(
            "old", 1, {"retention.ms": "60000", "segment.ms": "1000"}
        )
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("old", b"x")
    assert producer.flush(SECONDS_MAX) == 0
    broker.clock.advance(10 * 60_000)
    broker.clock.advance(10 * 60_000)
    partition = topic.partitions[0]
    assert broker.call(lambda: (partition.start_offset, partition.end_offset)) == (1, 1)


def test_a_session_runs_out_when_time_is_pushed(broker: TestBroker) -> None:
    """A member that does not speak for so long is not in its group any more."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "session.timeout.ms": 45_000,
            "heartbeat.interval.ms": 15_000,
        }
    )
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + SECONDS_MAX
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    admin: Any = AdminClient({"bootstrap.servers": broker.bootstrap})

    def members() -> int:
        group: Any = admin.describe_consumer_groups(["g"])["g"].result(SECONDS_MAX)
        return len(group.members)

    assert members() == 1
    broker.clock.advance(44_000)
    assert members() == 1
    broker.clock.advance(2_000)
    assert members() == 0
    consumer.close()


def test_leaders_move(broker: TestBroker) -> None:
    """Clients are told of the next epoch, find the leader again, and lose nothing."""
    assert produce(broker, b"0") is None
    assert broker.move_leaders(TOPIC) == {0: 1}
    assert broker.move_leaders(TOPIC, 0) == {0: 2}
    assert produce(broker, b"1") is None
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    read: list[tuple[bytes | None, int | None]] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(read) < 3 and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.append((message.value(), message.leader_epoch()))
        if len(read) == 2 and broker.move_leaders(TOPIC):
            assert produce(broker, b"2") is None
    consumer.close()
    assert [value for value, _ in read] == [b"0", b"1", b"2"]
    assert [epoch for _, epoch in read[:2]] == [0, 2]
    with pytest.raises(ValueError, match="there is no partition orders-7"):
        broker.move_leaders(TOPIC, 7)
    broker.restart()
    assert broker.call(lambda: broker.broker.topics[TOPIC].partitions[0].leader_epoch) >= 3


@pytest.mark.parametrize("is_clean", [True, False])
def test_it_stops_and_comes_back(broker: TestBroker, is_clean: bool) -> None:
    """On the same port with the same data; a client that was there goes on."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 100}
    )
    told: list[confluent_kafka.KafkaError | None] = []
    producer.produce(TOPIC, b"before", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    port, directory = broker.port, broker.directory
    marker = Path(directory, ".kafka_cleanshutdown")
    if is_clean:
        broker.restart()
    else:
        broker.crash()
        assert not marker.exists()
        producer.produce(TOPIC, b"meanwhile", on_delivery=lambda error, _: told.append(error))
        producer.poll(0.2)
        assert told == [None]
        broker.start()
    assert (broker.port, broker.directory) == (port, directory)
    producer.produce(TOPIC, b"after", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    assert told == [None] * len(told)
    assert values(broker) == [b"before", *([] if is_clean else [b"meanwhile"]), b"after"]


def test_a_broker_that_cannot_come_back_keeps_its_data(broker: TestBroker) -> None:
    """A start that failed is not the end of a temporary directory."""
    assert produce(broker, b"v") is None
    broker.crash()
    broker.disk.fail_next("list_directory", errno.EIO)
    with pytest.raises(Exception, match="Input/output error"):
        broker.start()
    assert Path(broker.directory).is_dir()
    broker.start()
    assert values(broker) == [b"v"]
    directory = broker.directory
    broker.stop()
    assert not Path(directory).exists()


def test_power_is_lost() -> None:
    """What was not synced is gone, on a machine that is simulated."""
    host = SimulatedHost(clock=RunningClock())
    with TestBroker("/data", host=host, settings={"log.flush.interval.messages": "2"}) as broker:
        create(broker)
        for number in range(3):
            assert produce(broker, b"%d" % number) is None
        broker.crash(LOSE_UNSYNCED)
        broker.start()
        assert values(broker) == [b"0", b"1"]
        broker.disk.sync_lies = True
        assert produce(broker, b"2") is None
        assert produce(broker, b"3") is None
        broker.crash(LOSE_UNSYNCED)
        broker.disk.clear()
        broker.start()
        assert values(broker) == [b"0", b"1"]


def test_faults_of_rocketmq() -> None:
    """The same words for its brokers, and a crash with the ports kept."""
    with TestBroker(layout="rocketmq") as broker:
        assert send_message(broker, b"a") == 0
        broker.faults.fail("SEND_MESSAGE_V2", "FLUSH_DISK_TIMEOUT", topic="t")
        assert send_message(broker, b"b") == 10
        broker.faults.fail("GET_ROUTEINFO_BY_TOPIC", "SYSTEM_BUSY")
        address, name_server = broker_of_after_retry(broker), broker.name_server
        broker.crash()
        broker.start()
        assert (broker_of(broker), broker.name_server) == (address, name_server)
        assert send_message(broker, b"c") == 0
        end = ask(broker_of(broker), 30, {"topic": "t", "queueId": 0})
        assert end.fields == {"offset": "2"}


def broker_of_after_retry(broker: TestBroker) -> str:
    """Return the broker's address, which the name server tells at the second try."""
    with pytest.raises((KeyError, ValueError)):
        broker_of(broker)
    return broker_of(broker)


def test_faults_of_both() -> None:
    """One plan for two protocols on one layout."""
    with TestBroker(protocols=("kafka", "rocketmq")) as broker:
        create(broker)
        broker.faults.fail("Produce", "POLICY_VIOLATION")
        error = produce(broker, b"v")
        assert error is not None
        assert error.code() == confluent_kafka.KafkaError.POLICY_VIOLATION
        bootstrap, name_server = broker.bootstrap, broker.name_server
        broker.crash()
        broker.start()
        assert (broker.bootstrap, broker.name_server) == (bootstrap, name_server)
        assert produce(broker, b"v") is None
