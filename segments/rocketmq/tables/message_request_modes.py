"""
How groups get their messages, by pull or by pop: ``config/messageRequestMode.json`` (5.x).

Source: ``MessageRequestModeManager``, ``SetMessageRequestModeRequestBody``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order
from logstore.segments.rocketmq.tables.json_fields import (
    JsonField,
    as_int32,
    as_object,
    as_text,
    read_fields,
    written_fields,
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

PULL, POP = "PULL", "POP"

_FIELDS = (
    JsonField("consumer_group", "consumerGroup", as_text),
    JsonField("mode", "mode", as_text),
    JsonField("pop_share_queue_count", "popShareQueueNum", as_int32),
    JsonField("topic", "topic", as_text),
)


@attrs.frozen
class MessageRequestMode:
    """
    How one group gets the messages of one topic.

    `pop_share_queue_count` says with how many of the consumers after it one that pops shares its
    queues.
    """

    topic: str
    consumer_group: str
    mode: str = PULL
    pop_share_queue_count: int = 0
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    def to_json(self, release: Release = Release.V5) -> dict[str, Any]:
        """Return the fields by Java's names."""
        return written_fields(_FIELDS, self, None, release)

    @classmethod
    def from_json(
        cls, fields: Mapping[Any, Any], topic: str = "", group: str = ""
    ) -> MessageRequestMode:
        """Return the mode of these fields. Raises JsonTypeError."""
        return cls(**read_fields(_FIELDS, fields, topic=topic, consumer_group=group))


class MessageRequestModeTable(JsonTable):
    """Modes by topic and group (``MessageRequestModeManager``)."""

    file_name = "messageRequestMode.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.modes: dict[str, dict[str, MessageRequestMode]] = {}
        self._other_fields: dict[str, Any] = {}

    def get(self, topic: str, group: str) -> MessageRequestMode | None:
        """Return the mode of a group in a topic, None if nobody set it."""
        return self.modes.get(topic, {}).get(group)

    def put(self, mode: MessageRequestMode) -> None:
        """Set the mode of a group in a topic."""
        self.modes.setdefault(mode.topic, {})[mode.consumer_group] = mode
        self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        ordered = {
            topic: {
                group: mode.to_json(self.release)
                for group, mode in in_concurrent_map_order(groups).items()
            }
            for topic, groups in in_concurrent_map_order(self.modes).items()
        }
        return dict(sorted({**self._other_fields, "messageRequestModeMap": ordered}.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        table = as_object(others.pop("messageRequestModeMap", None))
        self.modes = {
            str(topic): {
                str(group): MessageRequestMode.from_json(as_object(fields), str(topic), str(group))
                for group, fields in as_object(groups).items()
            }
            for topic, groups in table.items()
        }
        self._other_fields = {str(name): value for name, value in others.items()}
