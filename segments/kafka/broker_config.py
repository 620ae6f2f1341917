"""
The settings of a broker, as ``server.properties`` gives them.

Every setting of Kafka 4.3 is either in the table :data:`BROKER_CONFIG_KEYS`, with type, default
and range, or belongs to one of the :data:`ACCEPTED_FAMILIES`, of which only the names are known.
Any other name is unknown: a real broker logs it and goes on, so does :class:`BrokerConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from logstore.segments.kafka.broker_config_keys import (
    LOG_KEYS,
    NETWORK_KEYS,
    NODE_KEYS,
    QUOTA_KEYS,
    REPLICATION_KEYS,
    TOKEN_KEYS,
)
from logstore.segments.kafka.config import topic_defaults
from logstore.segments.kafka.config_keys import ConfigError, ConfigKey, ConfigValue, Effect
from logstore.segments.kafka.coordinator_config_keys import (
    GROUP_KEYS,
    OFFSET_KEYS,
    SHARE_KEYS,
    STREAMS_KEYS,
    TRANSACTION_KEYS,
)

#: Every broker setting with type and default, by name.
BROKER_CONFIG_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for keys in (
        NODE_KEYS,
        LOG_KEYS,
        NETWORK_KEYS,
        REPLICATION_KEYS,
        QUOTA_KEYS,
        TOKEN_KEYS,
        GROUP_KEYS,
        OFFSET_KEYS,
        SHARE_KEYS,
        STREAMS_KEYS,
        TRANSACTION_KEYS,
    )
    for key in keys
}

#: What Kafka's authorizer, and no table of the broker's, knows.
AUTHORIZER_SETTINGS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})

#: Beginnings of names that are known and have no effect here, and what they are about.
ACCEPTED_FAMILIES: Mapping[str, str] = {
    "add.partitions.to.txn.": "retries between partition and transaction coordinator",
    "broker.": "the broker in its cluster",
    "client.quota.callback.": "a class that decides on quotas",
    "config.providers": "where secret values come from",
    "connections.max.reauth.ms": "authentication anew",
    "controller.": "the controller and its quorum",
    "cordoned.log.dirs": "directories that get no new partitions",
    "early.start.listeners": "listeners that open before the broker is ready",
    "follower.fetch.": "how followers fetch from tiered logs",
    "group.coordinator.": "the group coordinator",
    "group.share.": "share groups",
    "initial.broker.registration.timeout.ms": "joining the cluster",
    "inter.broker.protocol.version": "versions between brokers; until 3.9",
    "internal.metadata.": "the metadata log",
    "kafka.metrics.": "metrics",
    "listener.name.": "settings of one listener",
    "log.message.downconversion.enable": "old message formats; until 3.9",
    "log.message.format.version": "old message formats; until 3.9",
    "log.message.timestamp.difference.max.ms": "timestamps; until 3.9",
    "metadata.": "the metadata log",
    "metrics.": "metrics",
    "num.replica.alter.log.dirs.threads": "moves between log directories",
    "principal.builder.class": "names of authenticated clients",
    "remote.": "tiered storage",
    "rlmm.config.": "where tiered storage keeps its metadata",
    "rsm.config.": "what a tiered storage of one's own needs",
    "sasl.": "authentication by SASL",
    "security.": "security",
    "server.max.startup.time.ms": "how long a start may take",
    "share.coordinator.": "the share coordinator",
    "socket.connection.setup.": "connections between brokers",
    "ssl.": "encryption by TLS",
    "unclean.leader.election.interval.ms": "elections of replicas that are behind",
    "unstable.": "versions that are not released yet",
    "zookeeper.": "ZooKeeper; until 3.9",
}

_OF_LISTENER = re.compile(r"^listener\.name\.[^.]+\.")


class Knowledge(Enum):
    """What giving a setting of some name does."""

    USED = "used"
    ACCEPTED = "accepted"  # known to Kafka, without effect here
    UNKNOWN = "unknown"


def knowledge_of(name: str) -> Knowledge:
    """Tell whether a broker setting is used, only accepted, or unknown."""
    key = BROKER_CONFIG_KEYS.get(name)
    if name in AUTHORIZER_SETTINGS:
        return Knowledge.USED
    if key is not None:
        return Knowledge.USED if key.effect is Effect.USED else Knowledge.ACCEPTED
    if name.startswith(tuple(ACCEPTED_FAMILIES)):
        return Knowledge.USED if _is_of_security(name) else Knowledge.ACCEPTED
    return Knowledge.UNKNOWN


def _is_of_security(name: str) -> bool:
    """Tell whether it is a setting of TLS or SASL that is used: the broker's or a listener's."""
    from logstore.segments.kafka.security_config_keys import SECURITY_CONFIG_KEYS  # rarely needed

    own = _OF_LISTENER.sub("", name)
    return own in SECURITY_CONFIG_KEYS or (
        own != name and own.partition(".")[2] in SECURITY_CONFIG_KEYS
    )


class BrokerConfig:
    """
    What a broker was given, over the defaults.

    Raises:
        ConfigError: a value of a setting in the table is not allowed.

    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        #: As given, also what is unknown.
        self.settings = dict(settings or {})
        self._values: dict[str, ConfigValue] = {
            name: BROKER_CONFIG_KEYS[name].parse(text)
            for name, text in self.settings.items()
            if name in BROKER_CONFIG_KEYS
        }

    def __getitem__(self, name: str) -> ConfigValue:
        """Return the value of a setting in the table, its default if it was not given."""
        if name in self._values:
            return self._values[name]
        key = BROKER_CONFIG_KEYS.get(name)
        if key is None:
            raise ConfigError(name, None, "there is no such broker setting")
        return None if key.default is None else key.parse(key.default)

    def text(self, name: str) -> str | None:
        """Return the text of a setting, as DescribeConfigs shows it; None is Kafka's null."""
        if name in self.settings:
            return self.settings[name]
        key = BROKER_CONFIG_KEYS.get(name)
        return None if key is None else key.default

    def integer(self, name: str) -> int:
        """Return the value of a setting that is a whole number and not null."""
        value = self[name]
        assert isinstance(value, int), f"{name} is {value!r}, no whole number"
        return value

    def unknown(self) -> list[str]:
        """Return the given names that Kafka does not know, in order."""
        return sorted(name for name in self.settings if knowledge_of(name) is Knowledge.UNKNOWN)

    def topic_defaults(self) -> dict[str, str]:
        """Return what the settings given mean for topics, by topic setting name."""
        return topic_defaults(self.settings)
