"""
The settings that a consumer group can have of its own (resources of type 32).

Each has a broker setting that gives its default, and broker settings that bound it. Settings of
share and streams groups are not known here.

Source: ``GroupConfig``, ``ConfigHelper``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.entries import ConfigEntry, ConfigSource, ConfigSynonym
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigType

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"


def _key(name: str, doc: str, minimum: int) -> ConfigKey:
    default = BROKER_CONFIG_KEYS[f"group.{name}"].default
    return ConfigKey(name, ConfigType.INT, default, doc, minimum=minimum)


GROUP_CONFIG_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        _key(ASSIGNMENT, "Time between assignments.", 0),
        _key(HEARTBEAT, "Time between heartbeats of a member.", 1),
        _key(SESSION, "Session timeout of a member.", 1),
    )
}


def group_entries(broker: Broker, group_id: str) -> list[ConfigEntry]:
    """Return every setting of a group, by name; it need not be there."""
    own = broker.store.metadata.group_settings(group_id)
    return [_entry(broker, key, own.get(name)) for name, key in sorted(GROUP_CONFIG_KEYS.items())]


def _entry(broker: Broker, key: ConfigKey, own: str | None) -> ConfigEntry:
    synonyms = tuple(_synonyms(broker, key.name, own))
    first = synonyms[0]
    return ConfigEntry(key.name, first.value, first.source, key.type, key.doc, synonyms=synonyms)


def _synonyms(broker: Broker, name: str, own: str | None) -> Iterator[ConfigSynonym]:
    if own is not None:
        yield ConfigSynonym(name, own, ConfigSource.GROUP)
    of_broker = f"group.{name}"
    static = broker.dynamic_config.static.get(of_broker)
    if static is not None:
        yield ConfigSynonym(of_broker, static, ConfigSource.STATIC_BROKER)
    yield ConfigSynonym(of_broker, BROKER_CONFIG_KEYS[of_broker].default, ConfigSource.DEFAULT)


def check_group_settings(broker: Broker, settings: Mapping[str, str]) -> None:
    """
    Refuse what a group cannot have.

    Raises:
        RefusedRequestError: 40, with the reason.

    """
    values: dict[str, int] = {}
    for name, key in GROUP_CONFIG_KEYS.items():
        try:
            values[name] = _integer(
                key, settings.get(name, str(broker.config.given[f"group.{name}"]))
            )
        except ConfigError as error:
            raise _refused(str(error)) from error
    for name in settings:
        if name not in GROUP_CONFIG_KEYS:
            raise _refused(f"Unknown group config name: {name}")
        _check_bounds(broker, name, values[name])
    if settings and values[SESSION] <= values[HEARTBEAT]:
        raise _refused(f"{SESSION} must be greater than {HEARTBEAT}")


def _check_bounds(broker: Broker, name: str, value: int) -> None:
    what = name.removeprefix("consumer.")
    least, most = f"group.consumer.min.{what}", f"group.consumer.max.{what}"
    if value < broker.config.given.integer(least):
        raise _refused(f"{name} must be greater than or equal to {least}")
    if value > broker.config.given.integer(most):
        raise _refused(f"{name} must be less than or equal to {most}")


def _integer(key: ConfigKey, text: str) -> int:
    value = key.parse(text)
    assert isinstance(value, int), f"{key.name} is a whole number"
    return value


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_CONFIG, message)
