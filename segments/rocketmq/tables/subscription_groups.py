"""The consumer groups of a broker: ``config/subscriptionGroup.json`` (signatures)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class SubscriptionGroupConfig:
    """One group. Defaults are Java's. Unknown fields of a file are kept in `other_fields`."""

    group_name: str
    is_consume_enabled: bool = True
    is_consume_from_min_enabled: bool = True
    is_consume_broadcast_enabled: bool = True
    is_consume_message_orderly: bool = False
    retry_queue_count: int = 1
    retry_times_max: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    is_notify_consumer_ids_changed_enabled: bool = True
    group_sys_flag: int = 0
    consume_timeout_minutes: int = 15
    attributes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    other_fields: Mapping[str, object] = attrs.field(factory=dict[str, object])


class SubscriptionGroupTable:
    """
    All groups by name (``SubscriptionGroupManager``); a :class:`JsonTable`.

    `groups` is the mapping; `data_version` its version; `forbidden` the bit masks of topics.
    """

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """Return a group, None if there is none of that name."""
        raise NotImplementedError

    def put(self, config: SubscriptionGroupConfig) -> None:
        """Add or replace a group; the version goes on."""
        raise NotImplementedError

    def put_system(self, config: SubscriptionGroupConfig) -> None:
        """Add or replace a group without a new version, as a starting broker does."""
        raise NotImplementedError

    def remove(self, group: str) -> SubscriptionGroupConfig | None:
        """Remove a group; the version goes on if it was there."""
        raise NotImplementedError
