"""An offsets log without files, for tests and for brokers that keep nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.offsets_log import (
    NO_PRODUCER_ID,
    GroupRecord,
    ReplayedRecord,
    TransactionalProducer,
    TransactionEnd,
)
from logstore.errors import WriteFailedError

if TYPE_CHECKING:
    from logstore.compat.kafka.transactions.markers import Marker


class MemoryOffsetsLog:
    """
    Keeps entries in a list; `is_full` makes every further append fail as a full disk does.

    `is_failing` lets appends pass, and their flushes fail.
    Hand the same log to a new coordinator to see what survives a restart.
    """

    def __init__(self) -> None:
        self.entries: list[ReplayedRecord | TransactionEnd] = []
        self.is_full = False
        self.is_failing = False

    @property
    def records(self) -> list[GroupRecord]:
        """All records without the markers, oldest first; set, they are all there is."""
        return [
            (entry.key, entry.value) for entry in self.entries if isinstance(entry, ReplayedRecord)
        ]

    @records.setter
    def records(self, records: list[GroupRecord]) -> None:
        self.entries = [ReplayedRecord(key, value) for key, value in records]

    def append(
        self,
        group_id: str,
        records: list[GroupRecord],
        producer: TransactionalProducer | None = None,
    ) -> None:
        """Keep the records; raise :class:`WriteFailedError` while the log is full."""
        if self.is_full:
            raise WriteFailedError(f"no room for {len(records)} records of group {group_id}")
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        self.entries += [
            ReplayedRecord(key, value, producer_id=producer_id) for key, value in records
        ]

    def flush(self) -> None:
        """Keep the promise; raise :class:`WriteFailedError` while the disk fails."""
        if self.is_failing:
            raise WriteFailedError("no flush")

    def append_marker(self, partition: int, marker: Marker) -> None:
        """Keep a marker; raise :class:`WriteFailedError` while the log is full."""
        if self.is_full:
            raise WriteFailedError(f"no room for a marker in partition {partition}")
        self.entries.append(TransactionEnd(partition, marker.producer_id, marker.is_commit))

    def partition_of(self, group_id: str) -> int:
        """Return 0: there is one partition."""
        del group_id
        return 0

    def replay(self) -> Iterator[ReplayedRecord | TransactionEnd]:
        """Yield all entries, oldest first."""
        return iter(list(self.entries))
