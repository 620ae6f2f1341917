"""
Broker settings that are changed while the broker runs, over those that it was started with.

They stand in the metadata log, as in Kafka, and hold again after a restart. What has an effect are
the settings that give topics their defaults (``log.retention.ms``, ``message.max.bytes`` ...):
every open log uses the new value at once; and those that are asked for whenever they matter
(``producer.id.expiration.ms``). Sizes of thread pools and the like may be changed as in Kafka, but
nothing here has them.

Source: ``DynamicBrokerConfig``, ``DynamicLogConfig``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.broker_config import ACCEPTED_FAMILIES, BROKER_CONFIG_KEYS
from logstore.segments.kafka.config import LogConfig, parse_topic_configs, topic_defaults
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_SYNONYMS

if TYPE_CHECKING:
    from logstore.segments.kafka.store import KafkaStore

_log = logging.getLogger(__name__)

#: the name under which settings of all brokers stand
EVERY_BROKER = ""

#: the main name of every broker setting that is a topic setting's default
_LOG_DEFAULTS = frozenset(family[0].name for family in TOPIC_CONFIG_SYNONYMS.values())

#: looked up with :meth:`DynamicConfig.integer` at every use
_ASKED_FOR = frozenset(
    {
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "producer.id.expiration.ms",
    }
)

_WITHOUT_EFFECT = frozenset(
    {
        "background.threads",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
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
        "metric.reporters",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "transaction.partition.verification.enable",
    }
)

_CHANGEABLE = _LOG_DEFAULTS | _ASKED_FOR | _WITHOUT_EFFECT

#: known to Kafka, in no table here, and fixed while a broker runs; what else begins like them is
#: taken as what nobody knows is
_FIXED_FAMILIES = tuple(
    sorted(
        set(ACCEPTED_FAMILIES)
        - {"config.providers", "follower.fetch.", "listener.name.", "principal.builder.class"}
        - {"remote.", "sasl.", "ssl.", "zookeeper."}
    )
)
_PER_LISTENER = ("ssl.key.", "ssl.keystore.", "ssl.truststore.")
#: of these each broker has its own
_PER_BROKER = ("cordoned.log.dirs", "principal.builder.class", "sasl.", "ssl.")
#: how many threads there are is at most doubled or halved by one change
_THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)


class DynamicConfig:
    """
    The layers of one broker's settings.

    `of_broker` was changed on this broker, `of_cluster` for every broker; `static` are the
    settings that it was started with.
    """

    def __init__(self, store: KafkaStore, static: Mapping[str, str]) -> None:
        self.static = dict(static)
        self._store = store
        self.of_broker = self._stored(str(store.node_id))
        self.of_cluster = self._stored(EVERY_BROKER)
        if self.of_broker or self.of_cluster:
            self._restore()

    def _stored(self, name: str) -> dict[str, str]:
        """Return what the metadata have for a broker, without what would be refused here."""
        found: dict[str, str] = {}
        for key, text in self._store.metadata.broker_settings(name).items():
            try:
                self._check(key, text, is_cluster_wide=name == EVERY_BROKER)
            except RefusedRequestError as error:
                _log.warning("a stored setting of the broker has no effect: %s", error)
            else:
                found[key] = text
        return found

    def _restore(self) -> None:
        """Let the stored settings hold, unless topics have settings that do not go with them."""
        defaults = topic_defaults({**self.static, **self.of_cluster, **self.of_broker})
        if parse_topic_configs(defaults) == parse_topic_configs(self._store.log_defaults):
            self._store.log_defaults = defaults
            return
        try:
            self._apply(defaults, self._configs(defaults))
        except ConfigError as error:
            _log.warning("the stored settings of the broker have no effect on topics: %s", error)

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
        self,
        settings: Mapping[str, str],
        *,
        is_cluster_wide: bool,
        is_rehearsal: bool = False,
        touched: Iterable[str] = (),
    ) -> None:
        """
        Make `settings` one of the dynamic layers, in place of what it was.

        `touched` are the names that somebody asks to set or to take away.

        Raises:
            RefusedRequestError: 42, as in Kafka: a setting that cannot be changed while the broker
                runs, or a value that it cannot have; nothing was changed. Names that nobody knows
                are taken, for the plug-ins that might. 40: what is the cluster's while ELR is on.
            WriteFailedError, OSError: the disk refused; nothing was changed.

        """
        for name, text in settings.items():
            self._check(name, text, is_cluster_wide=is_cluster_wide)
        of_broker = self.of_broker if is_cluster_wide else dict(settings)
        of_cluster = dict(settings) if is_cluster_wide else self.of_cluster
        self._check_threads({**self.static, **of_cluster, **of_broker})
        defaults = topic_defaults({**self.static, **of_cluster, **of_broker})
        try:
            configs = self._configs(defaults)
        except ConfigError as error:
            raise RefusedRequestError(ErrorCode.INVALID_REQUEST, str(error)) from error
        # What follows is for Kafka's controller to say, which comes after the broker.
        if self._store.metadata.fixes_min_insync_replicas:
            if not is_cluster_wide:
                self._check_may_be_own(touched)
            self._check_min_insync_replicas(of_cluster)
        if is_rehearsal:
            return
        name = EVERY_BROKER if is_cluster_wide else str(self._store.node_id)
        before = self.of_cluster if is_cluster_wide else self.of_broker
        self._store.metadata.change_broker_settings(name, before, settings)
        self.of_broker, self.of_cluster = of_broker, of_cluster
        self._apply(defaults, configs)

    def fix_min_insync_replicas(self) -> None:
        """Make the cluster's ``min.insync.replicas`` what it is here, before ELR is turned on."""
        name = "min.insync.replicas"
        if name not in self.of_cluster:
            of_cluster = {**self.of_cluster, name: self.value_of(name) or "1"}
            self.replace(of_cluster, is_cluster_wide=True)
        if name in self.of_broker:
            of_broker = {key: text for key, text in self.of_broker.items() if key != name}
            self.replace(of_broker, is_cluster_wide=False)

    def _check_threads(self, settings: Mapping[str, str]) -> None:
        """Refuse large steps (Kafka: ``DynamicThreadPool``, ``LogCleaner``, ``SocketServer``)."""
        for name in _THREADS:
            before = self.integer(name)
            after = BROKER_CONFIG_KEYS[name].parse(
                settings.get(name, BROKER_CONFIG_KEYS[name].default)
            )
            assert isinstance(after, int), f"{name} was checked"
            if not before // 2 <= after <= before * 2:
                raise _refused(
                    f"{name} can be at least half and at most double of {before}, not {after}"
                )

    def _check_may_be_own(self, names: Iterable[str]) -> None:
        """Refuse (40) to touch of one broker what is the cluster's while ELR is on."""
        name = "min.insync.replicas"
        if name in names:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG,
                f"broker-level {name} cannot be altered; the cluster's can",
            )

    def _check_min_insync_replicas(self, of_cluster: Mapping[str, str]) -> None:
        """Refuse (40) what ``ConfigurationControlManager`` does while ELR is on."""
        name = "min.insync.replicas"
        if name in self.of_cluster and name not in of_cluster:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG, f"cluster-level {name} cannot be removed, only changed"
            )

    def _configs(self, defaults: Mapping[str, str]) -> list[LogConfig]:
        """Return what `defaults` mean for every topic, in order. Raises ConfigError."""
        parse_topic_configs(defaults)
        topics = self._store.topics_by_name.values()
        return [parse_topic_configs({**defaults, **topic.settings}) for topic in topics]

    def _apply(self, defaults: dict[str, str], configs: list[LogConfig]) -> None:
        self._store.log_defaults = defaults
        for topic, config in zip(self._store.topics_by_name.values(), configs, strict=True):
            for partition in topic.partitions.values():
                partition.reconfigure(config)

    def _check(self, name: str, text: str, *, is_cluster_wide: bool) -> None:
        key, is_fixed = BROKER_CONFIG_KEYS.get(name), not self.is_dynamic(name)
        if key is None:
            key, is_fixed = _listed(name)
        if name.startswith(_PER_LISTENER):
            raise _refused(
                "These security configs can be dynamically updated only per-listener using the "
                f"listener prefix: [{name}]"
            )
        if is_fixed:
            raise _refused(f"Cannot update these configs dynamically: [{name}]")
        if is_cluster_wide and key is not None and name.startswith(_PER_BROKER):
            raise _refused(
                "Cannot update these configs at default cluster level, broker id must be "
                f"specified: [{name}]"
            )
        if key is None:
            return
        try:
            value = key.parse(text)
        except ConfigError as error:
            raise _refused(str(error)) from error
        if name == "cordoned.log.dirs" and value not in ((), ("*",), (self._store.directory,)):
            raise _refused(
                f"All entries in cordoned.log.dirs must be present in log.dirs or log.dir: {text}"
            )


def _listed(name: str) -> tuple[ConfigKey | None, bool]:
    """Return what is known of a setting without effect, and whether it is fixed at the start."""
    from logstore.segments.kafka.listed_config_keys import (  # rarely needed
        LISTED_AS_CHANGEABLE,
        LISTED_CONFIG_KEYS,
    )

    key = LISTED_CONFIG_KEYS.get(name)
    if key is None:
        return None, name.startswith(_FIXED_FAMILIES)
    return key, name not in LISTED_AS_CHANGEABLE


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
