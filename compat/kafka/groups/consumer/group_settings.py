"""The settings of one group: its own, within the broker's bounds, or else the broker's."""

from __future__ import annotations

import attrs

from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.modern.cluster import Cluster, setting_of_group

HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
SESSION_TIMEOUT = "consumer.session.timeout.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"


@attrs.frozen
class GroupSettings:
    """
    How often members must show a sign of life, how long one may be away, how often all is assigned.

    Source: ``GroupConfig``.
    """

    heartbeat_interval_ms: int
    session_timeout_ms: int
    assignment_interval_ms: int

    @classmethod
    def of(cls, config: GroupConfig, cluster: Cluster, group_id: str) -> GroupSettings:
        """Return what holds for a group now."""
        own = cluster.settings_of_group(group_id)
        return cls(
            setting_of_group(
                cluster, own, HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms
            ),
            setting_of_group(cluster, own, SESSION_TIMEOUT, config.consumer_session_timeout_ms),
            setting_of_group(cluster, own, ASSIGNMENT_INTERVAL),
        )
