"""The settings of one share group: its own, within the broker's bounds, or else the broker's."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.resources import ResourceType
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.kafka.broker import Broker

_SESSION_TIMEOUT = "session.timeout.ms"
_HEARTBEAT_INTERVAL = "heartbeat.interval.ms"
_RECORD_LOCK_DURATION = "record.lock.duration.ms"
_DELIVERY_COUNT_LIMIT = "delivery.count.limit"
_PARTITION_MAX_RECORD_LOCKS = "partition.max.record.locks"
_ASSIGNMENT_INTERVAL = "assignment.interval.ms"
AUTO_OFFSET_RESET = "share.auto.offset.reset"
ISOLATION_LEVEL = "share.isolation.level"
RENEW_ACKNOWLEDGE = "share.renew.acknowledge.enable"


class ShareGroupSettings(NamedTuple):
    """
    What holds for a share group now.

    `auto_offset_reset` is ``earliest``, ``latest`` or ``by_duration:`` and an ISO 8601 duration;
    `isolation_level` is ``read_uncommitted`` or ``read_committed``.
    Source: ``GroupConfig``, ``ShareGroupConfig``, ``ShareGroupConfigProvider``.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: str = "latest"
    isolation_level: str = "read_uncommitted"
    renew_acknowledge_enable: bool = True
    assignment_interval_ms: int = 1_000

    @classmethod
    def of(cls, broker: Broker, group_id: str) -> ShareGroupSettings:
        """Return what holds for a group; it need not be there."""
        own = broker.store.metadata.settings_of_resource(ResourceType.GROUP, group_id)
        config = broker.dynamic_config
        layers = ChainMap(config.of_broker, config.of_cluster, config.static)
        return cls.from_layers(layers, own)

    @classmethod
    def from_layers(
        cls, of_broker: Mapping[str, str], own: Mapping[str, str]
    ) -> ShareGroupSettings:
        """Return what the settings of a broker and a group's `own` mean together."""
        defaults = cls()
        return cls(
            _number(_SESSION_TIMEOUT, of_broker, own),
            _number(_HEARTBEAT_INTERVAL, of_broker, own),
            _number(_RECORD_LOCK_DURATION, of_broker, own),
            _number(_DELIVERY_COUNT_LIMIT, of_broker, own),
            _number(_PARTITION_MAX_RECORD_LOCKS, of_broker, own),
            own.get(AUTO_OFFSET_RESET, defaults.auto_offset_reset),
            own.get(ISOLATION_LEVEL, defaults.isolation_level),
            own.get(RENEW_ACKNOWLEDGE, "true").lower() == "true",
            _number(_ASSIGNMENT_INTERVAL, of_broker, own),
        )


def _number(what: str, of_broker: Mapping[str, str], own: Mapping[str, str]) -> int:
    """Return the group's number, without one the broker's, within the broker's bounds."""
    text = own.get(f"share.{what}")
    value = _of_broker(f"group.share.{what}", of_broker) if text is None else int(text)
    least = _of_broker(f"group.share.min.{what}", of_broker)
    most = _of_broker(f"group.share.max.{what}", of_broker)
    return min(max(value, least), most)


def _of_broker(name: str, of_broker: Mapping[str, str]) -> int:
    return int(of_broker.get(name) or BROKER_CONFIG_KEYS[name].default or 0)
