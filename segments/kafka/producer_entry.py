"""
What is known of one producer: its last batches, its epoch, its open transaction.

Source: ``ProducerStateEntry``, ``BatchMetadata``, ``CompletedTxn``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import attrs

if TYPE_CHECKING:
    from logstore.segments.kafka.usual_batch import UsualBatch

BATCHES_KEPT = 5
SEQUENCE_MAX = 0x7FFF_FFFF
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_EPOCH = -1
NO_TIMESTAMP_MS = -1
#: a batch's producer epoch and base sequence
_unpack_numbers = struct.Struct(">hi").unpack_from
_NUMBERS_AT = 51


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

    def next_sequence(self, run: Sequence[UsualBatch]) -> int:
        """
        Return the first number of usual batches that go on, one behind the other, where it ended.

        -1 for any others, a new epoch and the largest numbers among them: they are for
        ``ProducerStates.check``, which knows what is wrong, or was there before.
        """
        if not self.recent or self.transaction_first_offset >= 0:
            return NO_SEQUENCE
        epoch, first = self.epoch, self.recent[-1][1] + 1
        expected = first
        for _, data, last_delta, _, _ in run:
            if _unpack_numbers(data, _NUMBERS_AT) != (epoch, expected):
                return NO_SEQUENCE
            expected += last_delta + 1
        return first if expected <= SEQUENCE_MAX else NO_SEQUENCE

    def note_run(self, run: Sequence[UsualBatch], sequence: int, offset: int) -> None:
        """Take note of batches that are in the log, from that number and that offset on."""
        note = self.recent.append
        for _, _, last_delta, timestamp_ms, _ in run:
            last_offset = offset + last_delta
            note((sequence, sequence + last_delta, last_offset, last_delta, timestamp_ms))
            sequence, offset = sequence + last_delta + 1, last_offset + 1
        self.last_timestamp_ms = run[-1][3]
