"""What consumer groups must know of the cluster: topics, and settings that a group has."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

import attrs
from xxhash import xxh3_64_digest

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS

_HASH_MAGIC = 0


@attrs.frozen
class TopicShape:
    """A topic, as far as assignments depend on it."""

    name: str
    topic_id: uuid.UUID
    partition_count: int
    #: where the one replica of each partition stands, as far as the broker says so
    rack: str | None = None


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

    def metadata_offset(self) -> int:
        """Return the offset of the metadata log up to which this is what it says."""
        ...

    def settings_of_group(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group has of its own, by Kafka's names."""
        ...

    def integer(self, name: str) -> int:
        """Return the value that a setting of the broker has now."""
        ...


class MemoryCluster:
    """A cluster that is what somebody says, for tests and for coordinators without topics."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicShape] = {}
        self.offset = 0
        self.group_settings: dict[str, dict[str, str]] = {}
        #: those that are not the default
        self.broker_settings: dict[str, int] = {}

    def topic_named(self, name: str) -> TopicShape | None:
        """Return the topic of that name."""
        return self.topics.get(name)

    def topic_with_id(self, topic_id: uuid.UUID) -> TopicShape | None:
        """Return the topic of that id."""
        return next((one for one in self.topics.values() if one.topic_id == topic_id), None)

    def topic_names(self) -> Collection[str]:
        """Return the names of all topics."""
        return self.topics.keys()

    def metadata_offset(self) -> int:
        """Return the offset of the metadata log."""
        return self.offset

    def settings_of_group(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group has of its own."""
        return self.group_settings.get(group_id, {})

    def integer(self, name: str) -> int:
        """Return the value that a setting of the broker has."""
        default = BROKER_CONFIG_KEYS[name].default
        return self.broker_settings.get(name, int(default or 0))


def setting_of_group(
    cluster: Cluster, own: Mapping[str, str], name: str, default: int | None = None
) -> int:
    """
    Return a number among a group's settings: its `own`, or else `default` or the broker's.

    The broker's bounds hold for what was set while it ran, also those that came after it
    (``GroupConfig.evaluate``, ``GroupCoordinatorConfig.clampDynamicConfigs``).
    """
    text = own.get(name)
    if text is None and default is not None:
        return default
    value = cluster.integer(f"group.{name}") if text is None else int(text)
    kind, what = name.split(".", 1)
    least, most = f"group.{kind}.min.{what}", f"group.{kind}.max.{what.removeprefix('num.')}"
    if least in BROKER_CONFIG_KEYS:
        value = max(value, cluster.integer(least))
    return min(value, cluster.integer(most)) if most in BROKER_CONFIG_KEYS else value


def shapes_of(cluster: Cluster, names: Iterable[str]) -> dict[str, TopicShape]:
    """Return those of the named topics that exist, by name."""
    found = ((name, cluster.topic_named(name)) for name in names)
    return {name: shape for name, shape in found if shape is not None}


def metadata_hash(shapes: Mapping[str, TopicShape]) -> int:
    """
    Return a number that is another one once a topic comes, goes, grows or moves; 0 without topics.

    It is Kafka's own, so that whoever takes over a group does not take its topics for others.
    Source: ``computeGroupHash`` and ``computeTopicHash`` of the group coordinator's ``Utils``.
    """
    if not shapes:
        return 0
    hashes = [_topic_hash(shapes[name]) for name in sorted(shapes)]
    return _hashed(struct.pack(f"<{len(hashes)}q", *hashes))


def _topic_hash(shape: TopicShape) -> int:
    high, low = divmod(shape.topic_id.int, 1 << 64)
    count, rack = shape.partition_count, shape.rack
    replica = b"" if rack is None else struct.pack("<i", _length(rack)) + _text(rack)
    data = struct.pack("<BQQ", _HASH_MAGIC, high, low) + _text(shape.name)
    data += struct.pack("<i", count)
    return _hashed(data + b"".join(struct.pack("<i", it) + replica for it in range(count)))


def _text(text: str) -> bytes:
    """Return a text as it is hashed: its UTF-16 units, and how many they are."""
    return text.encode("utf-16-le") + struct.pack("<i", _length(text))


def _length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _hashed(data: bytes) -> int:
    """Return XXH3 of 64 bits, signed as Java's numbers are."""
    return int.from_bytes(xxh3_64_digest(data), "big", signed=True)
