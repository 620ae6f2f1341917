"""The settings of a broker: Java's ``BrokerConfig`` and its servers' (signatures)."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.rocketmq.java_config import JavaConfig
from logstore.segments.rocketmq.store_config import StoreConfig


class BrokerSettings(JavaConfig):
    """
    All that ``--set`` takes: BrokerConfig, MessageStoreConfig and both Netty configurations.

    `store` is the part of the store, `unknown` the names that Java does not know.
    """

    store: StoreConfig
    unknown: Mapping[str, str]

    def properties_text(self) -> str:
        """Return all settings as lines ``name=value``, sorted (request code 26)."""
        raise NotImplementedError
