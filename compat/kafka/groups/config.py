"""The settings of the group coordinator, under Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class GroupConfig:
    """
    What a broker can be told about groups; fields are named like Kafka's settings.

    `offset_metadata_max_bytes` counts UTF-16 units, as Kafka does in spite of the name. Source:
    ``GroupCoordinatorConfig``.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    #: how long a new member may wait for its first join to end (Kafka has no setting for it)
    new_member_join_timeout_ms: int = 300_000

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets outlive their group."""
        return self.offsets_retention_minutes * 60_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> GroupConfig:
        """Return what a ``server.properties`` says; everything else keeps its default."""
        names = {field.name.replace("_", "."): field.name for field in attrs.fields(cls)}
        return cls(**{names[key]: int(text) for key, text in properties.items() if key in names})

    @classmethod
    def from_broker(cls, config: object) -> GroupConfig:
        """Return those of a broker's settings that are about groups, by their field names."""
        names = [field.name for field in attrs.fields(cls)]
        return cls(**{name: getattr(config, name) for name in names if hasattr(config, name)})
