"""The topics of a broker: ``config/topics.json`` (signatures)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

PERM_INHERIT, PERM_WRITE, PERM_READ, PERM_PRIORITY = 1, 2, 4, 8


@attrs.frozen
class TopicConfig:
    """One topic. Defaults are Java's. Unknown fields of a file are kept in `other_fields`."""

    topic_name: str
    read_queue_count: int = 16
    write_queue_count: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    is_order: bool = False
    attributes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    other_fields: Mapping[str, object] = attrs.field(factory=dict[str, object])

    def to_json(self) -> dict[str, object]:
        """Return the fields by Java's names, as bodies and files have them."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> TopicConfig:
        """Return the topic of these fields. Raises JsonTypeError."""
        raise NotImplementedError


class TopicTable:
    """
    All topics by name (``TopicConfigManager``); a :class:`JsonTable`.

    `topics` is the mapping; `data_version` its version.
    """

    def get(self, topic: str) -> TopicConfig | None:
        """Return a topic, None if there is none of that name."""
        raise NotImplementedError

    def put(self, config: TopicConfig) -> None:
        """Add or replace a topic; the version goes on."""
        raise NotImplementedError

    def put_system(self, config: TopicConfig) -> None:
        """Add or replace a topic without a new version, as a starting broker does."""
        raise NotImplementedError

    def remove(self, topic: str) -> TopicConfig | None:
        """Remove a topic; the version goes on if it was there."""
        raise NotImplementedError
