"""
What a subscription to clients' metrics wants (resources of type 16, KIP-714).

Kafka keeps these settings whether or not a plug-in is there that takes the metrics. Here there is
none, as in Kafka's own distribution, so that clients are never asked for any.

Source: ``ClientMetricsConfigs``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.entries import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    text_of,
)
from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_order
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigType, ConfigValue

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_INTERVAL = "interval.ms"
_MATCH = "match"
_METRICS = "metrics"
_INTERVAL_MIN_MS, _INTERVAL_MAX_MS = 100, 3_600_000

#: in the order in which Kafka looks at them: what is wrong first is told
CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey(_METRICS, ConfigType.LIST, "", "How the names of the wanted metrics begin."),
        ConfigKey(_INTERVAL, ConfigType.INT, "300000", "Time between two pushes of a client."),
        ConfigKey(_MATCH, ConfigType.LIST, "", "Which clients are meant: selector=pattern."),
    )
}
_SELECTORS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def client_metrics_entries(broker: Broker, name: str) -> list[ConfigEntry]:
    """Return every setting of a subscription, by name; it need not be there."""
    own = broker.store.metadata.settings_of_resource(ResourceType.CLIENT_METRICS, name)
    return [_entry(key, own.get(key.name)) for _, key in sorted(CLIENT_METRICS_KEYS.items())]


def _entry(key: ConfigKey, own: str | None) -> ConfigEntry:
    if own is None:
        return ConfigEntry(key.name, key.default, ConfigSource.DEFAULT, key.type, key.doc)
    value, source = text_of(key, own), ConfigSource.CLIENT_METRICS
    synonyms = (ConfigSynonym(key.name, value, source),)
    return ConfigEntry(key.name, value, source, key.type, key.doc, synonyms=synonyms)


def check_client_metrics(settings: Mapping[str, str]) -> None:
    """
    Refuse what a subscription cannot have.

    Raises:
        RefusedRequestError: 40 a value that it cannot have, 42 a name or an interval.

    """
    for name in members_in_order(settings):
        if name not in CLIENT_METRICS_KEYS:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"
            )
    values = {
        name: _parsed(key, settings[name])
        for name, key in CLIENT_METRICS_KEYS.items()
        if name in settings
    }
    interval, patterns = values.get(_INTERVAL), values.get(_MATCH)
    if isinstance(interval, int) and not _INTERVAL_MIN_MS <= interval <= _INTERVAL_MAX_MS:
        raise RefusedRequestError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for {_INTERVAL}, interval must be between "
            f"{_INTERVAL_MIN_MS} and {_INTERVAL_MAX_MS} (1 hour)",
        )
    if isinstance(patterns, tuple):
        for pattern in patterns:
            _check_pattern(str(pattern))


def _parsed(key: ConfigKey, text: str) -> ConfigValue:
    try:
        value = key.parse(text)
    except ConfigError as error:
        raise RefusedRequestError(ErrorCode.INVALID_CONFIG, str(error)) from error
    if isinstance(value, tuple) and "" in value:
        raise RefusedRequestError(
            ErrorCode.INVALID_CONFIG, f"Configuration '{key.name}' values must not be empty."
        )
    return value


def _check_pattern(text: str) -> None:
    parts = text.rstrip("=").split("=")  # as Java splits: what ends in = has nothing behind it
    is_pattern = len(parts) == 2 and parts[0].strip() in _SELECTORS
    try:
        re.compile(parts[-1].strip())
    except re.error:
        is_pattern = False
    if not is_pattern:
        raise RefusedRequestError(
            ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}"
        )
