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
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    settings: Mapping[str, str | None] = MappingProxyType({})


class CheckedPlan(NamedTuple):
    """A plan that can be carried out."""

    name: str
    partition_count: int
    settings: Mapping[str, str]
    replication_factor: int = 1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()


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
        raise RefusedRequestError(ErrorCode.INVALID_REQUEST, f"{name} is not for clients to create")
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


def check_assignment(broker: Broker, broker_ids: Sequence[int]) -> None:
    """
    Check the brokers that are to hold one partition.

    Raises:
        RefusedRequestError: 39; there are not such brokers, or a broker comes twice.

    """
    if not broker_ids:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned to no broker"
        )
    if len(set(broker_ids)) < len(broker_ids):
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"a partition is assigned to one broker more than once: {list(broker_ids)}",
        )
    known = broker.nodes.by_id
    strangers = [number for number in broker_ids if number not in known]
    if strangers:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"a partition is assigned to broker {strangers[0]}; there is only "
            f"{', '.join(map(str, known))}",
        )


def _check_settings(broker: Broker, plan: TopicPlan) -> dict[str, str]:
    empty = [key for key, value in plan.settings.items() if value is None]
    if empty:
        raise RefusedRequestError(
            ErrorCode.INVALID_CONFIG, f"settings must have values: {', '.join(empty)}"
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
        (plan.replication_factor, "a replication factor"),
        (plan.partition_count, "a number of partitions"),
    ):
        if count != BROKER_DEFAULT:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"partitions are assigned, so {what} must not be given"
            )
    indexes = [index for index, _ in plan.assignments]
    for _, broker_ids in plan.assignments:
        check_assignment(broker, broker_ids)
    if sorted(indexes) != list(range(len(indexes))):
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"assigned partitions must count up from 0 without gaps: {sorted(indexes)}",
        )
    if len({len(broker_ids) for _, broker_ids in plan.assignments}) > 1:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "all partitions of a topic must be assigned to the same number of brokers",
        )
    return len(indexes)
