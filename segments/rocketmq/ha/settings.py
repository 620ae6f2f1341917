"""What the settings say about replication."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.segments.rocketmq.settings.release import Release

__all__ = ["RECONNECT_AFTER_MS", "HaSettings"]

#: so long a slave waits after a connection broke or could not be made
RECONNECT_AFTER_MS = 5000
_FIELD_OF_KEY = {
    "haSendHeartbeatInterval": "heartbeat_interval_ms",
    "haHousekeepingInterval": "housekeeping_interval_ms",
    "haTransferBatchSize": "transfer_bytes_max",
    "haMaxGapNotInSync": "gap_bytes_max",
    "haSlaveFallbehindMax": "gap_bytes_max",
    "slaveTimeout": "slave_timeout_ms",
    "inSyncReplicas": "in_sync_replicas",
    "maxHaTransferByteInSecond": "bytes_a_second_max",
}


@attrs.frozen
class HaSettings:
    """
    Intervals and limits of replication, by default Java's (``MessageStoreConfig``).

    `in_sync_replicas` counts the master itself: of 5.x's default, 1, no put waits for a slave.
    `bytes_a_second_max` holds only if `has_flow_control`.
    """

    heartbeat_interval_ms: int = 5000
    housekeeping_interval_ms: int = 20000
    transfer_bytes_max: int = 32768
    gap_bytes_max: int = 256 * 1024 * 1024
    slave_timeout_ms: int = 3000
    in_sync_replicas: int = 1
    has_flow_control: bool = False
    bytes_a_second_max: int = 100 * 1024 * 1024
    is_sync_master: bool = False
    release: Release = Release.V5

    @property
    def waits_for_slaves(self) -> bool:
        """Tell whether puts may have to wait for slaves at all."""
        return self.is_sync_master and (self.release is Release.V4 or self.in_sync_replicas > 1)

    @classmethod
    def of_settings(cls, settings: Mapping[str, str], release: Release = Release.V5) -> HaSettings:
        """
        Return what Java's keys in `settings` set; what is missing is Java's default.

        Raises:
            ValueError: a value is no number.

        """
        given = {
            field: int(settings[key]) for key, field in _FIELD_OF_KEY.items() if key in settings
        }
        return cls(
            **given,
            has_flow_control=settings.get("haFlowControlEnable", "false").lower() == "true",
            is_sync_master=settings.get("brokerRole", "").upper() == "SYNC_MASTER",
            release=release,
        )
