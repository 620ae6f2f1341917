"""
One tiered partition read in place: by offset and by time, with ranged reads, no segment as a whole.

Indexes are small; they are read once and kept, the ones used last, in a cache. Of a ``.log`` only
what is asked for is read, and its CRCs are checked.

Source: ``RemoteLogManager.read``, ``RemoteIndexCache``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError, OffsetOutOfRangeError
from logstore.host import read_file
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.record_times import TimedOffset, first_at_or_after
from logstore.segments.kafka.remote.copying import check_sum
from logstore.segments.kafka.remote.lineage import Epochs, Link, chain, newest
from logstore.segments.kafka.remote.object_names import (
    INDEX_BYTES_MAX,
    ObjectKind,
    RemotePartition,
)
from logstore.segments.kafka.remote.segment_metadata import ObjectSum, SegmentMetadata
from logstore.segments.kafka.remote.storage import MissingObjectError, RemoteStorage
from logstore.segments.kafka.sparse_index import IndexCache
from logstore.segments.kafka.time_index import TimeIndex, TimestampedOffset
from logstore.segments.kafka.transaction_index import AbortedTransaction, TransactionIndex
from logstore.span import Span

#: how much of a log one request asks for, at least
READ_BYTES_MIN = 64 * 1024


class RemoteLog:
    """
    The log that the stored segments of one partition make up, as they were when it was opened.

    Raises, on opening:
        MissingObjectError: nothing is stored of the partition.
        MissingOffsetsError: there is a hole between two segments.
        CorruptFileError: a manifest, or what stands in for one, cannot be understood.
    """

    def __init__(self, storage: RemoteStorage, partition: RemotePartition) -> None:
        self.storage = storage
        self.partition = partition
        segments = storage.segments(partition)
        if not segments:
            raise MissingObjectError(f"{storage.directory(partition)}: no segment is stored")
        #: epochs of the whole log, as the newest segment knows them
        self.leader_epochs: Epochs = storage.leader_epochs(newest(segments))
        #: the segments in order, and from which offset on each is used
        self.links: list[Link] = chain(segments, self.leader_epochs)
        self._starts = [link.start_offset for link in self.links]
        self._cache = IndexCache()
        self._offsets: dict[str, OffsetIndex] = {}
        self._times: dict[str, TimeIndex] = {}

    @property
    def span(self) -> Span:
        """The offsets that are stored."""
        return Span(self.links[0].start_offset, self.links[-1].metadata.next_offset)

    # reading

    def fetch(self, offset: int, size_bytes_max: int) -> bytes:
        """
        Return whole batches from the one that holds `offset` on, within one segment.

        As many as fit into `size_bytes_max`, and at least one; nothing at the end of the log.

        Raises:
            OffsetOutOfRangeError: `offset` is not stored.
            CorruptEntryError: a batch is damaged, or an index leads astray.

        """
        pieces: list[bytes] = []
        size_bytes = 0
        segment: SegmentMetadata | None = None
        try:
            for metadata, batch in self._walk(offset, max(size_bytes_max, READ_BYTES_MIN)):
                segment = segment or metadata
                is_over = size_bytes + batch.size_bytes > size_bytes_max
                if pieces and (is_over or metadata is not segment):
                    break
                pieces.append(bytes(batch.data))
                size_bytes += batch.size_bytes
        except CorruptEntryError:
            if not pieces:  # otherwise whoever asks for the bad batch will know
                raise
        return b"".join(pieces)

    def batches(self, offset: int | None = None) -> Iterator[RecordBatch]:
        """Yield every batch from the one that holds `offset` on (default: the start)."""
        start = self.span.start if offset is None else offset
        for _, batch in self._walk(start, 1024 * 1024):
            yield batch

    def records(self, offset: int | None = None) -> Iterator[Record]:
        """Yield every record from `offset` on; markers are left out."""
        start = self.span.start if offset is None else offset
        for batch in self.batches(start):
            if not batch.is_control:
                yield from (r for r in decode_records(batch.data) if r.offset >= start)

    def find_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """
        Return the first record that is at least that young, None if there is none.

        Source: ``RemoteLogManager.findOffsetByTimestamp``.
        """
        for link in self.links:
            metadata = link.metadata
            if metadata.max_timestamp_ms < timestamp_ms:
                continue
            start = max(self._time_index(metadata).lookup(timestamp_ms)[1], link.start_offset)
            for owner, batch in self._walk(start, READ_BYTES_MIN):
                if owner is not metadata:
                    break
                if batch.max_timestamp_ms < timestamp_ms or batch.is_control:
                    continue
                found = self._first(metadata, batch, timestamp_ms, start)
                if found is not None:
                    return TimestampedOffset(found.timestamp_ms, found.offset, batch.leader_epoch)
        return None

    def aborted_transactions(self, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that reach into ``[offset, end_offset)``."""
        found: list[AbortedTransaction] = []
        for link in self.links[self._slot_of(offset) :]:
            metadata = link.metadata
            if metadata.is_transaction_index_empty:
                continue
            path = self._checked_path(metadata, ObjectKind.TRANSACTION_INDEX)
            index = TransactionIndex(self.storage.fs, path, metadata.start_offset)
            some, is_complete = index.collect(offset, end_offset)
            found += some
            if is_complete:
                break
        return found

    # how

    def _slot_of(self, offset: int) -> int:
        if not self.span.start <= offset <= self.span.end:
            raise OffsetOutOfRangeError(offset, self.span)
        return bisect_right(self._starts, offset) - 1

    def _walk(self, offset: int, step_bytes: int) -> Iterator[tuple[SegmentMetadata, RecordBatch]]:
        """Yield the batches from the one that holds `offset` on, with their segments."""
        for link in self.links[self._slot_of(offset) :]:
            metadata = link.metadata
            wanted = max(offset, link.start_offset)
            position = self._offset_index(metadata).lookup(wanted)[1]
            path = self.storage.path(metadata, ObjectKind.LOG)
            file = self.storage.fs.open(path, writable=False)
            try:
                is_first = True
                for batch in walk_batches(file, path, position, step_bytes=step_bytes):
                    if is_first and position and batch.base_offset > wanted:
                        raise CorruptEntryError(
                            path,
                            position,
                            f"the index leads here for offset {wanted}; a batch from "
                            f"{batch.base_offset} on starts here",
                        )
                    is_first = False
                    if batch.last_offset >= wanted:
                        yield metadata, batch
            finally:
                file.close()

    def _first(
        self, metadata: SegmentMetadata, batch: RecordBatch, timestamp_ms: int, start_offset: int
    ) -> TimedOffset | None:
        """Return the first record of a batch that is young enough."""
        try:
            return first_at_or_after(batch.data, timestamp_ms, start_offset)
        except CorruptRecordError as error:
            path = self.storage.path(metadata, ObjectKind.LOG)
            position = self._offset_index(metadata).lookup(batch.base_offset)[1]
            raise CorruptEntryError(
                path, position, f"the batch of offset {batch.base_offset}: {error}"
            ) from None

    def _checked_path(self, metadata: SegmentMetadata, kind: ObjectKind) -> str:
        """Return the path of an index whose sum, if it is known, is right."""
        path = self.storage.path(metadata, kind)
        expected = metadata.sums.get(kind)
        if expected is not None:
            data = read_file(self.storage.fs, path)
            check_sum(ObjectSum(len(data), crc32c(data)), expected, path)
        return path

    def _offset_index(self, metadata: SegmentMetadata) -> OffsetIndex:
        stem = metadata.segment.stem
        if stem not in self._offsets:
            path = self._checked_path(metadata, ObjectKind.OFFSET_INDEX)
            index = OffsetIndex.open(
                self.storage.fs, path, metadata.start_offset, INDEX_BYTES_MAX, cache=self._cache
            )
            index.sanity_check()
            self._offsets[stem] = index
        return self._offsets[stem]

    def _time_index(self, metadata: SegmentMetadata) -> TimeIndex:
        stem = metadata.segment.stem
        if stem not in self._times:
            path = self._checked_path(metadata, ObjectKind.TIME_INDEX)
            index = TimeIndex.open(
                self.storage.fs, path, metadata.start_offset, INDEX_BYTES_MAX, cache=self._cache
            )
            index.sanity_check()
            self._times[stem] = index
        return self._times[stem]
