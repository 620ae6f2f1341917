"""What consumer groups must know of the cluster: topics, and settings that a group has."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import attrs


@attrs.frozen
class TopicShape:
    """A topic, as far as assignments depend on it."""

    name: str
    topic_id: uuid.UUID
    partition_count: int


class Cluster(Protocol):
    """The topics as they are now, and the settings of groups."""

    def topic_named(self, name: str) -> TopicShape | None:
        """Return the topic of that name."""
        ...

    def topic_with_id(self, topic_id: uuid.UUID) -> TopicShape | None:
        """Return the topic of that id."""
        ...

    def topic_names(self) -> Collection[str]:
        """Return the names of all topics."""
        ...

    def settings_of_group(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group has of its own, by Kafka's names."""
        ...


class MemoryCluster:
    """A cluster that is what somebody says, for tests and for coordinators without topics."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicShape] = {}
        self.group_settings: dict[str, dict[str, str]] = {}

    def topic_named(self, name: str) -> TopicShape | None:
        """Return the topic of that name."""
        return self.topics.get(name)

    def topic_with_id(self, topic_id: uuid.UUID) -> TopicShape | None:
        """Return the topic of that id."""
        return next((one for one in self.topics.values() if one.topic_id == topic_id), None)

    def topic_names(self) -> Collection[str]:
        """Return the names of all topics."""
        return self.topics.keys()

    def settings_of_group(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group has of its own."""
        return self.group_settings.get(group_id, {})


def shapes_of(cluster: Cluster, names: Iterable[str]) -> dict[str, TopicShape]:
    """Return those of the named topics that exist, by name."""
    found = ((name, cluster.topic_named(name)) for name in names)
    return {name: shape for name, shape in found if shape is not None}


def metadata_hash(shapes: Mapping[str, TopicShape]) -> int:
    """
    Return a number that is another one once a topic comes, goes or grows; 0 without topics.

    Kafka hashes the same things another way, so whoever takes over a group from the other one
    works out its assignment once more, and comes to the same.
    """
    if not shapes:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(shapes):
        shape = shapes[name]
        digest.update(shape.topic_id.bytes + shape.partition_count.to_bytes(4, "big"))
        digest.update(name.encode() + b"\0")
    return int.from_bytes(digest.digest(), "big", signed=True)
