"""
One segment: a file-backed run of entries, each covering a span of its log's own offsets.

A layout says four things about its segments: how to :meth:`~LogSegment.locate` an offset, how to
:meth:`~LogSegment.decode` the entry at a position, whether a segment
:meth:`~LogSegment.has_room_for` a draft, and what to :meth:`~LogSegment.observe` of each entry
(indexes, counters). Appending, reading, truncating, flushing and recovering follow from them.

======================  ========  ============  =========================
log                     an offset an entry      ``locate``
======================  ========  ============  =========================
Kafka partition         a record  record batch  sparse index, short scan
RocketMQ commit log     a byte    message       subtraction
RocketMQ consume queue  a unit    20-byte unit  multiplication
======================  ========  ============  =========================

The data file is the truth. Whatever `observe` keeps is a fold over it and can be rebuilt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from logstore.errors import (
    CorruptEntryError,
    OffsetMismatchError,
    OffsetOutOfRangeError,
    WriteFailedError,
)
from logstore.recovery import Recovery, keep_tail, set_aside
from logstore.span import Span

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import File, FileSystem


class Entry(Protocol):
    """What a log appends and reads back whole."""

    @property
    def base_offset(self) -> int:
        """Where the entry's span starts."""
        ...

    @property
    def next_offset(self) -> int:
        """Where the entry's span ends."""
        ...

    @property
    def size_bytes(self) -> int:
        """Length of `data`."""
        ...

    @property
    def data(self) -> Buffer:
        """The entry as it stands in the file."""
        ...


EntryT = TypeVar("EntryT", bound=Entry)
EntryT_co = TypeVar("EntryT_co", bound=Entry, covariant=True)


class Draft(Protocol[EntryT_co]):
    """An entry that does not know its offset yet."""

    @property
    def size_bytes(self) -> int:
        """Length that the entry will have."""
        ...

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp in it, -1 if it has none."""
        ...

    @property
    def offset_count(self) -> int:
        """How many offsets it will cover."""
        ...

    def stamped(self, base_offset: int) -> EntryT_co:
        """Return the entry that starts at `base_offset`."""
        ...


class Extent(NamedTuple):
    """
    A run of bytes in one file, to be read or handed to a socket.

    It can be read for as long as it is kept, also if its segment is removed meanwhile.
    """

    file: File
    position: int
    size_bytes: int

    def read(self) -> bytes:
        """Return the bytes."""
        return self.file.read(self.position, self.size_bytes)


class LogSegment(ABC, Generic[EntryT]):
    """
    A run of entries in one file.

    ``base_offset <= recovery_point <= next_offset`` holds always: all below the recovery point is
    durable. (RocketMQ: a MappedFile, its flushedWhere and wrotePosition.)
    """

    #: Kafka's compacted logs have holes between entries; other logs demand that spans touch.
    may_skip_offsets: ClassVar[bool] = False
    #: RocketMQ fills the rest of a commit log file: the next one starts behind what is no entry
    may_end_padded: ClassVar[bool] = False

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self.next_offset: int = base_offset
        self.recovery_point = base_offset
        self.end_position: int = 0
        #: a segment of a log that is only read asks for no right to write
        self.is_writable = True
        #: where a recovery keeps what it cuts; None is beside the file
        self.aside_directory: str | None = None
        #: why nothing is written any more until the log is opened anew; None while all is well
        self.refusal: str | None = None
        self._file: File | None = None
        #: the next append must :meth:`settle` first: there are remains behind the end, or a refusal
        self._is_unsettled = False
        self._is_to_resume = False

    # what every layout answers its own way

    @abstractmethod
    def locate(self, offset: int) -> int:
        """Return the position of the first entry whose span ends after `offset`."""

    @abstractmethod
    def decode(self, position: int) -> EntryT | None:
        """
        Return the entry at `position`, None at a clean end.

        Raises:
            CorruptEntryError: what stands there is not a whole, valid entry.

        """

    @abstractmethod
    def has_room_for(self, draft: Draft[EntryT]) -> bool:
        """Tell whether the draft may go into this segment; if not, the log rolls."""

    @abstractmethod
    def observe(self, entry: EntryT, position: int) -> None:
        """Take note of an entry that now stands at `position`: indexes, counters."""

    # what a layout may add

    def forget(self, offset: int) -> None:
        """Drop what was observed at or above `offset`; `end_position` is cut already."""

    def reset_observations(self) -> None:
        """Drop all that was observed, before a recovery observes every entry anew."""

    def sync_observations(self) -> None:
        """Make what was observed durable; called after the data is."""

    def largest_timestamp_ms(self) -> int:
        """Return the time of the newest entry: by default when the file was last written."""
        return self.fs.modified_ms(self.path)

    def content_bytes(self) -> int:
        """Return how much of the file may hold something: all but what is preallocated."""
        return self.file.size()

    def pad(self) -> None:
        """Fill the file where the next one must start at a certain offset: before a roll."""

    # what follows

    @property
    def file(self) -> File:
        """The data file, opened at first use."""
        if self._file is None:
            self._file = self.fs.open(self.path, writable=self.is_writable)
        return self._file

    @property
    def span(self) -> Span:
        """The offsets from the base to where the next entry must start."""
        return Span(self.base_offset, self.next_offset)

    def append(self, entry: EntryT) -> int:
        """
        Write `entry` at the end and return its position.

        Raises:
            OffsetMismatchError: it does not start where the log continues.
            WriteFailedError: the disk refused, now or for good (`refusal`); the segment is as it
                was before.

        """
        start = entry.base_offset
        if start != self.next_offset and not (self.may_skip_offsets and start > self.next_offset):
            raise OffsetMismatchError(self.path, start, self.next_offset)
        position = self.end_position
        if self._is_unsettled:
            self.settle()
        try:
            (self._file or self.file).write(position, entry.data)
        except OSError as error:
            self._undo_write(position, error)
        self.end_position = position + entry.size_bytes
        self.next_offset = entry.next_offset
        self.observe(entry, position)
        return position

    def _undo_write(self, position: int, error: OSError) -> NoReturn:
        """Cut off what a failed write left behind, so that the next one finds a clean end."""
        self._is_unsettled = True
        try:
            self.settle()
        except WriteFailedError as second:
            error.add_note(str(second))
        raise WriteFailedError(
            f"{self.path}: position {position}: {error.strerror or error}; nothing was appended"
        ) from error

    def resume_later(self) -> None:
        """Let :meth:`settle` resume the segment: now the disk refuses what that needs."""
        self._is_unsettled = self._is_to_resume = True

    def settle(self) -> None:
        """
        Cut off what a failed write left behind the end, before the next append or flush.

        And resume what a failed roll has sealed.

        To be called where appends are made: a flush may run beside them.

        Raises:
            WriteFailedError: that failed, or nothing is to be written any more.

        """
        self.ensure_writable()
        if not self._is_unsettled:
            return
        try:
            self.file.truncate(self.end_position)
        except OSError as error:
            raise WriteFailedError(
                f"{self.path}: what a failed write left behind position {self.end_position} "
                f"cannot be cut off: {error.strerror or error}"
            ) from error
        try:
            self._sync()  # once the log rolls nobody syncs this file again
        except OSError as error:
            raise WriteFailedError(self.refusal) from error
        if self._is_to_resume:
            try:
                self.resume()
            except OSError as error:
                raise WriteFailedError(f"{self.path}: cannot be resumed: {error}") from error
            self._is_to_resume = False
        self._is_unsettled = False
        if self.refusal is not None:  # a flush in another thread may have failed meanwhile
            self._is_unsettled = True

    def refuse(self, reason: str) -> None:
        """
        Take no append and no flush from now on, for good: `reason` says why and what to do.

        May be called in any thread. What stands in the segment can still be read.
        """
        self.refusal = self.refusal or reason
        self._is_unsettled = True  # costs appends nothing as long as all is well

    def ensure_writable(self) -> None:
        """Raise WriteFailedError if the segment takes no appends any more."""
        if self.refusal is not None:
            raise WriteFailedError(self.refusal)

    def _sync(self) -> None:
        """
        Sync the file; where that fails refuse everything that follows.

        A kernel reports lost writes once and then forgets them: no later sync can be believed.
        """
        try:
            self.file.sync()
        except OSError as error:
            self.refuse(
                f"{self.path}: a sync failed ({error.strerror or error}); what was written since "
                "the recovery point may be lost: stop, check the disk and open the log anew"
            )
            raise

    def read(self, offset: int, size_bytes_max: int, end_position: int | None = None) -> Extent:
        """
        Return the bytes from the entry that holds `offset` on, up to `size_bytes_max`.

        The last entry in the extent may be cut. `end_position` stops short of the segment's end.
        """
        if not self.base_offset <= offset <= self.next_offset:
            raise OffsetOutOfRangeError(offset, self.span)
        position = self.locate(offset)
        end = self.end_position if end_position is None else end_position
        return Extent(self.file, position, max(0, min(size_bytes_max, end - position)))

    def entries(self, position: int = 0) -> Iterator[EntryT]:
        """Yield every entry from `position` on; raises CorruptEntryError at a bad one."""
        while (entry := self.decode(position)) is not None:
            yield entry
            position += entry.size_bytes

    def truncate(self, offset: int) -> None:
        """
        Remove every entry that reaches to `offset` or above; appends continue at `offset`.

        Raises:
            OSError: the disk refused; so does the segment, from now on.

        """
        if offset >= self.next_offset:
            return
        assert offset >= self.base_offset, f"{self.path} starts above {offset}"
        end_position = self.locate(offset)
        try:
            self.file.truncate(end_position)
            self.end_position, self.next_offset = end_position, offset
            self.recovery_point = min(self.recovery_point, offset)
            self._sync()  # a cut that power loss undoes would bring the old entries back
            self.forget(offset)
        except BaseException as error:
            self.refuse(f"{self.path}: a cut at offset {offset} failed ({error}); open it anew")
            raise

    def flush(self) -> None:
        """
        Make everything appended so far durable: data first, then what was observed.

        Raises:
            OSError: the disk refused. If that was the sync of the data, nothing is written any
                more.
            WriteFailedError: nothing is written any more.

        """
        self.ensure_writable()
        next_offset = self.next_offset
        self._sync()
        self.sync_observations()
        self.recovery_point = next_offset

    def seal(self) -> None:
        """Finish the segment; nothing is appended any more."""

    def resume(self) -> None:
        """Make a sealed segment the active one again, after later ones were removed."""

    def recover(self) -> Recovery:
        """
        Check every entry, observe it anew and cut the file before the first bad one.

        What is cut is kept aside in a file of its own before it goes. Idempotent.
        """
        self.reset_observations()
        found_bytes = self.file.size()
        self.next_offset, self.end_position = self.base_offset, 0
        reason: str | None = None
        try:
            self.scan()
        except CorruptEntryError as error:
            reason = str(error)
        self.recovery_point = min(self.recovery_point, self.next_offset)
        dropped_bytes = found_bytes - self.end_position
        if dropped_bytes <= 0:
            return Recovery(self.next_offset, found_bytes)
        aside = keep_tail(self.fs, self.file, self.end_position, directory=self.aside_directory)
        self.file.truncate(self.end_position)
        self.file.sync()  # before anyone appends: a cut undone later would hide the new entries
        reason = reason or f"{self.path}: position {self.end_position}: an entry is cut short"
        return Recovery(self.next_offset, found_bytes, dropped_bytes, reason, aside)

    def scan(self) -> None:
        """
        Observe every entry from the end so far on, and move the end behind it.

        Raises:
            CorruptEntryError: an entry is bad, or not the next one; the end is before it.

        """
        for entry in self.entries(self.end_position):
            position = self.end_position
            start, expected = entry.base_offset, self.next_offset
            if start < expected or (start > expected and not self.may_skip_offsets):
                raise CorruptEntryError(self.path, position, f"offset {start}, not {expected}")
            self.end_position = position + entry.size_bytes
            self.next_offset = entry.next_offset
            self.observe(entry, position)

    def set_aside(self) -> tuple[str, ...]:
        """
        Take the data file out of the log's way, to be kept; return its new name.

        For a segment behind damage, that is not part of the log any more. A file of nothing but
        zeros is not kept. A layout that keeps nothing at all overrides this.
        """
        return set_aside(self.fs, self.file, directory=self.aside_directory)

    def release(self) -> None:
        """
        Let go of the file handle alone; the next use opens it again.

        It is not closed by force: an extent that is still on its way to a slow reader keeps it.
        """
        self._file = None

    def close(self) -> None:
        """Let go of all that is held: here the file handle."""
        self.release()
