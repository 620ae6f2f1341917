"""
The topics of a broker: ``config/topics.json``.

Source: ``TopicConfig``, ``TopicConfigManager``, ``PermName``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order, in_hash_map_order
from logstore.segments.rocketmq.tables.json_fields import (
    JsonField,
    as_bool,
    as_int32,
    as_object,
    as_text,
    as_texts,
    read_fields,
    written_fields,
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

PERM_INHERIT, PERM_WRITE, PERM_READ, PERM_PRIORITY = 1, 2, 4, 8
_INITIAL_CAPACITY = 1024

_FIELDS = (
    JsonField("attributes", "attributes", as_texts, is_new=True),
    JsonField("is_order", "order", as_bool),
    JsonField("perm", "perm", as_int32),
    JsonField("read_queue_count", "readQueueNums", as_int32),
    JsonField("topic_filter_type", "topicFilterType", as_text),
    JsonField("topic_name", "topicName", as_text),
    JsonField("topic_sys_flag", "topicSysFlag", as_int32),
    JsonField("write_queue_count", "writeQueueNums", as_int32),
)


@attrs.frozen
class TopicConfig:
    """
    One topic. Defaults are Java's; unknown fields of a file are kept in `other_fields`.

    `perm` adds up ``PERM_READ``, ``PERM_WRITE`` and ``PERM_INHERIT`` (others may be made after
    it). `attributes` are 5.x only.
    """

    topic_name: str
    read_queue_count: int = 16
    write_queue_count: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    is_order: bool = False
    attributes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def is_readable(self) -> bool:
        """Whether consumers may read."""
        return self.perm & PERM_READ != 0

    @property
    def is_writable(self) -> bool:
        """Whether producers may write."""
        return self.perm & PERM_WRITE != 0

    @property
    def is_inherited(self) -> bool:
        """Whether other topics may be made after this one."""
        return self.perm & PERM_INHERIT != 0

    def to_json(self, release: Release = Release.V5) -> dict[str, Any]:
        """Return the fields by Java's names, as bodies and files have them."""
        ordered = {name: self.attributes[name] for name in in_hash_map_order(self.attributes)}
        written = written_fields(_FIELDS, self, _DEFAULTS, release)
        if "attributes" in written:
            written["attributes"] = ordered
        return written

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any], topic: str = "") -> TopicConfig:
        """Return the topic of these fields; `topic` names it if they do not. JsonTypeError."""
        return cls(**read_fields(_FIELDS, fields, topic_name=topic))


_DEFAULTS = TopicConfig("")


class TopicTable(JsonTable):
    """
    All topics by name (``TopicConfigManager``).

    `topics` is the mapping, not to be changed but by the methods; `data_version` its version,
    which other brokers and the name server compare.
    """

    file_name = "topics.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.topics: dict[str, TopicConfig] = {}
        self.data_version = DataVersion(host.clock.wall_ms())
        self._other_fields: dict[str, Any] = {}

    def get(self, topic: str) -> TopicConfig | None:
        """Return a topic, None if there is none of that name."""
        return self.topics.get(topic)

    def put(self, config: TopicConfig) -> None:
        """Add or replace a topic; the version goes on."""
        self.topics[config.topic_name] = config
        self.advance_version()

    def begin(self) -> None:
        """Count the first version of a new table, as Java's does before there is any topic."""
        self.data_version = self.data_version.next(self.host.clock.wall_ms())

    def put_system(self, config: TopicConfig) -> None:
        """Add or replace a topic without a new version, as a starting broker does."""
        self.topics[config.topic_name] = config
        self.is_dirty = True

    def remove(self, topic: str) -> TopicConfig | None:
        """Remove a topic and return it; the version goes on if it was there."""
        removed = self.topics.pop(topic, None)
        if removed is not None:
            self.advance_version()
        return removed

    def restore(self, topic: str, known: TopicConfig | None) -> None:
        """Take back a change that the disk refused: a topic is as it was, None for not there."""
        if known is None:
            self.topics.pop(topic, None)
        else:
            self.topics[topic] = known

    def advance_version(self) -> None:
        """Say that something changed."""
        self.data_version = self.data_version.next(self.host.clock.wall_ms())
        self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it: ``TopicConfigSerializeWrapper``."""
        ordered = in_concurrent_map_order(self.topics, _INITIAL_CAPACITY)
        fields = {
            **self._other_fields,
            "dataVersion": self.data_version.to_json(self.release),
            "topicConfigTable": {
                name: config.to_json(self.release) for name, config in ordered.items()
            },
        }
        return dict(sorted(fields.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        version = DataVersion.from_json(others.pop("dataVersion", None))
        table = as_object(others.pop("topicConfigTable", None))
        topics = {
            str(name): TopicConfig.from_json(as_object(fields), str(name))
            for name, fields in table.items()
        }
        self.topics = topics
        self.data_version = version or self.data_version
        self._other_fields = {str(name): value for name, value in others.items()}
