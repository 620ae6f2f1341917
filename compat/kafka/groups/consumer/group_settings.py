"""The settings of one group: its own, within the broker's bounds, or else the broker's."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.config import GroupConfig

HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
SESSION_TIMEOUT = "consumer.session.timeout.ms"


@attrs.frozen
class GroupSettings:
    """
    How often members must show a sign of life, and how long one may stay away.

    Source: ``GroupConfig``.
    """

    heartbeat_interval_ms: int
    session_timeout_ms: int

    @classmethod
    def of(cls, config: GroupConfig, own: Mapping[str, str]) -> GroupSettings:
        """Return what holds for a group with settings of its `own`."""
        return cls(
            int(own.get(HEARTBEAT_INTERVAL, config.consumer_heartbeat_interval_ms)),
            int(own.get(SESSION_TIMEOUT, config.consumer_session_timeout_ms)),
        )
