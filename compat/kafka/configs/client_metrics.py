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

from logstore.compat.kafka.configs.entries import ConfigEntry, ConfigSource, ConfigSynonym
from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigType

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_INTERVAL = "interval.ms"
_MATCH = "match"
_INTERVAL_MIN_MS, _INTERVAL_MAX_MS = 100, 3_600_000

CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey(_INTERVAL, ConfigType.INT, "300000", "Time between two pushes of a client."),
        ConfigKey(_MATCH, ConfigType.LIST, "", "Which clients are meant: selector=pattern."),
        ConfigKey("metrics", ConfigType.LIST, "", "How the names of the wanted metrics begin."),
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
    return [_entry(key, own.get(key.name)) for key in CLIENT_METRICS_KEYS.values()]


def _entry(key: ConfigKey, own: str | None) -> ConfigEntry:
    if own is None:
        return ConfigEntry(key.name, key.default, ConfigSource.DEFAULT, key.type, key.doc)
    source = ConfigSource.CLIENT_METRICS
    synonyms = (ConfigSynonym(key.name, own, source),)
    return ConfigEntry(key.name, own, source, key.type, key.doc, synonyms=synonyms)


def check_client_metrics(settings: Mapping[str, str]) -> None:
    """
    Refuse what a subscription cannot have.

    Raises:
        RefusedRequestError: 40 a value that it cannot have, 42 a name or an interval.

    """
    unknown = [name for name in settings if name not in CLIENT_METRICS_KEYS]
    if unknown:
        raise RefusedRequestError(
            ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {unknown[0]}"
        )
    try:
        values = {name: CLIENT_METRICS_KEYS[name].parse(text) for name, text in settings.items()}
    except ConfigError as error:
        raise RefusedRequestError(ErrorCode.INVALID_CONFIG, str(error)) from error
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


def _check_pattern(text: str) -> None:
    selector, equals, pattern = (part.strip() for part in text.partition("="))
    try:
        re.compile(pattern)
    except re.error:
        equals = ""
    if not equals or selector not in _SELECTORS:
        raise RefusedRequestError(
            ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}"
        )
