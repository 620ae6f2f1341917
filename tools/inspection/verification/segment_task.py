"""
The scan of one segment as a piece of work that can be done anywhere: here, or in a Spark worker.

What it returns is small: what only the indexes of the segment were asked about is judged at once.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.host import File, FileSystem
from logstore.segments.kafka.segment_files import LOG, offset_file_name
from logstore.tools.inspection.verification.indexes import (
    IndexVerdict,
    SegmentIndexes,
    judged,
    read_index,
    read_time_index,
)
from logstore.tools.inspection.verification.segment_pass import scan_segment
from logstore.tools.inspection.verification.segment_scan import ScanRequest, SegmentScan


@attrs.frozen
class ScannedSegment:
    """What a pass over a segment found, without what its indexes alone needed."""

    scan: SegmentScan
    indexes: IndexVerdict
    is_active: bool


@attrs.frozen
class SegmentTask:
    """
    A segment to scan; `limit_offset` is where the next one starts.

    `snapshots` are the offsets of the partition's producer snapshots inside of it, `size_bytes` is
    how long its log is.
    """

    directory: str
    base_offset: int
    limit_offset: int
    is_active: bool
    snapshots: tuple[int, ...]
    has_records: bool
    size_bytes: int

    def run_if_there(self, fs: FileSystem, note: Callable[[int], None]) -> ScannedSegment | None:
        """Make the pass; None if a broker has removed the segment, or its topic."""
        try:
            return self.run(fs, note)
        except FileNotFoundError:
            return None

    def run(self, fs: FileSystem, note: Callable[[int], None]) -> ScannedSegment:
        """Make the pass; `note` is told how many more bytes are done. Raises OSError."""
        path = f"{self.directory}/{offset_file_name(self.base_offset, LOG)}"
        file = fs.open(path, writable=False)
        try:
            return self._scanned(fs, file, note)
        finally:
            file.close()

    def _scanned(self, fs: FileSystem, file: File, note: Callable[[int], None]) -> ScannedSegment:
        offsets = read_index(fs, self.directory, self.base_offset)
        times = read_time_index(fs, self.directory, self.base_offset)
        request = ScanRequest(
            base_offset=self.base_offset,
            limit_offset=self.limit_offset,
            index_entries=offsets.entries,
            time_entries=times.entries,
            snapshots=self.snapshots,
            has_records=self.has_records,
        )
        scan = scan_segment(file, request, note)
        verdict = judged(SegmentIndexes(offsets, times, scan, is_active=self.is_active))
        if verdict.is_wrong:  # to say how, all that it leads to must be known
            scan = scan_segment(file, attrs.evolve(request, has_landmarks=True))
            verdict = judged(SegmentIndexes(offsets, times, scan, is_active=self.is_active))
        slim = attrs.evolve(scan, at_position={}, at_offset={})
        return ScannedSegment(slim, verdict, self.is_active)
