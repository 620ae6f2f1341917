"""The broker for tests as a cluster of nodes: what real clients see of it."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from logstore.compat import TestBroker
from logstore.compat.test_broker_arguments import ArgumentError

# they carry few types
kafka: Any = importlib.import_module("kafka")
kafka_admin: Any = importlib.import_module("kafka.admin")
rdkafka_admin: Any = importlib.import_module("confluent_kafka.admin")

SECONDS_MAX = 20
TOPIC = "orders"
PARTITIONS = 6


@pytest.fixture
def cluster() -> Iterator[TestBroker]:
    """Return three nodes with a topic that has two replicas."""
    with TestBroker(nodes=3) as cluster:
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics([kafka_admin.NewTopic(TOPIC, PARTITIONS, 2)])
        admin.close()
        yield cluster


def produce(producer: Any, numbers: range) -> None:
    """Produce numbers, spread over the partitions, and see them acknowledged."""
    futures = [
        producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in numbers
    ]
    for future in futures:
        future.get(SECONDS_MAX)


def read(consumer: Any, count: int) -> list[int]:
    """Return so many numbers."""
    found: list[int] = []
    for record in consumer:
        found.append(int(record.value))
        if len(found) == count:
            break
    return found


def test_kafka_python_follows_the_leaders(cluster: TestBroker) -> None:
    """Nodes go and come back; nothing is lost, nothing comes twice."""
    settings = {"bootstrap_servers": cluster.bootstrap, "reconnect_backoff_max_ms": 100}
    producer = kafka.KafkaProducer(**settings, acks="all", retries=50, retry_backoff_ms=20)
    consumer = kafka.KafkaConsumer(
        TOPIC, **settings, group_id="g", auto_offset_reset="earliest", retry_backoff_ms=20,
        consumer_timeout_ms=SECONDS_MAX * 1000,
    )  # fmt: skip
    for turn, node_id in enumerate((1, 3)):
        start = turn * 60
        produce(producer, range(start, start + 30))
        cluster.stop_node(node_id)
        produce(producer, range(start + 30, start + 60))
        assert sorted(read(consumer, 60)) == list(range(start, start + 60))
        consumer.commit()
        cluster.start_node(node_id)
    producer.close()
    consumer.close()


def test_librdkafka_follows_the_leaders(cluster: TestBroker) -> None:
    """Also with an idempotent producer, and while leaders move to a node that is named."""
    producer = confluent_kafka.Producer({
        "bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 0,
        "retry.backoff.ms": 10,
    })  # fmt: skip
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": cluster.bootstrap, "group.id": "g", "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 200,
    })  # fmt: skip
    consumer.subscribe([TOPIC])
    told: list[object] = []
    seen: list[int] = []
    for turn, node_id in enumerate((2, 3, 1)):
        for number in range(turn * 100, turn * 100 + 100):
            if number % 100 == 50:
                cluster.move_leaders(TOPIC, 0) if turn else cluster.stop_node(node_id)
            producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, _: told.append(error))
            producer.poll(0)
        assert producer.flush(SECONDS_MAX) == 0
        while len(seen) < turn * 100 + 100:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None, f"{len(seen)} records came"
            if message.error() is None:
                seen.append(int(message.value()))  # type: ignore[arg-type] # it has one
        if not turn:
            cluster.start_node(node_id)
    consumer.close()
    assert told == [None] * 300
    assert sorted(seen) == list(range(300))


def test_a_topic_says_how_it_is_spread(cluster: TestBroker) -> None:
    """Admin clients see nodes, replicas and leaders; more replicas than nodes are refused."""
    admin = rdkafka_admin.AdminClient({"bootstrap.servers": cluster.bootstrap})
    metadata = admin.list_topics(TOPIC, timeout=SECONDS_MAX)
    told = {one.id: f"{one.host}:{one.port}" for one in metadata.brokers.values()}
    assert told == cluster.nodes
    assert ",".join(told[one] for one in sorted(told)) == cluster.bootstrap
    partitions = metadata.topics[TOPIC].partitions.values()
    assert sorted(one.leader for one in partitions) == [1, 1, 2, 2, 3, 3]
    assert all(len(set(one.replicas)) == 2 for one in partitions)
    wanted = rdkafka_admin.NewTopic("many", 1, 4)
    with pytest.raises(confluent_kafka.KafkaException, match=r"(?i)replication"):
        admin.create_topics([wanted])["many"].result(SECONDS_MAX)


def test_a_stopped_node_refuses_connections(cluster: TestBroker) -> None:
    """Nobody gets in, and whoever was in is hung up on; later the same port answers again."""
    host, _, port = cluster.nodes[2].partition(":")
    address = (host, int(port))
    with socket.create_connection(address, SECONDS_MAX) as before:
        cluster.stop_node(2)
        assert before.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, SECONDS_MAX)
    cluster.start_node(2)
    socket.create_connection(address, SECONDS_MAX).close()


def test_too_few_replicas_are_waited_for() -> None:
    """With acks=all a producer tries again until enough replicas are in sync."""
    settings = {"default.replication.factor": "2", "min.insync.replicas": "2"}
    with TestBroker(nodes=2, settings=settings) as cluster:
        producer = confluent_kafka.Producer({
            "bootstrap.servers": cluster.bootstrap, "linger.ms": 0, "retry.backoff.ms": 10,
        })  # fmt: skip
        cluster.create_topic(TOPIC)
        cluster.stop_node(2)
        told: list[object] = []
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: told.append(error))
        back = threading.Timer(0.3, cluster.start_node, [2])
        back.start()
        assert producer.flush(SECONDS_MAX) == 0
        back.join()
        assert told == [None]


def test_a_cluster_comes_back(tmp_path: Path) -> None:
    """After a crash all nodes are on their ports, and lead what they led."""
    cluster = TestBroker(str(tmp_path), nodes=3)
    with cluster:
        producer = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap)
        cluster.create_topic(TOPIC, PARTITIONS)
        produce(producer, range(12))
        nodes = cluster.nodes
        leaders = leaders_of(cluster)
        cluster.crash()
        cluster.start()
        assert cluster.nodes == nodes
        assert leaders_of(cluster) == leaders
        produce(producer, range(12, 24))
        producer.close()
    with TestBroker(str(tmp_path)) as alone:
        consumer = kafka.KafkaConsumer(
            TOPIC, bootstrap_servers=alone.bootstrap, auto_offset_reset="earliest",
            consumer_timeout_ms=SECONDS_MAX * 1000,
        )  # fmt: skip
        assert sorted(read(consumer, 24)) == list(range(24))
        consumer.close()


def leaders_of(cluster: TestBroker) -> dict[int, int]:
    """Return who leads the topic's partitions."""

    def work() -> dict[int, int]:
        broker = cluster.broker
        topic = broker.topics[TOPIC]
        return {index: broker.placements.find(topic, index).leader for index in topic.partitions}

    return cluster.call(work)


def test_leaders_go_where_they_are_sent(cluster: TestBroker) -> None:
    """To the next replica in sync, or to one that is named, if it is one."""
    leaders = leaders_of(cluster)
    assert set(cluster.move_leaders(TOPIC).values()) == {1}
    moved = leaders_of(cluster)
    assert all(moved[index] != leaders[index] for index in leaders)
    cluster.move_leaders(TOPIC, 0, to=leaders[0])
    assert leaders_of(cluster)[0] == leaders[0]
    (stranger,) = {1, 2, 3} - {leaders[0], moved[0]}
    with pytest.raises(ValueError, match=f"node {stranger} cannot lead {TOPIC}-0"):
        cluster.move_leaders(TOPIC, 0, to=stranger)


@pytest.mark.parametrize("options", [{"layout": "rocketmq"}, {"protocols": ("rocketmq",)}])
def test_only_kafka_brokers_have_nodes(options: dict[str, object]) -> None:
    """Anything else is refused at once."""
    with pytest.raises(ArgumentError, match="node"):
        TestBroker(nodes=2, **options)  # type: ignore[arg-type] # neither of them goes


def test_every_node_wants_to_know_who_comes() -> None:
    """With users and TLS all nodes have such a listener, with certificates that are trusted."""
    with TestBroker(nodes=3, users={"alice": "secret"}, tls=True) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        client = {
            "bootstrap.servers": cluster.bootstrap, "security.protocol": "SASL_SSL",
            "ssl.ca.location": cluster.ca_file, "sasl.username": "alice",
            "sasl.password": "secret", "sasl.mechanism": "PLAIN",
        }  # fmt: skip
        producer = confluent_kafka.Producer(client)
        told: list[object] = []
        for index in range(PARTITIONS):
            producer.produce(
                TOPIC, b"x", partition=index, on_delivery=lambda error, _: told.append(error)
            )
        assert producer.flush(SECONDS_MAX) == 0
        assert told == [None] * PARTITIONS
        assert len(set(cluster.nodes.values())) == 3
