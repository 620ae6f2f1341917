"""The index held against a part of the commit log only: right, or someone must look closer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logstore.segments.rocketmq.columns import kernel
from logstore.segments.rocketmq.columns.index_fill import without_sign
from logstore.segments.rocketmq.index.index_keys import index_hashes
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.system_flags import (
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
)
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.compiled import index_loops as loops
from logstore.tools.inspection.rocketmq.verification.compiled.index_rows import IndexRows
from logstore.tools.inspection.rocketmq.verification.log_range import IndexSpan

if TYPE_CHECKING:
    from logstore.segments.compiled.loops import Int64s
    from logstore.segments.rocketmq.columns.record_scan import RecordScan


class RangeIndex:
    """Follows one part of the commit log, whose first record stands at `physical_offset`."""

    def __init__(self, store: StoredStore, rows: IndexRows, physical_offset: int) -> None:
        self._fs = store.fs
        self._has_tags = store.release.has_tag_entries
        self._rows = rows
        headers = rows.headers
        self._begin = headers[0].begin_physical_offset if headers else 0
        self._first: int = rows.first_at(self._fs, physical_offset)
        self._next: int = self._first
        self._last_place = physical_offset
        self._is_alike = True

    def take(self, request: DispatchRequest) -> None:
        """Hold the entries of a message against it."""
        self._last_place = request.physical_offset
        if request.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            return
        hashes = index_hashes(request.topic, request.properties_text, has_tag_entry=self._has_tags)
        shape = len(hashes)
        places = np.full(shape, request.physical_offset, np.int64)
        stored_ms = np.full(shape, request.store_timestamp_ms, np.int64)
        self._hold(np.array(hashes, np.int64), places, stored_ms)

    def take_scan(self, scan: RecordScan) -> None:
        """Hold the entries of many messages against them."""
        self._last_place = int(scan.table[kernel.PHYSICAL_OFFSET, -1])
        if self._is_alike:
            found = scan.index_entries(has_tag_keys=self._has_tags)
            places, stored_ms = found.physical_offsets, found.store_timestamps_ms
            self._hold(without_sign(found.hashes), places, stored_ms)

    def _hold(self, hashes: Int64s, places: Int64s, stored_ms: Int64s) -> None:
        done = int(places.searchsorted(self._begin))
        while self._is_alike and done < len(places):
            table = self._rows.read(self._fs, self._next, len(places) - done)
            end = done + len(table)
            there = hashes[done:end], places[done:end], stored_ms[done:end]
            count_alike: Any = loops.count_alike  # numba has no types
            alike = int(count_alike(table, 0, *there, self._rows.header_table))
            self._is_alike = 0 < alike == len(table)
            self._next += alike
            done += alike

    def span(self) -> IndexSpan | None:
        """Return where the entries of all the messages stand, None where anything is different."""
        following = self._rows.read(self._fs, self._next, 1)
        if len(following) and int(following[0, loops.PHYSICAL_OFFSET]) <= self._last_place:
            return None
        return IndexSpan(self._first, self._next - self._first) if self._is_alike else None
