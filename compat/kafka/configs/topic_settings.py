"""
What a topic's settings must be when somebody gives them: each allowed, and all of them together.

Settings that stand on disk are only parsed: what was taken once is served.

Source: ``LogConfig.validate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.config_keys import ConfigError, UnknownTopicConfigError
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_TIERED_STORAGE = "remote.log.storage.system.enable"


def check_topic_settings(broker: Broker, settings: Mapping[str, str]) -> None:
    """
    Check the settings that a topic is to have, over the broker's.

    Raises:
        ConfigError: one is unknown, has a value that it cannot have, or does not go with others.

    """
    if not settings.keys() <= TOPIC_CONFIG_KEYS.keys():
        raise _unknown(settings)
    config = parse_topic_configs({**broker.store.log_defaults, **settings})
    if config.remote_storage_enable:
        is_on = broker.dynamic_config.static.get(_TIERED_STORAGE, "false")
        if is_on.strip().lower() != "true":
            raise ConfigError(
                "remote.storage.enable", "true", f"needs a broker with {_TIERED_STORAGE}=true",
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage.",
            )  # fmt: skip


def _unknown(settings: Mapping[str, str]) -> UnknownTopicConfigError:
    """Return the refusal of what Kafka, which walks a table of them, finds first."""
    from logstore.compat.kafka.groups.modern.hash_order import members_in_order  # rarely needed

    names = members_in_order(settings)
    unknown = next(name for name in names if name not in TOPIC_CONFIG_KEYS)
    return UnknownTopicConfigError(unknown, settings[unknown])
