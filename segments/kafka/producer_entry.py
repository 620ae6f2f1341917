"""
What is known of one producer: its last batches, its epoch, its open transaction.

Source: ``ProducerStateEntry``, ``BatchMetadata``, ``CompletedTxn``.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import attrs

BATCHES_KEPT = 5
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_EPOCH = -1
NO_TIMESTAMP_MS = -1


class ProducedBatch(NamedTuple):
    """One of the last batches of a producer; what a duplicate is answered with."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    """
    A transaction with data that a marker has ended.

    `last_offset` is the marker's, `last_stable_offset` how far read_committed readers may go now:
    what an entry of the aborted-transaction index needs.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


class OpenTransaction(NamedTuple):
    """A transaction that has data in the partition and no marker yet."""

    producer_id: int
    epoch: int
    first_offset: int
    last_timestamp_ms: int


@attrs.define
class ProducerEntry:
    """
    The state of one producer id.

    `recent` holds the fields of a :class:`ProducedBatch` for each of the last batches: tuples,
    because one is made with every append.
    """

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = NO_EPOCH
    last_timestamp_ms: int = NO_TIMESTAMP_MS
    transaction_first_offset: int = NO_OFFSET
    recent: deque[tuple[int, int, int, int, int]] = attrs.field(
        factory=lambda: deque[tuple[int, int, int, int, int]](maxlen=BATCHES_KEPT)
    )

    @property
    def batches(self) -> list[ProducedBatch]:
        """The last batches, oldest first."""
        return [ProducedBatch(*fields) for fields in self.recent]

    @property
    def last_sequence(self) -> int:
        """Number of the last record; -1 if nothing was written in this epoch."""
        return self.recent[-1][1] if self.recent else NO_SEQUENCE

    @property
    def is_in_transaction(self) -> bool:
        """Tell whether a transaction is open."""
        return self.transaction_first_offset >= 0

    def duplicate_of(self, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        """Return the one of the last batches that has these sequences."""
        for fields in self.recent:
            if fields[0] == first_sequence and fields[1] == last_sequence:
                return ProducedBatch(*fields)
        return None
