"""
A partition without what is damaged in it: every good batch, and all that follows from them anew.

Batches keep their offsets; where some are lost there is a gap, as compaction leaves them. No gap
is between segments: one that would start behind a gap starts where the one before it ends.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import attrs

from logstore.errors import CorruptFileError
from logstore.host import File, FileSystem, write_file
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.partition_metadata import FILE_NAME as PARTITION_METADATA
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.producer_state import ProducerStates
from logstore.segments.kafka.segment_files import LOG, offset_file_name
from logstore.tools.inspection.rebuilding.derived_files import DerivedFile, PartitionFold
from logstore.tools.inspection.verification.segment_pass import scan_segment
from logstore.tools.inspection.verification.segment_scan import (
    LostStretch,
    ScanRequest,
    SegmentScan,
)

_LOG_NAME = re.compile(r"([0-9]{20})\.log(\.swap)?")
_COPY_BYTES = 4 * 1024 * 1024
_FAR = 2**63 - 1
_RELATIVE_OFFSET_MAX = 2**31 - 1


@attrs.frozen
class Lost:
    """
    What could not be kept: bytes of a log, or offsets that no file has (then it has no bytes).

    `last_offset` is None where nothing tells how far it went.
    """

    file: str
    position: int
    size_bytes: int
    first_offset: int
    last_offset: int | None
    reason: str


@attrs.define
class Salvaged:
    """What was kept of a partition, and what not."""

    batch_count: int = 0
    size_bytes: int = 0
    start_offset: int = 0
    end_offset: int = 0
    lost: list[Lost] = attrs.field(factory=list[Lost])
    #: compaction has been here: offsets that no batch has are no loss
    is_thinned: bool = False


def source_logs(fs: FileSystem, directory: str) -> dict[int, str]:
    """Return the logs by base offset; one that a swap left unfinished counts as finished."""
    names = [entry.name for entry in fs.list_directory(directory) if not entry.is_directory]
    found: dict[int, str] = {}
    for name in sorted(names, reverse=True):  # X.log.swap comes before X.log, which wins
        match = _LOG_NAME.fullmatch(name)
        if match is not None:
            found[int(match[1])] = name
    return dict(sorted(found.items()))


@attrs.frozen
class PartitionSalvage:
    """The salvage of the partition at `source` into the new directory `target`."""

    fs: FileSystem
    source: str
    target: str
    index_interval_bytes: int
    is_compacted: bool = False
    log_start_offset: int | None = None

    def run(self, note: Callable[[int], None]) -> Salvaged:
        """Write the new partition; `note` is told how many more bytes have been read."""
        fs, logs = self.fs, source_logs(self.fs, self.source)
        fs.make_directory(self.target)
        salvaged = Salvaged(is_thinned=self.is_compacted)
        bases = list(logs)
        if bases:
            first = bases[0]
            start = max(first, self.log_start_offset or 0)
            fold = PartitionFold(self.index_interval_bytes, start, self._states(first))
            salvaged.start_offset = salvaged.end_offset = first
            for base, limit in zip(bases, [*bases[1:], _FAR], strict=True):
                self._segment(logs[base], base, limit, fold, salvaged, note)
            if not salvaged.batch_count:
                self._create(first, fold)
            self._write_files(fold.end())
        self._copy_metadata()
        self._keep_epochs(salvaged.end_offset)
        fs.sync_directory(self.target)
        return salvaged

    def _segment(
        self,
        name: str,
        base: int,
        limit: int,
        fold: PartitionFold,
        salvaged: Salvaged,
        note: Callable[[int], None],
    ) -> None:
        source = self.fs.open(f"{self.source}/{name}", writable=False)
        try:
            expected = salvaged.end_offset
            request = ScanRequest(max(base, expected), limit, has_records=True)
            scan = scan_segment(source, request, note)
            salvaged.is_thinned |= scan.is_thinned or len(scan.holes) > 1
            self._note_lost(name, base, scan, salvaged)
            if not scan.batch_count:
                return
            # A gap in front goes into the segment: between two of them it would be damage.
            is_near = scan.next_offset - expected <= _RELATIVE_OFFSET_MAX
            new_base = expected if is_near and not salvaged.is_thinned else max(base, expected)
            path = f"{self.target}/{offset_file_name(new_base, LOG)}"
            self._write_files(fold.begin(new_base))
            _copy_good(self.fs, source, scan, path)
        finally:
            source.close()
        copy = self.fs.open(path, writable=False)
        try:
            for batch in walk_batches(copy, path):
                fold.take(batch)
                salvaged.batch_count += 1
                salvaged.size_bytes += batch.size_bytes
                salvaged.end_offset = batch.next_offset
        finally:
            copy.close()

    def _note_lost(self, name: str, base: int, scan: SegmentScan, salvaged: Salvaged) -> None:
        expected = salvaged.end_offset
        is_known = bool(salvaged.lost) and salvaged.lost[-1].last_offset is None
        if base > expected and is_known:
            salvaged.lost[-1] = attrs.evolve(salvaged.lost[-1], last_offset=base - 1)
        elif base > expected and not salvaged.is_thinned:
            reason = f"no file has the offsets {expected} to {base - 1}"
            salvaged.lost.append(Lost(name, 0, 0, expected, base - 1, reason))
        salvaged.lost += [
            Lost(
                name,
                stretch.position,
                stretch.size_bytes,
                stretch.first_offset,
                None if stretch.next_offset is None else stretch.next_offset - 1,
                stretch.reason,
            )
            for stretch in scan.lost
        ]

    def _create(self, base_offset: int, fold: PartitionFold) -> None:
        """Write an empty log: nothing of the partition is good."""
        write_file(self.fs, f"{self.target}/{offset_file_name(base_offset, LOG)}", b"")
        self._write_files(fold.begin(base_offset))

    def _write_files(self, files: Iterator[DerivedFile]) -> None:
        for file in files:
            if file.is_needed:
                write_file(self.fs, f"{self.target}/{file.name}", file.content)

    def _states(self, base_offset: int) -> ProducerStates:
        """Return the producers at the start: those of the first snapshot, which is kept too."""
        states = ProducerStates()
        path = f"{self.source}/{snapshot_name(base_offset)}"
        if base_offset and self.fs.exists(path):
            try:
                states.load(self.fs, path)
            except CorruptFileError:
                return ProducerStates()
            write_file(self.fs, f"{self.target}/{snapshot_name(base_offset)}", states.encoded())
        return states

    def _copy_metadata(self) -> None:
        try:
            metadata = PartitionMetadata.read(self.fs, self.source)
        except CorruptFileError:
            return  # the next start writes it
        if metadata is not None:
            copy_file(self.fs, self.source, self.target, PARTITION_METADATA)

    def _keep_epochs(self, end_offset: int) -> None:
        """Take epochs over that no batch tells of: their leaders wrote nothing."""
        try:
            known = LeaderEpochs.load(self.fs, self.source).entries
        except CorruptFileError:
            return
        path = f"{self.target}/{LEADER_EPOCHS}"
        derived = LeaderEpochs.load(self.fs, self.target).entries
        kept = [entry for entry in known if entry[1] <= end_offset]
        is_fitting = all(entry in kept for entry in derived)
        if kept and is_fitting and kept == sorted(kept) and _rises(kept):
            lines = "".join(f"{epoch} {start}\n" for epoch, start in kept)
            write_file(self.fs, path, f"0\n{len(kept)}\n{lines}".encode())


def _rises(entries: list[tuple[int, int]]) -> bool:
    return all(a[1] < b[1] for a, b in itertools.pairwise(entries))


def copy_file(fs: FileSystem, source: str, target: str, name: str) -> None:
    """Copy a small file from one directory into another."""
    file = fs.open(f"{source}/{name}", writable=False)
    try:
        write_file(fs, f"{target}/{name}", file.read(0, file.size()))
    finally:
        file.close()


def _copy_good(fs: FileSystem, source: File, scan: SegmentScan, path: str) -> None:
    """Write all bytes of a log but those that are lost."""
    target = fs.open(path, create=True)
    try:
        at = 0
        for start, end in _good_ranges(scan.lost, source.size()):
            while start < end:
                data = source.read(start, min(_COPY_BYTES, end - start))
                target.write(at, data)
                start, at = start + len(data), at + len(data)
        target.sync()
    finally:
        target.close()


def _good_ranges(lost: list[LostStretch], end: int) -> Iterator[tuple[int, int]]:
    position = 0
    for stretch in sorted(lost, key=lambda stretch: stretch.position):
        if position < stretch.position:
            yield position, stretch.position
        position = max(position, stretch.end_position)
    if position < end:
        yield position, end
