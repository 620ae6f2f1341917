"""
For which partitions a share group has a state: begun, being begun, being deleted.

A state is begun by the persister. That it shall be is written first, that it is afterwards, so that
whatever stops in between is found again.

Source: ``ShareGroupStatePartitionMetadataInfo`` and what ``GroupMetadataManager`` does with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from logstore.compat.kafka.groups.modern.cluster import TopicShape


class TopicPartitions(NamedTuple):
    """Partitions of one topic; `since_ms` is when that was noted, -1 where nobody asks."""

    name: str
    partitions: frozenset[int]
    since_ms: int = -1


PartitionsByTopic = Mapping[uuid.UUID, TopicPartitions]

NO_PARTITIONS: PartitionsByTopic = {}


class StatePartitions(NamedTuple):
    """The partitions of a group by what becomes of their state; a change is a new one."""

    initializing: PartitionsByTopic = NO_PARTITIONS
    initialized: PartitionsByTopic = NO_PARTITIONS
    deleting: frozenset[uuid.UUID] = frozenset()

    def uninitialized(
        self, shapes: Iterable[TopicShape], now_ms: int, retry_interval_ms: int
    ) -> dict[uuid.UUID, TopicPartitions]:
        """Return the partitions of topics whose state must be begun, or not for so long already."""
        fresh = {
            topic_id: one
            for topic_id, one in self.initializing.items()
            if now_ms - one.since_ms < retry_interval_ms
        }
        known = combined(self.initialized, fresh)
        found: dict[uuid.UUID, TopicPartitions] = {}
        for shape in shapes:
            known_here = known[shape.topic_id].partitions if shape.topic_id in known else ()
            if len(known_here) < shape.partition_count:
                missing = frozenset(range(shape.partition_count)).difference(known_here)
                found[shape.topic_id] = TopicPartitions(shape.name, missing, now_ms)
        return found

    def with_initializing(self, partitions: PartitionsByTopic) -> StatePartitions:
        """Return it with more states that shall be begun."""
        initializing = combined(self.initializing, partitions)
        return self._replace(
            initializing=initializing, deleting=self.deleting.difference(initializing)
        )

    def with_initialized(self, partitions: PartitionsByTopic) -> StatePartitions:
        """Return it with states that were begun."""
        return self._replace(
            initializing=without(self.initializing, partitions),
            initialized=combined(self.initialized, partitions),
        )

    def without_initializing(self, partitions: PartitionsByTopic) -> StatePartitions:
        """Return it without states that could not be begun."""
        return self._replace(initializing=without(self.initializing, partitions))

    def with_deleting(self, topic_ids: Collection[uuid.UUID]) -> StatePartitions:
        """Return it with topics whose states shall be deleted."""
        return self._replace(
            initialized=_without_topics(self.initialized, topic_ids),
            deleting=self.deleting.union(topic_ids),
        )

    def without_deleting(self, topic_ids: Collection[uuid.UUID]) -> StatePartitions:
        """Return it without topics whose states were deleted."""
        return self._replace(deleting=self.deleting.difference(topic_ids))

    def without_topics(self, topic_ids: Collection[uuid.UUID]) -> StatePartitions:
        """Return it without topics that are gone."""
        return StatePartitions(
            _without_topics(self.initializing, topic_ids),
            _without_topics(self.initialized, topic_ids),
            self.deleting.difference(topic_ids),
        )


def combined(one: PartitionsByTopic, other: PartitionsByTopic) -> dict[uuid.UUID, TopicPartitions]:
    """Return the partitions of both; of a topic that both have, the other's name and time count."""
    found = dict(one)
    for topic_id, more in other.items():
        before = found.get(topic_id)
        partitions = more.partitions if before is None else before.partitions | more.partitions
        found[topic_id] = more._replace(partitions=partitions)
    return found


def without(one: PartitionsByTopic, gone: PartitionsByTopic) -> dict[uuid.UUID, TopicPartitions]:
    """Return the partitions of one that are not among those of the other."""
    found: dict[uuid.UUID, TopicPartitions] = {}
    for topic_id, before in one.items():
        if topic_id not in gone:
            found[topic_id] = before
            continue
        left = before.partitions - gone[topic_id].partitions
        if left:
            found[topic_id] = before._replace(partitions=left)
    return found


def _without_topics(one: PartitionsByTopic, topic_ids: Collection[uuid.UUID]) -> PartitionsByTopic:
    return {topic_id: it for topic_id, it in one.items() if topic_id not in topic_ids}
