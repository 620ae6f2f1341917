"""What share groups must know of the cluster besides topics: settings, states and ends."""

from __future__ import annotations

from typing import Protocol

from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
from logstore.compat.kafka.share_state.persister import Persister


class ShareCluster(Cluster, Protocol):
    """The topics, the settings of groups and what keeps the states of their partitions."""

    @property
    def persister(self) -> Persister:
        """What keeps the states of share-partitions."""
        ...

    def share_settings_of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings that hold for a group."""
        ...

    def end_offset_of(self, topic: str, partition: int) -> int | None:
        """Return the offset of the next record of a partition, None if there is no such one."""
        ...
