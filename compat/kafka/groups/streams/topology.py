"""
What an application does with which topics, as its members tell it.

Source: ``StreamsTopology``.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import (
    StreamsGroupTopologyValue,
    StreamsTopic,
    Subtopology,
)


@attrs.frozen
class StreamsTopology:
    """The subtopologies of an application, by id, in the order in which Kafka goes through them."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    #: who reads a topic: of two, the one that comes last
    reader_of: Mapping[str, str]
    #: those that are read, written to between subtopologies, or keep state
    required_topics: frozenset[str]

    @classmethod
    def of(cls, value: StreamsGroupTopologyValue) -> StreamsTopology:
        """
        Return what a record says.

        Raises:
            RefusedRequestError: -1, as in Kafka: two subtopologies have the same id, or the epoch
                is negative.

        """
        by_id = {one.subtopology_id: one for one in value.subtopologies}
        if len(by_id) < len(value.subtopologies) or value.epoch < 0:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        found = {name: by_id[name] for name in members_in_order(by_id)}
        reader_of = {
            topic: one.subtopology_id for one in found.values() for topic in inputs_of(one)
        }
        changelogs = {topic.name for one in found.values() for topic in one.state_changelog_topics}
        return cls(value.epoch, found, reader_of, frozenset(changelogs | reader_of.keys()))

    def is_same(self, other: StreamsTopology) -> bool:
        """Tell whether both mean the same, in whatever order the subtopologies were told."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def inputs_of(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads."""
    return [*subtopology.source_topics, *names_of(subtopology.repartition_source_topics)]


def names_of(topics: tuple[StreamsTopic, ...]) -> list[str]:
    """Return the names of topics."""
    return [topic.name for topic in topics]
