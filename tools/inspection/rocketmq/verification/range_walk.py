"""
The verification of a store in pieces that can be done anywhere: here, or in a Spark worker.

A piece is a range of the commit log or one index file. Where a record starts a piece finds out by
itself: every record says its own physical offset. Whether the pieces fit together, and what stands
between the parts that were found good, judges who holds all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

import attrs

from logstore.compat.spark.record_start import next_record_position
from logstore.host import File
from logstore.os_host import system_host
from logstore.tools.inspection.rocketmq.delay_times import deliver_time_of
from logstore.tools.inspection.rocketmq.log_scan import End, LogScan, Run
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.compiled.range_index import RangeIndex
from logstore.tools.inspection.rocketmq.verification.compiled.resumed_index_check import (
    ResumedIndexCheck,
)
from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog, Follower
from logstore.tools.inspection.rocketmq.verification.log_range import LogRange, WalkedPart
from logstore.tools.inspection.rocketmq.verification.range_queues import RangeQueues
from logstore.tools.inspection.verification.finding import Finding

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.dispatch_request import DeliverTime
    from logstore.tools.inspection.rocketmq.stored_files import StoredFile
    from logstore.tools.inspection.rocketmq.verification.compiled.index_rows import IndexRows
    from logstore.tools.inspection.rocketmq.verification.followed_log import ScanFollower


@attrs.frozen
class StoreJob:
    """
    The verification of one store: what all of its pieces need to know.

    `token` is another one each time, so that nothing which is kept of a store outlives its job.
    """

    directory: str
    settings: tuple[tuple[str, str], ...]
    token: str
    rows: IndexRows | None = attrs.field(eq=False)


@attrs.frozen
class IndexFilePiece:
    """One file of the index, by itself."""

    job: StoreJob
    number: int
    size_bytes: int

    def run(self) -> PieceOutcome:
        """Check chains, slots and header."""
        return PieceOutcome(_worker_of(self.job).index.file_findings(self.number), [])


@attrs.frozen
class LogPiece:
    """A range of the commit log, with the units and the entries of its messages."""

    job: StoreJob
    range: LogRange

    @property
    def size_bytes(self) -> int:
        """How much it reads."""
        return self.range.size_bytes

    def run(self) -> PieceOutcome:
        """Walk the messages."""
        return PieceOutcome([], list(_worker_of(self.job).parts(self.range)))


Piece: TypeAlias = IndexFilePiece | LogPiece


@attrs.frozen
class PieceOutcome:
    """What became of a piece: findings of an index file, or the good parts of a range."""

    findings: list[Finding]
    parts: list[WalkedPart]


def run_pieces(pieces: Sequence[Piece]) -> list[PieceOutcome]:
    """Return what becomes of each, done in this process."""
    return [piece.run() for piece in pieces]


@lru_cache(maxsize=1)
def _worker_of(job: StoreJob) -> _Worker:
    return _Worker(job)


class _Worker:
    """What one process keeps of a store from one piece to the next."""

    def __init__(self, job: StoreJob) -> None:
        self.job = job
        self.store = StoredStore(system_host().fs, job.directory, dict(job.settings))

    @cached_property
    def index(self) -> ResumedIndexCheck:
        assert self.job.rows is not None, "its files are pieces"
        return ResumedIndexCheck(self.store, self.job.rows.sizes)

    @cached_property
    def queues(self) -> RangeQueues:
        return RangeQueues(self.store)

    @cached_property
    def deliver_time(self) -> DeliverTime:
        return deliver_time_of(self.store)

    def parts(self, piece: LogRange) -> Iterator[WalkedPart]:
        """Yield the parts of a range that hold good records, in order."""
        file = self.store.fs.open(piece.file.path, writable=False)
        part: _Part | None = None
        try:
            for run in _runs(file, piece):
                if part is not None and part.end_position != run.position:
                    yield part.walked()
                    part = None
                if part is None:
                    part = _Part(self, piece.file, run.position)
                part.take(run)
            if part is not None:
                yield part.walked()
        finally:
            file.close()


class _Part:
    """A part that is being walked, from `position` of its file on."""

    def __init__(self, worker: _Worker, file: StoredFile, position: int) -> None:
        self._file = file
        self._position = self.end_position = position
        self._queues = queues = worker.queues
        rows = worker.job.rows
        place = file.base + position
        self._index = None if rows is None else RangeIndex(worker.store, rows, place)
        followers: list[Follower] = [queues.take]
        in_bulk: list[ScanFollower] = [queues.take_scan]
        if self._index is not None:
            followers.append(self._index.take)
            in_bulk.append(self._index.take_scan)
        self._log = FollowedLog(
            worker.store,
            worker.deliver_time,
            followers,
            scan_followers=in_bulk if queues.takes_scans else None,
        )
        self._findings: list[Finding] = []

    def take(self, run: Run) -> None:
        self._findings += self._log.take(run, self._file)
        self.end_position = run.end_position

    def walked(self) -> WalkedPart:
        """Return what was found in it."""
        return WalkedPart(
            self._position,
            self.end_position,
            self._log.message_count,
            self._log.newest_ms,
            self._findings,
            self._queues.marks(),
            self._queues.counted_without_queue(),
            self._queues.batches(),
            None if self._index is None else self._index.span(),
        )


def _runs(file: File, wanted: LogRange) -> Iterator[Run]:
    """Yield the good records that start in a range."""
    data_at = file.next_data(wanted.start)  # the last file is mostly holes
    if data_at is None or data_at >= wanted.end:
        return
    base = wanted.file.base
    start = next_record_position(file, base, data_at, wanted.end)
    if start >= wanted.end:
        return
    for piece in LogScan(is_long=True).pieces(file, wanted.file.path, base, start):
        if isinstance(piece, End) or piece.position >= wanted.end:
            return
        if isinstance(piece, Run):
            yield piece.until(wanted.end)
            if piece.end_position >= wanted.end:
                return
