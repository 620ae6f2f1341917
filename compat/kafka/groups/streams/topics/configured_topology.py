"""
A topology with the topics that there are: how many tasks, and which topics are still to be made.

Source: ``InternalTopicManager``, ``ConfiguredTopology``, ``ConfiguredSubtopology``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.topics.configuration_error import (
    TopicConfigurationError,
)
from logstore.compat.kafka.groups.streams.topics.partition_counts import PartitionCounts
from logstore.compat.kafka.groups.streams.topology import StreamsTopology
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import (
    KeyValue,
    StreamsTopic,
    Subtopology,
)

_SHOWN_MAX = 3


@attrs.frozen
class InternalTopic:
    """A topic that the application needs and the broker makes; 0 replicas: the broker's default."""

    name: str
    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]


@attrs.frozen
class ConfiguredSubtopology:
    """One connected part of an application, which has one task a partition."""

    task_count: int
    source_topics: frozenset[str]
    repartition_sink_topics: frozenset[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """Tell whether its tasks have state, and so may have standbys."""
        return bool(self.state_changelog_topics)


@attrs.frozen
class ConfiguredTopology:
    """
    What a topology comes to; without `subtopologies` it comes to nothing, and `error` says why.

    With an error and subtopologies only `missing` topics keep the application from running.
    """

    epoch: int
    #: by id, in order
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, InternalTopic]
    error: TopicConfigurationError | None

    @property
    def is_ready(self) -> bool:
        """Tell whether the application can run."""
        return self.error is None


def configured(topology: StreamsTopology, shapes: Mapping[str, TopicShape]) -> ConfiguredTopology:
    """
    Return what a topology comes to with these topics.

    Raises:
        RefusedRequestError: 130, the topology cannot be; -1, it contradicts itself.

    """
    counts = PartitionCounts(
        topology.subtopologies,
        lambda topic: shapes[topic].partition_count if topic in shapes else None,
    )
    try:
        _check_sources(topology, shapes)
        found = _subtopologies(topology, counts)
        missing = _missing(topology, found, shapes)
    except TopicConfigurationError as unfit:
        return ConfiguredTopology(topology.epoch, None, {}, unfit)
    detail = f"Internal topics are missing: {_summary(missing)}"
    error = TopicConfigurationError(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, found, missing, error if missing else None)


def _check_sources(topology: StreamsTopology, shapes: Mapping[str, TopicShape]) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if topic not in shapes
    }
    if missing:
        raise TopicConfigurationError(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_summary(sorted(missing))} are missing.",
        )


def _subtopologies(
    topology: StreamsTopology, counts: PartitionCounts
) -> dict[str, ConfiguredSubtopology]:
    decided = counts.decided()
    return {
        name: _subtopology(subtopology, counts.widest_input(subtopology), decided)
        for name, subtopology in sorted(topology.subtopologies.items())
    }


def _subtopology(
    told: Subtopology, task_count: int, decided: Mapping[str, int]
) -> ConfiguredSubtopology:
    if task_count <= 0:
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ConfiguredSubtopology(
        task_count,
        frozenset(told.source_topics),
        frozenset(told.repartition_sink_topics),
        _topics(told.repartition_source_topics, decided),
        _topics(told.state_changelog_topics, decided),
    )


def _topics(told: Iterable[StreamsTopic], decided: Mapping[str, int]) -> dict[str, InternalTopic]:
    found: dict[str, InternalTopic] = {}
    for topic in told:
        count = topic.partitions or decided[topic.name]
        if topic.name in found or count < 1:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        settings = _settings(topic.topic_configs)
        found[topic.name] = InternalTopic(topic.name, count, topic.replication_factor, settings)
    return found


def _settings(told: tuple[KeyValue, ...]) -> dict[str, str]:
    found = {one.key: one.value for one in told}
    if len(found) < len(told):
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return {name: found[name] for name in members_in_order(found)}


def _missing(
    topology: StreamsTopology,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    shapes: Mapping[str, TopicShape],
) -> dict[str, InternalTopic]:
    """Return the internal topics that are not there; those that are must have the right size."""
    wanted: dict[str, InternalTopic] = {}
    for subtopology in subtopologies.values():
        wanted |= subtopology.repartition_source_topics
        wanted |= subtopology.state_changelog_topics
    for name in members_in_order(sorted(topology.required_topics)):
        shape, topic = shapes.get(name), wanted.get(name)
        if shape is None or topic is None or shape.partition_count == topic.partition_count:
            continue
        raise TopicConfigurationError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Existing topic {name} has different number of partitions: expected "
            f"{topic.partition_count}, found {shape.partition_count}",
        )
    return {name: wanted[name] for name in members_in_order(wanted) if name not in shapes}


def _summary(topics: Iterable[str]) -> str:
    names = list(topics)
    more = len(names) - _SHOWN_MAX
    rest = f" and {more} additional topics" if more > 0 else ""
    return ", ".join(names[:_SHOWN_MAX]) + rest
