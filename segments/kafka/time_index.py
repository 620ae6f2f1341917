"""
The time index: up to which offset all timestamps are at most so large.

``00000000000000000000.timeindex`` holds entries of 12 bytes, big-endian::

    timestamp             i64   largest timestamp in the segment so far, ms
    offset - base offset  i32   last offset of the batch that has it

Timestamps increase strictly, offsets do not decrease. Every record before an entry's offset has at
most the entry's timestamp. One slot stays free until the segment is sealed, for the last entry.

Source: ``storage.internals.log.TimeIndex``.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.sparse_index import (
    IndexCache,
    IndexOrderError,
    IndexOverflowError,
    SparseIndex,
)

_ENTRY = Struct(">qi")
_TIMESTAMP = Struct(">q")
_OFFSET = Struct(">i")
_pack = _ENTRY.pack

NO_TIMESTAMP_MS = -1


class TimestampedOffset(NamedTuple):
    """A record's place in time and in the log."""

    timestamp_ms: int
    offset: int
    leader_epoch: int = -1


class TimeIndex(SparseIndex):
    """Timestamp to offset, for some batches of a segment."""

    ENTRY = _ENTRY
    _RELATIVE_OFFSET_AT = 8
    EXTENSION = ".timeindex"

    __slots__ = ("_last_offset", "_last_timestamp_ms")

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        bytes_max: int,
        cache: IndexCache | None = None,
    ) -> None:
        super().__init__(fs, path, base_offset, bytes_max, cache)
        # Of an active index only.
        self._last_timestamp_ms = NO_TIMESTAMP_MS
        self._last_offset = base_offset

    @property
    def is_full(self) -> bool:
        """Tell whether only the slot for the last entry is free: the segment must roll."""
        return self.entry_count >= self.entry_count_max - 1

    @property
    def last_entry(self) -> tuple[int, int]:
        """The last (timestamp, offset); (-1, base offset) while there is none."""
        if self._entries is not None:
            return self._last_timestamp_ms, self._last_offset
        return self._last_of(self._last_data())

    def maybe_append(
        self, timestamp_ms: int, offset: int, *, skip_full_check: bool = False
    ) -> bool:
        """
        Add an entry if `timestamp_ms` is larger than any before; tell whether it was added.

        The entry at the end of a segment sets `skip_full_check` to take the last slot. Raises
        IndexOrderError if timestamp or offset is smaller than that of the last entry, and
        IndexOverflowError if the offset is below the base offset or 2^31 or more above.
        """
        entries = self._entries
        assert entries is not None, "append to a sealed index"
        last_timestamp_ms = self._last_timestamp_ms
        if timestamp_ms <= last_timestamp_ms or offset < self._last_offset:
            self._check_order(timestamp_ms, offset)
            if timestamp_ms <= last_timestamp_ms:
                return False
            raise IndexOverflowError(f"{self.path}: offset {offset} is below the base offset")
        reserved = 0 if skip_full_check else 12
        assert len(entries) < self.bytes_max - reserved, "append to a full index"
        try:
            entries += _pack(timestamp_ms, offset - self.base_offset)
        except struct.error:
            raise IndexOverflowError(
                f"{self.path}: offset {offset} or timestamp {timestamp_ms} is out of range"
            ) from None
        self._last_timestamp_ms = timestamp_ms
        self._last_offset = offset
        return True

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """
        Return the last (timestamp, offset) not above `timestamp_ms`; (-1, base offset) if none.

        The first record with at least `timestamp_ms` is at that offset or behind.
        """
        data = self.data()
        unpack_from = _TIMESTAMP.unpack_from
        slot = bisect_right(
            range(len(data) // 12), timestamp_ms, key=lambda slot: unpack_from(data, slot * 12)[0]
        )
        return self._entry(data, slot - 1) if slot else (NO_TIMESTAMP_MS, self.base_offset)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield every (timestamp, offset), in order."""
        data = bytes(self.data())
        base_offset = self.base_offset
        for timestamp_ms, relative in _ENTRY.iter_unpack(data[: len(data) - len(data) % 12]):
            yield timestamp_ms, base_offset + relative

    def _check_order(self, timestamp_ms: int, offset: int) -> None:
        """Raise IndexOrderError if there is a last entry and it is ahead of this one."""
        if self._entries and offset < self._last_offset:
            raise IndexOrderError(
                f"{self.path}: offset {offset} comes before the last one, {self._last_offset}"
            )
        if self._entries and timestamp_ms < self._last_timestamp_ms:
            raise IndexOrderError(
                f"{self.path}: timestamp {timestamp_ms} is smaller than the last one,"
                f" {self._last_timestamp_ms}"
            )

    def _last_of(self, data: bytes | bytearray) -> tuple[int, int]:
        count = len(data) // 12
        return self._entry(data, count - 1) if count else (NO_TIMESTAMP_MS, self.base_offset)

    def _entry(self, data: bytes | bytearray, slot: int) -> tuple[int, int]:
        timestamp_ms, relative = _ENTRY.unpack_from(data, slot * 12)
        return timestamp_ms, self.base_offset + relative

    def _count_below(self, offset: int) -> int:
        data = self.data()
        unpack_from = _OFFSET.unpack_from
        return bisect_left(
            range(len(data) // 12),
            offset - self.base_offset,
            key=lambda slot: unpack_from(data, slot * 12 + 8)[0],
        )

    def _loaded(self) -> None:
        self._last_timestamp_ms, self._last_offset = self._last_of(self.data())

    def _check_ends(self) -> None:
        data = self.data()
        first_timestamp_ms, _ = self._entry(data, 0)
        last_timestamp_ms, last_offset = self._last_of(data)
        if last_timestamp_ms < first_timestamp_ms:
            raise CorruptFileError(
                self.path,
                f"last timestamp {last_timestamp_ms} is below the first, {first_timestamp_ms}",
            )
        if last_offset < self.base_offset:
            raise CorruptFileError(
                self.path, f"last offset {last_offset} is below the base offset {self.base_offset}"
            )
