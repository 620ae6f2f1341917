"""The story of a partition's producers, told from its scans: snapshots and indexes must fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from logstore.host import FileSystem
from logstore.segments.kafka.producer_snapshot import snapshot_name
from logstore.segments.kafka.segment_files import offset_file_name
from logstore.segments.kafka.transaction_index import EXTENSION
from logstore.tools.inspection.verification.finding import Finding
from logstore.tools.inspection.verification.producer_fold import (
    Aborted,
    Begun,
    Ended,
    Producer,
    ProducerFold,
)
from logstore.tools.inspection.verification.producers import (
    ProducersAt,
    load_snapshot,
    snapshot_findings,
)
from logstore.tools.inspection.verification.segment_scan import SegmentScan
from logstore.tools.inspection.verification.transactions import (
    TransactionFile,
    transaction_index_findings,
)

_FAR = 2**63 - 1


@attrs.frozen
class LogStory:
    """What is wrong with transaction indexes and snapshots, and what is open at the end."""

    findings: list[Finding]
    open: dict[int, Begun]


def tell_story(
    fs: FileSystem,
    directory: str,
    scans: list[SegmentScan],
    snapshots: list[int],
    is_compacted: bool,
    log_start_offset: int = 0,
) -> LogStory:
    """
    Fold the scans in their order and hold against it what is in the directory.

    A recovery looks at nothing below the log start, and so knows less than the log tells.
    """
    teller = _Teller(fs, directory, snapshots, is_compacted, log_start_offset)
    if not scans:
        return LogStory([], {})
    return LogStory(list(teller.tell(scans)), dict(teller.fold.open))


class _Teller:
    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        snapshots: list[int],
        is_compacted: bool,
        log_start_offset: int,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.snapshots = set(snapshots)
        self.is_compacted = is_compacted
        self.fold = ProducerFold()
        self.log_start_offset = self.known_from = log_start_offset
        self.is_told = True

    def tell(self, scans: list[SegmentScan]) -> Iterator[Finding]:
        self._start(scans[0].base_offset)
        end_offset = scans[0].base_offset
        for scan, limit in zip(scans, [s.base_offset for s in scans[1:]] + [None], strict=True):
            # What was lost did something to producers that nobody can tell any more.
            self.is_told &= scan.base_offset == end_offset and not scan.has_gaps
            end_offset = scan.next_offset
            yield from self._snapshot(scan.base_offset, self.fold.producers)
            aborted: list[Aborted] = []
            for event in scan.events:
                if isinstance(event, Begun):
                    self.fold.begin(event)
                elif isinstance(event, Ended):
                    found = self.fold.end(event)
                    aborted += [] if found is None else [found]
                elif event.offset <= scans[-1].next_offset:
                    yield from self._snapshot(event.offset, self.fold.after(event.changes))
            self.fold.take(scan.changes)
            if limit is None:
                limit = _FAR if scan.is_cut else scan.next_offset
            yield from self._transaction_index(scan, aborted, limit)
        yield from self._presence(scans)

    def _start(self, base_offset: int) -> None:
        """Start from the first segment's snapshot, if the log does not start at 0."""
        if not base_offset:
            return
        self.known_from = max(base_offset, self.log_start_offset)
        if base_offset in self.snapshots:
            entries = load_snapshot(self.fs, self.directory, base_offset)
            if not isinstance(entries, Finding):
                self.fold = ProducerFold.from_snapshot(entries)
                self.known_from = self.log_start_offset

    def _snapshot(self, offset: int, producers: Mapping[int, Producer]) -> Iterator[Finding]:
        if offset not in self.snapshots:
            return
        if self.is_compacted or not self.is_told:  # the batches that it told of may be gone
            entries = load_snapshot(self.fs, self.directory, offset)
            if isinstance(entries, Finding):
                yield entries
            return
        at = ProducersAt(offset, producers, self.fold.open)
        yield from snapshot_findings(self.fs, self.directory, at, known_from=self.known_from)

    def _transaction_index(
        self, scan: SegmentScan, aborted: list[Aborted], limit: int
    ) -> Iterator[Finding]:
        name = offset_file_name(scan.base_offset, EXTENSION)
        path = f"{self.directory}/{name}"
        file = TransactionFile(path, name, scan.base_offset, limit, self.fs.exists(path))
        yield from transaction_index_findings(
            self.fs,
            file,
            aborted,
            known_from=self.known_from,
            is_told=self.is_told and not self.is_compacted,
        )

    def _presence(self, scans: list[SegmentScan]) -> Iterator[Finding]:
        """Yield snapshots that are too many or too few."""
        end, active = scans[-1].next_offset, scans[-1].base_offset
        for offset in sorted(self.snapshots):
            if offset > end and not scans[-1].is_cut:
                yield Finding(
                    "snapshot-beyond-end",
                    snapshot_name(offset),
                    f"was taken at offset {offset}, but the log ends at {end}",
                    offset=offset,
                )
        has_producers = any(scan.has_producers for scan in scans[:-1])
        is_covered = any(active <= offset <= end for offset in self.snapshots)
        if has_producers and not is_covered and not self.is_compacted:
            yield Finding(
                "snapshot-missing",
                snapshot_name(active),
                "is missing: what the producers wrote last must be read from the whole log",
                offset=active,
            )
