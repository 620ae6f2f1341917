"""
Settings as clients are shown them: effective value, where it comes from, and what else gives one.

The layers of a broker's settings, the strongest first: changed on this broker, changed for the
whole cluster, given at the start, Kafka's default. A topic's own settings stand above all of them.

A synonym is another place that the value could have come from, such as ``log.retention.hours``
for ``retention.ms``. As in Kafka the list starts at the setting's main broker name, so that a
value that only comes from a lesser one counts as a default.

Source: ``ConfigHelper``, ``DynamicBrokerConfig.brokerConfigSynonyms``, ``KafkaConfigSchema``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.loggers import levels
from logstore.compat.kafka.configs.shown_order import (
    in_cluster_order,
    in_given_order,
    in_shown_order,
)
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigKey, ConfigType, ConfigValue
from logstore.segments.kafka.dynamic_config_names import DYNAMIC_CONFIG_NAMES
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS, TOPIC_CONFIG_SYNONYMS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.configs.seen_settings import SeenSettings
    from logstore.compat.kafka.nodes.node import Node


class ConfigSource(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


#: who gives settings, the strongest first
Layers = Sequence[tuple[ConfigSource, Mapping[str, str]]]


class ConfigSynonym(NamedTuple):
    """One place that a value comes from, or would without the ones before it."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting of one resource. A sensitive one is shown without its value."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    doc: str = ""
    is_read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        """Tell whether the value is nobody's business; of what is unknown it may be."""
        return self.type in {ConfigType.PASSWORD, ConfigType.UNKNOWN}


_DEFAULTS: Mapping[str, str] = {
    name: key.default for name, key in BROKER_CONFIG_KEYS.items() if key.default is not None
}
#: broker settings with lesser names for the same thing
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    name: tuple(synonym.name for synonym in family)
    for family in TOPIC_CONFIG_SYNONYMS.values()
    if len(family) > 1
    for name in (synonym.name for synonym in family)
    if name != "log.flush.scheduler.interval.ms"  # gives a default, but is a setting of its own
}


#: only shown where they were given: internal ones of 4.3, and those that it has no more
_UNLISTED = frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.max.groups",
        "leader.imbalance.per.broker.percentage",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
    }
)


#: listed as what can be changed while a broker runs, which nothing here does
_LISTED_AS_CHANGEABLE = frozenset({"listener.security.protocol.map", "listeners"})
#: in Kafka they have to be given
_WITHOUT_DEFAULT = frozenset({"controller.listener.names", "node.id", "process.roles"})
#: settings that no broker starts with, and that hold while replicas are moved
_THROTTLES = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
#: how a setting of one listener is named
_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]*\.(.*)")


def topic_entries(seen: SeenSettings, settings: Mapping[str, str]) -> list[ConfigEntry]:
    """Return every setting of a topic that has `settings` of its own, by name."""
    effective = {**seen.log_defaults, **settings}
    return [
        _topic_entry(seen, key, settings.get(name), effective.get(name, key.default))
        for name, key in sorted(TOPIC_CONFIG_KEYS.items())
        if not name.startswith("internal.") or name in settings
    ]


def _topic_entry(
    seen: SeenSettings, key: ConfigKey, own: str | None, effective: str | None
) -> ConfigEntry:
    value = text_of(key, effective)
    synonyms: list[ConfigSynonym] = []
    if own is not None:
        synonyms.append(ConfigSynonym(key.name, value, ConfigSource.TOPIC))
    family = TOPIC_CONFIG_SYNONYMS.get(key.name)
    if family:
        synonyms += _synonyms(seen, tuple(synonym.name for synonym in family))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(key.name, value, source, key.type, key.doc, synonyms=tuple(synonyms))


def broker_entries(broker: Broker, node_id: int) -> list[ConfigEntry]:
    """Return every setting of a node that Kafka 4.3 shows, what it has no definition of first."""
    from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS  # rarely needed

    facts = _facts(broker, broker.nodes.by_id[node_id])
    seen = broker.dynamic_config.seen_from(node_id)
    is_dynamic = broker.dynamic_config.is_dynamic
    known = [
        _broker_entry(seen, key, is_dynamic(name), facts.get(name))
        for name, key in sorted(BROKER_CONFIG_KEYS.items())
        if name not in _UNLISTED or name in seen.static
    ]
    known += [_listed_entry(seen, key) for key in LISTED_CONFIG_KEYS.values()]
    layers = _layers(seen)
    given = {name for _, layer in layers for name in layer}
    unknown = given - BROKER_CONFIG_KEYS.keys() - LISTED_CONFIG_KEYS.keys()
    known += [_unlisted_entry(name, layers) for name in unknown]
    first = [entry for entry in known if entry.name in _UNLISTED | unknown]
    rest = [entry for entry in known if entry.name not in _UNLISTED | unknown]
    return in_given_order(first, given) + in_shown_order(rest)


def _listed_entry(seen: SeenSettings, key: ConfigKey) -> ConfigEntry:
    """Return a setting that is as it was given, whatever that is: nothing here depends on it."""
    synonyms = _synonyms(seen, (key.name,))
    if key.default is not None:
        synonyms.append(ConfigSynonym(key.name, key.default, ConfigSource.DEFAULT))
    if key.is_secret:
        synonyms = [one._replace(value=None) for one in synonyms]
    _, value, source = synonyms[0] if synonyms else (None, None, ConfigSource.DEFAULT)
    is_read_only = key.name not in DYNAMIC_CONFIG_NAMES
    return ConfigEntry(key.name, value, source, key.type, key.doc, is_read_only, tuple(synonyms))


def _unlisted_entry(name: str, layers: Layers) -> ConfigEntry:
    """Return a setting of one listener; of what only a plug-in could know, that it is set."""
    from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS  # rarely needed

    of_listener = _LISTENER_PREFIX.fullmatch(name)
    own = name if of_listener is None else of_listener[1]
    if of_listener is not None and own not in LISTED_CONFIG_KEYS:
        of_mechanism = own.partition(".")[2]
        own = of_mechanism if of_mechanism in LISTED_CONFIG_KEYS else own
    key = LISTED_CONFIG_KEYS.get(own) or BROKER_CONFIG_KEYS.get(own)
    kind = ConfigType.UNKNOWN if key is None else key.type
    if name in _THROTTLES:
        kind = ConfigType.LONG
    is_shown = kind not in {ConfigType.UNKNOWN, ConfigType.PASSWORD}
    synonyms = [
        ConfigSynonym(name, layer[name] if is_shown else None, source)
        for source, layer in layers
        if name in layer
    ]
    _, value, source = synonyms[0]
    if key is not None and own != name and key.default is not None:
        synonyms.append(ConfigSynonym(own, key.default, ConfigSource.DEFAULT))
    is_read_only = name not in DYNAMIC_CONFIG_NAMES
    return ConfigEntry(name, value, source, kind, "", is_read_only, tuple(synonyms))


def _facts(broker: Broker, node: Node) -> dict[str, str]:
    """Return what is so for a running node, whatever its settings say."""
    address = ",".join(f"{one.name}://{one.address}" for one in node.listeners)
    rack = {"broker.rack": node.rack} if node.rack else {}
    return rack | {
        "advertised.listeners": address,
        "broker.id": str(node.node_id),
        "listeners": address,
        "log.dirs": broker.data_directory,
        "node.id": str(node.node_id),
    }


def _broker_entry(
    seen: SeenSettings, key: ConfigKey, is_dynamic: bool, fact: str | None
) -> ConfigEntry:
    synonyms = tuple(_synonyms(seen, _FAMILIES.get(key.name, (key.name,)), key.name))
    if fact is not None:
        source = ConfigSource.STATIC_BROKER
        defaults = [one for one in synonyms if one.source is ConfigSource.DEFAULT]
        synonyms = (ConfigSynonym(key.name, fact, source), *defaults)
        is_read_only = key.name not in _LISTED_AS_CHANGEABLE
        return ConfigEntry(
            key.name, fact, source, key.type, key.doc, is_read_only, _as_in_kafka(synonyms)
        )
    is_sensitive = key.type is ConfigType.PASSWORD
    return ConfigEntry(
        key.name,
        None if is_sensitive else text_of(key, seen.value_of(key.name)),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        key.type,
        key.doc,
        key.name not in _LISTED_AS_CHANGEABLE and not is_dynamic,
        _as_in_kafka(synonyms),
    )


def _as_in_kafka(synonyms: tuple[ConfigSynonym, ...]) -> tuple[ConfigSynonym, ...]:
    """Leave out the defaults of what has none in Kafka, where it was given."""
    has_none = len(synonyms) > 1 and synonyms[-1].name in _WITHOUT_DEFAULT
    return synonyms[:-1] if has_none else synonyms


def cluster_entries(seen: SeenSettings) -> list[ConfigEntry]:
    """Return the settings that were changed for the whole cluster."""
    layers = [one for one in _layers(seen) if one[0] is ConfigSource.DYNAMIC_DEFAULT_BROKER]
    entries = [
        _unlisted_entry(name, layers)
        if name not in BROKER_CONFIG_KEYS
        else ConfigEntry(
            name,
            value,
            ConfigSource.DYNAMIC_DEFAULT_BROKER,
            BROKER_CONFIG_KEYS[name].type,
            BROKER_CONFIG_KEYS[name].doc,
            synonyms=(ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
        )
        for name, value in seen.of_cluster.items()
    ]
    return in_cluster_order(entries)


def logger_entries() -> list[ConfigEntry]:
    """Return the levels of the broker's loggers, by name."""
    return [
        ConfigEntry(name, level, ConfigSource.BROKER_LOGGER, ConfigType.STRING)
        for name, level in levels().items()
    ]


def _synonyms(
    seen: SeenSettings, names: tuple[str, ...], head: str | None = None
) -> list[ConfigSynonym]:
    """Return who gives a value to `names`, from the first that `head` itself is given by."""
    found = [
        ConfigSynonym(name, layer[name], source)
        for source, layer in (*_layers(seen), (ConfigSource.DEFAULT, _DEFAULTS))
        for name in names
        if name in layer
    ]
    main_name = names[0] if head is None else head
    while found and found[0].name != main_name:
        del found[0]
    return found


def _layers(seen: SeenSettings) -> Layers:
    """Return who gives broker settings, the strongest first."""
    return [
        (ConfigSource.DYNAMIC_BROKER, seen.of_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, seen.of_cluster),
        (ConfigSource.STATIC_BROKER, seen.static),
    ]


def settings_of_created(broker: Broker, settings: Mapping[str, str]) -> list[ConfigEntry]:
    """
    Return a new topic's settings as CreateTopics shows them.

    There a broker setting of any name counts as the source, not only the main one.
    """
    seen = broker.dynamic_config.seen_from(broker.node_id)
    layers = _layers(seen)
    entries: list[ConfigEntry] = []
    for entry in topic_entries(seen, settings):
        names = [synonym.name for synonym in TOPIC_CONFIG_SYNONYMS.get(entry.name, ())]
        sources = [source for source, layer in layers if any(name in layer for name in names)]
        source = sources[0] if sources else ConfigSource.DEFAULT
        entries.append(
            entry._replace(source=ConfigSource.TOPIC if entry.name in settings else source)
        )
    return entries


def text_of(key: ConfigKey, text: str | None) -> str | None:
    """Return a value's text as Kafka would print it: ``true``, ``0.5``, ``compact,delete``."""
    value: ConfigValue = key.parse(text)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _text_of_real(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _text_of_real(value: float) -> str:
    """Return a number as Java writes it: below 0.001 and from 10000000 on with an exponent."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if not value or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "it is finite"
    first, rest = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{exponent + len(digits) - 1}"
