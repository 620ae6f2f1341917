"""
One log: segments in offset order, the last one active. The only implementation, for every layout.

An append takes three steps, the same on a leader, a replica, a restore and a conversion::

    start = log.reserve(draft)        # rolls if it must; where the next entry starts
    entry = draft.stamped(start)      # offsets are assigned above ...
    log.append(entry)                 # ... and verified below
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sortedcontainers import SortedDict

from logstore.errors import (
    MissingSegmentError,
    OffsetOutOfRangeError,
    RejectedAppendError,
    StorageError,
    WriteFailedError,
)
from logstore.recovery import Recovery
from logstore.segment import Draft, Entry, Extent, LogSegment
from logstore.span import Span

if TYPE_CHECKING:
    from logstore.host import FileSystem
    from logstore.retention import RetentionPolicy
    from logstore.segment_family import SegmentFamily

EntryT = TypeVar("EntryT", bound=Entry)
SegmentT = TypeVar("SegmentT", bound=LogSegment[Any])


class FlushTask(NamedTuple):
    """The flush of all that was appended up to `offset`; `run` may be called in any thread."""

    segments: tuple[LogSegment[Any], ...]
    #: the log's own table: who is not there any more was removed
    live: Mapping[int, LogSegment[Any]]
    offset: int
    names: int
    directory: str | None
    fs: FileSystem
    #: tells the log that nothing may be written any more, and why
    refuse: Callable[[str], None]
    #: what keeps the flush from being begun
    failure: StorageError | None = None
    #: what a layout wants synced before the segments
    first: Callable[[], None] | None = None

    def run(self) -> None:
        """
        Sync every segment, oldest first, then the names of new files.

        Raises:
            OSError: the disk refused. If that was the sync of a data file, the log takes no
                appends any more.
            WriteFailedError: the log takes none, or what a failed write left is in the way.

        """
        if self.failure is not None:
            raise self.failure
        if self.first is not None:
            self.first()
        for segment in self.segments:
            try:
                segment.flush()
            except (OSError, WriteFailedError):
                if self.live.get(segment.base_offset) is not segment:
                    continue  # a retention has removed it: it promises nothing any more
                if segment.refusal is not None:
                    self.refuse(segment.refusal)
                raise
        if self.directory is not None and self.live:
            self.fs.sync_directory(self.directory)


class SegmentedLog(Generic[EntryT, SegmentT]):
    """
    Segments of one log by base offset.

    ``start_offset <= recovery_point <= next_offset`` holds always. Not thread-safe, except that a
    :class:`FlushTask` may run beside appends.

    Where a cut or the sync of data fails, nobody knows what a power loss would leave of the log.
    From then on it refuses: appends, rolls, cuts and flushes raise WriteFailedError until it is
    opened anew; reads go on. (Kafka takes the whole log directory offline.)
    """

    def __init__(
        self,
        family: SegmentFamily[SegmentT],
        recovery_point: int | None = None,
        *,
        start_offset: int = 0,
    ) -> None:
        """
        Open the log, or create it at `start_offset` where there is none.

        `recovery_point` None says that the last stop was clean and all on disk is durable.
        Otherwise everything past it is checked, and :attr:`recovery` says what was found.
        """
        self.family = family
        self.segments: SortedDict[int, SegmentT] = SortedDict()
        self.active: SegmentT
        bases = family.base_offsets()
        #: counts changes of file names; those up to `_durable_names` survive a power loss
        self._names = 1
        self._durable_names = 1 if bases and recovery_point is None else 0
        #: a segment was removed and the directory could not be synced
        self._has_unsynced_removal = False
        self._refusal: str | None = None
        for base_offset in bases:
            is_active = base_offset == bases[-1]
            self.segments[base_offset] = family.open(base_offset, is_active=is_active)
        if bases:
            self.active = self.segments[bases[-1]]
        else:
            self._add(family.create(start_offset))
        self.recovery_point = self.next_offset
        self.recovery: Recovery | None = None
        if recovery_point is not None and bases:
            self.recovery_point = max(recovery_point, self.start_offset)
            self.recovery = self.recover()

    # where the log is

    @property
    def start_offset(self) -> int:
        """Base offset of the oldest segment."""
        first: int = self.segments.peekitem(0)[0]
        return first

    @property
    def next_offset(self) -> int:
        """Where the next entry starts (Kafka: log end offset)."""
        return self.active.next_offset

    @property
    def span(self) -> Span:
        """All offsets of the log."""
        return Span(self.start_offset, self.next_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes in all data files."""
        return sum(segment.end_position for segment in self.segments.values())

    def find(self, offset: int) -> SegmentT | None:
        """Return the segment with the greatest base offset at or below `offset`."""
        if offset >= self.active.base_offset:
            return self.active
        index = self.segments.bisect_right(offset) - 1
        return None if index < 0 else self.segments.values()[index]

    def after(self, segment: SegmentT) -> SegmentT | None:
        """Return the next newer segment."""
        index = self.segments.bisect_right(segment.base_offset)
        return self.segments.values()[index] if index < len(self.segments) else None

    # writing

    @property
    def refusal(self) -> str | None:
        """Why nothing is written any more, and what to do; None while all is well."""
        return self._refusal or self.active.refusal

    def ensure_writable(self) -> None:
        """Raise WriteFailedError if the log takes no appends any more."""
        if self.refusal is not None:
            raise WriteFailedError(self.refusal)

    def refuse(self, reason: str) -> None:
        """
        Write nothing from now on, until the log is opened anew. May be called in any thread.

        It costs an append nothing as long as all is well: the active segment refuses for the log.
        """
        self._refusal = self._refusal or reason
        self.active.refuse(self._refusal)

    def reserve(self, draft: Draft[EntryT], base_offset: int | None = None) -> int:
        """
        Roll if the draft does not fit; return the offset at which it will start.

        Where its offset is known already and leaves a hole, a new segment starts at `base_offset`.
        """
        if not self.active.has_room_for(draft):
            self.roll(base_offset)
            if not self.active.has_room_for(draft):
                raise RejectedAppendError(
                    f"{self.active.path}: {draft.size_bytes} bytes do not fit into an empty segment"
                )
        return self.active.next_offset

    def append(self, entry: EntryT) -> int:
        """Append to the active segment; return the position in it."""
        return self.active.append(entry)

    def roll(self, base_offset: int | None = None) -> SegmentT:
        """
        Seal the active segment and start the next one at `base_offset` (at least next_offset).

        An empty active segment is replaced, not left behind.

        Raises:
            WriteFailedError: the disk refused, now or for good (`refusal`); the log is as before.

        """
        self.ensure_writable()
        old = self.active
        try:
            old.settle()
            old.pad()
            old.seal()
            new = self.family.create(max(old.next_offset, base_offset or 0))
        except (OSError, StorageError) as error:
            try:
                old.resume()
            except (OSError, StorageError):  # the same bad disk: the next append tries again
                old.resume_later()
            raise WriteFailedError(f"{self.family.directory}: cannot roll: {error}") from error
        self._add(new)
        if old.end_position == 0 and old.base_offset != new.base_offset:
            self._drop(old)
        return new

    def _add(self, segment: SegmentT) -> SegmentT:
        self.segments[segment.base_offset] = segment
        self.active = segment
        self._names += 1
        if self._refusal is not None:  # a flush in another thread may have failed meanwhile
            segment.refuse(self._refusal)
        return segment

    def _drop(self, segment: SegmentT) -> None:
        """
        Remove a segment, durably before the next one goes; where that fails it stays.

        If a power loss brought back one of several that were removed, the log would have a gap. If
        it took the one that follows, which may be new, the log would begin again at its start.
        """
        directory = self.family.directory
        if self._has_unsynced_removal or self._names > self._durable_names:
            self.family.fs.sync_directory(directory)
            self._durable_names = self._names
        del self.segments[segment.base_offset]  # first: a flush may stumble over the files
        try:
            self.family.remove(segment)
        except BaseException:
            self.segments[segment.base_offset] = segment
            raise
        self._has_unsynced_removal = True
        if self.segments:
            self.active = self.segments.values()[-1]
            self.recovery_point = max(self.recovery_point, self.start_offset)
        self.family.fs.sync_directory(directory)
        self._has_unsynced_removal = False

    # reading

    def read(self, offset: int, size_bytes_max: int) -> Extent:
        """
        Return bytes that start with the entry holding `offset`; empty at the log's end.

        Where `offset` lies in a hole, they start with the next entry above it.

        Raises:
            OffsetOutOfRangeError: `offset` is below the start or above the end.

        """
        if not self.start_offset <= offset <= self.next_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        segment = self.find(offset)
        while segment is not None:
            extent = segment.read(min(offset, segment.next_offset), size_bytes_max)
            following = self.after(segment)
            if following is None or extent.size_bytes > 0 or size_bytes_max == 0:
                return extent
            segment, offset = following, max(offset, following.base_offset)
        raise MissingSegmentError(f"{self.family.directory}: no segment holds offset {offset}")

    def entries(self) -> Iterator[EntryT]:
        """Yield every entry of the log, oldest first."""
        for segment in list(self.segments.values()):
            yield from segment.entries()

    # replacing and forgetting

    def replace(
        self, old: Sequence[SegmentT], new: Sequence[SegmentT], swap: Callable[[], None]
    ) -> None:
        """
        Let `new`, which is durable, stand for the adjoining, sealed segments `old`.

        `swap` changes the files; a power loss in it must leave all of `old` or all of `new`.
        Raises MissingSegmentError if one of `old` has left the log, WriteFailedError as a cut does.
        """
        self.ensure_writable()
        if any(self.segments.get(segment.base_offset) is not segment for segment in old):
            raise MissingSegmentError(f"{old[0].path}: was removed before it could be replaced")
        assert old[-1] is not self.active, "the active segment takes appends"
        with self._whole_or_refused(f"the replacement of {len(old)} segments"):
            self._exchange(old, new)  # first: a flush may stumble over files that are gone
            try:
                swap()
            except BaseException:
                self._exchange(new, old)
                raise
        for segment in old:
            segment.close()

    def _exchange(self, old: Sequence[SegmentT], new: Sequence[SegmentT]) -> None:
        for segment in old:
            del self.segments[segment.base_offset]
        self.segments.update((segment.base_offset, segment) for segment in new)

    def truncate(self, offset: int) -> None:
        """
        Remove all that reaches to `offset` or above; the log continues there.

        Raises:
            WriteFailedError: the disk refused; so does the log, from now on.

        """
        self.ensure_writable()
        if offset >= self.next_offset:
            return
        if offset < self.start_offset:
            self.restart(offset)
            return
        with self._whole_or_refused(f"the cut at offset {offset}"):
            self.recovery_point = min(self.recovery_point, offset)
            while self.active.base_offset > offset:
                self._drop(self.active)
            self.active.resume()
            self.active.truncate(offset)
            if self.active.may_skip_offsets and self.active.next_offset < offset:
                self.active.next_offset = offset  # it lies in a hole behind the segment
                self.active.forget(offset)

    def restart(self, offset: int, *, sets_aside: bool = False) -> tuple[str, ...]:
        """
        Remove everything and continue, empty, at `offset`.

        With `sets_aside` the data files are kept as a recovery keeps them; their names are
        returned, in the order of the log.

        Raises:
            WriteFailedError: the disk refused; so does the log, from now on.

        """
        self.ensure_writable()
        kept_aside: tuple[str, ...] = ()
        with self._whole_or_refused(f"the new start at offset {offset}"):
            self.recovery_point = self.start_offset
            for segment in reversed(list(self.segments.values())):
                if sets_aside:
                    kept_aside = segment.set_aside() + kept_aside
                self._drop(segment)
            self._add(self.family.create(offset))
            self.family.fs.sync_directory(self.family.directory)
            self._durable_names = self._names
            self.recovery_point = offset
        return kept_aside

    @contextmanager
    def _whole_or_refused(self, what: str) -> Generator[None]:
        """Do `what` wholly, or take nothing any more: who went on would lose it at the next cut."""
        oldest = self.segments.values()[0]
        try:
            yield
        except BaseException as error:
            if not self.segments:
                self.segments[oldest.base_offset] = oldest  # a log has one; nothing is behind it
            self.active = self.segments.values()[-1]
            self.refuse(f"{self.family.directory}: {what} failed ({error}); open the log anew")
            if isinstance(error, (OSError, StorageError)):
                raise WriteFailedError(self.refusal) from error
            raise

    def retain(self, policy: RetentionPolicy, now_ms: int, start_offset: int) -> list[SegmentT]:
        """
        Remove the oldest segments that `policy` gives up; return them.

        A log that refuses keeps what it has.
        """
        if self.refusal is not None:
            return []
        segments: list[SegmentT] = list(self.segments.values())
        expired = segments[: policy.expired(segments, now_ms, start_offset)]
        if len(expired) == len(segments):
            self.roll()
        for segment in expired:
            self._drop(segment)
        return expired

    # lasting

    def begin_flush(self) -> FlushTask:
        """
        Return what must be synced for all appended so far to be durable.

        What keeps it from being begun is raised where it is run.
        """
        floor = max(self.segments.bisect_right(self.recovery_point) - 1, 0)
        pending = tuple(self.segments.values()[floor:])
        failure: StorageError | None = None
        try:
            self.ensure_writable()
            for segment in pending:
                segment.settle()
        except WriteFailedError as error:
            failure = error
        return FlushTask(
            pending,
            self.segments,
            self.next_offset,
            self._names,
            self.family.directory if self._names > self._durable_names else None,
            self.family.fs,
            self.refuse,
            failure,
        )

    def end_flush(self, task: FlushTask) -> None:
        """Take note that `task` has run."""
        self._durable_names = max(self._durable_names, task.names)
        self.recovery_point = max(self.recovery_point, min(task.offset, self.next_offset))

    def trust(self) -> None:
        """Take all that is there for durable: whoever wrote it has made it so."""
        self._durable_names = self._names
        self.recovery_point = self.next_offset
        for segment in self.segments.values():
            segment.recovery_point = segment.next_offset

    def flush(self) -> None:
        """Make all appended so far durable."""
        (task := self.begin_flush()).run()
        self.end_flush(task)

    def recover(self) -> Recovery:
        """
        Check every segment that may hold data past the recovery point.

        After the first damaged segment, or a gap in a log that has none, all later segments go:
        what follows was never part of an acknowledged prefix.
        """
        floor = max(self.segments.bisect_right(self.recovery_point) - 1, 0)
        outcome = Recovery(self.next_offset)
        unchecked: list[SegmentT] = list(self.segments.values())[floor:]
        while unchecked:
            segment = unchecked.pop(0)
            outcome = outcome.joined(segment.recover())
            if not unchecked:
                break
            following = unchecked[0].base_offset
            has_gap = not segment.may_skip_offsets and following != segment.next_offset
            if has_gap or not outcome.is_clean:
                reason = f"{segment.path} ends at {segment.next_offset}, the next is {following}"
                outcome = self._drop_recovering(unchecked, outcome, reason)
                break
        self.active = self.segments.values()[-1]
        self.active.resume()
        self.recovery_point = min(self.recovery_point, self.next_offset)
        return outcome._replace(next_offset=self.next_offset)

    def _drop_recovering(self, lost: list[SegmentT], outcome: Recovery, reason: str) -> Recovery:
        """Take segments behind damage away, newest first; return the outcome with them counted."""
        dropped_bytes = 0
        kept_aside: tuple[str, ...] = ()
        for segment in reversed(lost):
            dropped_bytes += segment.content_bytes()
            kept_aside = segment.set_aside() + kept_aside
            self._drop(segment)
        return outcome._replace(
            dropped_bytes=outcome.dropped_bytes + dropped_bytes,
            reason=outcome.reason or reason,
            kept_aside=outcome.kept_aside + kept_aside,
        )

    def close(self) -> None:
        """Give every file handle back."""
        for segment in self.segments.values():
            segment.close()

    def abandon(self) -> None:
        """Give every file handle back, for good: a flush under way passes over what is removed."""
        segments: list[SegmentT] = list(self.segments.values())
        self.segments.clear()
        for segment in segments:
            segment.close()
