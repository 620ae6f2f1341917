"""
The settings that a group can have of its own (resources of type 32).

Most have a broker setting that gives their default, and broker settings that bound them.

Source: ``GroupConfig``, ``ConfigHelper``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.entries import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    text_of,
)
from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_sized_order
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigType

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.configs.seen_settings import SeenSettings

SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"


_OFFSET_RESET = "share.auto.offset.reset"
_OFFSET_RESETS = re.compile(
    r"latest|earliest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
)
_ISOLATION = "share.isolation.level"
_RENEWAL = "share.renew.acknowledge.enable"


def _key(name: str, default: int, doc: str, minimum: int) -> ConfigKey:
    return ConfigKey(name, ConfigType.INT, str(default), doc, minimum=minimum)


#: in the order in which Kafka reads them: what cannot be read first is told
GROUP_CONFIG_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        _key(SESSION, 45000, "Session timeout of a member.", 1),
        _key(HEARTBEAT, 5000, "Time between heartbeats of a member.", 1),
        _key(ASSIGNMENT, 1000, "Time between assignments.", 0),
        _key("share.session.timeout.ms", 45000, "Session timeout of a member.", 1),
        _key("share.heartbeat.interval.ms", 5000, "Time between heartbeats of a member.", 1),
        _key("share.record.lock.duration.ms", 30000, "Time to acknowledge a record in.", 1000),
        _key("share.delivery.count.limit", 5, "How often a record is delivered at most.", 2),
        _key("share.partition.max.record.locks", 2000, "Records that may be in flight.", 100),
        ConfigKey(_OFFSET_RESET, ConfigType.STRING, "latest", "Where a new group starts."),
        ConfigKey(
            _ISOLATION, ConfigType.STRING, "read_uncommitted", "Which transactions' records count.",
            choices=("read_committed", "read_uncommitted"),
        ),
        ConfigKey(_RENEWAL, ConfigType.BOOLEAN, "true", "Whether a lock may be held for longer."),
        _key("share.assignment.interval.ms", 1000, "Time between assignments.", 0),
        _key("streams.session.timeout.ms", 45000, "Session timeout of a member.", 1),
        _key("streams.heartbeat.interval.ms", 5000, "Time between heartbeats of a member.", 1),
        _key("streams.num.standby.replicas", 0, "Standby replicas of a task.", 0),
        _key("streams.initial.rebalance.delay.ms", 3000, "Wait for the first members.", 0),
        _key("streams.assignment.interval.ms", 1000, "Time between assignments.", 0),
    )
}  # fmt: skip
#: the defaults of the broker's settings that bound a group's, in the order in which Kafka looks
_BOUNDS: Mapping[str, tuple[int | None, int | None]] = {
    "heartbeat.interval.ms": (5000, 15000),
    "session.timeout.ms": (45000, 60000),
    "record.lock.duration.ms": (15000, 60000),
    "delivery.count.limit": (2, 10),
    "partition.max.record.locks": (100, 4000),
    "num.standby.replicas": (None, 2),
    "assignment.interval.ms": (0, 15000),
}
_KINDS = ("consumer", "share", "streams")
#: of the table that Kafka puts a group's settings and the broker's into
_TABLE_SIZE = 32
_WITHOUT_BROKER_SETTING = frozenset({_OFFSET_RESET, _ISOLATION, _RENEWAL})


def group_entries(broker: Broker, seen: SeenSettings, group_id: str) -> list[ConfigEntry]:
    """Return every setting of a group, by name; it need not be there."""
    own = broker.store.metadata.settings_of_resource(ResourceType.GROUP, group_id)
    return [_entry(seen, key, own.get(name)) for name, key in sorted(GROUP_CONFIG_KEYS.items())]


def _entry(seen: SeenSettings, key: ConfigKey, own: str | None) -> ConfigEntry:
    synonyms = tuple(_synonyms(seen, key.name, own))
    first = synonyms[0]
    return ConfigEntry(key.name, first.value, first.source, key.type, key.doc, synonyms=synonyms)


def _synonyms(seen: SeenSettings, name: str, own: str | None) -> Iterator[ConfigSynonym]:
    if own is not None:
        yield ConfigSynonym(name, text_of(GROUP_CONFIG_KEYS[name], own), ConfigSource.GROUP)
    default = GROUP_CONFIG_KEYS[name].default
    if name in _WITHOUT_BROKER_SETTING:
        yield ConfigSynonym(name, default, ConfigSource.DEFAULT)
        return
    of_broker = f"group.{name}"
    for source, layer in (
        (ConfigSource.DYNAMIC_BROKER, seen.of_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, seen.of_cluster),
        (ConfigSource.STATIC_BROKER, seen.static),
    ):
        if of_broker in layer:
            yield ConfigSynonym(of_broker, layer[of_broker], source)
    yield ConfigSynonym(of_broker, default, ConfigSource.DEFAULT)


def check_group_settings(broker: Broker, settings: Mapping[str, str]) -> None:
    """
    Refuse what a group cannot have.

    Raises:
        RefusedRequestError: 40, with the reason.

    """
    for name in members_in_sized_order({**GROUP_CONFIG_KEYS, **settings}, _TABLE_SIZE):
        if name not in GROUP_CONFIG_KEYS:
            raise _refused(f"Unknown group config name: {name}")
    for name, key in GROUP_CONFIG_KEYS.items():
        if name in settings:
            _check_value(key, settings[name])
    for kind in _KINDS:
        for what in _BOUNDS:
            if (name := f"{kind}.{what}") in settings:
                _check_bounds(broker, name, int(settings[name]))
    for kind in _KINDS:
        names = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session, heartbeat = (
            int(settings.get(name) or _of_broker(broker, f"group.{name}", _default(name)))
            for name in names
        )
        if any(name in settings for name in names) and session <= heartbeat:
            raise _refused(f"{names[0]} must be greater than {names[1]}")


def _check_value(key: ConfigKey, text: str) -> None:
    try:
        key.parse(text)
    except ConfigError as error:
        raise _refused(str(error)) from error
    if key.name == _OFFSET_RESET and not _OFFSET_RESETS.fullmatch(text):
        invalid = "Invalid value {1} for configuration {0}"
        raise _refused(
            f"{invalid.format(key.name, text)}: {invalid.format(key.name, f'`{text}`')}. The value "
            "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )


def _check_bounds(broker: Broker, name: str, value: int) -> None:
    kind, what = name.split(".", 1)
    least_default, most_default = _BOUNDS[what]
    if least_default is not None:
        least = f"group.{kind}.min.{what}"
        if value < _of_broker(broker, least, least_default):
            raise _refused(f"{name} must be greater than or equal to {least}")
    if most_default is not None:
        most = f"group.{kind}.max.{what.removeprefix('num.')}"
        if value > _of_broker(broker, most, most_default):
            raise _refused(f"{name} must be less than or equal to {most}")


def _default(name: str) -> int:
    return int(GROUP_CONFIG_KEYS[name].default or 0)


def _of_broker(broker: Broker, name: str, default: int) -> int:
    """Return a setting of the broker; those of streams groups have no other use."""
    if name in BROKER_CONFIG_KEYS:
        return broker.config.given.integer(name)
    return int(broker.dynamic_config.static.get(name, default))


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_CONFIG, message)
