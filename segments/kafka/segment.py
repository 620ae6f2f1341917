"""
One Kafka segment: a ``.log`` of record batches with its offset, time and transaction index.

Kafka's class of the same noun is ``LogSegment``. The indexes are folds over the ``.log``: they
carry no checksum and are rebuilt after an unclean stop.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NoReturn

from logstore.errors import CorruptEntryError, OffsetError, WriteFailedError
from logstore.recovery import Recovery
from logstore.segment import Extent
from logstore.segments.kafka.batch_walk import is_cut_at, parse_entry, walk_batches, walk_spans
from logstore.segments.kafka.indexed_segment import NOWHERE, RELATIVE_OFFSET_MAX, IndexedSegment
from logstore.segments.kafka.legacy.message import MAGIC_POSITION, is_legacy_magic
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    RecordBatch,
    batch_size_bytes,
)
from logstore.segments.kafka.record_times import first_at_or_after
from logstore.segments.kafka.sparse_index import TEMPORARY_SUFFIXES
from logstore.segments.kafka.time_index import TimestampedOffset

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)


class KafkaSegment(IndexedSegment):
    """
    Record batches from `base_offset` on.

    With `keeps_good_prefix` a recovery that meets offsets that no index can take keeps what stands
    before them; without, as Kafka, nothing of the segment.
    """

    may_skip_offsets: ClassVar[bool] = True
    unread_bytes: int = 0  #: behind the end of a log that is only read: no whole batch

    # opening

    def load_end(self, *, is_lenient: bool = False) -> None:
        """
        Find where a cleanly closed segment ends: walk on from its last index entry.

        With `is_lenient` it ends before a batch that is cut short, as in a directory that a broker
        is writing to right now. Otherwise such a batch raises CorruptEntryError, and so does a last
        one that is no sound message though it has the magic of one.
        """
        self.end_position = self.file.size()
        self.next_offset = self.base_offset
        position = self.offset_index.last_entry[1]
        if not 0 <= position <= self.end_position or next(self._spans(position), None) is None:
            position = 0  # the index lies, or leads to damage; the walk takes longer without it
        start, last_delta = 0, -1
        for base_offset, start, size_bytes, last_delta in self._spans(position):
            self.next_offset = base_offset + last_delta + 1
            position = start + size_bytes
        if not is_lenient:
            if position != self.end_position:
                reason = "a batch is cut short although the last stop was clean"
                raise CorruptEntryError(self.path, position, reason)
            if last_delta == 0 and is_legacy_magic(self.file.read(start + MAGIC_POSITION, 1)[0]):
                self.decode(start)  # the end is right only if that magic is: no CRC covers it
        self.unread_bytes, self.end_position = self.end_position - position, position
        self.recovery_point = self.next_offset

    def _spans(self, position: int) -> Iterator[tuple[int, int, int, int]]:
        return walk_spans(self.file, max(0, position), self.end_position)  # an index may lie

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
        if position < self.end_position:  # else a hole is there, and the next append follows it
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

    def forget(self, offset: int) -> None:
        """Cut the indexes back and count index intervals anew (``LogSegment.truncateTo``)."""
        self._damaged = (-1, False)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._bytes_since_index_entry = 0
        self._is_index_full = False
        self._newest_base_offset = NOWHERE
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
            found = first_at_or_after(batch.data, timestamp_ms, start_offset)
            if found is not None:
                return TimestampedOffset(found.timestamp_ms, found.offset, batch.leader_epoch)
        return None

    def scan(self) -> None:
        """Observe every batch, as the core does, show it to the witness, and note the last time."""
        try:
            self._scan()
        finally:  # also in front of damage
            try:
                self.time_index.maybe_append(
                    self.max_timestamp_ms, self.max_timestamp_offset, skip_full_check=True
                )
            except OffsetError as error:
                self._refuse_found(self.end_position, error)

    def _scan(self) -> None:
        """
        Observe every batch and show it to the witness.

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
            try:
                self.observe(batch, position)
            except OffsetError as error:
                self._refuse_found(position, error)
            expected = next_offset + batch.offset_count
            self.end_position = position = position + batch.size_bytes
            self.next_offset = next_offset = batch.next_offset
            if witness is not None:
                witness.see(self, batch)

    def _refuse_found(self, position: int, error: OffsetError) -> NoReturn:
        """
        Raise CorruptEntryError: offsets do not fit into an index.

        As in Kafka nothing of the segment is part of the log then, unless it keeps a good prefix.
        """
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
        self._bytes_since_index_entry = 0  # as Kafka, whose recovery does not count for appends
        self.transaction_index.flush()  # written anew: below the recovery point nobody else syncs
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

    def reach(self, next_offset: int) -> None:
        """Say that the segment ends at `next_offset`: a hole is behind its last batch."""
        self.next_offset = self.recovery_point = next_offset
        self._newest_base_offset = NOWHERE

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

    def drop(self) -> None:
        """Give all handles back; the files of the indexes stay as they are."""
        super().close()
        self.offset_index.drop()
        self.time_index.drop()
        self.transaction_index.close()

    def close(self) -> None:
        """Give all handles back."""
        super().close()
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
