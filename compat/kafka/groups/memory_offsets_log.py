"""An offsets log without files, for tests and for brokers that keep nothing."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.errors import WriteFailedError


class MemoryOffsetsLog:
    """
    Keeps records in a list; `is_full` makes every further append fail as a full disk does.

    Hand the same log to a new coordinator to see what survives a restart.
    """

    def __init__(self) -> None:
        self.records: list[GroupRecord] = []
        self.is_full = False

    def append(self, group_id: str, records: list[GroupRecord]) -> None:
        """Keep the records; raise :class:`WriteFailedError` while the log is full."""
        if self.is_full:
            raise WriteFailedError(f"no room for {len(records)} records of group {group_id}")
        self.records += records

    def replay(self) -> Iterator[GroupRecord]:
        """Yield all records, oldest first."""
        return iter(list(self.records))
