"""The settings of the group coordinator, under Kafka's names and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.settings import BrokerSettings


@attrs.frozen
class GroupConfig:
    """
    What a broker can be told about groups.

    `offset_metadata_max_size` counts UTF-16 units, though Kafka calls the setting
    ``offset.metadata.max.bytes``. Source: ``GroupCoordinatorConfig``.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_size: int = 4_096
    offsets_retention_ms: int = 604_800_000
    offsets_retention_check_interval_ms: int = 600_000
    #: how long a new member may wait for its first join to end (Kafka has no setting for it)
    new_member_join_timeout_ms: int = 300_000

    @classmethod
    def of(cls, settings: BrokerSettings) -> GroupConfig:
        """Return those of a broker's settings that are about groups."""
        return cls(
            group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
            group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
            group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
            group_max_size=settings.group_max_size,
            offset_metadata_max_size=settings.offset_metadata_max_size,
            offsets_retention_ms=settings.offsets_retention_ms,
            offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
        )
