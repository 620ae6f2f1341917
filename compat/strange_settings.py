"""Settings that no broker has: real brokers log them and go on, and so their values never count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from logstore.compat.meant_names import did_you_mean

_OWNERS = {"kafka": " in Kafka", "rocketmq": " in RocketMQ"}


class _Kind(NamedTuple):
    """What there is in one kind of broker, and what of the settings is not."""

    known: Collection[str]
    unknown: Collection[str]


# Each is imported where it is asked for: a broker of one kind does not start later for the other's.


def _in_kafka(settings: Mapping[str, str]) -> _Kind:
    from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS, BrokerConfig

    return _Kind(BROKER_CONFIG_KEYS, BrokerConfig(settings).unknown())


def _in_rocketmq(settings: Mapping[str, str]) -> _Kind:
    from logstore.compat.rocketmq.name_server.config import NameServerConfig
    from logstore.segments.rocketmq.settings.broker_config import BROKER_CONFIG_KEYS, BrokerSettings

    of_name_server = NameServerConfig.names()
    return _Kind(
        [*BROKER_CONFIG_KEYS, *of_name_server],
        set(BrokerSettings(settings).unknown) - of_name_server,
    )


_KINDS = {"kafka": _in_kafka, "rocketmq": _in_rocketmq}


class StrangeSettingWarning(UserWarning):
    """A broker for tests is given a setting that its kind does not have: it has no effect."""


class StrangeSetting(NamedTuple):
    """A name among the settings that nobody knows; the text says which name was meant, perhaps."""

    name: str
    text: str


def strange_settings(
    protocols: Collection[str], settings: Mapping[str, str]
) -> list[StrangeSetting]:
    """
    Return which settings no broker of these protocols ("kafka", "rocketmq") has, in order.

    Raises:
        ConfigError: one that there is has a value that it cannot have.

    """
    if not settings:
        return []
    kinds = [_KINDS[protocol](settings) for protocol in protocols]
    strange = set(settings).intersection(*(kind.unknown for kind in kinds))
    known = sorted({name for kind in kinds for name in kind.known})
    owner = _OWNERS[next(iter(protocols))] if len(protocols) == 1 else ""
    return [_told(name, known, owner) for name in sorted(strange)]


def _told(name: str, known: Iterable[str], owner: str) -> StrangeSetting:
    meant = did_you_mean(name, known)
    return StrangeSetting(name, f"{name}: no such setting{owner}; ignored{meant}")
