"""
The offset index: which byte position to start scanning from to find an offset.

``00000000000000000000.index`` holds entries of 8 bytes, big-endian::

    offset - base offset  i32   last offset of a batch
    position              i32   where that batch starts in the .log file

Offsets increase strictly. Four bytes are enough because a segment spans less than 2^31 offsets.
Every batch in front of an entry's position ends below the entry's offset.

Source: ``storage.internals.log.OffsetIndex``.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.sparse_index import (
    IndexCache,
    IndexOrderError,
    IndexOverflowError,
    SparseIndex,
)

_ENTRY = Struct(">ii")
_FIELD = Struct(">i")
_pack = _ENTRY.pack


class OffsetIndex(SparseIndex):
    """Offset to byte position, for some batches of a segment."""

    ENTRY = _ENTRY
    _RELATIVE_OFFSET_AT = 0
    EXTENSION = ".index"

    __slots__ = ("_last_offset",)

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        bytes_max: int,
        cache: IndexCache | None = None,
    ) -> None:
        super().__init__(fs, path, base_offset, bytes_max, cache)
        # Of an active index only. One below the base offset while empty, so that one comparison
        # checks both the order and that the offset is not below the base.
        self._last_offset = base_offset - 1

    @property
    def is_full(self) -> bool:
        """Tell whether no entry fits any more: the segment must roll."""
        return self.size_bytes >= self.bytes_max

    @property
    def last_entry(self) -> tuple[int, int]:
        """The last (offset, position); (base offset, 0) while there is none."""
        data = self._last_data()
        count = len(data) // 8
        return self._entry(data, count - 1) if count else (self.base_offset, 0)

    def append(self, offset: int, position: int) -> None:
        """
        Add an entry for the batch with this last offset that starts at `position`.

        Raises IndexOrderError unless the offset is larger than any before, IndexOverflowError if
        it is more than 2^31-1 above the base offset. Neither changes the index.
        """
        entries = self._entries
        assert entries is not None, "append to a sealed index"
        assert len(entries) < self.bytes_max, "append to a full index"
        if offset <= self._last_offset:
            raise IndexOrderError(
                f"{self.path}: offset {offset} does not come after {self._last_offset}"
            )
        try:
            entries += _pack(offset - self.base_offset, position)
        except struct.error:
            raise IndexOverflowError(
                f"{self.path}: offset {offset} or position {position} is out of range"
            ) from None
        self._last_offset = offset

    def lookup(self, offset: int) -> tuple[int, int]:
        """
        Return the last (offset, position) that is not above `offset`; (base offset, 0) if none.

        Scanning batches from that position on finds `offset` if the segment holds it.
        """
        data = self.data()
        slot = self._bisect_right(data, offset) - 1
        return self._entry(data, slot) if slot >= 0 else (self.base_offset, 0)

    def first_from_position(self, position: int) -> tuple[int, int] | None:
        """
        Return the first (offset, position) at or behind a byte position, or None.

        A bound above the offsets in the bytes before: the index of aborted transactions is read
        up to it.
        """
        data = self.data()
        unpack_from = _FIELD.unpack_from
        count = len(data) // 8
        slot = bisect_left(
            range(count), position, key=lambda slot: unpack_from(data, slot * 8 + 4)[0]
        )
        return self._entry(data, slot) if slot < count else None

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield every (offset, position), in order."""
        data = bytes(self.data())
        base_offset = self.base_offset
        for relative, position in _ENTRY.iter_unpack(data[: len(data) - len(data) % 8]):
            yield base_offset + relative, position

    def _entry(self, data: bytes | bytearray, slot: int) -> tuple[int, int]:
        relative, position = _ENTRY.unpack_from(data, slot * 8)
        return self.base_offset + relative, position

    def _bisect_right(self, data: bytes | bytearray, offset: int) -> int:
        """Return how many entries have an offset that is not above `offset`."""
        unpack_from = _FIELD.unpack_from
        return bisect_right(
            range(len(data) // 8),
            offset - self.base_offset,
            key=lambda slot: unpack_from(data, slot * 8)[0],
        )

    def _count_below(self, offset: int) -> int:
        return self._bisect_right(self.data(), offset - 1)

    def _loaded(self) -> None:
        self._last_offset = self.last_entry[0] if self._entries else self.base_offset - 1

    def _check_ends(self) -> None:
        last_offset = self.last_entry[0]
        if last_offset < self.base_offset:
            raise CorruptFileError(
                self.path, f"last offset {last_offset} is below the base offset {self.base_offset}"
            )
