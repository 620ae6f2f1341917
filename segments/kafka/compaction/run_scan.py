"""
The way through a segment in runs of plain batches, by compiled loops (numpy and numba).

What it leaves is what :class:`~logstore.segments.kafka.compaction.plain_scan.PlainScan` leaves, to
the byte; what is not plain it hands, batch by batch, to the same functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.segments.compiled.loops import Bytes
from logstore.segments.kafka.batch_walk import parse_entry
from logstore.segments.kafka.compaction.batch_filter import BatchFilter
from logstore.segments.kafka.compaction.cleaned_segment import CleanedSegment
from logstore.segments.kafka.compaction.filter_kernel import filter_run
from logstore.segments.kafka.compaction.key_kernel import (
    FIRST,
    HIGHEST,
    KEYS,
    LATEST_PUT,
    NO_ORDER,
    get_key,
    put_key,
)
from logstore.segments.kafka.compaction.offset_map import ENTRY_BYTES, OffsetMap
from logstore.segments.kafka.compaction.plain_scan import put_keys
from logstore.segments.kafka.compaction.run_kernel import (
    CUT,
    END,
    FULL,
    HEADS,
    IS_NEW,
    KEPT,
    KEYLESS,
    LATEST,
    MARKED_FROM,
    NOW,
    NUMBERS,
    READ,
    RETENTION,
    ROW_KINDS,
    ROWS,
    WRITTEN,
    map_run,
)
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch, batch_size_bytes
from logstore.segments.kafka.segment import KafkaSegment

if TYPE_CHECKING:
    import random

#: how much of a file one step reads
WINDOW_BYTES = 4 * 1024 * 1024
_BATCHES_MAX = 8192
_RECORD_BYTES_MIN = 7
_CRC = struct.Struct(">I")
_CRC_PLACE = 17
_CRC_START = 21
#: so many offsets have a bit at most
_BITS_MAX = 2**30


class HashedOffsetMap(OffsetMap):
    """
    An offset map of 24 bytes a key, as Kafka's; the key itself is not kept, only its hash.

    `offsets` are those that will be put; they bound how many keys there can be, and so how much
    memory is taken.
    """

    def __init__(self, key_count_max: int, offsets: range, rng: random.Random) -> None:
        self.counts = np.array([0, key_count_max, -1, -1, offsets.start], dtype=np.int64)
        super().__init__(key_count_max)
        offset_count = len(offsets)
        bit_count = offset_count if offset_count <= _BITS_MAX else 0
        #: a bit for each offset from the first on: whether its key was put again
        self.superseded = np.zeros(-(-bit_count // 8), dtype=np.uint8)
        row_count = 2 * min(key_count_max, max(offset_count, 1)) + 1
        self.table = np.zeros((row_count, ENTRY_BYTES // 8), dtype=np.uint64)
        self.secret = np.array([rng.getrandbits(64) for _ in range(2)], dtype=np.uint64)

    @property
    def latest_offset(self) -> int:
        """How far the map knows the log."""
        return int(self.counts[LATEST_PUT])

    @latest_offset.setter
    def latest_offset(self, offset: int) -> None:
        self.counts[LATEST_PUT] = offset

    def __len__(self) -> int:
        return int(self.counts[KEYS])

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; False, and nothing noted, if the map is full."""
        source = _array(key)
        return bool(
            put_key(
                self.table, self.counts, self.superseded, source, 0, len(key), offset, self.secret
            )
        )

    @property
    def marked_from(self) -> int:
        """From which offset on all that is superseded has its bit."""
        return NO_ORDER if self.counts[HIGHEST] == NO_ORDER else int(self.counts[FIRST])

    def get(self, key: bytes) -> int:
        """Return the last offset of `key`, -1 if it was not put."""
        return int(get_key(self.table, _array(key), 0, len(key), self.secret))


def _array(data: bytes | bytearray | memoryview) -> Bytes:
    """Return the bytes as an array that is not written to: one type, compiled once."""
    array = np.frombuffer(data, dtype=np.uint8)
    array.flags.writeable = False
    return array


class Window:
    """A piece of a data file, moved along by what was read."""

    def __init__(self, segment: KafkaSegment, position: int, buffer: bytearray) -> None:
        self.segment = segment
        self.start = position
        self.file_end = segment.end_position
        self._buffer = buffer
        self.read()

    def read(self) -> None:
        """Read on from `start`; what was there before is overwritten."""
        room = memoryview(self._buffer)[: max(self.file_end - self.start, 0)]
        self.view = room[: self.segment.file.read_into(self.start, room)].toreadonly()
        self.size_bytes = len(self.view)
        self.array = _array(self.view)

    @property
    def is_over(self) -> bool:
        """Tell whether nothing is left of the file."""
        return self.start >= self.file_end

    def move(self, consumed_bytes: int) -> None:
        """Go on behind what was read; grow if that was not even one batch."""
        if consumed_bytes == 0:
            size_bytes = HEADER_BYTES
            if self.size_bytes >= HEADER_BYTES:
                size_bytes = batch_size_bytes(self.view)
            left = self.file_end - self.start
            if size_bytes > left:
                raise CorruptEntryError(
                    self.segment.path,
                    self.start,
                    f"a batch of {size_bytes} bytes is cut short after {left}",
                )
            self._buffer = bytearray(max(len(self._buffer), size_bytes))
        self.start += consumed_bytes
        self.read()

    def batch_at(self, position: int) -> RecordBatch | None:
        """Return the checked batch there, None if it goes on behind the window."""
        available = self.size_bytes - position
        if available < HEADER_BYTES and self.start + self.size_bytes < self.file_end:
            return None
        if available >= HEADER_BYTES:
            size_bytes = batch_size_bytes(self.view, position)
            if size_bytes > available and self.start + position + size_bytes <= self.file_end:
                return None
        try:
            return parse_entry(self.view, position, self.segment.path)
        except CorruptEntryError as error:
            raise CorruptEntryError(
                self.segment.path, self.start + position, error.reason
            ) from None

    def check(self, places: list[int], sizes: list[int]) -> None:
        """Raise CorruptEntryError unless the CRCs of these batches are right."""
        view = self.view
        for place, size in zip(places, sizes, strict=True):
            crc = _CRC.unpack_from(view, place + _CRC_PLACE)[0]
            if crc32c(view[place + _CRC_START : place + size]) != crc:
                raise CorruptEntryError(
                    self.segment.path, self.start + place, f"its CRC is not {crc:#010x}"
                )


class RunScan:
    """Maps keys and filters records of one segment after the other, a window at a time."""

    def __init__(self, key_count_max: int, offsets: range, rng: random.Random) -> None:
        self.offsets = HashedOffsetMap(key_count_max, offsets, rng)
        self._buffer = bytearray(WINDOW_BYTES)
        self._target = np.empty(0, dtype=np.uint8)
        self._kept = np.empty((3, WINDOW_BYTES // _RECORD_BYTES_MIN), dtype=np.int64)
        self._heads = np.empty((2, _BATCHES_MAX), dtype=np.int64)
        self._rows = np.empty((ROW_KINDS, _BATCHES_MAX), dtype=np.int64)

    def map_segment(
        self, segment: KafkaSegment, start: int, is_wanted: Callable[[RecordBatch], bool]
    ) -> Generator[int, None, bool]:
        """
        Map the keys from offset `start` on of the batches that `is_wanted`.

        Yields how many bytes were read; returns False once the map is full.
        """
        window = Window(segment, segment.offset_index.lookup(start)[1], self._buffer)
        while not window.is_over:
            position = 0
            while position < window.size_bytes:
                position, reason = self._map_run(window, position, start)
                if reason == FULL:
                    window.batch_at(position)  # what was mapped of it must be as it was written
                    return False
                if reason == CUT and position:
                    break
                batch = window.batch_at(position)
                if batch is None:
                    break
                if is_wanted(batch) and not put_keys(self.offsets, batch, start):
                    return False
                if batch.last_offset >= start:
                    self.offsets.latest_offset = batch.last_offset
                position += batch.size_bytes
            window.move(position)
            yield position
        return True

    def _map_run(self, window: Window, position: int, start: int) -> tuple[int, int]:
        offsets, heads = self.offsets, self._heads
        while True:
            found, reason, count = map_run(
                window.array, position, window.size_bytes, start,
                offsets.table, offsets.counts, offsets.superseded, offsets.secret, heads,
            )  # fmt: skip
            window.check(heads[0, :count].tolist(), heads[1, :count].tolist())
            position = int(found)
            if count < _BATCHES_MAX:
                return position, reason

    def filter_segment(
        self, segment: KafkaSegment, batches: BatchFilter, cleaned: CleanedSegment | None
    ) -> Iterator[None]:
        """Copy what stays of a segment into `cleaned`."""
        window = Window(segment, 0, self._buffer)
        lasts = _last_data_offsets(batches)
        while not window.is_over:
            position = 0
            while position < window.size_bytes:
                before = position
                position, reason = self._filter_run(window, position, batches, lasts, cleaned)
                if reason == CUT and position > before:
                    continue
                if position >= window.size_bytes:
                    break
                batch = window.batch_at(position)
                if batch is None:
                    break
                kept = batches.filtered(batch)
                if kept is not None and cleaned is not None:
                    cleaned.add(kept)
                position += batch.size_bytes
            if cleaned is not None:
                cleaned.write()  # what stays may stand in the window
            window.move(position)
            yield None

    def _filter_run(
        self,
        window: Window,
        position: int,
        batches: BatchFilter,
        lasts: np.ndarray[tuple[int, int], np.dtype[np.int64]],
        cleaned: CleanedSegment | None,
    ) -> tuple[int, int]:
        """Filter plain batches from `position` on; return where they end, and why."""
        cleaning, offsets, tally = batches.cleaning, self.offsets, batches.tally
        room_bytes = 3 * (window.size_bytes - position) + HEADER_BYTES
        if len(self._target) < room_bytes:
            self._target = np.empty(room_bytes, dtype=np.uint8)
        target = self._target
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        numbers[LATEST], numbers[END] = offsets.latest_offset, cleaning.end_offset
        numbers[NOW], numbers[RETENTION] = cleaning.now_ms, cleaning.delete_retention_ms
        numbers[MARKED_FROM] = offsets.marked_from
        following, reason = filter_run(
            window.array, position, window.size_bytes, offsets.table, offsets.superseded,
            offsets.secret, lasts, numbers, self._kept, target, self._heads, self._rows,
        )  # fmt: skip
        head_count, row_count = int(numbers[HEADS]), int(numbers[ROWS])
        window.check(self._heads[0, :head_count].tolist(), self._heads[1, :head_count].tolist())
        written = int(numbers[WRITTEN])
        tally.bytes_read += int(following) - position
        tally.bytes_kept += written
        tally.records_read += int(numbers[READ])
        tally.records_kept += int(numbers[KEPT])
        tally.keyless_records += int(numbers[KEYLESS])
        if cleaned is not None and row_count:
            view = target.data[:written]
            rows: list[list[int]] = self._rows[:, :row_count].tolist()
            for place, size, is_new in zip(rows[0], rows[1], rows[IS_NEW], strict=True):
                if is_new:
                    crc = crc32c(view[place + _CRC_START : place + size])
                    _CRC.pack_into(view, place + _CRC_PLACE, crc)
            cleaned.add_run(view, rows)
            cleaned.write()  # the next run uses the same memory
        return int(following), reason


def _last_data_offsets(
    batches: BatchFilter,
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the producers whose last batch has data, sorted, and the last offset of each."""
    found = sorted(
        (producer_id, last.data_offset)
        for producer_id, last in batches.cleaning.last_records.items()
        if last.data_offset >= 0
    )
    return np.array(found, dtype=np.int64).reshape(-1, 2).T.copy()
