"""In which directions groups may change their kind while they have members."""

from __future__ import annotations

from enum import Enum


class MigrationPolicy(Enum):
    """
    The value of ``group.consumer.migration.policy``.

    Source: ``ConsumerGroupMigrationPolicy``.
    """

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    #: members of the classic protocol cannot even join a consumer group
    DISABLED = "disabled"

    @classmethod
    def of(cls, name: str) -> MigrationPolicy:
        """Return the policy of that name, however it is capitalised; DISABLED for any other."""
        try:
            return cls(name.lower())
        except ValueError:
            return cls.DISABLED

    @property
    def may_upgrade(self) -> bool:
        """Tell whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Tell whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)
