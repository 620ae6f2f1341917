"""The settings of one share group: its own, within the broker's bounds, or else the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.resources import ResourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.kafka.broker import Broker

_SESSION_TIMEOUT = "session.timeout.ms"
_HEARTBEAT_INTERVAL = "heartbeat.interval.ms"
_RECORD_LOCK_DURATION = "record.lock.duration.ms"
_DELIVERY_COUNT_LIMIT = "delivery.count.limit"
_PARTITION_MAX_RECORD_LOCKS = "partition.max.record.locks"
#: the broker's default, the least and the most that a group may have; each is a broker setting
_NUMBERS = {
    _SESSION_TIMEOUT: (45_000, 45_000, 60_000),
    _HEARTBEAT_INTERVAL: (5_000, 5_000, 15_000),
    _RECORD_LOCK_DURATION: (30_000, 15_000, 60_000),
    _DELIVERY_COUNT_LIMIT: (5, 2, 10),
    _PARTITION_MAX_RECORD_LOCKS: (2_000, 100, 4_000),
}
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

    @classmethod
    def of(cls, broker: Broker, group_id: str) -> ShareGroupSettings:
        """Return what holds for a group; it need not be there."""
        own = broker.store.metadata.settings_of_resource(ResourceType.GROUP, group_id)
        return cls.from_layers(broker.dynamic_config.static, own)

    @classmethod
    def from_layers(cls, of_broker: Mapping[str, str], own: Mapping[str, str]) -> ShareGroupSettings:
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
        )


def _number(what: str, of_broker: Mapping[str, str], own: Mapping[str, str]) -> int:
    """Return the group's number within the broker's bounds, without one the broker's."""
    default, least, most = _NUMBERS[what]
    text = own.get(f"share.{what}")
    if text is None:
        return int(of_broker.get(f"group.share.{what}", default))
    least = int(of_broker.get(f"group.share.min.{what}", least))
    most = int(of_broker.get(f"group.share.max.{what}", most))
    return min(max(int(text), least), most)
