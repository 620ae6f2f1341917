"""
What stands beside the logs of a partition, as bytes, folded from the logs alone.

The same bytes that a broker writes which appends one batch at a time and is never restarted: a
restart counts the index interval from zero and may begin a leader epoch without a record.

Source: ``LogSegment.append``, ``LogSegment.recover``, ``ProducerStateManager``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import attrs

from logstore.host import FileSystem
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.record_batch import MAGIC, RecordBatch
from logstore.segments.kafka.segment_files import INDEX, LOG, TIME_INDEX, offset_file_name
from logstore.segments.kafka.transaction_index import EXTENSION as TRANSACTION_INDEX

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_TRANSACTION_ENTRY = struct.Struct(">hqqqq")
_TRANSACTION_VERSION = 0
_NO_EPOCHS = b"0\n0\n"


@attrs.frozen
class DerivedFile:
    """One file beside the logs, and all that it must hold."""

    name: str
    content: bytes

    @property
    def is_needed(self) -> bool:
        """Tell whether a log is incomplete without it: most have no aborted transactions."""
        if self.name == LEADER_EPOCHS:
            return not self.content.startswith(_NO_EPOCHS)
        return bool(self.content) or not self.name.endswith(TRANSACTION_INDEX)


@attrs.define
class SegmentFold:
    """The three indexes of one segment."""

    base_offset: int
    index_interval_bytes: int
    _offsets: bytearray = attrs.field(factory=bytearray)
    _times: bytearray = attrs.field(factory=bytearray)
    _aborted: bytearray = attrs.field(factory=bytearray)
    _position: int = 0
    _bytes_since_entry: int = 0
    _newest_ms: int = -1
    _newest_offset: int = -1
    _indexed_ms: int = -1

    def take(self, batch: RecordBatch) -> None:
        """Take the next batch."""
        if batch.max_timestamp_ms > self._newest_ms:
            self._newest_ms, self._newest_offset = batch.max_timestamp_ms, batch.last_offset
        if self._bytes_since_entry > self.index_interval_bytes:
            relative = batch.last_offset - self.base_offset
            self._offsets += _OFFSET_ENTRY.pack(relative, self._position)
            self._index_time()
            self._bytes_since_entry = 0
        self._bytes_since_entry += batch.size_bytes
        self._position += batch.size_bytes

    def take_aborted(self, producer_id: int, first: int, last: int, stable: int) -> None:
        """Take an aborted transaction whose marker is in the segment."""
        self._aborted += _TRANSACTION_ENTRY.pack(
            _TRANSACTION_VERSION, producer_id, first, last, stable
        )

    def files(self) -> Iterator[DerivedFile]:
        """Yield the indexes once all batches are taken."""
        self._index_time()
        for extension, content in (
            (INDEX, self._offsets),
            (TIME_INDEX, self._times),
            (TRANSACTION_INDEX, self._aborted),
        ):
            yield DerivedFile(offset_file_name(self.base_offset, extension), bytes(content))

    def _index_time(self) -> None:
        if self._newest_ms > self._indexed_ms:
            self._times += _TIME_ENTRY.pack(self._newest_ms, self._newest_offset - self.base_offset)
            self._indexed_ms = self._newest_ms


class PartitionFold:
    """
    The derived files of a whole partition, batch by batch.

    A log that does not start at 0 goes on from the `states` that its first snapshot holds.
    """

    def __init__(
        self, index_interval_bytes: int, start_offset: int, states: ProducerStates
    ) -> None:
        self._interval_bytes = index_interval_bytes
        self._start_offset = start_offset
        self._states = states
        self._segment: SegmentFold | None = None
        self._epochs: list[tuple[int, int]] = []
        self._end_offset: int | None = None

    def begin(self, base_offset: int) -> Iterator[DerivedFile]:
        """Begin the next segment; yield what is finished by that."""
        if self._segment is not None:
            yield from self._segment.files()
            yield self._snapshot(base_offset)
        self._segment = SegmentFold(base_offset, self._interval_bytes)
        self._end_offset = base_offset if self._end_offset is None else self._end_offset

    def take(self, batch: RecordBatch) -> None:
        """Take the next batch. Raises CorruptRecordError at a marker that cannot be read."""
        segment = self._segment
        assert segment is not None, "a batch is in a segment"
        segment.take(batch)
        self._end_offset = batch.next_offset
        if batch.magic < MAGIC:
            self._epochs.clear()  # nobody could tell the epochs of what is before it
        elif batch.leader_epoch >= 0:
            self._note_epoch(batch.leader_epoch, batch.base_offset)
        if batch.producer_id < 0:
            return
        if batch.is_control:
            for ended in self._states.append_marker_batch(batch.data):
                if ended.is_aborted:
                    segment.take_aborted(
                        ended.producer_id,
                        ended.first_offset,
                        ended.last_offset,
                        ended.last_stable_offset,
                    )
            return
        self._states.append(
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            first_sequence=batch.base_sequence,
            last_sequence=batch.last_sequence,
            last_offset=batch.last_offset,
            offset_delta=batch.last_offset_delta,
            timestamp_ms=batch.max_timestamp_ms,
            is_transactional=batch.is_transactional,
        )

    def end(self) -> Iterator[DerivedFile]:
        """End the last segment; yield what is finished by that."""
        segment, end_offset = self._segment, self._end_offset
        if segment is None or end_offset is None:
            return
        yield from segment.files()
        if end_offset > self._start_offset:
            yield self._snapshot(end_offset)
        lines = [f"{epoch} {start}\n" for epoch, start in self._epochs]
        text = f"0\n{len(lines)}\n{''.join(lines)}"
        yield DerivedFile(LEADER_EPOCHS, text.encode())

    def _snapshot(self, offset: int) -> DerivedFile:
        return DerivedFile(snapshot_name(offset), self._states.encoded())

    def _note_epoch(self, epoch: int, offset: int) -> None:
        offset = max(offset, self._start_offset)
        if not self._epochs or epoch > self._epochs[-1][0]:
            if self._epochs and self._epochs[-1][1] == offset:
                self._epochs.pop()  # all of it is below the log start
            self._epochs.append((epoch, offset))


def derive_files(
    fs: FileSystem,
    directory: str,
    bases: list[int],
    fold: PartitionFold,
    note: Callable[[int], None],
) -> Iterator[DerivedFile]:
    """
    Yield every derived file of the partition's logs; `note` is told how many more bytes are done.

    Raises:
        CorruptEntryError: a batch is damaged; nothing is known of what is behind it.
        CorruptRecordError: a transaction marker cannot be read.

    """
    for base in bases:
        yield from fold.begin(base)
        path = f"{directory}/{offset_file_name(base, LOG)}"
        file = fs.open(path, writable=False)
        try:
            for batch in walk_batches(file, path):
                fold.take(batch)
                note(batch.size_bytes)
        finally:
            file.close()
    yield from fold.end()
