"""The port to ``__share_group_state``: where the share coordinator keeps what must survive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.compat.kafka.share_state.records import StateRecord


class StatePosition(NamedTuple):
    """Where a record stands."""

    partition: int
    offset: int


class ReplayedState(NamedTuple):
    """A record as it stands in the log."""

    record: StateRecord
    position: StatePosition


class StateLog(Protocol):
    """Keeps the records of share-partitions in order."""

    def append(self, key: SharePartitionKey, record: StateRecord) -> StatePosition:
        """
        Write a record to the partition of `key`; :meth:`flush` comes next.

        Raises:
            LogStoreError, OSError: nothing was written.

        """
        ...

    def flush(self) -> None:
        """
        Keep the promise of what was appended, as far as it is to be on disk before an answer.

        Raises:
            LogStoreError, OSError: it is in the log, and a loss of power may take it.

        """
        ...

    def replay(self) -> Iterator[ReplayedState]:
        """Yield everything; that of one partition in the order in which it was written."""
        ...

    def delete_below(self, position: StatePosition) -> None:
        """
        Delete what a partition has before an offset.

        Raises:
            LogStoreError, OSError: it was not deleted.

        """
        ...
