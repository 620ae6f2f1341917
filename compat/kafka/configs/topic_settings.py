"""
What a topic's settings must be when somebody gives them: each allowed, and all of them together.

Settings that stand on disk are only parsed: what was taken once is served.

Source: ``LogConfig.validate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.config_keys import ConfigError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_TIERED_STORAGE = "remote.log.storage.system.enable"


def check_topic_settings(broker: Broker, settings: Mapping[str, str]) -> None:
    """
    Check the settings that a topic is to have, over the broker's.

    Raises:
        ConfigError: one is unknown, has a value that it cannot have, or does not go with others.

    """
    config = parse_topic_configs({**broker.store.log_defaults, **settings})
    if config.remote_storage_enable:
        is_on = broker.dynamic_config.static.get(_TIERED_STORAGE, "false")
        if is_on.strip().lower() != "true":
            raise ConfigError(
                "remote.storage.enable", "true", f"needs a broker with {_TIERED_STORAGE}=true"
            )
