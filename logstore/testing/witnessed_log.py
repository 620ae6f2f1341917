"""A log under test, and a witness who knows what it must hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import attrs

from logstore.errors import LogStoreError
from logstore.host import FileSystem, Host, read_file, write_file
from logstore.retention import RetentionPolicy
from logstore.segment import Draft, Entry, LogSegment
from logstore.segmented_log import SegmentedLog

AnyLog = SegmentedLog[Any, Any]

DIRECTORY = "/log"
CHECKPOINT = "/recovery-point"


class LogUnderTest(ABC):
    """
    What the contracts need to know of a layout. Its author writes this; it is all he writes.

    A segment should hold between 4 and 40 of the drafts, so that a few dozen appends roll.
    """

    #: places within an entry that no checksum covers (Kafka: base offset and leader epoch)
    unprotected_bytes: ClassVar[frozenset[int]] = frozenset()
    #: offsets inside of an entry lead to it; False where only starts of entries are ever asked for
    finds_inner_offsets: ClassVar[bool] = True
    #: data files have a fixed size: behind the end stand zeros, and a file is full before the next
    #: one starts, or padded (RocketMQ)
    is_preallocated: ClassVar[bool] = False
    #: the log can be rolled although its active segment is not full
    rolls_by_hand: ClassVar[bool] = True
    #: a recovery leaves what it cuts in the file until the next append; the next one finds it again
    leaves_remains: ClassVar[bool] = False
    #: what a power loss keeps or loses as a whole; smaller than an entry, so that entries are torn
    sector_bytes: ClassVar[int] = 16

    def behind_end(self, segment: LogSegment[Any]) -> int:
        """Return the position in the data file behind the last entry."""
        return segment.end_position if self.is_preallocated else segment.file.size()

    def content(self, data: bytes) -> bytes:
        """Return what counts of bytes that were kept aside: not the zeros behind the content."""
        return data.rstrip(b"\0") if self.is_preallocated else data

    def may_start_at(self, log: AnyLog, offset: int) -> bool:
        """Tell whether a log can begin anew at `offset`."""
        return not self.is_preallocated or offset in log.segments

    @abstractmethod
    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """
        Open the log in a directory that exists, or create it there.

        `recovery_point` None says that the last stop was clean.
        """

    @abstractmethod
    def draft(self, number: int) -> Draft[Any]:
        """Return a new draft; the same number gives the same bytes, another one other bytes."""


class LogContract:
    """Laws that the log of `layout` is held to: methods ``test_...`` that raise where it fails."""

    layout: ClassVar[LogUnderTest]


@attrs.frozen
class StoredEntry:
    """What is compared of an entry."""

    base_offset: int
    next_offset: int
    data: bytes

    @staticmethod
    def of(entry: Entry) -> StoredEntry:
        """Return the copy of an entry that nobody changes."""
        return StoredEntry(entry.base_offset, entry.next_offset, bytes(entry.data))

    def __repr__(self) -> str:
        return f"[{self.base_offset}, {self.next_offset})"


def stored(log: AnyLog) -> list[StoredEntry]:
    """Return all that the log holds."""
    return [StoredEntry.of(entry) for entry in log.entries()]


@attrs.define
class Testimony:
    """
    What happened to a log, hence what it may and must hold.

    After a recovery it holds a run of `entries` with everything in it that was promised: what ends
    at or below `promised_offset` and starts at or above `start_offset_max`. The run has no hole.
    Two things are not promised, because nothing in the files tells that they happened: where the
    layout allows holes, one may be at or above `promised_offset`, between two files of which the
    first came through short; and an oldest file may be gone whose name was never flushed.
    """

    #: all that was ever offered to the log and not cut off again, oldest first
    entries: list[StoredEntry] = attrs.Factory(list[StoredEntry])
    promised_offset: int = 0
    start_offset_max: int = 0
    next_number: int = 0

    def copy(self) -> Testimony:
        """Return a testimony that goes on on its own."""
        return attrs.evolve(self, entries=self.entries[:])

    def check(self, log: AnyLog) -> None:
        """Compare a recovered log with what happened."""
        found = check_invariants(log)
        assert log.next_offset >= self.promised_offset, "what was flushed is lost at the end"
        promised = [e for e in self.entries if e.next_offset <= self.promised_offset]
        if not found:
            kept = [entry for entry in promised if entry.base_offset >= self.start_offset_max]
            assert not kept, "all is lost"
            return
        assert found[0] in self.entries, f"{found[0]} was never appended, or was cut off"
        start = self.entries.index(found[0])
        expected = self.entries[start : start + len(found)]
        if log.active.may_skip_offsets:
            present = {entry.base_offset for entry in found}
            expected = [
                entry
                for entry in self.entries[start:]
                if entry.base_offset in present or entry.next_offset <= self.promised_offset
            ]
        assert found == expected, "not what was appended, in order"
        # The name of an oldest file that was never flushed may be lost; nothing tells that it was.
        older = [e for e in promised[:start] if e.base_offset >= self.start_offset_max]
        assert not older, f"lost at the start: {older}"
        assert not promised or found[-1].next_offset >= promised[-1].next_offset, "flushed and lost"

    def adopt(self, log: AnyLog) -> None:
        """Go on from what a recovery left."""
        self.entries = stored(log)
        self.promised_offset = min(self.promised_offset, log.next_offset)
        self.start_offset_max = log.start_offset


class WitnessedLog:
    """
    Does things to a log of the layout under test and keeps the testimony.

    The log's recovery point is kept in a file of its own, as a store does: written after every
    flush, and after a truncation before anything is appended again.
    """

    def __init__(
        self,
        layout: LogUnderTest,
        host: Host,
        testimony: Testimony | None = None,
        *,
        was_clean: bool = False,
    ) -> None:
        self.layout = layout
        self.fs = host.fs
        self.testimony = testimony or Testimony()
        self.fs.make_directory(DIRECTORY)
        self.fs.sync_directory("/")
        recovery_point = None if was_clean else recovery_point_of(self.fs)
        self.log: AnyLog = layout.open(host, DIRECTORY, recovery_point)

    def append(self, count: int = 1) -> list[StoredEntry]:
        """Append the next `count` drafts; one that raises is not appended."""
        testimony = self.testimony
        appended: list[StoredEntry] = []
        for _ in range(count):
            draft = self.layout.draft(testimony.next_number)
            testimony.next_number += 1
            start = self.log.reserve(draft)
            entry = draft.stamped(start)
            appended.append(StoredEntry.of(entry))
            testimony.entries.append(appended[-1])
            try:
                self.log.append(entry)
            except Exception:
                testimony.entries.pop()
                raise
        return appended

    def append_segments(self, count: int) -> None:
        """Append until `count` more segments are there."""
        target = len(self.log.segments) + count
        while len(self.log.segments) < target:
            self.append()

    def flush(self) -> None:
        """Flush: from now on all appended so far is promised."""
        self.log.flush()
        self.testimony.promised_offset = self.log.next_offset
        self.write_checkpoint()

    def truncate(self, offset: int) -> None:
        """Cut: while it lasts the old entries may survive, afterwards they never come back."""
        testimony = self.testimony
        start = self.log.start_offset
        kept = [e for e in testimony.entries if start <= e.base_offset and e.next_offset <= offset]
        end = kept[-1].next_offset if kept else min(start, offset)
        testimony.promised_offset = min(testimony.promised_offset, end)
        self.log.truncate(offset)
        testimony.entries = kept
        testimony.start_offset_max = min(testimony.start_offset_max, offset)
        self.write_checkpoint()

    def retain(self, policy: RetentionPolicy, now_ms: int = 0, start_offset: int = 0) -> None:
        """Give up old segments: they may or may not be gone after a power loss."""
        self.testimony.start_offset_max = self.log.next_offset
        self.log.retain(policy, now_ms, start_offset)
        self.testimony.start_offset_max = self.log.start_offset

    def write_checkpoint(self) -> None:
        """Write the log's recovery point to its file."""
        write_file(self.fs, CHECKPOINT, str(self.log.recovery_point).encode())

    def stop(self) -> None:
        """Stop cleanly."""
        self.log.active.seal()
        self.flush()
        self.log.close()


def recovery_point_of(fs: FileSystem) -> int:
    """Return the recovery point on file, 0 if there is none."""
    return int(read_file(fs, CHECKPOINT)) if fs.exists(CHECKPOINT) else 0


def check_invariants(log: AnyLog) -> list[StoredEntry]:
    """Check what holds between any two calls; return all that the log holds."""
    segments = list(log.segments.values())
    assert log.active is segments[-1], "the active segment is the last one"
    assert list(log.segments) == [segment.base_offset for segment in segments]
    assert log.start_offset <= log.recovery_point <= log.next_offset, (
        f"start {log.start_offset}, recovery point {log.recovery_point}, next {log.next_offset}"
    )
    for segment in segments:
        assert segment.base_offset <= segment.recovery_point <= segment.next_offset, segment.path
    for segment, following in pairwise(segments):
        assert segment.next_offset <= following.base_offset, f"{following.path} overlaps"
        if not segment.may_skip_offsets:
            assert segment.next_offset == following.base_offset, f"a gap before {following.path}"
    end = log.start_offset
    found: list[StoredEntry] = []
    for entry in log.entries():
        assert entry.base_offset >= end, f"offset {entry.base_offset} is not at or after {end}"
        if log.active.may_end_padded and entry.base_offset in log.segments:
            end = entry.base_offset  # what stands before is padding
        if not log.active.may_skip_offsets:
            assert entry.base_offset == end, f"a hole: [{end}, {entry.base_offset})"
        assert entry.next_offset > entry.base_offset, "an entry covers at least one offset"
        assert entry.size_bytes == memoryview(entry.data).nbytes
        end = entry.next_offset
        found.append(StoredEntry.of(entry))
    assert end <= log.next_offset
    return found


def expect(
    error: type[LogStoreError], call: Callable[..., object], *arguments: object
) -> LogStoreError:
    """Return the error that the call raises, or fail."""
    try:
        call(*arguments)
    except error as raised:
        return raised
    raise AssertionError(f"{call} did not raise {error.__name__}")
