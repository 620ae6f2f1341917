"""
The entries of a segment's indexes, met one after the other on a pass over its log.

As long as each entry is what the batch says that it leads to, it is only counted: a log has a
million of them. From the first other one on landmarks are noted, by which
:mod:`.indexes` judges; old releases, too, made entries that need a second look and are right.
"""

from __future__ import annotations

from bisect import bisect_left

from logstore.tools.inspection.verification.segment_scan import (
    Landmark,
    ScanRequest,
    SegmentScan,
)

_FAR = 2**63 - 1


class IndexWatch:
    """
    What is expected next, and what was seen instead; it writes into `scan`.

    Whoever walks the log calls :meth:`meet` for each batch at `next_position` or behind it, and for
    each that holds `next_offset`.
    """

    def __init__(self, request: ScanRequest, scan: SegmentScan) -> None:
        self.scan = scan
        #: (offset, position) and (timestamp, offset)
        self._entries = (*request.index_entries, (_FAR, _FAR))
        self._times = (*request.time_entries, (_FAR, _FAR))
        self._is_noting = False
        self._positions: frozenset[int] = frozenset()
        self._offsets: tuple[int, ...] = (_FAR,)
        self._slot = 0
        self._before_ms = -_FAR
        self._expect()
        if request.has_landmarks:
            self._begin_noting(-_FAR)

    def _expect(self) -> None:
        self._last_offset, self.next_position = self._entries[self.scan.right_entry_count]
        self._next_ms, self.next_offset = self._times[self.scan.right_time_count]

    def meet(self, position: int, base_offset: int, last_offset: int, time_ms: int) -> None:
        """Take a batch; the largest timestamp up to it is that of `scan`."""
        if self._is_noting:
            self._note(position, base_offset, last_offset, time_ms)
            return
        is_right, scan = True, self.scan
        if position >= self.next_position:
            is_right = (
                position == self.next_position and base_offset <= last_offset == self._last_offset
            )
            scan.right_entry_count += is_right
            if is_right:
                scan.told_position, scan.time_step_bytes = position, 0
        if last_offset >= self.next_offset and is_right:
            is_right = (
                base_offset <= self.next_offset
                and self._before_ms < time_ms == self._next_ms == scan.max_timestamp_ms
                # a batch has one entry
                and self._times[scan.right_time_count + 1][1] > last_offset
            )
            scan.right_time_count += is_right
            self._before_ms = time_ms
            if is_right:
                step_bytes = position - scan.told_position
                scan.time_step_bytes = max(scan.time_step_bytes, step_bytes)
                scan.told_position = position
        if is_right:
            self._expect()
        else:
            self._begin_noting(base_offset)
            self._note(position, base_offset, last_offset, time_ms)

    def _begin_noting(self, from_offset: int) -> None:
        """Note landmarks from there on, for all entries that are not known to be right."""
        entries = self._entries[self.scan.right_entry_count : -1]
        times = self._times[self.scan.right_time_count : -1]
        self._positions = frozenset(position for _, position in entries)
        wanted = {offset for offset, _ in entries} | {offset for _, offset in times}
        self._offsets = (*sorted(wanted), _FAR)
        self._slot = bisect_left(self._offsets, from_offset)
        self._is_noting, self.next_position = True, -1

    def _note(self, position: int, base_offset: int, last_offset: int, time_ms: int) -> None:
        scan, offsets = self.scan, self._offsets
        if position in self._positions or last_offset >= offsets[self._slot]:
            found = Landmark(position, base_offset, last_offset, time_ms, scan.max_timestamp_ms)
            scan.at_position[position] = found
            while last_offset >= offsets[self._slot]:
                scan.at_offset[offsets[self._slot]] = found
                self._slot += 1

    def correct(self, position: int, base_offset: int, last_offset: int) -> None:
        """
        Take back what a wrong base offset said of the batch at `position`.

        Offsets that the wrong one has hidden are looked for again. Without landmarks nothing is
        known to be right any more.
        """
        scan = self.scan
        if not self._is_noting:
            scan.right_entry_count = scan.right_time_count = 0
            scan.told_position = scan.time_step_bytes = 0
            self._begin_noting(base_offset)
            return
        self._slot = bisect_left(self._offsets, base_offset)
        corrected: Landmark | None = None
        for found in (*scan.at_position.values(), *scan.at_offset.values()):
            if found.position == position:
                corrected = found._replace(base_offset=base_offset, last_offset=last_offset)
        if corrected is not None and position in scan.at_position:
            scan.at_position[position] = corrected
        while self._offsets[self._slot] <= last_offset:
            if corrected is not None:
                scan.at_offset[self._offsets[self._slot]] = corrected
            self._slot += 1
