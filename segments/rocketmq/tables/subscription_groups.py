"""
The consumer groups of a broker: ``config/subscriptionGroup.json``.

Source: ``SubscriptionGroupConfig``, ``SubscriptionGroupManager``.
"""

from __future__ import annotations

import json
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
    as_int,
    as_int32,
    as_object,
    as_text,
    as_texts,
    read_fields,
    written_fields,
)
from logstore.segments.rocketmq.tables.json_table import JsonTable

_INITIAL_CAPACITY = 1024
_FORBIDDEN_CAPACITY = 4


def _subscriptions(value: Any) -> Any:
    """Return a set of subscriptions with their fields in the order in which Java writes them."""
    return json.loads(json.dumps(value, sort_keys=True))


_FIELDS = (
    JsonField("attributes", "attributes", as_texts, is_new=True),
    JsonField("broker_id", "brokerId", as_int),
    JsonField("is_consume_broadcast_enabled", "consumeBroadcastEnable", as_bool),
    JsonField("is_consume_enabled", "consumeEnable", as_bool),
    JsonField("is_consume_from_min_enabled", "consumeFromMinEnable", as_bool),
    JsonField("is_consume_message_orderly", "consumeMessageOrderly", as_bool, is_new=True),
    JsonField("consume_timeout_minutes", "consumeTimeoutMinute", as_int32, is_new=True),
    JsonField("group_name", "groupName", as_text),
    JsonField("group_retry_policy", "groupRetryPolicy", as_object, is_new=True),
    JsonField("group_sys_flag", "groupSysFlag", as_int32, is_new=True),
    JsonField("is_notify_consumer_ids_changed_enabled", "notifyConsumerIdsChangedEnable", as_bool),
    JsonField("retry_times_max", "retryMaxTimes", as_int32),
    JsonField("retry_queue_count", "retryQueueNums", as_int32),
    JsonField("subscription_data", "subscriptionDataSet", _subscriptions, is_new=True),
    JsonField("which_broker_when_consume_slowly", "whichBrokerWhenConsumeSlowly", as_int),
)


def _customized() -> dict[str, Any]:
    return {"type": "CUSTOMIZED"}


@attrs.frozen
class SubscriptionGroupConfig:
    """One group. Defaults are Java's; unknown fields of a file are kept in `other_fields`."""

    group_name: str
    is_consume_enabled: bool = True
    is_consume_from_min_enabled: bool = True
    is_consume_broadcast_enabled: bool = True
    is_consume_message_orderly: bool = False
    retry_queue_count: int = 1
    retry_times_max: int = 16
    group_retry_policy: Mapping[str, Any] = attrs.field(factory=_customized)
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    is_notify_consumer_ids_changed_enabled: bool = True
    group_sys_flag: int = 0
    consume_timeout_minutes: int = 15
    subscription_data: Any = None
    attributes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    other_fields: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    def to_json(self, release: Release = Release.V5) -> dict[str, Any]:
        """Return the fields by Java's names, as bodies and files have them."""
        ordered = {name: self.attributes[name] for name in in_hash_map_order(self.attributes)}
        written = written_fields(_FIELDS, self, _DEFAULTS, release)
        if "attributes" in written:
            written["attributes"] = ordered
        return written

    @classmethod
    def from_json(cls, fields: Mapping[Any, Any], group: str = "") -> SubscriptionGroupConfig:
        """Return the group of these fields; `group` names it if they do not. JsonTypeError."""
        return cls(**read_fields(_FIELDS, fields, group_name=group))


_DEFAULTS = SubscriptionGroupConfig("")


class SubscriptionGroupTable(JsonTable):
    """
    All groups by name (``SubscriptionGroupManager``).

    `groups` is the mapping, not to be changed but by the methods; `data_version` its version;
    `forbidden` (5.x) the bit mask of what is closed by group and topic.
    """

    file_name = "subscriptionGroup.json"

    def __init__(self, host: Host, directory: str, release: Release = Release.V5) -> None:
        super().__init__(host, directory, release)
        self.groups: dict[str, SubscriptionGroupConfig] = {}
        self.forbidden: dict[str, dict[str, int]] = {}
        self.data_version = DataVersion(host.clock.wall_ms())
        self._other_fields: dict[str, Any] = {}

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """Return a group, None if there is none of that name."""
        return self.groups.get(group)

    def put(self, config: SubscriptionGroupConfig) -> None:
        """Add or replace a group; the version goes on."""
        self.groups[config.group_name] = config
        self.advance_version()

    def put_system(self, config: SubscriptionGroupConfig) -> None:
        """Add or replace a group without a new version, as a starting broker does."""
        self.groups[config.group_name] = config
        self.is_dirty = True

    def remove(self, group: str) -> SubscriptionGroupConfig | None:
        """Remove a group and return it; the version goes on if it was there."""
        self.is_dirty = self.forbidden.pop(group, None) is not None or self.is_dirty
        removed = self.groups.pop(group, None)
        if removed is not None:
            self.advance_version()
        return removed

    def forbidden_of(self, group: str, topic: str) -> int:
        """Return the bit mask of what is closed to a group in a topic, 0 for nothing."""
        return max(self.forbidden.get(group, {}).get(topic, 0), 0)

    def set_forbidden(self, group: str, topic: str, mask: int) -> None:
        """Set the bit mask; as in Java none for one topic opens all topics of the group."""
        if mask <= 0:
            self.is_dirty = self.forbidden.pop(group, None) is not None or self.is_dirty
            return
        self.forbidden.setdefault(group, {})[topic] = mask
        self.advance_version()

    def restore(self, group: str, known: SubscriptionGroupConfig | None) -> None:
        """Take back a change that the disk refused: a group is as it was, None for not there."""
        if known is None:
            self.groups.pop(group, None)
        else:
            self.groups[group] = known

    def advance_version(self) -> None:
        """Say that something changed."""
        self.data_version = self.data_version.next(self.host.clock.wall_ms())
        self.is_dirty = True

    def to_json(self) -> dict[Any, Any]:
        """Return the content as the file has it."""
        fields: dict[str, Any] = {
            **self._other_fields,
            "dataVersion": self.data_version.to_json(self.release),
            "subscriptionGroupTable": {
                name: config.to_json(self.release)
                for name, config in in_concurrent_map_order(self.groups, _INITIAL_CAPACITY).items()
            },
        }
        if self.release is Release.V5 or self.forbidden:
            closed = in_concurrent_map_order(self.forbidden, _FORBIDDEN_CAPACITY)
            fields["forbiddenTable"] = {
                group: in_concurrent_map_order(masks) for group, masks in closed.items()
            }
        return dict(sorted(fields.items()))

    def take_json(self, content: dict[Any, Any]) -> None:
        """Replace the content by that of a file, or leave it. Raises JsonTypeError."""
        others = dict(content)
        version = DataVersion.from_json(others.pop("dataVersion", None))
        table = as_object(others.pop("subscriptionGroupTable", None))
        closed = as_object(others.pop("forbiddenTable", None))
        groups = {
            str(name): SubscriptionGroupConfig.from_json(as_object(fields), str(name))
            for name, fields in table.items()
        }
        forbidden = {
            str(group): {str(topic): as_int32(mask) for topic, mask in as_object(masks).items()}
            for group, masks in closed.items()
        }
        self.groups, self.forbidden = groups, forbidden
        self.data_version = version or self.data_version
        self._other_fields = {str(name): value for name, value in others.items()}
