"""A commit log of which others have walked parts: these are put together, the rest is walked."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import attrs

from logstore.segments.rocketmq.log.record_walk import RecordChecks, RecordWalk
from logstore.tools.inspection.rocketmq.log_scan import End, LogScan, Piece, Run
from logstore.tools.inspection.rocketmq.stored_files import StoredFile
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog
from logstore.tools.inspection.rocketmq.verification.log_range import LogRange, WalkedPart
from logstore.tools.inspection.rocketmq.verification.queues_check import QueuesCheck
from logstore.tools.inspection.rocketmq.verification.range_walk import (
    IndexFilePiece,
    LogPiece,
    PieceOutcome,
    StoreJob,
)
from logstore.tools.inspection.rocketmq.verification.range_walk import Piece as JobPiece
from logstore.tools.inspection.verification.finding import Finding

if TYPE_CHECKING:
    from logstore.tools.inspection.rocketmq.verification.compiled.resumed_index_check import (
        ResumedIndexCheck,
    )

Progress = Callable[[int, int], None]


class Walks(Protocol):
    """Where pieces of a store are walked."""

    @property
    def range_bytes(self) -> int:
        """How long the ranges of the commit log are that it wants."""
        ...

    def __call__(
        self, pieces: Sequence[JobPiece], progress: Progress | None, /
    ) -> Iterator[PieceOutcome]:
        """Yield what became of each piece, in their order."""
        ...


@attrs.frozen
class WalkedPieces:
    """The pieces of a store, on their way: first all of the index, then the commit log's files."""

    outcomes: Iterator[PieceOutcome]
    index_file_count: int
    #: how many ranges each file of the commit log has
    range_counts: Sequence[int]


def walk_pieces(
    store: StoredStore,
    settings: Mapping[str, str],
    index: ResumedIndexCheck | None,
    walks: Walks,
    progress: Progress | None,
) -> WalkedPieces:
    """Cut a store into pieces and begin to walk them; `settings` are those that no file tells."""
    rows = None if index is None else index.rows
    told = tuple(sorted(settings.items()))
    job = StoreJob(store.directory, told, uuid.uuid4().hex, rows)
    ranges = [list(_ranges(file, walks.range_bytes)) for file in store.commit_log.files]
    pieces: list[JobPiece] = []
    if rows is not None:
        sizes = (rows.sizes.entries_position + 20 * count for count in rows.counts)
        pieces += [IndexFilePiece(job, number, size) for number, size in enumerate(sizes)]
    index_file_count = len(pieces)
    pieces += [LogPiece(job, one) for found in ranges for one in found]
    outcomes = iter(walks(pieces, progress))
    return WalkedPieces(outcomes, index_file_count, [len(found) for found in ranges])


def _ranges(file: StoredFile, range_bytes: int) -> Iterator[LogRange]:
    for start in range(0, file.size_bytes, range_bytes):
        yield LogRange(file, start, min(start + range_bytes, file.size_bytes))


@attrs.define
class WalkedLog(FollowedLog):
    """
    As :class:`FollowedLog`, with the same findings.

    `queues` and `index` take what the parts say; the latter is shown the messages of a part whose
    entries are not the next ones.
    """

    queues: QueuesCheck = attrs.field(kw_only=True)
    index: ResumedIndexCheck | None = attrs.field(kw_only=True)
    walked: WalkedPieces = attrs.field(kw_only=True)
    _file_number: int = 0

    def findings(self, note: Callable[[int], None]) -> Iterator[Finding]:
        """Walk all files; `note` is told of bytes done."""
        for outcome in islice(self.walked.outcomes, self.walked.index_file_count):
            assert self.index is not None, "its files were pieces"
            self.index.add(outcome.findings)
        yield from super().findings(note)

    def _scan(self) -> LogScan:
        return LogScan()  # little is left to do here

    def _pieces(self, scan: LogScan, file: StoredFile) -> Iterator[Piece | WalkedPart]:
        count = self.walked.range_counts[self._file_number]
        self._file_number += 1
        found = islice(self.walked.outcomes, count)
        parts = deque(part for outcome in found for part in outcome.parts)
        position: int | None = 0
        while position is not None:
            _drop_behind(parts, position)
            if parts and parts[0].position == position:
                part = parts.popleft()
                yield part
                position = part.end_position
            else:
                position = yield from self._walk(scan, file, position, parts)

    def _walk(
        self, scan: LogScan, file: StoredFile, position: int, parts: deque[WalkedPart]
    ) -> Generator[Piece | WalkedPart, None, int | None]:
        """Walk from `position` to where a part begins; return that, None at the file's end."""
        handle = self.store.commit_log.open(file)
        for piece in scan.pieces(handle, file.path, file.base, position):
            if isinstance(piece, End):
                yield piece
                return None
            if isinstance(piece, Run):
                piece = _to_next_part(piece, parts)
            elif not piece.is_followed:
                yield piece
                continue
            yield piece
            _drop_behind(parts, piece.end_position)
            if parts and parts[0].position == piece.end_position:
                return piece.end_position
        return None

    def take(self, run: Run | WalkedPart, file: StoredFile) -> Iterator[Finding]:
        """Hand the messages of a run to those who follow; yield what is wrong with them."""
        if isinstance(run, Run):
            yield from super().take(run, file)
            return
        self.message_count += run.message_count
        self.newest_ms = max(self.newest_ms, run.newest_ms)
        yield from run.findings
        self.queues.take_part(run)
        place = file.base + run.position
        if self.index is not None and not self.index.pass_over(run.index, place):
            self._show(self.index, run, file)

    def _show(self, index: ResumedIndexCheck, part: WalkedPart, file: StoredFile) -> None:
        """Read the messages of a part once more, for the index alone."""
        is_bulk = self.scan_followers is not None
        log = FollowedLog(
            self.store,
            self.deliver_time,
            [index.take],
            scan_followers=[index.take_scan] if is_bulk else None,
        )
        walk = RecordWalk(
            self.store.commit_log.open(file),
            file.path,
            file.base,
            part.position,
            RecordChecks(has_body_crc=False),
            end_position=part.end_position,
        )
        for position, data in walk.runs():
            for _ in log.take(Run(position, data), file):
                pass  # it was said when the part was walked


def _drop_behind(parts: deque[WalkedPart], position: int) -> None:
    """Forget parts that begin before `position`: what they take for records are none."""
    while parts and parts[0].position < position:
        parts.popleft()


def _to_next_part(run: Run, parts: deque[WalkedPart]) -> Run:
    """Return the records of a run up to where a part begins, all of them if none does."""
    while parts and parts[0].position < run.end_position:
        before = run.until(parts[0].position)
        if before.end_position == parts[0].position and before.data:
            return before
        parts.popleft()
    return run
