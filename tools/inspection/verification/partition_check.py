"""
All checks of one partition: its files, its segments, and what is derived from them.

The scans may run anywhere, in any order (:meth:`PartitionCheck.tasks`); :meth:`conclude` puts them
together.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import attrs

from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.checkpoints import LEADER_EPOCHS
from logstore.segments.kafka.directory_name import PartitionDirectory
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.producer_snapshot import list_snapshots
from logstore.segments.kafka.segment_files import LOG, offset_file_name
from logstore.tools.inspection.verification.epochs import epoch_findings, epochs_of
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.indexes import index_findings, runs_of
from logstore.tools.inspection.verification.log_story import LogStory, tell_story
from logstore.tools.inspection.verification.segment_scan import LostStretch, SegmentScan
from logstore.tools.inspection.verification.segment_task import ScannedSegment, SegmentTask
from logstore.tools.inspection.verification.transactions import (
    Coordinated,
    open_transaction_notes,
)

_NUMBERED = re.compile(r"([0-9]{20})\.(log|index|timeindex|txnindex)")
_SWAPPED = re.compile(r"[0-9]{20}\.\w+\.(swap|cleaned)")
_KEPT_ASIDE = re.compile(r"[0-9]{20}\.log\.cut-at-[0-9]+")
_FAR = 2**63 - 1
_METADATA = "__cluster_metadata"
#: topics whose cleanup policy the brokers themselves set
_COMPACTED_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    _METADATA,
)


@attrs.frozen
class PartitionContext:
    """What the directory around a partition says of it."""

    log_start_offset: int | None = None
    #: the cleaner has a checkpoint for it
    is_cleaned: bool = False
    #: a broker has it open: its newest batch may be half written, its indexes behind
    is_live: bool = False
    #: the last stop was no clean one: the next start recovers what is at or above; None if clean
    recovery_point: int | None = None
    has_records: bool = False
    coordinated: Callable[[], Coordinated | None] = lambda: None


class PartitionCheck:
    """One partition directory. Raises OSError if it cannot be read."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        place: PartitionDirectory,
        context: PartitionContext,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.place = place
        self.context = context
        self.sizes = {
            entry.name: entry.size_bytes
            for entry in fs.list_directory(directory)
            if not entry.is_directory
        }
        self.bases = sorted(
            int(found[1])
            for name in self.sizes
            if (found := _NUMBERED.fullmatch(name)) is not None and found[2] == "log"
        )
        self.snapshots = list_snapshots(fs, directory)

    @property
    def size_bytes(self) -> int:
        """Bytes in all logs: the work of the scans."""
        return sum(self.sizes[offset_file_name(base, LOG)] for base in self.bases)

    def tasks(self) -> list[SegmentTask]:
        """Return a scan a segment, in order."""
        limits = [*self.bases[1:], _FAR]
        return [
            SegmentTask(
                self.directory,
                base,
                limit,
                is_active=limit == _FAR,
                snapshots=tuple(offset for offset in self.snapshots if base < offset < limit),
                has_records=self.context.has_records,
                size_bytes=self.sizes[offset_file_name(base, LOG)],
            )
            for base, limit in zip(self.bases, limits, strict=True)
        ]

    # conclusions

    def conclude(self, segments: list[ScannedSegment]) -> Iterator[Finding]:
        """Yield all findings; `segments` are the outcomes of the tasks, in their order."""
        yield from self._files()
        scans = [segment.scan for segment in segments]
        is_compacted = self._is_compacted(scans)
        for scan in scans:
            yield from self._lost(scan, is_active=scan is scans[-1])
            if not is_compacted:
                yield from _holes(scan)
        yield from self._seams(scans, is_compacted=is_compacted)
        runs = runs_of((segment.indexes for segment in segments), is_even=not is_compacted)
        for segment in segments:
            for finding in index_findings(segment.indexes, segment.scan, runs):
                if not (segment.is_active and self.context.is_live):
                    yield self._if_not_made_anew(finding, segment)
        log_start = self.context.log_start_offset or 0
        story = tell_story(self.fs, self.directory, scans, self.snapshots, is_compacted, log_start)
        yield from story.findings
        yield from self._open_transactions(story, scans)
        start = max(log_start, self.bases[0] if self.bases else 0)
        epochs = epochs_of(scans, start, is_compacted=is_compacted)
        is_there = LEADER_EPOCHS in self.sizes
        for finding in epoch_findings(self.fs, self.directory, epochs, is_there=is_there):
            # Whoever writes to the metadata log recovers it first, from its start, and finds them.
            severity = Severity.NOTE if self.place.topic == _METADATA else finding.severity
            yield attrs.evolve(finding, severity=severity)

    def _if_not_made_anew(self, finding: Finding, segment: ScannedSegment) -> Finding:
        """Return the finding, as a note if the next start makes the missing index anyway."""
        point = self.context.recovery_point
        if finding.kind != "index-missing" or point is None:
            return finding
        if not segment.is_active and segment.scan.next_offset <= point:
            return finding
        text = f"{finding.text}; the next start makes it, as after any stop that was not clean"
        return attrs.evolve(finding, text=text, severity=Severity.NOTE)

    def _files(self) -> Iterator[Finding]:
        """Yield what is wrong with the set of files itself."""
        bases = set(self.bases)
        for name, size_bytes in self.sizes.items():
            found = _NUMBERED.fullmatch(name)
            if found is not None and int(found[1]) not in bases:
                yield Finding(
                    "orphan",
                    name,
                    f"has no {found[1]}.log beside it",
                    offset=int(found[1]),
                )
            elif _SWAPPED.fullmatch(name) is not None:
                yield Finding(
                    "leftover",
                    name,
                    "was left behind by a replacement of segments that did not end; the next "
                    "start finishes it or takes it back",
                    severity=Severity.NOTE,
                )
            elif _KEPT_ASIDE.fullmatch(name) is not None:
                yield Finding(
                    "kept-aside",
                    name,
                    f"keeps {size_bytes} bytes that a start took out of the log; "
                    "see what can be saved of them, then remove it",
                    severity=Severity.NOTE,
                )
        try:
            PartitionMetadata.read(self.fs, self.directory)
        except CorruptFileError as error:
            name = error.path.rpartition("/")[2]
            yield Finding("metadata", name, f"cannot be read: {error.reason}")

    def _is_compacted(self, scans: list[SegmentScan]) -> bool:
        """Tell whether offsets may be missing because the cleaner has been here."""
        return (
            self.context.is_cleaned
            or self.place.topic in _COMPACTED_TOPICS
            or any(scan.is_thinned for scan in scans)
            or sum(len(scan.holes) for scan in scans) > 1
        )

    def _lost(self, scan: SegmentScan, *, is_active: bool) -> Iterator[Finding]:
        name = offset_file_name(scan.base_offset, LOG)
        for stretch in scan.lost:
            is_tail = stretch.next_offset is None and stretch.kind in ("tail", "cut", "zeros")
            if is_tail and is_active and self.context.is_live:
                continue
            yield Finding(
                stretch.kind, name, _lost_text(stretch), stretch.position, stretch.first_offset
            )

    def _seams(self, scans: list[SegmentScan], *, is_compacted: bool) -> Iterator[Finding]:
        """Yield where a segment does not go on where the one before it ends."""
        for scan, following in itertools.pairwise(scans):
            name = offset_file_name(following.base_offset, LOG)
            end, start = scan.next_offset, following.base_offset
            lost_tail = bool(scan.lost) and scan.lost[-1].next_offset is None
            if end > start:
                text = f"starts at offset {start}, but the segment before it ends at {end}"
                yield Finding("overlap", name, text, offset=start)
            elif end < start and not is_compacted and not lost_tail:
                yield Finding(
                    "gap",
                    name,
                    f"starts at offset {start}, but the segment before it ends at {end}: the "
                    f"records {end} to {start - 1} are missing",
                    offset=end,
                )

    def _open_transactions(self, story: LogStory, scans: list[SegmentScan]) -> Iterator[Finding]:
        if not story.open:
            return
        file_of: dict[int, str] = {}
        for begun in story.open.values():
            bases = [base for base in self.bases if base <= begun.offset] or self.bases[:1]
            file_of[begun.offset] = offset_file_name(bases[-1], LOG)
        yield from open_transaction_notes(
            story.open,
            file_of=file_of,
            topic=self.place.topic,
            partition=self.place.partition,
            end_offset=scans[-1].next_offset,
            coordinated=self.context.coordinated(),
        )


def _holes(scan: SegmentScan) -> Iterator[Finding]:
    for hole in scan.holes:
        yield Finding(
            "hole",
            offset_file_name(scan.base_offset, LOG),
            f"no batch has the offsets {hole.start_offset} to {hole.end_offset - 1}",
            hole.position,
            hole.start_offset,
            Severity.NOTE,
        )


def _lost_text(stretch: LostStretch) -> str:
    if stretch.kind in ("base-offset", "records", "count"):
        return stretch.reason
    size = f"{stretch.size_bytes} bytes"
    if stretch.next_offset is None:
        return f"{stretch.reason}; {size} to the end hold no good batch"
    return (
        f"{stretch.reason}; after {size}, at position {stretch.end_position}, good batches go on "
        f"with offset {stretch.next_offset}"
    )
