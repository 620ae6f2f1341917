"""Topics, partitions, configs and the cluster, through librdkafka's admin client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.interop.clients import CLIENTS, read_all, settings
from tests.interop.conftest import Broker, CreateTopic, led_partitions
from tests.interop.eventually import eventually
from tests.interop.our_broker import OurBroker
from tests.interop.samples import numbered

pytestmark = [pytest.mark.interop, pytest.mark.either_layout]

# What depends on the machine, on the version, or on features that ours does not have yet.
CONFIGS_THAT_MAY_DIFFER = {"message.format.version", "follower.replication.throttled.replicas"}
OWN: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # the source of a topic's own config


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    """An admin client of the broker."""
    return AdminClient(settings(broker.bootstrap))


def error_code(ask: Callable[[], object]) -> int:
    """Return the code of the KafkaError that asking raises."""
    with pytest.raises(KafkaException) as caught:
        ask()
    error: KafkaError = caught.value.args[0]
    return error.code()


def configs_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    """Return all configs of a topic by name."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(30)
    return found


def alter(admin: AdminClient, topic: str, operation: AlterConfigOpType, **configs: str) -> None:
    """Change configs incrementally; underscores in the names stand for dots."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=operation)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(30)


def create(admin: AdminClient, name: str, **arguments: Any) -> None:
    """Create one topic and wait until the broker itself knows it."""
    admin.create_topics([NewTopic(name, **arguments)])[name].result(30)
    eventually_partitions(admin, name, arguments["num_partitions"])


def delete(admin: AdminClient, name: str) -> None:
    """Delete one topic and wait until the broker itself has forgotten it."""
    admin.delete_topics([name])[name].result(30)
    eventually(lambda: name not in admin.list_topics(timeout=30).topics, what="the topic is gone")


def eventually_partitions(admin: AdminClient, topic: str, count: int) -> None:
    """Wait until `count` partitions, and no other, have a leader."""
    eventually(lambda: led_partitions(admin, topic) == list(range(count)), what=f"{count} leaders")


def eventually_config(admin: AdminClient, topic: str, name: str, value: str) -> None:
    """Wait until a config is shown: the real controller tells its brokers a little later."""
    eventually(lambda: configs_of(admin, topic)[name].value == value, what=f"{name}={value}")


def test_topics_come_and_go(admin: AdminClient, topic_name: str) -> None:
    """A created topic is listed with its partitions; a deleted one is not, and may come again."""
    for count in (3, 2):
        create(admin, topic_name, num_partitions=count)
        assert led_partitions(admin, topic_name) == list(range(count))
        delete(admin, topic_name)
        assert topic_name not in admin.list_topics(timeout=30).topics


def test_a_topic_has_an_id_of_its_own(admin: AdminClient, topic_name: str) -> None:
    """A topic that was deleted and created again is another topic."""
    ids: set[str] = set()
    for _ in range(2):
        create(admin, topic_name, num_partitions=1)
        asked = admin.describe_topics(TopicCollection([topic_name]))[topic_name]
        ids.add(str(asked.result(30).topic_id))
        delete(admin, topic_name)
    assert len(ids) == 2


def test_a_topic_exists_once(admin: AdminClient, topic_name: str) -> None:
    """Creating it again is TOPIC_ALREADY_EXISTS."""
    create(admin, topic_name, num_partitions=1)
    code = error_code(lambda: create(admin, topic_name, num_partitions=1))
    assert code == KafkaError.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"num_partitions": 1, "replication_factor": 3}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 1, "config": {"no.such.config": "1"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"cleanup.policy": "burn"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"segment.bytes": "20"}}, KafkaError.INVALID_CONFIG),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_impossible_topics_are_refused(
    admin: AdminClient, topic_name: str, arguments: dict[str, Any], code: int
) -> None:
    """Each impossible wish has its own error code, and creates nothing."""
    short_name = topic_name[:20]
    assert error_code(lambda: create(admin, short_name, **arguments)) == code
    assert short_name not in admin.list_topics(timeout=30).topics


def test_validation_creates_nothing(admin: AdminClient, topic_name: str) -> None:
    """validate_only answers as if, and leaves no topic."""
    asked = admin.create_topics([NewTopic(topic_name, 1)], validate_only=True)
    asked[topic_name].result(30)
    assert topic_name not in admin.list_topics(timeout=30).topics


def test_deleting_nothing_is_an_error(admin: AdminClient, topic_name: str) -> None:
    """A topic that is not there cannot be deleted."""
    code = error_code(lambda: admin.delete_topics([topic_name])[topic_name].result(30))
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic
) -> None:
    """New partitions appear behind the old ones, whose records stay."""
    topic = create_topic(broker.bootstrap)
    sent = numbered(3)
    CLIENTS[0].produce(broker.bootstrap, topic, sent)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
    eventually_partitions(admin, topic, 4)
    assert read_all(CLIENTS[1], broker.bootstrap, topic, 3) == sent


@pytest.mark.parametrize("count", [2, 3])
def test_partitions_are_never_removed(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic, count: int
) -> None:
    """A count that is not larger than now is INVALID_PARTITIONS."""
    topic = create_topic(broker.bootstrap, partitions=3)
    asked = admin.create_partitions([NewPartitions(topic, count)])[topic]
    assert error_code(lambda: asked.result(30)) == KafkaError.INVALID_PARTITIONS


def test_configs_are_set_and_reset(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic
) -> None:
    """A config given at creation or later is the topic's own until it is deleted again."""
    topic = create_topic(broker.bootstrap, config={"segment.bytes": "2000000"})
    found = configs_of(admin, topic)
    assert found["segment.bytes"].value == "2000000"
    assert found["segment.bytes"].source == OWN
    assert found["max.message.bytes"].value == "1048588"
    assert found["max.message.bytes"].is_default

    alter(admin, topic, AlterConfigOpType.SET, max_message_bytes="1000", retention_ms="5000")
    eventually_config(admin, topic, "max.message.bytes", "1000")
    eventually_config(admin, topic, "retention.ms", "5000")
    assert configs_of(admin, topic)["segment.bytes"].value == "2000000"

    alter(admin, topic, AlterConfigOpType.DELETE, max_message_bytes="")
    eventually_config(admin, topic, "max.message.bytes", "1048588")


def test_a_changed_config_counts_at_once(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic
) -> None:
    """After max.message.bytes went down, a larger batch is refused."""
    topic = create_topic(broker.bootstrap)
    CLIENTS[0].produce(broker.bootstrap, topic, numbered(1, size_bytes=5000))
    alter(admin, topic, AlterConfigOpType.SET, max_message_bytes="1000")
    eventually_config(admin, topic, "max.message.bytes", "1000")
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        CLIENTS[0].produce(broker.bootstrap, topic, numbered(1, size_bytes=5000))
    assert CLIENTS[0].produce(broker.bootstrap, topic, numbered(1)) == [1]


@pytest.mark.parametrize("name", ["no_such_config", "retention_ms"])
def test_impossible_configs_are_refused(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic, name: str
) -> None:
    """An unknown name or a value of the wrong type is INVALID_CONFIG, and changes nothing."""
    topic = create_topic(broker.bootstrap)
    before = configs_of(admin, topic)["retention.ms"].value
    code = error_code(lambda: alter(admin, topic, AlterConfigOpType.SET, **{name: "soon"}))
    assert code == KafkaError.INVALID_CONFIG
    assert configs_of(admin, topic)["retention.ms"].value == before


def test_configs_survive_a_restart(
    broker: Broker, admin: AdminClient, create_topic: CreateTopic
) -> None:
    """Topics come back with their partitions and their own configs."""
    topic = create_topic(broker.bootstrap, partitions=2, config={"retention.ms": "123456789"})
    alter(admin, topic, AlterConfigOpType.SET, cleanup_policy="delete,compact")
    eventually_config(admin, topic, "cleanup.policy", "delete,compact")
    broker.stop()
    broker.start()
    fresh = AdminClient(settings(broker.bootstrap))
    found = configs_of(fresh, topic)
    assert (found["retention.ms"].value, found["cleanup.policy"].value) == (
        "123456789",
        "delete,compact",
    )
    assert len(fresh.list_topics(topic, timeout=30).topics[topic].partitions) == 2


def test_topic_configs_have_kafkas_defaults(
    real: KafkaPeer, ours: OurBroker, topic_name: str
) -> None:
    """Every topic config that Kafka lists stands in ours with the same default."""
    found: list[dict[str, str | None]] = []
    for one in (real, ours):
        admin = AdminClient(settings(one.bootstrap))
        create(admin, topic_name, num_partitions=1)
        configs = configs_of(admin, topic_name)
        found.append({name: configs[name].value for name in sorted(configs)})
    expected, actual = (
        {k: v for k, v in one.items() if k not in CONFIGS_THAT_MAY_DIFFER} for one in found
    )
    assert actual == expected


def test_the_cluster_describes_itself(broker: Broker, admin: AdminClient) -> None:
    """One node, which is the controller, at the address that the client came by."""
    cluster = admin.describe_cluster().result(30)
    (node,) = cluster.nodes
    assert f"{node.host}:{node.port}" == broker.bootstrap
    assert cluster.controller.id == node.id
    assert len(cluster.cluster_id) == 22
    broker.stop()
    broker.start()
    fresh = AdminClient(settings(broker.bootstrap))
    assert fresh.describe_cluster().result(30).cluster_id == cluster.cluster_id


def test_the_broker_describes_its_settings(broker: Broker, admin: AdminClient) -> None:
    """Settings of server.properties are shown as the broker's configs."""
    (node,) = admin.describe_cluster().result(30).nodes
    resource = ConfigResource(ResourceType.BROKER, str(node.id))
    found = admin.describe_configs([resource])[resource].result(30)
    assert found["log.retention.ms"].value == "-1"
    assert found["num.partitions"].value == "1"
    assert found["log.segment.bytes"].value == "1073741824"
