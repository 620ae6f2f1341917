"""
A bundle held against itself: every batch, and every entry of what is derived from the batches.

Damage is told with file and position. Base offset and leader epoch stand outside of a batch's CRC;
they are held against the batches around them, the leader epochs, and the sum in the manifest.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import attrs

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.producer_snapshot import read_snapshot
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.remote.lineage import Epochs, read_epochs
from logstore.segments.kafka.remote.object_names import INDEX_BYTES_MAX, ObjectKind
from logstore.segments.kafka.remote.segment_metadata import SegmentMetadata
from logstore.segments.kafka.sparse_index import SparseIndex
from logstore.segments.kafka.time_index import TimeIndex
from logstore.segments.kafka.transaction_index import TransactionIndex


def _longs() -> array[int]:
    return array("q")


@attrs.frozen
class BatchTable:
    """Every batch of a log, a row each; markers by their offset with their producer."""

    positions: array[int] = attrs.field(factory=_longs)
    last_offsets: array[int] = attrs.field(factory=_longs)
    max_timestamps_ms: array[int] = attrs.field(factory=_longs)
    markers: dict[int, int] = attrs.field(factory=dict[int, int])

    def row_of(self, offset: int) -> int | None:
        """Return the row of the first batch that reaches to `offset`, None behind the last."""
        row = bisect_left(self.last_offsets, offset)
        return row if row < len(self.last_offsets) else None


@attrs.frozen
class Bundle:
    """
    The files of one segment, remote or local, complete or not.

    `names` are what errors call them: those of the objects, wherever a copy is read.
    """

    fs: FileSystem
    paths: Mapping[ObjectKind, str]
    names: Mapping[ObjectKind, str]
    metadata: SegmentMetadata

    def check(self) -> None:
        """
        Hold everything that is there against everything else.

        Raises:
            CorruptEntryError: a batch or an index entry is wrong.
            CorruptFileError: a file is, as a whole.

        """
        epochs = self.metadata.leader_epochs
        if ObjectKind.LEADER_EPOCHS in self.paths:
            with self._named(ObjectKind.LEADER_EPOCHS) as path:
                epochs = read_epochs(self.fs, path)
        table = self.check_log(epochs)
        checks = {
            ObjectKind.OFFSET_INDEX: self._check_offset_index,
            ObjectKind.TIME_INDEX: self._check_time_index,
            ObjectKind.TRANSACTION_INDEX: self._check_transaction_index,
            ObjectKind.PRODUCER_SNAPSHOT: self._check_producer_snapshot,
        }
        for kind, check in checks.items():
            if kind in self.paths:
                with self._named(kind) as path:
                    check(path, table)

    @contextmanager
    def _named(self, kind: ObjectKind) -> Generator[str]:
        """Give the path of a file; errors about it call it by its name."""
        try:
            yield self.paths[kind]
        except CorruptFileError as error:
            raise CorruptFileError(self.names[kind], error.reason) from None

    def check_log(self, epochs: Epochs = ()) -> BatchTable:
        """Check every batch, also against the epochs if there are any; return all of them."""
        metadata, name = self.metadata, self.names[ObjectKind.LOG]
        file = self.fs.open(self.paths[ObjectKind.LOG], writable=False)
        try:
            if file.size() != metadata.size_bytes:
                raise CorruptFileError(
                    name, f"has {file.size()} bytes, {metadata.size_bytes} were copied"
                )
            table = BatchTable()
            position, next_offset = 0, metadata.start_offset
            for batch in walk_batches(file, name):
                self._check_place(batch, position, next_offset, epochs)
                table.positions.append(position)
                table.last_offsets.append(batch.last_offset)
                table.max_timestamps_ms.append(batch.max_timestamp_ms)
                if batch.is_control:
                    table.markers[batch.last_offset] = batch.producer_id
                position += batch.size_bytes
                next_offset = batch.next_offset
        finally:
            file.close()
        return table

    def _check_place(
        self, batch: RecordBatch, position: int, next_offset: int, epochs: Epochs
    ) -> None:
        """Check what a batch's CRC does not cover: its base offset and its leader epoch."""
        name = self.names[ObjectKind.LOG]
        if batch.base_offset < next_offset:
            raise CorruptEntryError(
                name, position, f"offset {batch.base_offset} goes back below {next_offset}"
            )
        if batch.last_offset > self.metadata.end_offset:
            raise CorruptEntryError(
                name,
                position,
                f"offset {batch.last_offset} is behind the segment's last, "
                f"{self.metadata.end_offset}",
            )
        slot = bisect_right(epochs, batch.base_offset, key=lambda entry: entry[1])
        if slot and batch.leader_epoch >= 0 and batch.leader_epoch != epochs[slot - 1][0]:
            raise CorruptEntryError(
                name,
                position,
                f"leader epoch {batch.leader_epoch}, but offset {batch.base_offset} is of "
                f"{epochs[slot - 1][0]}",
            )

    def _check_offset_index(self, path: str, table: BatchTable) -> None:
        """Every entry must lead to the batch that ends at its offset, and they must rise."""
        index = OffsetIndex.open(self.fs, path, self.metadata.start_offset, INDEX_BYTES_MAX)
        _check_length(index)
        before = -1
        for slot, (offset, position) in enumerate(index.entries()):
            row = table.row_of(offset)
            is_true = (
                row is not None
                and row > before
                and table.positions[row] == position
                and table.last_offsets[row] == offset
            )
            if row is None or not is_true:
                raise CorruptEntryError(
                    self.names[ObjectKind.OFFSET_INDEX],
                    slot * OffsetIndex.ENTRY.size,
                    f"leads to position {position} for offset {offset}; no batch that ends with "
                    "that offset starts there",
                )
            before = row

    def _check_time_index(self, path: str, table: BatchTable) -> None:
        """Every entry must be the timestamp of the batch that it leads to, and they must rise."""
        index = TimeIndex.open(self.fs, path, self.metadata.start_offset, INDEX_BYTES_MAX)
        _check_length(index)
        before_ms = -2
        for slot, (timestamp_ms, offset) in enumerate(index.entries()):
            row = table.row_of(offset)
            is_true = row is not None and table.max_timestamps_ms[row] == timestamp_ms
            if not is_true or timestamp_ms <= before_ms:
                raise CorruptEntryError(
                    self.names[ObjectKind.TIME_INDEX],
                    slot * TimeIndex.ENTRY.size,
                    f"says {timestamp_ms} of offset {offset}; the batch there says otherwise",
                )
            before_ms = timestamp_ms

    def _check_transaction_index(self, path: str, table: BatchTable) -> None:
        """Every entry must be of a marker in the log."""
        index = TransactionIndex(self.fs, path, self.metadata.start_offset)
        count = 0
        for count, entry in enumerate(index.entries(), 1):
            if table.markers.get(entry.last_offset) != entry.producer_id:
                raise CorruptEntryError(
                    self.names[ObjectKind.TRANSACTION_INDEX],
                    (count - 1) * TransactionIndex.ENTRY_BYTES,
                    f"producer {entry.producer_id} has no marker at offset {entry.last_offset}",
                )
        size_bytes = len(read_file(self.fs, path))
        if size_bytes != count * TransactionIndex.ENTRY_BYTES:
            raise CorruptFileError(path, f"{size_bytes} bytes are no whole number of entries")

    def _check_producer_snapshot(self, path: str, table: BatchTable) -> None:
        """Its own sum must fit, and nobody may have written behind the segment's end."""
        del table
        for entry in read_snapshot(self.fs, path):
            if entry.last_offset > self.metadata.end_offset:
                raise CorruptFileError(
                    path,
                    f"producer {entry.producer_id} wrote at {entry.last_offset}, behind the "
                    f"segment's last offset, {self.metadata.end_offset}",
                )


def _check_length(index: SparseIndex) -> None:
    """Raise CorruptFileError where an index ends inside of an entry."""
    if index.size_bytes % index.ENTRY.size:
        raise CorruptFileError(
            index.path,
            f"{index.size_bytes} bytes are no whole number of {index.ENTRY.size}-byte entries",
        )
