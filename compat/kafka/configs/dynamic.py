"""
Broker settings that are changed while the broker runs, over those that it was started with.

They stand in the metadata log, as in Kafka, and hold again after a restart. What has an effect are
the settings that give topics their defaults (``log.retention.ms``, ``message.max.bytes`` ...):
every open log uses the new value at once; and those that are asked for whenever they matter
(``producer.id.expiration.ms``). Sizes of thread pools and the like may be changed as in Kafka, but
nothing here has them.

Of a cluster each node shows what was changed on it. All of them hold for all nodes, which are one
broker: where two say something else of the same, the first one of them is heard.

Source: ``DynamicBrokerConfig``, ``DynamicLogConfig``.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.conflicts import check_conflicts
from logstore.compat.kafka.configs.seen_settings import SeenSettings
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.broker_config import (
    ACCEPTED_FAMILIES,
    BROKER_CONFIG_KEYS,
    BrokerConfig,
)
from logstore.segments.kafka.config import LogConfig, parse_topic_configs, topic_defaults
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey
from logstore.segments.kafka.dynamic_config_names import DYNAMIC_CONFIG_NAMES

if TYPE_CHECKING:
    from logstore.segments.kafka.store import KafkaStore

_log = logging.getLogger(__name__)

#: the name under which settings of all brokers stand
EVERY_BROKER = ""

#: names that can be changed here as in Kafka, but for its listeners
_CHANGEABLE = DYNAMIC_CONFIG_NAMES.keys() - {"listeners", "listener.security.protocol.map"}

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
#: the same, of what tiered storage would have
_TIERED_THREADS = (
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


class DynamicConfig:
    """
    The layers of one broker's settings.

    `of_broker` was changed on its nodes (`of_nodes`), of which there are `node_count`,
    `of_cluster` for every broker; `static` are the settings that it was started with.
    """

    def __init__(self, store: KafkaStore, static: Mapping[str, str], node_count: int = 1) -> None:
        self.static = dict(static)
        self._store = store
        ids = range(store.node_id, store.node_id + node_count)
        self.of_nodes = {node_id: self._stored(str(node_id)) for node_id in ids}
        self.of_broker = _together(self.of_nodes)
        self.of_cluster = self._stored(EVERY_BROKER)
        if self.of_broker or self.of_cluster:
            self._restore()

    def _stored(self, name: str) -> dict[str, str]:
        """Return what the metadata have for a broker, without what would be refused here."""
        found: dict[str, str] = {}
        for key, text in self._store.metadata.broker_settings(name).items():
            try:
                self._check({key: text}, is_cluster_wide=name == EVERY_BROKER)
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

    def seen_from(self, node_id: int) -> SeenSettings:
        """Return the layers as that node has them."""
        of_node = self.of_nodes[node_id]
        if of_node == self.of_broker:
            log_defaults = self._store.log_defaults
        else:
            log_defaults = topic_defaults({**self.static, **self.of_cluster, **of_node})
        return SeenSettings(of_node, self.of_cluster, self.static, log_defaults)

    def is_dynamic(self, name: str) -> bool:
        """Tell whether the setting can be changed while the broker runs."""
        return name in BROKER_CONFIG_KEYS and name in _CHANGEABLE

    def value_of(self, name: str) -> str | None:
        """Return the text of the strongest layer; Kafka's default if there is none."""
        given = self._given(name)
        return BROKER_CONFIG_KEYS[name].default if given is None else given

    def _given(self, name: str) -> str | None:
        for layer in (self.of_broker, self.of_cluster, self.static):
            if name in layer:
                return layer[name]
        return None

    def integer(self, name: str) -> int:
        """Return the value in force of a setting that is a whole number and not null."""
        value = BROKER_CONFIG_KEYS[name].parse(self.value_of(name))
        assert isinstance(value, int), f"{name} is {value!r}, no whole number"
        return value

    def real(self, name: str) -> float:
        """Return the value in force of a setting that is a number and not null."""
        value = BROKER_CONFIG_KEYS[name].parse(self.value_of(name))
        assert isinstance(value, float), f"{name} is {value!r}, no number"
        return value

    def replace(
        self,
        settings: Mapping[str, str],
        *,
        is_cluster_wide: bool,
        node_id: int | None = None,
        is_rehearsal: bool = False,
        touched: Iterable[str] = (),
    ) -> None:
        """
        Make `settings` one of the dynamic layers, in place of what it was.

        `node_id` is whose they are if they are not the cluster's, without it the first node's.
        `touched` are the names that somebody asks to set or to take away.

        Raises:
            RefusedRequestError: 42, as in Kafka: a setting that cannot be changed while the broker
                runs, or a value that it cannot have; nothing was changed. Names that nobody knows
                are taken, for the plug-ins that might. 40: what is the cluster's while ELR is on.
            WriteFailedError, OSError: the disk refused; nothing was changed.

        """
        self._check(settings, is_cluster_wide=is_cluster_wide)
        own_id = self._store.node_id if node_id is None else node_id
        of_nodes = self.of_nodes if is_cluster_wide else {**self.of_nodes, own_id: dict(settings)}
        of_broker = _together(of_nodes)
        of_cluster = dict(settings) if is_cluster_wide else self.of_cluster
        together = {**self.static, **of_cluster, **of_broker}
        defaults = topic_defaults(together)
        try:
            check_conflicts(BrokerConfig(together))
            self._check_threads(together)
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
        name = EVERY_BROKER if is_cluster_wide else str(own_id)
        before = self.of_cluster if is_cluster_wide else self.of_nodes[own_id]
        self._store.metadata.change_broker_settings(name, before, settings)
        self.of_nodes, self.of_broker, self.of_cluster = of_nodes, of_broker, of_cluster
        self._apply(defaults, configs)

    def fix_min_insync_replicas(self) -> None:
        """Make the cluster's ``min.insync.replicas`` what it is here, before ELR is turned on."""
        name = "min.insync.replicas"
        if name not in self.of_cluster:
            of_cluster = {**self.of_cluster, name: self.value_of(name) or "1"}
            self.replace(of_cluster, is_cluster_wide=True)
        for node_id, of_node in self.of_nodes.items():
            if name in of_node:
                others = {key: text for key, text in of_node.items() if key != name}
                self.replace(others, is_cluster_wide=False, node_id=node_id)

    def _check_threads(self, settings: Mapping[str, str]) -> None:
        """Refuse large steps (Kafka: ``DynamicThreadPool``, ``LogCleaner``, ``SocketServer``)."""
        for name in (*_THREADS, *(one for one in _TIERED_THREADS if one in settings)):
            key = BROKER_CONFIG_KEYS.get(name) or _listed(name)[0]
            assert key is not None, f"{name} is known"
            before = key.parse(self._given(name) or key.default)
            after = key.parse(settings.get(name, key.default))
            assert isinstance(before, int), f"{name} was checked"
            assert isinstance(after, int), f"{name} was checked"
            if not before // 2 <= after <= before * 2:
                raise _refused(_too_large_a_step(name, before, after))

    def _check_may_be_own(self, names: Iterable[str]) -> None:
        """Refuse (40) to touch of one broker what is the cluster's while ELR is on."""
        name = "min.insync.replicas"
        if name in names:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG,
                f"Broker-level {name} cannot be altered while ELR is enabled.",
            )

    def _check_min_insync_replicas(self, of_cluster: Mapping[str, str]) -> None:
        """Refuse (40) what ``ConfigurationControlManager`` does while ELR is on."""
        name = "min.insync.replicas"
        if name in self.of_cluster and name not in of_cluster:
            raise RefusedRequestError(
                ErrorCode.INVALID_CONFIG,
                f"Cluster-level {name} cannot be removed while ELR is enabled.",
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

    def _check(self, settings: Mapping[str, str], *, is_cluster_wide: bool) -> None:
        """Refuse what cannot be changed, then what cannot be so, in the order of Kafka's checks."""
        known = {name: self._known(name) for name in settings}
        _refuse_any(
            [name for name, (_, is_fixed) in known.items() if is_fixed],
            "Cannot update these configs dynamically",
        )
        _refuse_any(
            [name for name in settings if name.startswith(_PER_LISTENER)],
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix",
        )
        for name in sorted(settings, key=lambda name: DYNAMIC_CONFIG_NAMES.get(name, -1)):
            self._check_value(name, settings[name], known[name][0])
        if is_cluster_wide:
            own = [name for name, (key, _) in known.items() if key and name.startswith(_PER_BROKER)]
            _refuse_any(
                own,
                "Cannot update these configs at default cluster level, broker id must be specified",
            )

    def _known(self, name: str) -> tuple[ConfigKey | None, bool]:
        """Return what is known of a setting, and whether it is fixed at the start."""
        key = BROKER_CONFIG_KEYS.get(name)
        return _listed(name) if key is None else (key, not self.is_dynamic(name))

    def _check_value(self, name: str, text: str, key: ConfigKey | None) -> None:
        if key is None:
            return
        try:
            value = key.parse(text)
        except ConfigError as error:
            raise _refused(str(error)) from error
        if name == "cordoned.log.dirs" and isinstance(value, tuple) and value != ("*",):
            missing = [one for one in value if one != self._store.directory]
            if missing:
                raise _refused(
                    "requirement failed: All entries in cordoned.log.dirs must be present in "
                    f"log.dirs or log.dir. Missing entries : {', '.join(missing)}"
                )


def _together(of_nodes: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    """Return what holds of all that nodes have been told, of which the first is the strongest."""
    return dict(ChainMap(*(dict(of_node) for of_node in of_nodes.values())))


def _refuse_any(names: list[str], reason: str) -> None:
    if names:
        from logstore.compat.kafka.groups.modern.hash_order import members_in_order  # rarely needed

        raise _refused(f"{reason}: [{', '.join(members_in_order(names))}]")


def _too_large_a_step(name: str, before: int, after: int) -> str:
    """Return what Kafka says of a number of threads, which it wraps in another of its errors."""
    if name == "log.cleaner.threads":
        how = "reduced to less than half" if after < before else "increased to more than double"
        reason = f"Log cleaner threads cannot be {how} the current value {before}"
    else:
        how = "be at least half" if after < before else "not be greater than double"
        reason = (
            f"Dynamic thread count update validation failed for {name}={after}, value should {how} "
            f"the current value {before}"
        )
    return (
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for configuration "
        "Invalid dynamic configuration"
    )


def _listed(name: str) -> tuple[ConfigKey | None, bool]:
    """Return what is known of a setting without effect, and whether it is fixed at the start."""
    from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS  # rarely needed

    key = LISTED_CONFIG_KEYS.get(name)
    if key is None:
        return None, name.startswith(_FIXED_FAMILIES)
    return key, name not in DYNAMIC_CONFIG_NAMES


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
