"""The check of the index, vectorised: what is as it must be is passed over in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logstore.segments.rocketmq.columns import kernel
from logstore.segments.rocketmq.columns.index_fill import without_sign
from logstore.segments.rocketmq.index.index_file import ENTRY, HEADER, SLOT_BYTES, IndexSizes
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.compiled import index_loops as loops
from logstore.tools.inspection.rocketmq.verification.index_check import Entry, IndexCheck

if TYPE_CHECKING:
    from logstore.host import File
    from logstore.segments.compiled.loops import Int64s
    from logstore.segments.rocketmq.columns.kernel import Int32s
    from logstore.segments.rocketmq.columns.record_scan import IndexEntries, RecordScan

_STEP_COUNT = 50_000


class BulkIndexCheck(IndexCheck):
    """
    As :class:`IndexCheck`, with the same findings; :meth:`take_scan` takes many messages at once.

    Entries that were read stand in a table. Those of two messages are looked at ahead, as there;
    where a scan begins they are put back, and it is held against the table as a whole.
    """

    def __init__(self, store: StoredStore, sizes: IndexSizes) -> None:
        self._table: Int64s = np.empty((0, loops.ENTRY_COLUMNS), np.int64)
        #: which entry of all is the first one in the table, and the first that is in no group yet
        self._table_row = 0
        self._next_row = 0
        self._blocks = self._read_blocks()
        self._group: list[Entry] = []
        self._following: list[Entry] = []
        super().__init__(store, sizes)
        rows = [
            (one.begin_ms, one.end_ms, one.begin_physical_offset, one.next_number)
            for one in self.headers
        ]
        self._header_table: Int64s = np.array(rows, np.int64).reshape(-1, 4)

    # the files alone

    def _read_blocks(self) -> Iterator[Int64s]:
        """Yield the entries of all files, and check each file by itself on the way."""
        for number in range(len(self.paths)):
            yield from self._checked_blocks(number)

    def _checked_blocks(self, number: int) -> Iterator[Int64s]:
        """Yield the entries of one file, and check it by itself on the way."""
        file = self.store.fs.open(self.paths[number], writable=False)
        try:
            newest = np.zeros(self.sizes.slot_count, np.int32)
            last_offset: int | None = None
            for block in self._read_file(number, file, newest):
                last_offset = int(block[-1, loops.PHYSICAL_OFFSET])
                yield block
            self._check_header(number, int(np.count_nonzero(newest)), last_offset)
            self._check_newest(number, newest, file.read(HEADER.size, SLOT_BYTES * len(newest)))
        finally:
            file.close()

    def _read_file(self, number: int, file: File, newest: Int32s) -> Iterator[Int64s]:
        count = min(max(self.headers[number].next_number, 1), self.sizes.entry_count)
        for first in range(1, count, _STEP_COUNT):
            wanted = min(_STEP_COUNT, count - first)
            data = file.read(self._position(first), wanted * ENTRY.size)
            source = np.frombuffer(data.ljust(wanted * ENTRY.size, b"\0"), np.uint8)
            block = np.empty((wanted, loops.ENTRY_COLUMNS), np.int64)
            odd = np.empty((wanted, 3), np.int64)
            odd_count = int(loops.read_entries(source, number, first, newest, block, odd))
            for row, previous, expected in odd[:odd_count].tolist():
                slot = int(block[row, loops.KEY_HASH]) % self.sizes.slot_count
                place = int(block[row, loops.PHYSICAL_OFFSET])
                self._say_chain(number, first + row, slot, previous, expected, place)
            yield block

    def _check_newest(self, file: int, newest: Int32s, data: bytes) -> None:
        found = np.frombuffer(data[: len(data) // SLOT_BYTES * SLOT_BYTES], ">i4")
        for slot in np.flatnonzero(found != newest[: len(found)]).tolist():
            self._say_slot(file, slot, int(found[slot]), int(newest[slot]))

    # with the messages

    def _has_rows(self, count: int) -> bool:
        """Read on until so many rows are in no group yet; False where there are not so many."""
        while len(self._table) - self._next_row < count:
            block = next(self._blocks, None)
            if block is None:
                return False
            kept = self._next_row - len(self._group) - len(self._following)
            self._table = np.concatenate((self._table[kept:], block))
            self._table_row += kept
            self._next_row -= kept
        return True

    def _pull(self) -> list[Entry]:
        if not self._has_rows(1):
            return []
        place = int(self._table[self._next_row, loops.PHYSICAL_OFFSET])
        count = 1
        while (
            self._has_rows(count + 1)
            and int(self._table[self._next_row + count, loops.PHYSICAL_OFFSET]) == place
        ):
            count += 1
        rows = self._table[self._next_row : self._next_row + count].tolist()
        self._next_row += count
        return [Entry(*row) for row in rows]

    def take_scan(self, scan: RecordScan) -> None:
        """Hold the entries of many messages against them, as :meth:`take` does with each."""
        if not self.paths:
            return
        entries = scan.index_entries(has_tag_keys=self.store.release.has_tag_entries)
        if self._is_alike(entries, int(scan.table[kernel.PHYSICAL_OFFSET, -1])):
            if scan.table[kernel.TAGS_BYTES].any():
                self._indexes_tags = self.store.release.has_tag_entries
            return
        for row in range(len(scan)):
            self.take(scan.request(row))

    def _is_alike(self, expected: IndexEntries, last_place: int) -> bool:
        """
        Pass over the entries of a scan, if there are these and no others; False if not so.

        `last_place` is the physical offset of the last message of the scan.
        """
        places = expected.physical_offsets
        skipped = int(places.searchsorted(self._begin))
        count = len(places) - skipped
        ahead = len(self._group) + len(self._following)
        has_next = self._has_rows(max(count + 1 - ahead, 0))
        start = self._next_row - ahead
        if not has_next and len(self._table) - start != count:
            return False
        if has_next and int(self._table[start + count, loops.PHYSICAL_OFFSET]) <= last_place:
            return False
        hashes = without_sign(expected.hashes[skipped:])
        stored_ms = expected.store_timestamps_ms[skipped:]
        alike = loops.count_alike(
            self._table, start, hashes, places[skipped:], stored_ms, self._header_table
        )
        if int(alike) < count:
            return False
        if count:
            self._say_missing(is_end=False)
            self._group, self._following = [], []
            self._next_row = start + count
            self._group = self._pull()
            self._following = self._pull()
        return True
