"""
What a partition knows of each producer: its last batches, so that a retry is not written twice.

A producer numbers its records; a batch is taken if it continues the numbering, answered with its
old offsets if it is one of the last five, and refused otherwise. Numbers run from 0 to 2^31-1 and
start over. The state is a fold over the log, kept in snapshots so that opening a partition need
not read it all (:mod:`logstore.segments.kafka.producer_snapshot`).

Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry`` (KIP-98, KIP-360).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
from sortedcontainers import SortedDict

from logstore.errors import CorruptFileError, RejectedAppendError
from logstore.host import FileSystem, write_file
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.producer_snapshot import (
    ProducerSnapshotEntry,
    encode_snapshot,
    list_snapshots,
    read_snapshot,
    snapshot_name,
)
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch

if TYPE_CHECKING:
    from typing_extensions import Buffer

BATCHES_KEPT = 5
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_EPOCH = -1
NO_TIMESTAMP_MS = -1
EXPIRATION_MS = 86400000
_SEQUENCE_MASK = 0x7FFF_FFFF


class OutOfOrderSequenceError(RejectedAppendError):
    """A batch does not continue its producer's numbering, and is none of the last five."""


class InvalidProducerEpochError(RejectedAppendError):
    """A newer instance of the producer has written already."""


class InvalidTransactionStateError(RejectedAppendError):
    """A batch outside of transactions comes from a producer that has one open."""


class TransactionCoordinatorFencedError(RejectedAppendError):
    """A marker comes from a transaction coordinator that has a successor."""


@attrs.frozen
class ProducedBatch:
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


@attrs.frozen
class CompletedTransaction:
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
        self._ongoing: SortedDict[int, int] = SortedDict()  # first offset -> producer id
        self._unreplicated: SortedDict[int, int] = SortedDict()  # first offset -> marker's
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
            expected = (recent[-1][1] + 1) & _SEQUENCE_MASK if recent else 0
            if first_sequence != expected:
                for fields in recent:
                    if fields[0] == first_sequence and fields[1] == last_sequence:
                        return ProducedBatch(*fields)
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
        if is_transactional and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = last_offset - offset_delta
            self._ongoing[entry.transaction_first_offset] = producer_id

    # transactions

    def check_marker(self, *, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """
        Decide on a marker that a transaction coordinator wants to append.

        Raises InvalidProducerEpochError or TransactionCoordinatorFencedError if the epoch of the
        producer or of the coordinator is below the known one.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
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
        last_stable_offset = self._ongoing.peekitem(0)[0] if self._ongoing else offset + 1
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
        firsts = [
            transactions.peekitem(0)[0]
            for transactions in (self._ongoing, self._unreplicated)
            if transactions
        ]
        return min(firsts)

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
        return len(silent)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def snapshot(self, fs: FileSystem, path: str, *, sync: bool = True) -> None:
        """Write the state to a file; name it after the next offset with :func:`snapshot_name`."""
        write_file(fs, path, encode_snapshot(self._in_java_order()), sync=sync)

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

    def load_newest(
        self,
        fs: FileSystem,
        directory: str,
        end_offset: int,
        *,
        now_ms: int | None = None,
        expiration_ms: int = EXPIRATION_MS,
        remove_corrupt: bool = False,
    ) -> int | None:
        """
        Load the newest readable snapshot at or below `end_offset`; return its offset.

        None, and an empty state, if there is none. Corrupt ones are passed over, and removed if so
        asked, as Kafka does.
        """
        for offset in reversed(list_snapshots(fs, directory)):
            if offset > end_offset:
                continue
            path = f"{directory}/{snapshot_name(offset)}"
            try:
                self.load(fs, path, now_ms=now_ms, expiration_ms=expiration_ms)
            except CorruptFileError:
                if remove_corrupt:
                    fs.remove(path)
                continue
            return offset
        self.clear()
        return None

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
                first_sequence = (first_sequence - row.offset_delta) & _SEQUENCE_MASK
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
