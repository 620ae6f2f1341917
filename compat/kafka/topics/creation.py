"""
The rules of creating topics, for CreateTopics and for the automatic creation by Metadata.

Every check stands before the first change, so that a refused topic leaves nothing behind. What a
partition's replicas hold is here, however many nodes clients see.

Source: ``ReplicationControlManager.createTopics``, ``AutoTopicCreationManager``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.topic_settings import check_topic_settings
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.topics.assignments import Assignment, check_all
from logstore.compat.kafka.topics.names import (
    GROUPS_TOPIC,
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    SHARE_GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    clash_of,
    flaw_of,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.topic import Topic

#: "as the broker's setting says", for partitions and replicas
BROKER_DEFAULT = -1
#: what one request may bring into being
PARTITIONS_MAX = 10_000


class TopicPlan(NamedTuple):
    """
    A topic that somebody wants.

    `assignments` are (partition, its brokers); where there are some, the counts must be left to
    the broker. A setting whose value is None is refused.
    """

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[Assignment] = ()
    settings: Mapping[str, str | None] = MappingProxyType({})


class CheckedPlan(NamedTuple):
    """A plan that can be carried out."""

    name: str
    partition_count: int
    settings: Mapping[str, str]
    replication_factor: int = 1
    assignments: Sequence[Assignment] = ()


def check(broker: Broker, plan: TopicPlan) -> CheckedPlan:
    """
    Return what would be created.

    Raises:
        RefusedRequestError: 17 name or clash, 36 exists, 37 partitions, 38 replicas,
            39 assignment, 42 contradictory, or not to be created by anybody.
        ConfigError: a setting is unknown or has a value that it cannot have.

    """
    name = plan.name
    if name == METADATA_TOPIC:
        raise RefusedRequestError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if name in broker.topics:
        raise RefusedRequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    flaw = flaw_of(name) or broker.flaw_of_new_topic(name)
    if flaw is not None:
        raise RefusedRequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, flaw)
    clash = clash_of(name, broker.topics)
    if clash is not None:
        raise RefusedRequestError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {clash}",
        )
    settings = _check_settings(broker, plan)
    if plan.assignments:
        count = _check_assignments(broker, plan)
        factor = len(plan.assignments[0][1])
        return CheckedPlan(name, count, settings, factor, plan.assignments)
    return CheckedPlan(name, *_check_numbers(broker, plan, settings))


def create(broker: Broker, plan: TopicPlan) -> Topic:
    """Create the topic; raises as :func:`check` does, and what the disk refuses."""
    return carry_out(broker, check(broker, plan))


def carry_out(broker: Broker, checked: CheckedPlan) -> Topic:
    """
    Create a topic as it was checked.

    Raises:
        LogStoreError, OSError: the disk refused.

    """
    topic = broker.create_topic(checked.name, checked.partition_count, dict(checked.settings))
    if checked.assignments or checked.replication_factor != broker.placements.factor_of(
        checked.name
    ):
        broker.placements.place(topic, checked.replication_factor, checked.assignments)
    return topic


def create_automatically(broker: Broker, name: str) -> Topic:
    """
    Create a topic that a client spoke of as if it were there.

    Raises:
        RefusedRequestError: as for :func:`check`.
        LogStoreError, OSError: the disk refused.

    """
    count, settings = automatic_shape(broker, name)
    # What ``default.replication.factor`` says is not for Kafka's own topics.
    replicas = broker.placements.factor_of(name) if name in INTERNAL_TOPICS else BROKER_DEFAULT
    return create(broker, TopicPlan(name, count, replicas, settings=settings))


def internal_topic(broker: Broker, name: str) -> Topic:
    """
    Return one of Kafka's own topics, made where it is not there yet.

    Raises:
        LogStoreError, OSError: the disk refused.

    """
    topic = broker.topics.get(name)
    if topic is None:
        count, settings = automatic_shape(broker, name)
        topic = broker.create_topic(name, count, settings)
    return topic


def automatic_shape(broker: Broker, name: str) -> tuple[int, dict[str, str]]:
    """Return the partition count and settings of a topic that nobody gave any."""
    config = broker.config
    if name == GROUPS_TOPIC:
        return config.offsets_topic_num_partitions, {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
    if name == TRANSACTIONS_TOPIC:
        given = config.given
        return given.integer("transaction.state.log.num.partitions"), {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(given.integer("transaction.state.log.min.isr")),
            "segment.bytes": str(given.integer("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
    if name == SHARE_GROUPS_TOPIC:
        given = config.given
        return given.integer("share.coordinator.state.topic.num.partitions"), {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(given.integer("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
            "segment.bytes": str(given.integer("share.coordinator.state.topic.segment.bytes")),
        }
    return BROKER_DEFAULT, {}


def _check_settings(broker: Broker, plan: TopicPlan) -> dict[str, str]:
    empty = [key for key, value in plan.settings.items() if value is None]
    if empty:
        raise RefusedRequestError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(empty)}",
        )
    settings = {key: value for key, value in plan.settings.items() if value is not None}
    check_topic_settings(broker, settings)
    return settings


def _check_numbers(
    broker: Broker, plan: TopicPlan, settings: Mapping[str, str]
) -> tuple[int, Mapping[str, str], int]:
    """Return the number of partitions, the settings, and the replication factor."""
    replicas, count = plan.replication_factor, plan.partition_count
    if replicas < BROKER_DEFAULT or replicas == 0:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < BROKER_DEFAULT or count == 0:
        raise RefusedRequestError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if replicas == BROKER_DEFAULT:
        replicas = broker.config.default_replication_factor
    node_count = len(broker.nodes.by_id)
    if replicas > node_count:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor "
            f"of {replicas} cannot be reached because only {node_count} broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        )
    count = broker.config.num_partitions if count == BROKER_DEFAULT else count
    return count, settings, replicas


def _check_assignments(broker: Broker, plan: TopicPlan) -> int:
    for count, what in (
        (plan.replication_factor, "replication factor"),
        (plan.partition_count, "numPartitions"),
    ):
        if count != BROKER_DEFAULT:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    return check_all(broker, plan.assignments)
