"""All entries of an index as numbered rows: file after file, each without its unused entry 0."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import attrs
import numpy as np

from logstore.segments.rocketmq.index.index_file import ENTRY, IndexSizes
from logstore.tools.inspection.rocketmq.verification.compiled import index_loops as loops
from logstore.tools.inspection.rocketmq.verification.index_check import Header

if TYPE_CHECKING:
    from logstore.host import File, FileSystem
    from logstore.segments.compiled.loops import Int64s

_ENTRY = np.dtype([("hash", ">i4"), ("place", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])


@attrs.frozen(slots=False)
class IndexRows:
    """The files at `paths`, of which `headers` were read; rows are read as they are, unchecked."""

    paths: tuple[str, ...]
    headers: tuple[Header, ...]
    sizes: IndexSizes

    @cached_property
    def counts(self) -> list[int]:
        """How many rows each file has."""
        most = self.sizes.entry_count
        return [min(max(one.next_number, 1), most) - 1 for one in self.headers]

    @cached_property
    def ends(self) -> list[int]:
        """The row behind the last one of each file."""
        return list(accumulate(self.counts))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.ends[-1] if self.ends else 0

    @cached_property
    def header_table(self) -> Int64s:
        """What the headers say, as :func:`~.index_loops.count_alike` takes it."""
        rows = [
            (one.begin_ms, one.end_ms, one.begin_physical_offset, one.next_number)
            for one in self.headers
        ]
        return np.array(rows, np.int64).reshape(-1, 4)

    def read(self, fs: FileSystem, row: int, count: int) -> Int64s:
        """Return up to `count` rows from `row` on, of one file, in the columns of the loops."""
        number = bisect_right(self.ends, row)
        if number == len(self.ends):
            return np.empty((0, loops.ENTRY_COLUMNS), np.int64)
        first = row - (self.ends[number - 1] if number else 0) + 1
        count = min(count, self.ends[number] - row)
        file = fs.open(self.paths[number], writable=False)
        try:
            found = self._entries(file, first, count)
        finally:
            file.close()
        table = np.empty((count, loops.ENTRY_COLUMNS), np.int64)
        table[:, loops.FILE] = number
        table[:, loops.NUMBER] = np.arange(first, first + count)
        table[:, loops.KEY_HASH] = found["hash"]
        table[:, loops.PHYSICAL_OFFSET] = found["place"]
        table[:, loops.SECONDS] = found["seconds"]
        return table

    def _entries(
        self, file: File, first: int, count: int
    ) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        size_bytes = count * ENTRY.size
        data = file.read(self.sizes.entries_position + ENTRY.size * first, size_bytes)
        return np.frombuffer(data.ljust(size_bytes, b"\0"), _ENTRY)

    def first_at(self, fs: FileSystem, physical_offset: int) -> int:
        """
        Return the first row that leads to `physical_offset` or behind it.

        As far as rows are in order; where they are not it is one that another row contradicts.
        """
        begins = [header.begin_physical_offset for header in self.headers]
        number = max(bisect_left(begins, physical_offset) - 1, 0)
        if number >= len(self.ends):
            return self.count
        start = self.ends[number - 1] if number else 0
        file = fs.open(self.paths[number], writable=False)
        try:
            numbers = range(1, self.ends[number] - start + 1)
            found = bisect_left(
                numbers, physical_offset, key=lambda n: int(self._entries(file, n, 1)["place"][0])
            )
        finally:
            file.close()
        return start + found
