"""
The writing side of a Kafka segment: batches go to the ``.log`` and are folded into its indexes.

Kafka's class is ``LogSegment`` (``append``, ``shouldRoll``). Most appends are usual batches, and
what those cost is calls; so they have ways of their own, one batch or one run of them at a time.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.errors import OffsetError
from logstore.host import Host
from logstore.segment import Draft, LogSegment
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.record_batch import NO_TIMESTAMP, PREFIX_BYTES, RecordBatch
from logstore.segments.kafka.time_index import TimeIndex
from logstore.segments.kafka.transaction_index import EXTENSION as TRANSACTION_INDEX
from logstore.segments.kafka.transaction_index import TransactionIndex
from logstore.segments.kafka.usual_batch import UsualBatch

if TYPE_CHECKING:
    from logstore.segments.kafka.recovery_witness import RecoveryWitness

_log = logging.getLogger(__name__)
RELATIVE_OFFSET_MAX = 2**31 - 1
NOWHERE = 2**63 - 1
_pack_stamp = struct.Struct(">qii").pack_into  # base offset, length, leader epoch


class IndexedSegment(LogSegment[RecordBatch]):
    """A log of record batches, with an index of offsets, of times and of aborted transactions."""

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
        self._newest_base_offset = NOWHERE
        self._newest_position = 0

    def load_times(self) -> None:
        """Take the largest timestamp from the time index (Kafka: ``readMaxTimestampSoFar``)."""
        timestamp_ms, offset = self.time_index.last_entry
        self.max_timestamp_ms, self.max_timestamp_offset = timestamp_ms, offset

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
            WriteFailedError: the disk refused; the segment is as it was before, and so is the
                batch's base offset.

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
            _pack_stamp(data, 0, 0, size_bytes - PREFIX_BYTES, leader_epoch)
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

    def append_usual_run(self, run: Sequence[UsualBatch], leader_epoch: int) -> int:
        """
        Do what :meth:`append_usual` does with several batches, which are written at once.

        Returns the base offset of the first; -1, and nothing was done, where one may have to roll.

        Raises:
            WriteFailedError: the disk refused; the segment is as it was before, and so are the
                batches' base offsets, as the disk may have room for some of them.

        """
        pieces: list[memoryview] = []
        config, file, position = self.config, self._file, self.end_position
        end, end_offset, youngest_ms = position, (start := self.next_offset), -1
        for _, data, last_delta, timestamp_ms, _ in run:
            pieces.append(data)
            size_bytes = len(data)
            _pack_stamp(data, 0, end_offset, size_bytes - PREFIX_BYTES, leader_epoch)
            end += size_bytes
            end_offset += last_delta + 1
            if timestamp_ms > youngest_ms:
                youngest_ms = timestamp_ms
        is_indexed = self._bytes_since_index_entry + end - position > config.index_interval_bytes
        if (
            end > config.segment_bytes
            or (first_ms := self._first_timestamp_ms) is None
            or not first_ms >= 0
            or youngest_ms - first_ms > config.segment_ms_max - self.jitter_ms
            or end_offset - 1 - self.base_offset > RELATIVE_OFFSET_MAX
            or position == 0
            or file is None
            or self._is_index_full
            or self._is_unsettled
            or (is_indexed and not self._has_index_room(len(run)))
        ):
            _unstamp(run)
            return -1
        try:
            file.write(position, b"".join(pieces))
        except OSError as error:
            _unstamp(run)
            self._undo_write(position, error)
        self.end_position, self.next_offset = end, end_offset
        if is_indexed or youngest_ms > self.max_timestamp_ms:
            self._observe_run(run, start, position)
        else:
            self._bytes_since_index_entry += end - position
        self._newest_base_offset = end_offset - run[-1][2] - 1
        self._newest_position = end - len(run[-1][1])
        return start

    def _has_index_room(self, entry_count: int) -> bool:
        """Tell whether so many entries may follow before the segment must roll."""
        offset_index, time_index = self.offset_index, self.time_index
        return (
            offset_index.size_bytes + entry_count * offset_index.ENTRY.size < offset_index.bytes_max
            and time_index.entry_count + entry_count < time_index.entry_count_max - 1
        )

    def _observe_run(self, run: Sequence[UsualBatch], offset: int, position: int) -> None:
        for _, data, last_delta, timestamp_ms, _ in run:
            last_offset = offset + last_delta
            if timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms, self.max_timestamp_offset = timestamp_ms, last_offset
            if self._bytes_since_index_entry > self.config.index_interval_bytes:
                self._index(last_offset, position)
            self._bytes_since_index_entry += len(data)
            offset, position = last_offset + 1, position + len(data)

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
        self._newest_base_offset = NOWHERE

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

    def resume(self) -> None:
        """Make a sealed segment the active one again: its indexes take entries."""
        self.offset_index.resume()
        self.time_index.resume()
        self._is_index_full = self.offset_index.is_full or self.time_index.is_full


def _unstamp(run: Sequence[UsualBatch]) -> None:
    """Make base offsets 0 again, as producers send them."""
    for _, data, _, _, _ in run:
        _pack_stamp(data, 0, 0, len(data) - PREFIX_BYTES, -1)
