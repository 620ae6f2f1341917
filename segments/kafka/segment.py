"""
One Kafka segment: a ``.log`` of record batches with its offset, time and transaction index.

Kafka's class of the same noun is ``LogSegment``. The indexes are folds over the ``.log``: they
carry no checksum and are rebuilt after an unclean stop.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from logstore.errors import CorruptEntryError, OffsetError, WriteFailedError
from logstore.host import Host
from logstore.recovery import Recovery
from logstore.segment import Draft, Extent, LogSegment
from logstore.segments.kafka.batch_walk import is_cut_at, parse_entry, walk_batches, walk_spans
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)
from logstore.segments.kafka.sparse_index import TEMPORARY_SUFFIXES
from logstore.segments.kafka.time_index import TimeIndex, TimestampedOffset
from logstore.segments.kafka.transaction_index import EXTENSION as TRANSACTION_INDEX
from logstore.segments.kafka.transaction_index import TransactionIndex

if TYPE_CHECKING:
    from logstore.segments.kafka.recovery_witness import RecoveryWitness

_log = logging.getLogger(__name__)
RELATIVE_OFFSET_MAX = 2**31 - 1
_NOWHERE = 2**63 - 1
_pack_stamp = struct.Struct(">qii").pack_into  # base offset, length, leader epoch


class KafkaSegment(LogSegment[RecordBatch]):
    """
    Record batches from `base_offset` on.

    With `keeps_good_prefix` a recovery that meets offsets that no index can take keeps what stands
    before them; without, as Kafka, nothing of the segment.
    """

    may_skip_offsets: ClassVar[bool] = True
    unread_bytes: int = 0  #: behind the end of a log that is only read: no whole batch
    #: where a walk ended before the end of the log, and whether only the end of a batch is missing
    _damaged: tuple[int, bool] = (-1, False)

    def __init__(
        self,
        host: Host,
        path: str,
        base_offset: int,
        config: LogConfig,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        transaction_index: TransactionIndex | None = None,
    ) -> None:
        super().__init__(host.fs, path, base_offset)
        self._clock = host.clock
        self.config = config
        self.offset_index = offset_index
        self.time_index = time_index
        self.transaction_index = transaction_index or TransactionIndex(
            host.fs, path.removesuffix(".log") + TRANSACTION_INDEX, base_offset
        )
        self.keeps_good_prefix = False
        self.created_ms = 0
        self.jitter_ms = 0
        self.witness: RecoveryWitness | None = None
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._first_timestamp_ms: int | None = None
        self._bytes_since_index_entry = 0
        self._is_index_full = False
        # Where the newest batch stands: consumers at the tail ask for it again and again.
        self._newest_base_offset = _NOWHERE
        self._newest_position = 0

    # opening

    def load_times(self) -> None:
        """Take the largest timestamp from the time index (Kafka: ``readMaxTimestampSoFar``)."""
        timestamp_ms, offset = self.time_index.last_entry
        self.max_timestamp_ms, self.max_timestamp_offset = timestamp_ms, offset

    def load_end(self, *, is_lenient: bool = False) -> None:
        """
        Find where a cleanly closed segment ends: walk on from its last index entry.

        With `is_lenient` it ends before a batch that is cut short, as in a directory that a broker
        is writing to right now. Otherwise such a batch raises CorruptEntryError.
        """
        self.end_position = self.file.size()
        self.next_offset = self.base_offset
        position = self.offset_index.last_entry[1]
        if not 0 <= position <= self.end_position or next(self._spans(position), None) is None:
            position = 0  # the index lies, or leads to damage; the walk takes longer without it
        for base_offset, start, size_bytes, last_delta in self._spans(position):
            self.next_offset = base_offset + last_delta + 1
            position = start + size_bytes
        if position != self.end_position and not is_lenient:
            raise CorruptEntryError(
                self.path,
                position,
                "a batch is cut short although the last stop was clean; remove "
                ".kafka_cleanshutdown to have the log recovered",
            )
        self.unread_bytes, self.end_position = self.end_position - position, position
        self.recovery_point = self.next_offset

    def _spans(self, position: int) -> Iterator[tuple[int, int, int, int]]:
        return walk_spans(self.file, max(0, position), self.end_position)  # an index may lie

    # what the core asks of a layout

    def locate(self, offset: int) -> int:
        """Return the position of the batch that holds `offset`: index entry, then a short walk."""
        if offset >= self.next_offset:
            return self.end_position
        if offset >= self._newest_base_offset:
            return self._newest_position
        position = self.offset_index.lookup(offset)[1]
        for base_offset, start, size_bytes, last_delta in self._spans(position):
            if base_offset + last_delta >= offset:
                return start
            position = start + size_bytes
        self._damaged = position, is_cut_at(self.file, position, self.end_position)
        return min(position, self.end_position)  # where damage ends the walk, for a reader to see

    def decode(self, position: int) -> RecordBatch | None:
        """Return the batch at `position`, its CRC checked; None at the end of the file."""
        header = self.file.read(position, HEADER_BYTES)
        if not header:
            return None
        size_bytes = batch_size_bytes(header) if len(header) == HEADER_BYTES else 0
        size_bytes = min(size_bytes, self.file.size() - position)
        data = self.file.read(position, max(size_bytes, HEADER_BYTES))
        try:
            return parse_entry(memoryview(data), 0, self.path)
        except CorruptEntryError as error:
            raise CorruptEntryError(self.path, position, error.reason) from None

    def has_room_for(self, draft: Draft[RecordBatch]) -> bool:
        """Apply every roll rule of Kafka's ``LogSegment.shouldRoll``."""
        position, config = self.end_position, self.config
        if position + draft.size_bytes > config.segment_bytes or self._is_index_full:
            return False
        if self.next_offset + draft.offset_count - 1 - self.base_offset > RELATIVE_OFFSET_MAX:
            return False
        if position == 0:
            return True
        first_ms = self._first_timestamp_ms
        if first_ms is not None and first_ms >= 0:
            # Data is measured by its own time, not by when it came.
            age_ms = draft.max_timestamp_ms - first_ms
            return age_ms <= config.segment_ms_max - self.jitter_ms
        return not self._is_aged(draft.max_timestamp_ms)

    def _is_aged(self, timestamp_ms: int) -> bool:
        first_ms = self._first_timestamp_ms
        if first_ms is None:
            first_ms = self._load_first_timestamp()
        if first_ms >= 0:
            waited_ms = timestamp_ms - first_ms
        else:
            waited_ms = self._clock.wall_ms() - self.created_ms
        return waited_ms > self.config.segment_ms_max - self.jitter_ms

    def _load_first_timestamp(self) -> int:
        batch = self.decode(0)
        self._first_timestamp_ms = NO_TIMESTAMP if batch is None else batch.max_timestamp_ms
        return self._first_timestamp_ms

    def append(self, entry: RecordBatch) -> int:
        """Append as any segment does; the usual case in one step, it is the broker's hot path."""
        start = entry.base_offset
        file = self._file
        if file is None or self._is_unsettled or start < self.next_offset:
            return super().append(entry)
        position = self.end_position
        try:
            file.write(position, entry.data)
        except OSError as error:
            self._undo_write(position, error)
        self.end_position = position + entry.size_bytes
        self.next_offset = start + entry.last_offset_delta + 1
        self.observe(entry, position)
        return position

    def append_usual(
        self, data: memoryview, last_delta: int, timestamp_ms: int, leader_epoch: int
    ) -> int:
        """
        Stamp and append a usual batch (:mod:`~logstore.segments.kafka.usual_batch`) in one step.

        Returns its base offset; -1, and nothing was done, where the segment may have to roll or to
        be looked at. What `has_room_for`, `append` and `observe` do of it stands here once more,
        because calls are what small appends cost.

        Raises:
            WriteFailedError: the disk refused; the segment is as it was before.

        """
        config, file, start = self.config, self._file, self.next_offset
        position, size_bytes = self.end_position, len(data)
        first_ms = self._first_timestamp_ms
        if (
            position + size_bytes > config.segment_bytes
            or first_ms is None
            or not first_ms >= 0
            or timestamp_ms - first_ms > config.segment_ms_max - self.jitter_ms
            or start + last_delta - self.base_offset > RELATIVE_OFFSET_MAX
            or position == 0
            or file is None
            or self._is_index_full
            or self._is_unsettled
        ):
            return -1
        _pack_stamp(data, 0, start, size_bytes - PREFIX_BYTES, leader_epoch)
        try:
            file.write(position, data)
        except OSError as error:
            self._undo_write(position, error)
        self.end_position = position + size_bytes
        self.next_offset = start + last_delta + 1
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms, self.max_timestamp_offset = timestamp_ms, start + last_delta
        if self._bytes_since_index_entry > config.index_interval_bytes:
            self._index(start + last_delta, position)
        self._bytes_since_index_entry += size_bytes
        self._newest_base_offset, self._newest_position = start, position
        return start

    def observe(self, entry: RecordBatch, position: int) -> None:
        """Fold one batch into both indexes (Kafka: the second half of ``LogSegment.append``)."""
        timestamp_ms = entry.max_timestamp_ms
        if position == 0:
            self._first_timestamp_ms = timestamp_ms
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = entry.last_offset
        if self._bytes_since_index_entry > self.config.index_interval_bytes:
            self._index(entry.last_offset, position)
        self._bytes_since_index_entry += entry.size_bytes
        self._newest_base_offset = entry.base_offset
        self._newest_position = position

    def _index(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset)
        self._bytes_since_index_entry = 0
        self._is_index_full = self.offset_index.is_full or self.time_index.is_full

    def forget(self, offset: int) -> None:
        """Cut the indexes back and count index intervals anew (``LogSegment.truncateTo``)."""
        self._damaged = (-1, False)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._bytes_since_index_entry = 0
        self._is_index_full = False
        self._newest_base_offset = _NOWHERE
        if self.end_position == 0:
            self._first_timestamp_ms = None
        self.find_times()

    def find_times(self) -> None:
        """
        Find the largest timestamp where the time index may lack its last entry.

        So it is after a truncation, and where a power loss took what was not synced of the index.
        (Kafka: ``readLargestTimestamp``.)
        """
        self.load_times()
        position = self.offset_index.lookup(self.max_timestamp_offset)[1]
        try:
            for batch in self.entries(position, is_checked=False):
                if batch.max_timestamp_ms > self.max_timestamp_ms:
                    self.max_timestamp_ms = batch.max_timestamp_ms
                    self.max_timestamp_offset = batch.last_offset
        except CorruptEntryError:
            return  # for recovery to judge, or for whoever reads there

    def save_times(self) -> None:
        """Give a sealed time index the last entry that it lacks, durably."""
        index = self.time_index
        if self.max_timestamp_ms <= index.last_entry[0]:
            return
        index.resume()
        try:
            index.maybe_append(
                self.max_timestamp_ms, self.max_timestamp_offset, skip_full_check=True
            )
        except OffsetError as error:  # garbage, which Kafka leaves as it is, too
            _log.warning("%s", error)
        index.seal()
        index.flush(sync=True)

    def reset_observations(self) -> None:
        """Empty the indexes before a recovery fills them."""
        self._damaged = (-1, False)
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self.max_timestamp_ms, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._first_timestamp_ms = None
        self._bytes_since_index_entry = 0
        self._is_index_full = False
        self._newest_base_offset = _NOWHERE

    def sync_observations(self) -> None:
        """Write and sync the indexes."""
        self.offset_index.flush(sync=True)
        self.time_index.flush(sync=True)
        self.transaction_index.flush()

    def largest_timestamp_ms(self) -> int:
        """Return the largest timestamp in the segment, or when it was last written."""
        if self.max_timestamp_ms >= 0:
            return self.max_timestamp_ms
        return super().largest_timestamp_ms()

    # what follows from it, at Kafka's granularity

    def entries(self, position: int = 0, *, is_checked: bool = True) -> Iterator[RecordBatch]:
        """
        Yield every batch from `position` on.

        CRCs are checked unless `is_checked` is False; CorruptEntryError at a bad batch.
        """
        if self.end_position == 0 and not self.is_writable:
            return iter(())  # there may be no file at all
        return walk_batches(self.file, self.path, position, is_checked=is_checked)

    def read_batches(
        self, offset: int, size_bytes_max: int, *, end_position: int, is_first_whole: bool
    ) -> Extent:
        """
        Return the bytes from the batch that holds `offset` on, never past `end_position`.

        With `is_first_whole` the first batch is there in full, however large it is; without, there
        is nothing where it does not fit (fetch version 3 on). What is cut short counts as the end,
        a length that can be none is a CorruptEntryError (``FileLogInputStream.nextBatch``).
        """
        available = end_position - (position := self.locate(offset))
        if position == self._damaged[0] and available > 0:
            if not self._damaged[1]:
                raise CorruptEntryError(self.path, position, "the length of a batch can be none")
            available = 0
        size_bytes = min(available, size_bytes_max)
        if size_bytes < available:
            first_bytes = batch_size_bytes(self.file.read(position, 12))
            if first_bytes > size_bytes:
                size_bytes = first_bytes if is_first_whole else 0
        return Extent(self.file, position, max(0, min(size_bytes, available)))

    def find_timestamp(self, timestamp_ms: int, start_offset: int) -> TimestampedOffset | None:
        """
        Return the first record at or above `start_offset` that is at least that young.

        Source: ``LogSegment.findOffsetByTimestamp``.
        """
        indexed_offset = self.time_index.lookup(timestamp_ms)[1]
        position = self.offset_index.lookup(max(indexed_offset, start_offset))[1]
        for batch in self.entries(position):
            if batch.max_timestamp_ms < timestamp_ms or batch.last_offset < start_offset:
                continue
            for record in decode_records(batch.data):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return TimestampedOffset(record.timestamp_ms, record.offset, batch.leader_epoch)
        return None

    def offset_for_timestamp(self, timestamp_ms: int) -> int | None:
        """Return the first offset whose record is at least that young."""
        found = self.find_timestamp(timestamp_ms, self.base_offset)
        return None if found is None else found.offset

    def scan(self) -> None:
        """
        Observe every batch, as the core does, and show it to the witness.

        A base offset lies outside of the CRC. As Kafka, one that is too high is put up with where
        the next batch shows that it is wrong. One that is too low is not: torn writes leave those,
        and so do old batches in the wrong place.
        """
        witness, path = self.witness, self.path
        position, next_offset = self.end_position, self.next_offset
        expected = next_offset  # where the next batch starts if the last one's offset is wrong
        offset_max = self.base_offset + RELATIVE_OFFSET_MAX
        for batch in walk_batches(self.file, path, position):
            if batch.base_offset < next_offset:
                if batch.base_offset != expected:
                    reason = f"offset {batch.base_offset} goes back below {next_offset}"
                    raise CorruptEntryError(path, position, reason)
                _log.warning(
                    "%s: the batch before position %s ends at offset %s, but the one there starts"
                    " at %s: a base offset is wrong; kept, as Kafka does",
                    path, position, next_offset, expected,
                )  # fmt: skip
            if batch.last_offset > offset_max:
                raise CorruptEntryError(path, position, f"offset {batch.last_offset} is too far")
            self._observe_found(batch, position)
            expected = next_offset + batch.offset_count
            self.end_position = position = position + batch.size_bytes
            self.next_offset = next_offset = batch.next_offset
            if witness is not None:
                witness.see(self, batch)

    def _observe_found(self, batch: RecordBatch, position: int) -> None:
        """
        Observe a batch of a recovery.

        Raises:
            CorruptEntryError: its offsets do not fit into an index; as Kafka, nothing of the
                segment is part of the log then, unless it keeps a good prefix.

        """
        try:
            self.observe(batch, position)
        except OffsetError as error:
            if self.keeps_good_prefix:
                self.forget(self.next_offset)
            else:
                self.reset_observations()
                self.next_offset, self.end_position = self.base_offset, 0
                if self.witness is not None:
                    self.witness.begin(self)  # what it saw is not in the log
            raise CorruptEntryError(self.path, position, str(error)) from error

    def recover(self) -> Recovery:
        """Check every batch and rebuild the indexes (``LogSegment.recover``)."""
        is_active = self.offset_index.is_active
        self.resume()
        if self.witness is not None:
            self.witness.begin(self)
        outcome = super().recover()
        self.transaction_index.flush()  # written anew: below the recovery point nobody else syncs
        self.time_index.maybe_append(
            self.max_timestamp_ms, self.max_timestamp_offset, skip_full_check=True
        )
        if self.witness is not None:
            self.witness.end(self)
        if not is_active:
            self.seal()
        return outcome

    def seal(self) -> None:
        """Finish: last time entry, indexes trimmed (``onBecomeInactiveSegment``)."""
        self.time_index.maybe_append(
            self.max_timestamp_ms, self.max_timestamp_offset, skip_full_check=True
        )
        try:
            self.offset_index.seal()
            self.time_index.seal()
        except OSError as error:
            raise WriteFailedError(
                f"{self.path}: the indexes could not be written: {error.strerror or error}"
            ) from error

    def resume(self) -> None:
        """Make a sealed segment the active one again: its indexes take entries."""
        self.offset_index.resume()
        self.time_index.resume()
        self._is_index_full = self.offset_index.is_full or self.time_index.is_full

    def reach(self, next_offset: int) -> None:
        """Say that the segment ends at `next_offset`: a hole is behind its last batch."""
        self.next_offset = self.recovery_point = next_offset
        self._newest_base_offset = _NOWHERE

    def rename(self, ending: str) -> None:
        """Give all files `ending` behind their names, instead of a temporary one they have."""
        path = self.path
        for temporary in TEMPORARY_SUFFIXES:
            path = path.removesuffix(temporary)
        if path + ending != self.path:
            self.fs.rename(self.path, path + ending)
        self.path = path + ending
        self._file = None
        self.offset_index.rename(ending)
        self.time_index.rename(ending)
        self.transaction_index.rename(ending)

    def close(self) -> None:
        """Give all handles back."""
        super().close()
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
