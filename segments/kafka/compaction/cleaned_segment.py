"""A segment that is made of what a compaction keeps of others, until it takes their place."""

from __future__ import annotations

from collections.abc import Sequence

from logstore.errors import OffsetError
from logstore.segments.kafka.crash_leftovers import CLEANED
from logstore.segments.kafka.indexed_segment import RELATIVE_OFFSET_MAX
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.transaction_index import AbortedTransaction

_WRITE_BYTES = 1024 * 1024


class _Seen(RecordBatch):
    """What a segment observes of a batch, filled anew for each."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(bytes(HEADER_BYTES), HEADER_BYTES)


class CleanedSegment:
    """
    Takes batches in order and writes them in large pieces.

    Nothing of it counts before :meth:`finished` has returned and its files are renamed; a start
    removes what it finds.
    """

    def __init__(self, files: SegmentFiles, base_offset: int) -> None:
        self._files = files
        self._segment = files.create_cleaned(base_offset)
        self._pending: list[memoryview | bytes | bytearray] = []
        self._pending_bytes = 0

    def add(self, batch: RecordBatch) -> None:
        """
        Append a batch; its bytes are not copied before they are written.

        Raises:
            OffsetError: it is too far from the first one to be in the same segment.

        """
        segment = self._segment
        if batch.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise OffsetError(f"{segment.path}: offset {batch.last_offset} is too far")
        segment.observe(batch, segment.end_position)
        segment.end_position += batch.size_bytes
        segment.next_offset = batch.next_offset
        self._pending.append(batch.data)
        self._pending_bytes += batch.size_bytes
        if self._pending_bytes >= _WRITE_BYTES:
            self.write()

    def add_run(self, data: memoryview, rows: Sequence[Sequence[int]]) -> None:
        """
        Append all batches in `data`, at least one.

        `rows` are their places, sizes, base offsets, last offsets and largest timestamps.
        """
        segment, seen = self._segment, _Seen()
        if rows[3][-1] - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise OffsetError(f"{segment.path}: offset {rows[3][-1]} is too far")
        position, observe = segment.end_position, segment.observe
        for _, size_bytes, base_offset, last_offset, timestamp_ms in zip(*rows[:5], strict=True):
            seen.base_offset, seen.last_offset_delta = base_offset, last_offset - base_offset
            seen.size_bytes, seen.max_timestamp_ms = size_bytes, timestamp_ms
            observe(seen, position)
            position += size_bytes
        segment.end_position = position
        segment.next_offset = rows[3][-1] + 1
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= _WRITE_BYTES:
            self.write()

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """Take note of an aborted transaction whose marker is in the segment."""
        self._segment.transaction_index.append(transaction)

    def write(self) -> None:
        """Write what was added so far; its memory may be used again then."""
        if not self._pending:
            return
        position = self._segment.end_position - self._pending_bytes
        self._segment.file.write(position, b"".join(self._pending))
        self._pending.clear()
        self._pending_bytes = 0

    def finished(self, old: list[KafkaSegment]) -> KafkaSegment:
        """Return the segment, durable, as old as the last of `old` and covering them all."""
        segment, last = self._segment, old[-1]
        self.write()
        segment.seal()
        segment.flush()
        segment.fs.set_modified_ms(segment.path, segment.fs.modified_ms(last.path))
        segment.reach(last.next_offset)
        return segment

    def remove(self) -> None:
        """
        Remove what was written: the segments that it was made of stay.

        Not so once it is on its way into their place: then it may be all that is left of them.
        """
        segment = self._segment
        if not segment.path.endswith(CLEANED):
            return
        segment.close()
        for path in (
            segment.path,
            segment.offset_index.path,
            segment.time_index.path,
            segment.transaction_index.path,
        ):
            if segment.fs.exists(path):
                segment.fs.remove(path)
