"""A broker's topics and group settings, as its consumer groups see them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.features import GROUP_VERSION
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.segments.kafka.cluster_metadata.image import ResourceType

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.configs.dynamic import DynamicConfig
    from logstore.segments.kafka.store import KafkaStore
    from logstore.segments.kafka.topic import Topic

_PROTOCOLS = "group.coordinator.rebalance.protocols"


class BrokerCluster:
    """Implements :class:`logstore.compat.kafka.groups.modern.cluster.Cluster`."""

    def __init__(self, store: KafkaStore, config: DynamicConfig) -> None:
        self._store = store
        self._config = config
        self._rack = config.value_of("broker.rack") or None

    def topic_named(self, name: str) -> TopicShape | None:
        """Return the topic of that name."""
        return self._shape(self._store.topics_by_name.get(name))

    def topic_with_id(self, topic_id: uuid.UUID) -> TopicShape | None:
        """Return the topic of that id."""
        return self._shape(self._store.topics_by_id.get(topic_id.bytes))

    def topic_names(self) -> Collection[str]:
        """Return the names of all topics."""
        return self._store.topics_by_name.keys()

    def metadata_offset(self) -> int:
        """Return the offset of the last record of the metadata log; -1 before there is one."""
        return self._store.metadata.log.end_offset - 1

    def settings_of_group(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group has of its own."""
        return self._store.metadata.image.configs.get((ResourceType.GROUP, group_id), {})

    def integer(self, name: str) -> int:
        """Return the value that a setting of the broker has now."""
        return self._config.integer(name)

    def _shape(self, topic: Topic | None) -> TopicShape | None:
        if topic is None:
            return None
        topic_id = uuid.UUID(bytes=topic.topic_id)
        return TopicShape(topic.name, topic_id, topic.partition_count, self._rack)


def serves_consumer_groups(broker: Broker) -> bool:
    """Tell whether the cluster has turned such groups on, and nobody has turned them off here."""
    return serves_groups(broker, "consumer", GROUP_VERSION)


def serves_groups(broker: Broker, kind: str, feature: str) -> bool:
    """
    Tell whether the cluster has turned groups of a kind on, and nobody has turned them off.

    A release before 4.0 that is emulated has those only that the broker's settings ask for.
    """
    protocols = broker.config.given[_PROTOCOLS]
    assert isinstance(protocols, tuple), "a list setting"
    is_asked_for = _PROTOCOLS in broker.config.given.settings
    levels = broker.store.metadata.image.features if is_asked_for else broker.feature_levels
    return levels.get(feature, 0) > 0 and kind in protocols
