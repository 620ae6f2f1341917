"""Partitions as those see them who describe groups: with the names of their topics."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.consumer.messages import DescribedAssignment, DescribedPartitions

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


def described_assignment(
    broker: Broker, partitions: Mapping[uuid.UUID, Iterable[int]]
) -> DescribedAssignment:
    """Return partitions with the names of their topics; topics that are gone are left out."""
    topics = ((broker.topic_by_id(topic_id), it) for topic_id, it in partitions.items())
    return DescribedAssignment(
        topic_partitions=tuple(
            DescribedPartitions(
                topic_id=uuid.UUID(bytes=topic.topic_id),
                topic_name=topic.name,
                partitions=tuple(sorted(indexes)),
            )
            for topic, indexes in topics
            if topic is not None
        )
    )
