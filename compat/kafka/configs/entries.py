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

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.configs.loggers import levels
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config_keys import ConfigKey, ConfigType, ConfigValue
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS, TOPIC_CONFIG_SYNONYMS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
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


def topic_entries(broker: Broker, settings: Mapping[str, str]) -> list[ConfigEntry]:
    """Return every setting of a topic that has `settings` of its own, by name."""
    effective = {**broker.store.log_defaults, **settings}
    return [
        _topic_entry(broker, key, settings.get(name), effective.get(name, key.default))
        for name, key in sorted(TOPIC_CONFIG_KEYS.items())
        if not name.startswith("internal.") or name in settings
    ]


def _topic_entry(
    broker: Broker, key: ConfigKey, own: str | None, effective: str | None
) -> ConfigEntry:
    value = text_of(key, effective)
    synonyms: list[ConfigSynonym] = []
    if own is not None:
        synonyms.append(ConfigSynonym(key.name, value, ConfigSource.TOPIC))
    family = TOPIC_CONFIG_SYNONYMS.get(key.name)
    if family:
        synonyms += _synonyms(broker, tuple(synonym.name for synonym in family))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(key.name, value, source, key.type, key.doc, synonyms=tuple(synonyms))


def broker_entries(broker: Broker, node_id: int) -> list[ConfigEntry]:
    """Return every setting of a node that Kafka 4.3 shows, by name."""
    facts = _facts(broker, broker.nodes.by_id[node_id])
    known = [
        _broker_entry(broker, key, facts.get(name))
        for name, key in sorted(BROKER_CONFIG_KEYS.items())
        if name not in _UNLISTED or name in broker.dynamic_config.static
    ]
    of_broker, of_cluster = broker.dynamic_config.of_broker, broker.dynamic_config.of_cluster
    return known + [
        _unlisted_entry(name, of_broker[name], ConfigSource.DYNAMIC_BROKER)
        if name in of_broker
        else _unlisted_entry(name, of_cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER)
        for name in broker.dynamic_config.without_key()
    ]


def _unlisted_entry(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    """Return a setting of one listener; of what only a plug-in could know, that it is set."""
    of_listener = _LISTENER_PREFIX.fullmatch(name)
    key = None if of_listener is None else BROKER_CONFIG_KEYS.get(of_listener[1])
    kind = ConfigType.UNKNOWN if key is None else key.type
    if name in _THROTTLES:
        kind = ConfigType.LONG
    is_shown = kind not in {ConfigType.UNKNOWN, ConfigType.PASSWORD}
    shown = value if is_shown else None
    return ConfigEntry(name, shown, source, kind, "", True, (ConfigSynonym(name, shown, source),))


def _facts(broker: Broker, node: Node) -> dict[str, str]:
    """Return what is so for a running node, whatever its settings say."""
    address = ",".join(f"{one.name}://{one.address}" for one in node.listeners)
    return {
        "advertised.listeners": address,
        "broker.id": str(node.node_id),
        "listeners": address,
        "log.dirs": broker.data_directory,
        "node.id": str(node.node_id),
    }


def _broker_entry(broker: Broker, key: ConfigKey, fact: str | None) -> ConfigEntry:
    synonyms = tuple(_synonyms(broker, _FAMILIES.get(key.name, (key.name,)), key.name))
    if fact is not None:
        source = ConfigSource.STATIC_BROKER
        # A node has no number of its own accord: in Kafka that setting has no default.
        has_default = key.name != "node.id"
        defaults = [one for one in synonyms if has_default and one.source is ConfigSource.DEFAULT]
        return ConfigEntry(
            key.name,
            fact,
            source,
            key.type,
            key.doc,
            is_read_only=True,
            synonyms=(ConfigSynonym(key.name, fact, source), *defaults),
        )
    is_sensitive = key.type is ConfigType.PASSWORD
    return ConfigEntry(
        key.name,
        None if is_sensitive else text_of(key, broker.dynamic_config.value_of(key.name)),
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        key.type,
        key.doc,
        not broker.dynamic_config.is_dynamic(key.name),
        synonyms,
    )


def cluster_entries(broker: Broker) -> list[ConfigEntry]:
    """Return the settings that were changed for the whole cluster, by name."""
    return [
        _unlisted_entry(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)
        if name not in BROKER_CONFIG_KEYS
        else ConfigEntry(
            name,
            value,
            ConfigSource.DYNAMIC_DEFAULT_BROKER,
            BROKER_CONFIG_KEYS[name].type,
            BROKER_CONFIG_KEYS[name].doc,
            synonyms=(ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
        )
        for name, value in sorted(broker.dynamic_config.of_cluster.items())
    ]


def logger_entries() -> list[ConfigEntry]:
    """Return the levels of the broker's loggers, by name."""
    return [
        ConfigEntry(name, level, ConfigSource.BROKER_LOGGER, ConfigType.STRING)
        for name, level in levels().items()
    ]


def _synonyms(
    broker: Broker, names: tuple[str, ...], head: str | None = None
) -> list[ConfigSynonym]:
    """Return who gives a value to `names`, from the first that `head` itself is given by."""
    config = broker.dynamic_config
    found = [
        ConfigSynonym(name, layer[name], source)
        for source, layer in (
            (ConfigSource.DYNAMIC_BROKER, config.of_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, config.of_cluster),
            (ConfigSource.STATIC_BROKER, config.static),
            (ConfigSource.DEFAULT, _DEFAULTS),
        )
        for name in names
        if name in layer
    ]
    main_name = names[0] if head is None else head
    while found and found[0].name != main_name:
        del found[0]
    return found


def settings_of_created(broker: Broker, settings: Mapping[str, str]) -> list[ConfigEntry]:
    """
    Return a new topic's settings as CreateTopics shows them.

    There a broker setting of any name counts as the source, not only the main one.
    """
    config = broker.dynamic_config
    layers = (
        (ConfigSource.DYNAMIC_BROKER, config.of_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, config.of_cluster),
        (ConfigSource.STATIC_BROKER, config.static),
    )
    entries: list[ConfigEntry] = []
    for entry in topic_entries(broker, settings):
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
        return str(value).upper().replace("E+", "E")  # 1.7976931348623157E308, as in Java
    return ",".join(value) if isinstance(value, tuple) else str(value)
