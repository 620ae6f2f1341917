"""
What groups popped in order and have not finished: ``config/consumerOrderInfo.json`` (5.x).

Source: ``ConsumerOrderInfoManager``.
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
    as_int,
    as_int32,
    as_list,
    as_object,
    as_text,
    read_fields,
    written_fields,
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

SEPARATOR = "@"
_INITIAL_CAPACITY = 128
_LEVEL, _COUNT = "orderedConsumptionLevel", "orderInfoCount"


def _as_offsets(value: Any) -> list[int]:
    return [as_int(one) for one in as_list(value)]


def _as_times(value: Any) -> dict[int, int]:
    return {as_int(offset): as_int(time_ms) for offset, time_ms in as_object(value).items()}


_FIELDS = (
    JsonField("pop_time_ms", "popTime", as_int),
    JsonField("invisible_ms", "i", as_int),
    JsonField("differences", "o", _as_offsets),
    JsonField("visible_at_ms", "ot", _as_times),
    JsonField("consumed_times", "oc", _as_times),
    JsonField("last_consumed_ms", "l", as_int),
    JsonField("committed", "cm", as_int),
    JsonField("attempt_id", "a", as_text),
)


@attrs.define
class OrderInfo:
    """
    The messages of one queue that one pop has taken in order (``OrderInfo``).

    `differences` begin with the first queue offset; those of the others are counted from it.
    `committed` has a bit for each, set when it is acknowledged. `visible_at_ms` are times that were
    changed for single messages, `consumed_times` how often those were popped before that were.
    """

    pop_time_ms: int = 0
    invisible_ms: int | None = None
    differences: list[int] = attrs.field(factory=list[int])
    last_consumed_ms: int = 0
    committed: int = 0
    attempt_id: str | None = None
    visible_at_ms: dict[int, int] | None = None
    consumed_times: dict[int, int] | None = None
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def queue_offsets(self) -> list[int]:
        """The queue offsets of the messages."""
        first = self.differences[0] if self.differences else 0
        return [first + difference for difference in (0, *self.differences[1:])]

    def to_json(self, release: Release = Release.V5) -> dict[str, Any]:
        """Return the fields by Java's names."""
        return written_fields(_FIELDS, self, None, release) | {"o": tuple(self.differences)}

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any]) -> OrderInfo:
        """Return what these fields say. Raises JsonTypeError."""
        return cls(**read_fields(_FIELDS, fields))


class ConsumerOrderInfoTable(JsonTable):
    """Order infos by ``topic@group`` and queue id (``ConsumerOrderInfoManager``)."""

    file_name = "consumerOrderInfo.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.infos: dict[str, dict[int, OrderInfo]] = {}
        self._other_fields: dict[str, Any] = {_LEVEL: "QUEUE"}

    def get(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """Return what a group has popped of a queue, None if there is nothing."""
        return self.infos.get(f"{topic}{SEPARATOR}{group}", {}).get(queue_id)

    def put(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """Set what a group has popped of a queue."""
        self.infos.setdefault(f"{topic}{SEPARATOR}{group}", {})[queue_id] = info
        self.is_dirty = True

    def remove(self, topic: str, group: str, queue_id: int) -> None:
        """Forget what a group has popped of a queue."""
        if self.infos.get(f"{topic}{SEPARATOR}{group}", {}).pop(queue_id, None) is not None:
            self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        ordered = {
            key: {queue_id: queues[queue_id].to_json(self.release) for queue_id in sorted(queues)}
            for key, queues in in_concurrent_map_order(self.infos, _INITIAL_CAPACITY).items()
        }
        count = sum(map(len, self.infos.values()))
        return dict(sorted({**self._other_fields, _COUNT: count, "table": ordered}.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        others.pop(_COUNT, None)
        table = as_object(others.pop("table", None))
        self.infos = {
            str(key): {
                as_int32(queue_id): OrderInfo.from_json(as_object(fields))
                for queue_id, fields in as_object(queues).items()
            }
            for key, queues in table.items()
        }
        self._other_fields = {str(name): value for name, value in others.items()}
