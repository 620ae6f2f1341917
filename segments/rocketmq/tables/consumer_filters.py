"""
SQL filters of consumers: ``config/consumerFilter.json``.

Source: ``ConsumerFilterManager``, ``ConsumerFilterData``, ``BloomFilterData``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

DAY_MS = 24 * 3600 * 1000
_INITIAL_CAPACITY = 256
#: how long a filter that was alive at the last stop counts as dead after a load
_DEAD_SINCE_MS = 30_000

_FIELDS = (
    JsonField("born_time_ms", "bornTime", as_int),
    JsonField("client_version", "clientVersion", as_int),
    JsonField("consumer_group", "consumerGroup", as_text),
    JsonField("dead_time_ms", "deadTime", as_int),
    JsonField("expression", "expression", as_text),
    JsonField("expression_type", "expressionType", as_text),
    JsonField("topic", "topic", as_text),
)


@attrs.frozen
class ConsumerFilter:
    """
    The filter of one group on one topic (``ConsumerFilterData``).

    `bloom_bit_count` and `bloom_positions` are the bits of the group in bit maps of consume queue
    extensions; none without. `client_version` is the subscription's, a time in ms.
    """

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    born_time_ms: int
    client_version: int
    dead_time_ms: int = 0
    bloom_bit_count: int = 0
    bloom_positions: tuple[int, ...] = ()
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    @property
    def is_dead(self) -> bool:
        """Whether no consumer uses it any more."""
        return self.dead_time_ms >= self.born_time_ms

    def to_json(self) -> dict[str, Any]:
        """Return the fields by Java's names."""
        written: dict[str, Any] = {
            **self.other_fields,
            **{field.java_name: getattr(self, field.name) for field in _FIELDS},
            "dead": self.is_dead,
        }
        if self.bloom_positions:
            bits = {"bitNum": self.bloom_bit_count, "bitPos": self.bloom_positions}
            written["bloomFilterData"] = bits
        return dict(sorted(written.items()))

    @classmethod
    def from_json(cls, content: Mapping[Any, Any], topic: str, group: str) -> ConsumerFilter:
        """Return the filter of these fields. Raises JsonTypeError."""
        others = dict(content)
        others.pop("dead", None)
        bloom = as_object(others.pop("bloomFilterData", None))
        arguments = read_fields(
            _FIELDS,
            others,
            topic=topic,
            consumer_group=group,
            expression="",
            expression_type="",
            born_time_ms=0,
            client_version=0,
            bloom_bit_count=as_int32(bloom.get("bitNum", 0)),
            bloom_positions=tuple(map(as_int32, as_list(bloom.get("bitPos")))),
        )
        return cls(**arguments)


class ConsumerFilterTable(JsonTable):
    """
    Filters by topic and group (``ConsumerFilterManager``).

    Args:
        host: whose clock says when a filter died.
        directory: the store's ``config``.
        release: how the file is written.
        is_bloom_valid: whether the bits of a loaded filter are those of today's bloom filter; if
            one's are not, all of the file is ignored, as in Java. None takes any.
        clean_span_ms: how long dead filters are kept (``filterDataCleanTimeSpan``).

    """

    file_name = "consumerFilter.json"

    def __init__(
        self,
        host: Host,
        directory: str,
        release: Release = Release.V5,
        *,
        is_bloom_valid: Callable[[ConsumerFilter], bool] | None = None,
        clean_span_ms: int = DAY_MS,
    ) -> None:
        super().__init__(host, directory, release)
        self.filters: dict[str, dict[str, ConsumerFilter]] = {}
        self.clean_span_ms = clean_span_ms
        self._is_bloom_valid = is_bloom_valid
        self._other_fields: dict[str, Any] = {}

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """Return the filter of a group on a topic, dead or not."""
        return self.filters.get(topic, {}).get(group)

    def of_topic(self, topic: str) -> list[ConsumerFilter]:
        """Return all filters on a topic."""
        return list(self.filters.get(topic, {}).values())

    def of_group(self, group: str) -> list[ConsumerFilter]:
        """Return all filters of a group."""
        return [groups[group] for groups in self.filters.values() if group in groups]

    def register(self, new: ConsumerFilter) -> bool:
        """
        Take a subscription's filter unless a newer one stands; tell whether it counts now.

        `new` was compiled by the caller; one that does not compile goes to :meth:`forget`.
        """
        groups = self.filters.setdefault(new.topic, {})
        old = groups.get(new.consumer_group)
        if old is not None and new.client_version <= old.client_version:
            if new.client_version < old.client_version or not old.is_dead:
                return False
            kept = attrs.evolve(old, dead_time_ms=0)
        elif old is not None and _is_same(old, new):
            dead_ms = 0 if old.is_dead else old.dead_time_ms
            kept = attrs.evolve(old, client_version=new.client_version, dead_time_ms=dead_ms)
        else:
            kept = new
        groups[new.consumer_group] = kept
        self.is_dirty = True
        return True

    def forget(self, topic: str, group: str) -> None:
        """Remove a filter."""
        if self.filters.get(topic, {}).pop(group, None) is not None:
            self.is_dirty = True

    def unregister(self, group: str, *, but_topics: frozenset[str] = frozenset()) -> None:
        """Mark a group's filters as dead, but for those on `but_topics`."""
        now_ms = self.host.clock.wall_ms()
        for topic, groups in self.filters.items():
            old = groups.get(group)
            if old is not None and not old.is_dead and topic not in but_topics:
                groups[group] = attrs.evolve(old, dead_time_ms=now_ms)
                self.is_dirty = True

    def clean(self) -> None:
        """Remove filters that died too long ago, and topics without any."""
        now_ms = self.host.clock.wall_ms()
        for topic, groups in list(self.filters.items()):
            for group, one in list(groups.items()):
                if one.is_dead and now_ms - one.dead_time_ms >= self.clean_span_ms:
                    del groups[group]
            if not groups:
                del self.filters[topic]

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it, without what :meth:`clean` removes."""
        self.clean()
        by_topic = {
            topic: {
                "groupFilterData": {
                    group: one.to_json() for group, one in in_concurrent_map_order(groups).items()
                },
                "topic": topic,
            }
            for topic, groups in in_concurrent_map_order(self.filters, _INITIAL_CAPACITY).items()
        }
        return dict(sorted({**self._other_fields, "filterDataByTopic": by_topic}.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        filters: dict[str, dict[str, ConsumerFilter]] = {}
        for topic, data in as_object(others.pop("filterDataByTopic", None)).items():
            groups = as_object(as_object(data).get("groupFilterData"))
            filters[str(topic)] = {
                str(group): ConsumerFilter.from_json(as_object(fields), str(topic), str(group))
                for group, fields in groups.items()
            }
        found = [one for groups in filters.values() for one in groups.values()]
        if self._is_bloom_valid is not None and not all(map(self._is_bloom_valid, found)):
            return
        dead_ms = self.host.clock.wall_ms() - _DEAD_SINCE_MS
        for groups in filters.values():
            for group, one in groups.items():
                if one.dead_time_ms == 0:
                    died_ms = max(dead_ms, one.born_time_ms)
                    groups[group] = attrs.evolve(one, dead_time_ms=died_ms)
        self.filters = filters
        self._other_fields = {str(name): value for name, value in others.items()}


def _is_same(old: ConsumerFilter, new: ConsumerFilter) -> bool:
    """Tell whether a subscription changed nothing but its version."""
    return (
        old.expression == new.expression
        and old.expression_type == new.expression_type
        and (old.bloom_bit_count, old.bloom_positions) == (new.bloom_bit_count, new.bloom_positions)
    )
