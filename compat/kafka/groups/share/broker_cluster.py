"""A broker's topics, settings and share coordinator, as its share groups see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.features import SHARE_VERSION
from logstore.compat.kafka.groups.modern.broker_cluster import BrokerCluster
from logstore.compat.kafka.groups.share.settings import ShareGroupSettings

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.share_state.persister import Persister


class BrokerShareCluster(BrokerCluster):
    """Implements :class:`logstore.compat.kafka.groups.share.cluster.ShareCluster`."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.store, broker.dynamic_config)
        self._broker = broker

    @property
    def persister(self) -> Persister:
        """What keeps the states of share-partitions."""
        return self._broker.share_state

    def share_settings_of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings that hold for a group."""
        return ShareGroupSettings.of(self._broker, group_id)

    def end_offset_of(self, topic: str, partition: int) -> int | None:
        """Return the offset of the next record of a partition, None if there is no such one."""
        found = self._broker.partition(topic, partition)
        return None if found is None else found.end_offset


def serves_share_groups(broker: Broker) -> bool:
    """Tell whether the cluster has turned share groups on."""
    return broker.store.metadata.image.features.get(SHARE_VERSION, 0) > 0
