"""The settings of the group coordinator, under Kafka's names and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.configs.conflicts import SERVED_ASSIGNORS
from logstore.compat.kafka.groups.migration.policy import MigrationPolicy

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.settings import BrokerSettings
    from logstore.segments.kafka.broker_config import BrokerConfig

#: what is served by default, in this order
ASSIGNORS = ("uniform", "range")


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
    #: KIP-848: how often members of consumer groups must show a sign of life, and within what time
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_session_timeout_ms: int = 45_000
    consumer_group_max_size: int = 2_147_483_647
    #: the ways to assign partitions; the first one is asked where members do not choose
    consumer_assignors: tuple[str, ...] = ASSIGNORS
    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    #: KIP-932
    share_group_max_size: int = 200
    share_group_initialize_retry_interval_ms: int = 30_000
    #: how long a new member may wait for its first join to end (Kafka has no setting for it)
    new_member_join_timeout_ms: int = 300_000

    def takes_session(self, timeout_ms: int) -> bool:
        """Tell whether a member of a classic group may have that session timeout."""
        shortest_ms, longest_ms = (
            self.group_min_session_timeout_ms,
            self.group_max_session_timeout_ms,
        )
        return shortest_ms <= timeout_ms <= longest_ms

    @classmethod
    def of(cls, settings: BrokerSettings) -> GroupConfig:
        """Return those of a broker's settings that are about groups."""
        given = settings.given
        return cls(
            group_min_session_timeout_ms=settings.group_min_session_timeout_ms,
            group_max_session_timeout_ms=settings.group_max_session_timeout_ms,
            group_initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
            group_max_size=settings.group_max_size,
            offset_metadata_max_size=settings.offset_metadata_max_size,
            offsets_retention_ms=settings.offsets_retention_ms,
            offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
            consumer_heartbeat_interval_ms=given.integer("group.consumer.heartbeat.interval.ms"),
            consumer_session_timeout_ms=given.integer("group.consumer.session.timeout.ms"),
            consumer_group_max_size=given.integer("group.consumer.max.size"),
            consumer_assignors=_assignors(given),
            consumer_migration_policy=MigrationPolicy.of(
                str(given["group.consumer.migration.policy"])
            ),
            share_group_max_size=given.integer("group.share.max.size"),
            share_group_initialize_retry_interval_ms=given.integer(
                "group.share.initialize.retry.interval.ms"
            ),
        )


def _assignors(given: BrokerConfig) -> tuple[str, ...]:
    """Return the assignors wanted, each once."""
    wanted = given["group.consumer.assignors"]
    assert isinstance(wanted, tuple), "a list setting"
    return tuple(dict.fromkeys(SERVED_ASSIGNORS[name] for name in wanted))
