"""
How many partitions internal topics have.

1. A repartition topic has as many as the application says, or else as many as the widest input of
   a subtopology that writes to it; which may be another repartition topic.
2. Topics that are joined must have the same number, and those that are not there yet are given it.
3. A changelog has as many as its subtopology has tasks.

Source: ``RepartitionTopics``, ``CopartitionedTopicsEnforcer``, ``ChangelogTopics``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.groups.streams.topics.configuration_error import (
    TopicConfigurationError,
)
from logstore.compat.kafka.groups.streams.topology import inputs_of, names_of
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import CopartitionGroup, Subtopology

#: returns how many partitions a topic has, None if it is not there
CountOf = Callable[[str], int | None]


class PartitionCounts:
    """
    Decides the counts of one topology; a topic that is there has the count that it has.

    Raises:
        RefusedRequestError: -1, topics are joined that the topology does not have.

    """

    def __init__(self, subtopologies: Mapping[str, Subtopology], existing: CountOf) -> None:
        self._subtopologies = subtopologies.values()
        self._existing = existing
        self._joined = [
            _copartitioned(subtopology, group)
            for subtopology in self._subtopologies
            for group in subtopology.copartition_groups
        ]
        self._decided: dict[str, int] = {}

    def decided(self) -> Mapping[str, int]:
        """
        Return the count of every internal topic.

        Raises:
            TopicConfigurationError: topics that are joined have different counts.
            RefusedRequestError: 130, the topology cannot be.

        """
        self._decided = self._repartition_counts()
        for subtopology in self._subtopologies:
            if any(one not in self._decided for one in _repartition_sources(subtopology)):
                raise _invalid(
                    "Failed to compute number of partitions for all repartition topics, because "
                    "a repartition source topic is never used as a sink topic."
                )
        for topics in self._joined:
            self._decided |= self._copartitioned(topics)
        changelogs: dict[str, int] = {}
        for subtopology in self._subtopologies:
            widest = self.widest_input(subtopology)
            changelogs |= dict.fromkeys(names_of(subtopology.state_changelog_topics), widest)
        return self._decided | changelogs

    def widest_input(self, subtopology: Subtopology) -> int:
        """Return the most partitions that a topic has which the subtopology reads."""
        counts = [self._count(topic) for topic in inputs_of(subtopology)]
        if not counts:
            raise _invalid(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return max(counts)

    def _count(self, topic: str) -> int:
        count = self._existing(topic)
        if count is None:
            count = self._decided.get(topic)
        if count is None:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count

    # repartition topics

    def _repartition_counts(self) -> dict[str, int]:
        counts = {
            topic.name: topic.partitions
            for subtopology in self._subtopologies
            for topic in subtopology.repartition_source_topics
            if topic.partitions
        }
        is_open = True
        while is_open:
            is_open, has_progress = False, False
            for subtopology in self._subtopologies:
                for topic in subtopology.repartition_sink_topics:
                    if topic in counts:
                        continue
                    count = self._count_of_sink(subtopology, counts)
                    if count is None:
                        is_open = True
                    else:
                        counts[topic] = count
                        has_progress = True
            if is_open and not has_progress:
                raise _invalid(
                    "Failed to compute number of partitions for all repartition topics. There may "
                    "be loops in the topology that cannot be resolved."
                )
        return counts

    def _count_of_sink(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        found = [
            *(counts.get(topic) for topic in _repartition_sources(subtopology)),
            *(self._existing(topic) for topic in subtopology.source_topics),
        ]
        return max((count for count in found if count is not None), default=None)

    # topics that are joined

    def _copartitioned(self, topics: frozenset[str]) -> dict[str, int]:
        """Return the counts of the repartition topics among topics that are joined."""
        if not topics:
            return {}
        every = [topic for one in self._subtopologies for topic in one.repartition_source_topics]
        fixed = {topic.name for topic in every if topic.partitions}
        counts = {topic: self._count(topic) for topic in members_in_order(sorted(topics))}
        repartition = {name: counts[name] for name in counts if name in {one.name for one in every}}
        if len(repartition) < len(counts):
            others = {name: count for name, count in counts.items() if name not in repartition}
            wanted = _same(others, others)
        elif fixed:
            wanted = _same({name: self._count(name) for name in fixed}, repartition)
        else:
            wanted = max(repartition.values())
            if wanted == 0:
                raise _invalid(
                    "All topics in the copartition group had undefined partition number: "
                    f"[{', '.join(repartition)}]"
                )
        for name, count in repartition.items():
            if name in fixed and count != wanted:
                raise _incorrect(
                    f"Number of partitions [{count}] of repartition topic [{name}] doesn't match "
                    f"number of partitions [{wanted}] of the source topic."
                )
        return dict.fromkeys(repartition, wanted)


def _repartition_sources(subtopology: Subtopology) -> list[str]:
    return names_of(subtopology.repartition_source_topics)


def _copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> frozenset[str]:
    return frozenset(
        [
            *_at(subtopology.source_topics, group.source_topics),
            *_at(_repartition_sources(subtopology), group.repartition_source_topics),
        ]
    )


def _at(names: Iterable[str], indexes: Iterable[int]) -> list[str]:
    by_index = dict(enumerate(names))
    try:
        return [by_index[index] for index in indexes]
    except KeyError:
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    """Return the count that all have; `shown` is named where they differ."""
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _incorrect(
            f"Following topics do not have the same number of partitions: [{{{text}}}]"
        )
    return next(iter(counts.values()))


def _incorrect(detail: str) -> TopicConfigurationError:
    return TopicConfigurationError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
