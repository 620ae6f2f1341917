"""
What settings of a broker must hold among themselves: a broker with others does not start.

A change while it runs is held to the same. The words are Kafka's, in the order in which it looks.

Source: the constructors of ``KafkaConfig``, ``GroupCoordinatorConfig`` and ``ShareGroupConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from logstore.compat.kafka.configs.address_limits import ADDRESS_LIMITS, address_limits
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.config_keys import ConfigError

_MIB = 1024 * 1024
_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
_CODECS = 5
#: the assignors that there are, by the names of Kafka's classes, too
SERVED_ASSIGNORS = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_SHARE_ASSIGNORS = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")


class _Order(NamedTuple):
    """One setting must be at least, at most or less than another."""

    name: str
    how: str
    other: str

    def holds(self, value: int, other: int) -> bool:
        if self.how == _AT_LEAST:
            return value >= other
        return value <= other if self.how == _AT_MOST else value < other


_AT_LEAST, _AT_MOST, _LESS = "greater than or equal to", "less than or equal to", "less than"


def _within(kind: str, what: str) -> tuple[_Order, ...]:
    name, least, most = (f"group.{kind}.{limit}{what}" for limit in ("", "min.", "max."))
    return (
        _Order(most, _AT_LEAST, least),
        _Order(name, _AT_LEAST, least),
        _Order(name, _AT_MOST, most),
    )


def _lives(kind: str) -> tuple[_Order, ...]:
    heartbeat, session = "heartbeat.interval.ms", "session.timeout.ms"
    return (
        *_within(kind, heartbeat),
        *_within(kind, session),
        _Order(f"group.{kind}.{heartbeat}", _LESS, f"group.{kind}.{session}"),
    )


_ASSIGNMENT = "assignment.interval.ms"
_OF_CONSUMER_GROUPS = (*_lives("consumer"), *_within("consumer", _ASSIGNMENT))
_OF_OTHER_GROUPS = (
    *_within("share", _ASSIGNMENT),
    *_lives("streams"),
    *_within("streams", _ASSIGNMENT),
    _Order("group.streams.num.standby.replicas", _AT_MOST, "group.streams.max.standby.replicas"),
)
_OF_SHARE_PARTITIONS = tuple(
    _Order(f"group.share.{name}", _AT_LEAST, f"group.share.{other}")
    for name, other in (
        ("max.delivery.count.limit", "delivery.count.limit"),
        ("delivery.count.limit", "min.delivery.count.limit"),
        ("max.partition.max.record.locks", "partition.max.record.locks"),
        ("partition.max.record.locks", "min.partition.max.record.locks"),
        ("record.lock.duration.ms", "min.record.lock.duration.ms"),
        ("max.record.lock.duration.ms", "record.lock.duration.ms"),
        ("max.share.sessions", "max.size"),
    )
)


def check_conflicts(config: BrokerConfig) -> None:
    """
    Insist on settings that go together.

    Raises:
        ConfigError: they do not; its sentence is Kafka's.

    """
    _check_assignors(config)
    _check_codec(config, "offsets.topic.compression.codec")
    _check_orders(config, _OF_CONSUMER_GROUPS)
    _check_orders(config, _lives("share"))
    _check_share_assignors(config)
    _check_orders(config, _OF_OTHER_GROUPS)
    _check_orders(config, _OF_SHARE_PARTITIONS)
    _check_codec(config, "share.coordinator.state.topic.compression.codec")
    if "classic" not in _list(config, "group.coordinator.rebalance.protocols"):
        sentence = "Disabling the 'classic' protocol is not supported."
        raise _conflict(config, "group.coordinator.rebalance.protocols", sentence)
    for name, is_kept, sentence in (*_times(config), *_sizes(config)):
        if not is_kept:
            raise _conflict(config, name, f"requirement failed: {sentence}")
    _check_addresses(config)
    _check_idle(config)


def _check_orders(config: BrokerConfig, orders: tuple[_Order, ...]) -> None:
    for order in orders:
        if not order.holds(config.integer(order.name), config.integer(order.other)):
            sentence = f"{order.name} must be {order.how} {order.other}"
            raise _conflict(config, order.name, sentence)


def _check_assignors(config: BrokerConfig) -> None:
    name = "group.consumer.assignors"
    for one in _list(config, name):
        if one not in SERVED_ASSIGNORS:
            raise _conflict(config, name, f"Class {one} cannot be found")


def _check_share_assignors(config: BrokerConfig) -> None:
    name = "group.share.assignors"
    names = _list(config, name)
    for one in names:
        if one not in _SHARE_ASSIGNORS:
            raise _conflict(config, name, f"Class {one} cannot be found")
    if len(names) != 1:
        sentence = f"{name} must contain exactly one assignor, but found {len(names)}"
        raise _conflict(config, name, sentence)


def _check_codec(config: BrokerConfig, name: str) -> None:
    if not 0 <= config.integer(name) < _CODECS:
        sentence = f"Unknown compression type id: {config.integer(name)}"
        raise _conflict(config, name, sentence)


def _times(config: BrokerConfig) -> Iterator[tuple[str, bool, str]]:
    """Yield, of settings in several units, one's name, whether it is kept, and what it says."""
    roll_ms = _in_units(config, ("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))
    at_least = "must be greater than or equal to"
    yield "log.roll.ms", roll_ms >= 1, f"log.roll.ms {at_least} 1"
    jitter_ms = _in_units(config, ("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS))
    yield "log.roll.jitter.ms", jitter_ms >= 0, f"log.roll.jitter.ms {at_least} 0"
    retention_ms = _in_units(
        config,
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    )
    sentence = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    yield "log.retention.ms", retention_ms != 0, sentence


def _sizes(config: BrokerConfig) -> Iterator[tuple[str, bool, str]]:
    name, of_threads = "log.cleaner.dedupe.buffer.size", config.integer("log.cleaner.threads")
    if not of_threads:  # Kafka divides by it
        raise _conflict(config, "log.cleaner.threads", "/ by zero")
    is_kept = config.integer(name) // of_threads > _MIB
    yield name, is_kept, f"{name} must be at least 1MB per cleaner thread."
    wait, socket = "replica.fetch.wait.max.ms", "replica.socket.timeout.ms"
    yield (
        socket,
        config.integer(wait) <= config.integer(socket),
        f"{socket} should always be at least {wait} to prevent unnecessary socket timeouts",
    )
    lag = "replica.lag.time.max.ms"
    yield (
        wait,
        config.integer(wait) <= config.integer(lag),
        f"{wait} should always be less than or equal to {lag} to prevent frequent changes in ISR",
    )
    queued, of_request = "queued.max.request.bytes", "socket.request.max.bytes"
    yield (
        queued,
        config.integer(queued) <= 0 or config.integer(queued) >= config.integer(of_request),
        f"{queued} must be larger or equal to {of_request}",
    )


def _check_addresses(config: BrokerConfig) -> None:
    name = "max.connections.per.ip"
    limits = address_limits(str(config[ADDRESS_LIMITS] or ""))
    if config.integer(name) == 0 and not limits:
        sentence = f"{name} can be set to zero only if {ADDRESS_LIMITS} property is set."
        raise _conflict(config, name, f"requirement failed: {sentence}")
    if strange := [address for address in limits if not _HOST.fullmatch(address)]:
        sentence = f"{ADDRESS_LIMITS} contains invalid addresses : {','.join(strange)}"
        raise _conflict(config, ADDRESS_LIMITS, sentence)


def _check_idle(config: BrokerConfig) -> None:
    """Insist on idle connections outliving the pause of failed logins."""
    name, pause_name = "connections.max.idle.ms", "connection.failed.authentication.delay.ms"
    idle_ms, pause_ms = config.integer(name), config.integer(pause_name)
    if 0 <= idle_ms <= pause_ms:
        sentence = (
            f"requirement failed: {pause_name}={pause_ms} should always be less than "
            f"{name}={idle_ms} to prevent failed authentication responses from timing out"
        )
        raise _conflict(config, name, sentence)


def _in_units(config: BrokerConfig, *names: tuple[str, int]) -> int:
    """Return what the first setting that has a value means in milliseconds."""
    values = ((config[name], factor) for name, factor in names)
    return next(value * factor for value, factor in values if isinstance(value, int))


def _list(config: BrokerConfig, name: str) -> tuple[str, ...]:
    value = config[name]
    assert isinstance(value, tuple), f"{name} is a list"
    return value


def _conflict(config: BrokerConfig, name: str, sentence: str) -> ConfigError:
    return ConfigError(name, config.text(name), sentence, sentence)
