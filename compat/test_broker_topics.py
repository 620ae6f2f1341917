"""How a broker for tests makes a topic: by the rules that clients are held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.test_broker_arguments import ArgumentError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.rocketmq.broker import Broker as RocketMQBroker


def check_topic_shape(name: object, count: object) -> None:
    """Refuse what is no name, or no count. ArgumentError."""
    if not isinstance(name, str):
        raise ArgumentError("create_topic", name, "the name of a topic is text")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError("create_topic", count, f"{name} has one partition or queue, or more")


def create_kafka_topic(broker: Broker, name: str, count: int, settings: Mapping[str, str]) -> None:
    """
    Create a topic as a client would.

    Raises:
        LogStoreError: no client may.

    """
    from logstore.compat.kafka.topics.creation import BROKER_DEFAULT, TopicPlan, create

    create(broker, TopicPlan(name, count, BROKER_DEFAULT, settings=settings))


def put_rocketmq_topic(
    broker: RocketMQBroker, name: str, count: int, attributes: Mapping[str, str]
) -> None:
    """
    Create or change a topic as mqadmin would.

    Raises:
        LogStoreError: it may not.

    """
    from logstore.compat.rocketmq.topics.names import check_topic
    from logstore.compat.rocketmq.topics.topic_changes import put_topic
    from logstore.segments.rocketmq.tables.topics import TopicConfig

    check_topic(name)
    changes = {f"+{key}": value for key, value in attributes.items()}
    put_topic(broker, TopicConfig(name, count, count, attributes=changes))
