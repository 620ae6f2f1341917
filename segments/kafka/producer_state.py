"""
What a partition knows of each producer: its last batches, so that a retry is not written twice.

A producer numbers its records; a batch is taken if it continues the numbering, answered with its
old offsets if it is one of the last five, and refused otherwise. Numbers run from 0 to 2^31-1 and
start over. The state is a fold over the log, kept in snapshots so that opening a partition need
not read it all (:mod:`logstore.segments.kafka.producer_snapshot`).

Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry`` (KIP-98, KIP-360).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logstore.host import FileSystem, write_file
from logstore.segments.kafka.append_errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.producer_entry import (
    BATCHES_KEPT,
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    SEQUENCE_MAX,
    CompletedTransaction,
    OpenTransaction,
    ProducedBatch,
    ProducerEntry,
)
from logstore.segments.kafka.producer_snapshot import (
    ProducerSnapshotEntry,
    encode_snapshot,
    read_snapshot,
)
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.transaction_verification import TransactionVerifications, Verification

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BATCHES_KEPT",
    "EXPIRATION_MS",
    "CompletedTransaction",
    "InvalidProducerEpochError",
    "InvalidTransactionStateError",
    "OpenTransaction",
    "OutOfOrderSequenceError",
    "ProducedBatch",
    "ProducerEntry",
    "ProducerStates",
    "TransactionCoordinatorFencedError",
]
EXPIRATION_MS = 86400000
_EPOCH_MAX = 0x7FFF
#: transactions of this version have an epoch each, the marker's is one above that of the data
_EPOCH_PER_TRANSACTION = 2


class ProducerStates:
    """
    The producers of one partition.

    With `tracks_replication`, transactions whose marker is not below the high watermark yet still
    count as unstable; :meth:`advance_high_watermark` lets them go. A lone replica needs none of
    this.
    """

    def __init__(self, *, tracks_replication: bool = False) -> None:
        self.tracks_replication = tracks_replication
        self._entries: dict[int, ProducerEntry] = {}
        # A handful at most, in every one of thousands of partitions: sorted when somebody asks.
        self._ongoing: dict[int, int] = {}  # first offset -> producer id
        self._unreplicated: dict[int, int] = {}  # first offset -> marker's
        self._verifications = TransactionVerifications()
        self._table_size = 16

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(list(self._entries.values()))

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return what is known of a producer."""
        return self._entries.get(producer_id)

    # appends of data

    def check(
        self,
        *,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        is_transactional: bool = False,
    ) -> ProducedBatch | None:
        """
        Decide on a batch that a client wants to append; nothing changes yet.

        Returns None if it is to be appended, the batch of the first time if it is a duplicate.

        Raises:
            InvalidProducerEpochError: the epoch is below the known one.
            OutOfOrderSequenceError: it neither continues the numbering nor is one of the last
                five; or a new epoch does not start at 0.
            InvalidTransactionStateError: a transaction is open and this is not part of one.

        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return None  # also after the producer has expired: any number may come
        if epoch == entry.epoch:
            recent = entry.recent
            expected = (recent[-1][1] + 1) & SEQUENCE_MAX if recent else 0
            if first_sequence != expected:
                duplicate = entry.duplicate_of(first_sequence, last_sequence)
                if duplicate is not None:
                    return duplicate
                raise OutOfOrderSequenceError(
                    f"producer {producer_id} sent sequence {first_sequence}, expected {expected}"
                )
        elif epoch < entry.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} has epoch {epoch}, a newer one has {entry.epoch}"
            )
        elif first_sequence != 0 and entry.epoch != NO_EPOCH:
            raise OutOfOrderSequenceError(
                f"producer {producer_id} starts epoch {epoch} with sequence {first_sequence}"
            )
        if entry.transaction_first_offset >= 0 and not is_transactional:
            raise InvalidTransactionStateError(
                f"producer {producer_id} has a transaction open since offset "
                f"{entry.transaction_first_offset}"
            )
        return None

    def append(
        self,
        *,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp_ms: int,
        is_transactional: bool = False,
    ) -> None:
        """Take note of a batch that is in the log; nothing is checked, as in a replay."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._add(ProducerEntry(producer_id, epoch))
        elif epoch != entry.epoch:
            entry.epoch = epoch
            entry.recent.clear()
        entry.recent.append(
            (first_sequence, last_sequence, last_offset, offset_delta, timestamp_ms)
        )
        entry.last_timestamp_ms = timestamp_ms
        if is_transactional:
            self._verifications.end(producer_id)
            if entry.transaction_first_offset < 0:
                entry.transaction_first_offset = last_offset - offset_delta
                self._ongoing[entry.transaction_first_offset] = producer_id

    # transactions

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the transactions without a marker, the one with the oldest data first."""
        entries = (self._entries[producer_id] for _, producer_id in sorted(self._ongoing.items()))
        return [
            OpenTransaction(e.producer_id, e.epoch, e.transaction_first_offset, e.last_timestamp_ms)
            for e in entries
        ]

    def start_verification(
        self,
        *,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> Verification | None:
        """
        Return the guard to show when the batch is appended; None if its transaction is open.

        In between the coordinator is asked (``UnifiedLog.maybeStartTransactionVerification``).

        Raises:
            InvalidProducerEpochError: the epoch is below the known one.

        """
        self.check_epoch(producer_id, epoch)
        if self._has_open(producer_id, epoch):
            return None
        return self._verifications.start(
            producer_id,
            epoch,
            first_sequence,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def check_verified(
        self,
        *,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        guard: Verification | None,
    ) -> None:
        """
        Decide whether a transactional batch may enter, before :meth:`check` decides on its numbers.

        Raises:
            InvalidProducerEpochError: the epoch is below the known one.
            InvalidTransactionStateError: its transaction is not open, and `guard` is not that of
                a question that is still open.
            OutOfOrderSequenceError: another batch asked first, or the first batch of a new
                transaction of version 2 does not have sequence 0.

        """
        entry = self._entries.get(producer_id)
        is_known = entry is not None and entry.epoch == epoch
        if is_known and entry is not None and entry.is_in_transaction:
            return
        if is_known and entry is not None and entry.duplicate_of(first_sequence, last_sequence):
            return
        self.check_epoch(producer_id, epoch)
        verification = self._verifications.get(producer_id)
        if verification is None or verification is not guard:
            raise InvalidTransactionStateError(
                f"producer {producer_id} has no transaction open that the coordinator knows of"
            )
        if first_sequence < 0:
            return  # a coordinator's batch
        has_batches = entry is not None and bool(entry.recent)
        if verification.supports_epoch_bump and first_sequence != 0 and not has_batches:
            raise OutOfOrderSequenceError(
                f"producer {producer_id} starts with sequence {first_sequence} instead of 0"
            )
        if first_sequence > verification.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"producer {producer_id} sent sequence {first_sequence}, but was asking for "
                f"{verification.lowest_sequence} first"
            )

    def _has_open(self, producer_id: int, epoch: int) -> bool:
        entry = self._entries.get(producer_id)
        return entry is not None and entry.is_in_transaction and entry.epoch == epoch

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise InvalidProducerEpochError if a newer instance of the producer has written."""
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} has epoch {epoch}, a newer one has {entry.epoch}"
            )

    def check_marker(
        self, *, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0
    ) -> None:
        """
        Decide on a marker that a transaction coordinator wants to append.

        From version 2 on a marker's epoch is above that of the data; the same epoch again is a
        retry, and taken while no transaction is open.

        Raises InvalidProducerEpochError or TransactionCoordinatorFencedError if the epoch of the
        producer or of the coordinator is below the known one, or below none (-1). Nothing is known
        of a producer whose id is negative, and all is taken.
        """
        if producer_id < 0:
            return
        entry = self._entries.get(producer_id) or ProducerEntry(producer_id)
        is_late = epoch < entry.epoch or (
            transaction_version >= _EPOCH_PER_TRANSACTION
            and epoch == entry.epoch
            and entry.is_in_transaction
            and epoch != _EPOCH_MAX
        )
        if is_late:
            raise InvalidProducerEpochError(
                f"marker for epoch {epoch} of producer {producer_id}, which has {entry.epoch}"
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"marker of coordinator epoch {coordinator_epoch} for producer {producer_id}, "
                f"which has seen {entry.coordinator_epoch}"
            )

    def append_marker(
        self,
        *,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp_ms: int,
        is_abort: bool,
    ) -> CompletedTransaction | None:
        """Take note of a marker in the log; return what it ended, None if no data was written."""
        self._verifications.end_at_marker(producer_id, epoch)
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._add(ProducerEntry(producer_id, epoch))
        elif epoch != entry.epoch:
            entry.epoch = epoch
            entry.recent.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        first_offset, entry.transaction_first_offset = entry.transaction_first_offset, NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        if self.tracks_replication:
            self._unreplicated[first_offset] = offset
        last_stable_offset = min(self._ongoing, default=offset + 1)
        return CompletedTransaction(producer_id, first_offset, offset, is_abort, last_stable_offset)

    def append_marker_batch(self, data: Buffer) -> list[CompletedTransaction]:
        """
        Take note of the markers in a control batch of the log; return what they ended.

        Raises CorruptRecordError.
        """
        header = RecordBatch(memoryview(data), memoryview(data).nbytes)
        completed: list[CompletedTransaction] = []
        for record in decode_records(data):
            marker = decode_marker(record)
            if marker is None:
                continue
            transaction = self.append_marker(
                producer_id=header.producer_id,
                epoch=header.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                offset=record.offset,
                timestamp_ms=record.timestamp_ms,
                is_abort=marker.is_abort,
            )
            if transaction is not None:
                completed.append(transaction)
        return completed

    def first_unstable_offset(self, default: int) -> int:
        """Return where the oldest transaction starts that may still change, or `default`."""
        if not self._ongoing and not self._unreplicated:
            return default
        return min((*self._ongoing, *self._unreplicated))

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Let go of ended transactions whose marker is below the high watermark."""
        for first_offset, marker_offset in list(self._unreplicated.items()):
            if marker_offset < high_watermark:
                del self._unreplicated[first_offset]

    # life

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> int:
        """Forget producers that were silent for `expiration_ms` and have no open transaction."""
        silent = [
            entry.producer_id
            for entry in self._entries.values()
            if not entry.is_in_transaction and now_ms - entry.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in silent:
            del self._entries[producer_id]
        self._verifications.expire(now_ms, expiration_ms)
        return len(silent)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def start_over(self) -> None:
        """Be as new: also the order of a snapshot does not tell of former producers."""
        self.clear()
        self._verifications.clear()
        self._table_size = 16

    def snapshot(self, fs: FileSystem, path: str, *, sync: bool = True) -> None:
        """Write the state to a file; name it after the next offset with :func:`snapshot_name`."""
        write_file(fs, path, self.encoded(), sync=sync)

    def encoded(self) -> bytes:
        """Return what a snapshot of the state holds."""
        return encode_snapshot(self._in_java_order())

    def load(
        self,
        fs: FileSystem,
        path: str,
        *,
        now_ms: int | None = None,
        expiration_ms: int = EXPIRATION_MS,
    ) -> None:
        """
        Replace the state by that of a snapshot file; given `now_ms`, without those who expired.

        Raises CorruptFileError and leaves the state as it was.
        """
        entries = read_snapshot(fs, path)
        self.clear()
        for row in entries:
            self._load_entry(row)
        if now_ms is not None:
            self.expire(now_ms, expiration_ms)

    def _add(self, entry: ProducerEntry) -> ProducerEntry:
        self._entries[entry.producer_id] = entry
        while len(self._entries) * 4 > self._table_size * 3:
            self._table_size *= 2
        return entry

    def _load_entry(self, row: ProducerSnapshotEntry) -> None:
        entry = self._add(
            ProducerEntry(
                row.producer_id,
                row.epoch,
                row.coordinator_epoch,
                row.timestamp_ms,
                max(row.transaction_first_offset, NO_OFFSET),
            )
        )
        if row.last_offset >= 0:
            first_sequence = row.last_sequence
            if first_sequence >= 0:
                first_sequence = (first_sequence - row.offset_delta) & SEQUENCE_MAX
            entry.recent.append(
                (first_sequence, row.last_sequence, row.last_offset, row.offset_delta,
                 row.timestamp_ms)
            )  # fmt: skip
        if entry.is_in_transaction:
            self._ongoing[entry.transaction_first_offset] = row.producer_id

    def _in_java_order(self) -> list[ProducerSnapshotEntry]:
        """
        Return the entries in the order in which Java's ``HashMap`` walks them.

        Buckets in order, of a table that grows at three quarters and never shrinks; in a bucket
        first come, first served. So snapshots are the broker's, byte for byte.
        """
        mask = self._table_size - 1
        rows: list[tuple[int, ProducerSnapshotEntry]] = []
        for entry in self._entries.values():
            producer_id = entry.producer_id
            code = (producer_id ^ (producer_id & 0xFFFF_FFFF_FFFF_FFFF) >> 32) & 0xFFFF_FFFF
            _, last_sequence, last_offset, offset_delta, _ = (
                entry.recent[-1] if entry.recent else (0, NO_SEQUENCE, NO_OFFSET, 0, 0)
            )
            row = ProducerSnapshotEntry(
                producer_id,
                entry.epoch,
                last_sequence,
                last_offset,
                offset_delta,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            rows.append(((code ^ code >> 16) & mask, row))
        rows.sort(key=lambda pair: pair[0])
        return [row for _, row in rows]
