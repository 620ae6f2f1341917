"""The settings of one streams group: its own, within the broker's bounds, or else the broker's."""

from __future__ import annotations

import attrs

from logstore.compat.kafka.groups.modern.cluster import Cluster, setting_of_group


@attrs.frozen
class StreamsSettings:
    """
    What a streams group can be told to do in its own way.

    Source: ``GroupConfig``.
    """

    heartbeat_interval_ms: int
    session_timeout_ms: int
    #: how long a new group waits for more members
    initial_rebalance_delay_ms: int
    #: between two target assignments
    assignment_interval_ms: int
    num_standby_replicas: int

    @classmethod
    def of(cls, cluster: Cluster, group_id: str) -> StreamsSettings:
        """Return what holds for a group now."""
        own = cluster.settings_of_group(group_id)

        def value(name: str) -> int:
            return setting_of_group(cluster, own, f"streams.{name}")

        return cls(
            value("heartbeat.interval.ms"),
            value("session.timeout.ms"),
            value("initial.rebalance.delay.ms"),
            value("assignment.interval.ms"),
            value("num.standby.replicas"),
        )

    @property
    def assignment_configs(self) -> dict[str, str]:
        """What an assignor is told, by the names that are kept in the log."""
        return {"num.standby.replicas": str(self.num_standby_replicas)}
