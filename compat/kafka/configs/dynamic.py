"""
Broker settings that are changed while the broker runs, over those that it was started with.

They live as long as the broker. What has an effect are the settings that give topics their
defaults (``log.retention.ms``, ``message.max.bytes`` ...): every open log uses the new value at
once; and those that are asked for whenever they matter (``producer.id.expiration.ms``). Sizes of
thread pools and the like may be changed as in Kafka, but nothing here has them.

Source: ``DynamicBrokerConfig``, ``DynamicLogConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.config import parse_topic_configs, topic_defaults
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_SYNONYMS

if TYPE_CHECKING:
    from logstore.segments.kafka.store import KafkaStore

#: the main name of every broker setting that is a topic setting's default
_LOG_DEFAULTS = frozenset(family[0].name for family in TOPIC_CONFIG_SYNONYMS.values())

#: looked up with :meth:`DynamicConfig.integer` at every use
_ASKED_FOR = frozenset({"producer.id.expiration.ms"})

_WITHOUT_EFFECT = frozenset(
    {
        "background.threads",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "transaction.partition.verification.enable",
    }
)

_CHANGEABLE = _LOG_DEFAULTS | _ASKED_FOR | _WITHOUT_EFFECT


class DynamicConfig:
    """
    The layers of one broker's settings.

    `of_broker` was changed on this broker, `of_cluster` for every broker; `static` are the
    settings that it was started with.
    """

    def __init__(self, store: KafkaStore, static: Mapping[str, str]) -> None:
        self.static = dict(static)
        self.of_broker: dict[str, str] = {}
        self.of_cluster: dict[str, str] = {}
        self._store = store

    def is_dynamic(self, name: str) -> bool:
        """Tell whether the setting can be changed while the broker runs."""
        return name in BROKER_CONFIG_KEYS and name in _CHANGEABLE

    def value_of(self, name: str) -> str | None:
        """Return the text of the strongest layer; Kafka's default if there is none."""
        for layer in (self.of_broker, self.of_cluster, self.static):
            if name in layer:
                return layer[name]
        return BROKER_CONFIG_KEYS[name].default

    def integer(self, name: str) -> int:
        """Return the value in force of a setting that is a whole number and not null."""
        value = BROKER_CONFIG_KEYS[name].parse(self.value_of(name))
        assert isinstance(value, int), f"{name} is {value!r}, no whole number"
        return value

    def replace(
        self, settings: Mapping[str, str], *, is_cluster_wide: bool, is_rehearsal: bool = False
    ) -> None:
        """
        Make `settings` one of the dynamic layers, in place of what it was.

        Raises:
            RefusedRequestError: 42, as in Kafka: a setting that is unknown or cannot be changed,
                or a value that it cannot have; nothing was changed.

        """
        for name, text in settings.items():
            self._check(name, text)
        of_broker = self.of_broker if is_cluster_wide else dict(settings)
        of_cluster = dict(settings) if is_cluster_wide else self.of_cluster
        defaults = topic_defaults({**self.static, **of_cluster, **of_broker})
        topics = list(self._store.topics_by_name.values())
        try:
            configs = [parse_topic_configs({**defaults, **topic.settings}) for topic in topics]
            parse_topic_configs(defaults)
        except ConfigError as error:
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST, str(error)) from error
        if is_rehearsal:
            return
        self.of_broker, self.of_cluster = of_broker, of_cluster
        self._store.log_defaults = defaults
        for topic, config in zip(topics, configs, strict=True):
            for partition in topic.partitions.values():
                partition.reconfigure(config)

    def _check(self, name: str, text: str) -> None:
        key = BROKER_CONFIG_KEYS.get(name)
        if key is None:
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"there is no broker setting {name}"
            )
        if not self.is_dynamic(name):
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"{name} cannot be changed while the broker runs"
            )
        try:
            key.parse(text)
        except ConfigError as error:
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST, str(error)) from error
