"""
Static topics, whose queues move between brokers: ``config/topicQueueMapping.json`` (5.x).

A logic queue is told by a global id. What was ever put into it stands in queues of one broker
after the other, its items. Each broker keeps those logic queues that it has, or had last::

    logic queue 0:  gen 0, broker-a, queue 0   [0, 10)       at 0 .. 10 there
                    gen 1, broker-b, queue 0   [10000, ...   at 0 .. there: the leader

Source: ``TopicQueueMappingDetail``, ``LogicQueueMappingItem``, ``TopicQueueMappingManager``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.data_version import DataVersion
from logstore.segments.rocketmq.tables.java_maps import in_concurrent_map_order, in_number_order
from logstore.segments.rocketmq.tables.json_fields import (
    JsonField,
    as_bool,
    as_int,
    as_int32,
    as_list,
    as_object,
    as_text,
    read_fields,
    written_fields,
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

GLOBAL_SCOPE = "__global__"

_ITEM_FIELDS = (
    JsonField("broker_name", "bname", as_text),
    JsonField("end_offset", "endOffset", as_int),
    JsonField("gen", "gen", as_int32),
    JsonField("logic_offset", "logicOffset", as_int),
    JsonField("queue_id", "queueId", as_int32),
    JsonField("start_offset", "startOffset", as_int),
    JsonField("time_of_end_ms", "timeOfEnd", as_int),
    JsonField("time_of_start_ms", "timeOfStart", as_int),
)


@attrs.frozen
class LogicQueueMappingItem:
    """
    A stretch of a logic queue: `queue_id` on one broker, whose `start_offset` is `logic_offset`.

    `end_offset` is the queue offset where it ends, -1 while it goes on. A queue that has just been
    moved has a `logic_offset` of -1 until it is known where the one before it ends.
    """

    gen: int = 0
    queue_id: int = 0
    broker_name: str = ""
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    time_of_start_ms: int = -1
    time_of_end_ms: int = -1
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def has_end(self) -> bool:
        """Tell whether it is known where the stretch ends."""
        return self.end_offset > self.start_offset

    @property
    def has_beginning(self) -> bool:
        """Tell whether it is known where the stretch begins."""
        return self.logic_offset >= 0

    @property
    def logic_offset_max(self) -> int:
        """Where the stretch ends in the logic queue as far as that is known."""
        if self.end_offset >= self.start_offset:
            return self.logic_offset + self.end_offset - self.start_offset
        return self.logic_offset

    def logic_of(self, queue_offset: int) -> int:
        """Return a queue offset as one of the logic queue (``Strictly``)."""
        return self.logic_offset + max(queue_offset - self.start_offset, 0)

    def logic_within(self, queue_offset: int) -> int:
        """Return the same, kept within the stretch; -1 if nobody knows yet (``Loosely``)."""
        if self.logic_offset < 0:
            return -1
        if self.start_offset <= self.end_offset < queue_offset:
            queue_offset = self.end_offset
        return self.logic_of(queue_offset)

    def queue_offset_of(self, logic_offset: int) -> int:
        """Return an offset of the logic queue as one of the queue; it may lie outside of it."""
        return logic_offset - self.logic_offset + self.start_offset

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        return written_fields(_ITEM_FIELDS, self, None, Release.V5)

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> LogicQueueMappingItem:
        """Return the item of these fields. Raises JsonTypeError."""
        return cls(**read_fields(_ITEM_FIELDS, fields))


#: the items of one logic queue, the oldest first
Items = tuple[LogicQueueMappingItem, ...]


def _as_hosted(value: Any) -> dict[int, Items]:
    return {
        as_int32(queue_id): tuple(
            LogicQueueMappingItem.from_json(as_object(item)) for item in as_list(items)
        )
        for queue_id, items in as_object(value).items()
    }


def _as_numbers(value: Any) -> dict[int, int]:
    return {as_int32(key): as_int32(number) for key, number in as_object(value).items()}


_DETAIL_FIELDS = (
    JsonField("broker_name", "bname", as_text),
    JsonField("current_ids", "currIdMap", _as_numbers),
    JsonField("is_dirty", "dirty", as_bool),
    JsonField("epoch", "epoch", as_int),
    JsonField("hosted_queues", "hostedQueues", _as_hosted),
    JsonField("scope", "scope", as_text),
    JsonField("topic", "topic", as_text),
    JsonField("total_queue_count", "totalQueues", as_int32),
)


@attrs.frozen
class TopicQueueMappingDetail:
    """What one broker knows of a static topic: of all its logic queues, those it has or had."""

    topic: str = ""
    total_queue_count: int = 0
    #: whose knowledge this is
    broker_name: str = ""
    #: when it was changed last; older knowledge does not count
    epoch: int = 0
    is_dirty: bool = False
    scope: str = GLOBAL_SCOPE
    #: stays empty here, is what name servers are told
    current_ids: Mapping[int, int] = attrs.field(factory=dict[int, int])
    hosted_queues: Mapping[int, Items] = attrs.field(factory=dict[int, Items])
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    def leads(self, queue_id: int) -> bool:
        """Tell whether a logic queue is this broker's now."""
        items = self.hosted_queues.get(queue_id, ())
        return bool(items) and items[-1].broker_name == self.broker_name

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        written = written_fields(_DETAIL_FIELDS, self, None, Release.V5)
        hosted = self.hosted_queues
        written["currIdMap"] = in_number_order(self.current_ids)
        written["hostedQueues"] = {
            queue_id: [item.to_json() for item in hosted[queue_id]]
            for queue_id in in_number_order(hosted)
        }
        return written

    def info_json(self) -> dict[str, Any]:
        """Return what name servers are told: which queues are this broker's, and where."""
        led = {
            queue_id: items[-1].queue_id
            for queue_id, items in self.hosted_queues.items()
            if self.leads(queue_id)
        }
        return {
            "bname": self.broker_name,
            "currIdMap": {str(queue_id): led[queue_id] for queue_id in in_number_order(led)},
            "dirty": False,
            "epoch": self.epoch,
            "scope": GLOBAL_SCOPE,
            "topic": self.topic,
            "totalQueues": self.total_queue_count,
        }

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> TopicQueueMappingDetail:
        """Return what these fields say. Raises JsonTypeError."""
        return cls(**read_fields(_DETAIL_FIELDS, fields))


def find_item(items: Iterable[LogicQueueMappingItem], offset: int) -> LogicQueueMappingItem | None:
    """
    Return the item in which an offset of the logic queue stands; the first one if none.

    Items of which it is not known where they begin do not count.
    """
    known = [item for item in items if item.has_beginning]
    for item in reversed(known):
        if offset >= item.logic_offset:
            return item
    return known[0] if known else None


def item_after(
    items: Sequence[LogicQueueMappingItem], current: LogicQueueMappingItem
) -> LogicQueueMappingItem | None:
    """Return the item that follows on one, if it is known where it begins."""
    for item, following in pairwise(items):
        if item.has_beginning and item.gen == current.gen:
            return following if following.has_beginning else None
    return None


class QueueMappingTable(JsonTable):
    """What a broker knows of all static topics (``TopicQueueMappingManager``)."""

    file_name = "topicQueueMapping.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.details: dict[str, TopicQueueMappingDetail] = {}
        self.data_version = DataVersion(host.clock.wall_ms())
        self._other_fields: dict[str, Any] = {}

    def advance_version(self) -> None:
        """Say that something changed."""
        self.data_version = self.data_version.next(self.host.clock.wall_ms())
        self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it: ``TopicQueueMappingSerializeWrapper``."""
        fields = {
            **self._other_fields,
            "dataVersion": self.data_version.to_json(self.release),
            "topicQueueMappingInfoMap": {
                topic: detail.to_json()
                for topic, detail in in_concurrent_map_order(self.details).items()
            },
        }
        return dict(sorted(fields.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        version = DataVersion.from_json(others.pop("dataVersion", None))
        table = as_object(others.pop("topicQueueMappingInfoMap", None))
        details = {
            str(topic): TopicQueueMappingDetail.from_json(as_object(fields))
            for topic, fields in table.items()
        }
        self.details.clear()
        self.details.update(details)
        self.data_version = version or self.data_version
        self._other_fields = {str(name): value for name, value in others.items()}
