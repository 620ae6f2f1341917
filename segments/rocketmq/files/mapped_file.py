"""
A file of a fixed size, preallocated as a hole and filled from the front. Java's ``MappedFile``.

Three positions: *wrote* is where the next byte goes, *committed* what stands in the file (it is
behind *wrote* with a transient store pool alone), *flushed* what is durable. Nothing is mapped
here: a file is read and written at positions, which costs no page faults and no address space.

**What a recovery leaves.** Java sets the positions back to the end that it found and leaves what
stands behind: a torn record, units of messages that are gone. They are on disk as they were, and a
store that is opened and closed does not change them. Java then appends over them, and what is not
yet overwritten may come back after the next crash: a valid record behind the new end, or a unit
that leads to another queue's message. So a file that has such *remains* keeps a copy aside when
they are found, and zeroes them, durably, before its next append
(:meth:`MappedFile.settle_remains`).

**Reference counts.** Java counts who reads a file, because unmapping under a reader kills the
process, and destroys a file by force only after a while. Here an
:class:`~logstore.segment.Extent` holds the open file: a file that is removed is read to its end by
whoever still sends it, and its space is free when the last one lets go. ``hold``, ``release`` and
the forced destruction have nothing left to do.

**Warm-up.** ``warmMapedFileEnable``, ``mlock`` and ``madvise`` are about mappings; the settings are
accepted and mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from logstore.errors import CorruptEntryError, WriteFailedError
from logstore.recovery import Recovery, content_end, keep_tail, pieces, set_aside
from logstore.segment import Entry, LogSegment

if TYPE_CHECKING:
    from logstore.host import FileSystem

EntryT = TypeVar("EntryT", bound=Entry)

#: what Java counts in "least pages"
PAGE_BYTES = 4096


class MappedFile(LogSegment[EntryT], Generic[EntryT]):
    """
    One file of `file_size_bytes`; an offset of its log takes `offset_bytes` bytes.

    `keeps_remains_aside` is False where what stands in the file is derived from another.
    """

    keeps_remains_aside = True

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        file_size_bytes: int,
        offset_bytes: int = 1,
    ) -> None:
        super().__init__(fs, path, base_offset)
        self.file_size_bytes = file_size_bytes
        self.offset_bytes = offset_bytes
        #: a recovery left something behind the end; the next append zeroes it first
        self.has_remains = False
        #: the rest of the file is filled: appends go on in the next one
        self.is_padded = False
        #: it was, when it became the active file again
        self.was_padded = False

    # where it is

    @property
    def limit_offset(self) -> int:
        """The offset at which the next file starts."""
        return self.base_offset + self.file_size_bytes // self.offset_bytes

    @property
    def is_full(self) -> bool:
        """Tell whether nothing more can be appended."""
        return self.is_padded or self.end_position >= self.file_size_bytes

    @property
    def wrote_position(self) -> int:
        """Where the next byte goes; the file's size once it is full."""
        return self.file_size_bytes if self.is_padded else self.end_position

    @property
    def flushed_position(self) -> int:
        """How many bytes are durable."""
        return (self.recovery_point - self.base_offset) * self.offset_bytes

    # what the core asks of a layout

    def locate(self, offset: int) -> int:
        """Multiply; an offset in the padding leads to the end of the entries."""
        return min((offset - self.base_offset) * self.offset_bytes, self.end_position)

    def reset_observations(self) -> None:
        """Forget that the file is full."""
        self.is_padded = False

    def content_bytes(self) -> int:
        """Return the position behind the last byte that is no zero."""
        return content_end(self.file, 0)

    # remains

    def append(self, entry: EntryT) -> int:
        """Write `entry` at the end; what a recovery left there is zeroed before."""
        if self.has_remains:
            self.settle_remains()
        return super().append(entry)

    def settle_remains(self) -> None:
        """
        Zero, durably, what stands behind the end.

        Raises:
            WriteFailedError: the disk refused; the next append tries again.

        """
        self.ensure_writable()
        if not self.has_remains:
            return
        try:
            self._zero(self.end_position)
        except OSError as error:
            raise self._not_zeroed(error) from error
        try:
            self._sync()
        except OSError as error:
            raise WriteFailedError(self.refusal) from error
        self.has_remains = False

    def settle(self) -> None:
        """
        Zero what a failed write left behind the end; the file keeps its size.

        What a recovery left is no hindrance to a flush and stays until the next append.
        """
        self.ensure_writable()
        if not self._is_unsettled:
            return
        try:
            self._zero(self.end_position)
        except OSError as error:
            raise self._not_zeroed(error) from error
        try:
            self._sync()  # once the log rolls nobody syncs this file again
        except OSError as error:
            raise WriteFailedError(self.refusal) from error
        self.has_remains = False
        self._is_unsettled = False
        if self.refusal is not None:  # a flush in another thread may have failed meanwhile
            self._is_unsettled = True

    def _not_zeroed(self, error: OSError) -> WriteFailedError:
        return WriteFailedError(
            f"{self.path}: what stands behind position {self.end_position} cannot be zeroed: "
            f"{error.strerror or error}"
        )

    def _zero(self, position: int) -> None:
        """Overwrite what is no zero: space that the file has, so that a full disk is no matter."""
        file = self.file
        for start, piece in pieces(file, position):
            first = len(piece) - len(piece.lstrip(b"\0"))
            last = len(piece.rstrip(b"\0"))
            file.write(start + first, bytes(last - first))

    # cutting

    def truncate(self, offset: int) -> None:
        """
        Remove, durably, every entry that reaches to `offset` or above; the file keeps its size.

        Raises:
            OSError: the disk refused; so does the file, from now on.

        """
        if offset >= self.next_offset:
            return
        end_position = self.locate(offset)
        try:
            self._zero(end_position)
            self.leave_behind(offset)
            self._sync()  # a cut that power loss undoes would bring the old entries back
        except BaseException as error:
            self.refuse(f"{self.path}: a cut at offset {offset} failed ({error}); open it anew")
            raise
        self.has_remains = False

    def leave_behind(self, offset: int) -> None:
        """Let the file end at `offset`, as Java does: what stands behind stays for now."""
        if offset >= self.next_offset:
            return
        self.end_position = self.locate(offset)
        self.next_offset = offset
        self.is_padded = False
        self.recovery_point = min(self.recovery_point, offset)
        self.has_remains = True
        self.forget(offset)

    def resume(self) -> None:
        """Make it the active file again: a padding goes, and the next append overwrites it."""
        if self.is_padded:
            self.is_padded, self.was_padded = False, True
            self.next_offset = self.base_offset + self.end_position // self.offset_bytes
            self.recovery_point = min(self.recovery_point, self.next_offset)
            self.has_remains = True

    def keep_padding(self) -> None:
        """Take :meth:`resume` back: the padding stands in the file as it did."""
        if self.was_padded:
            self.is_padded, self.was_padded = True, False
            self.next_offset = self.limit_offset
            self.has_remains = False

    # recovery

    def recover(self) -> Recovery:
        """
        Check every entry; let the file end before the first bad one, as Java does.

        What stands behind stays there until the next append, and is kept aside at once.
        """
        self.reset_observations()
        self.next_offset, self.end_position = self.base_offset, 0
        self.has_remains = False
        reason: str | None = None
        try:
            self.scan()
        except CorruptEntryError as error:
            reason = str(error)
        self.recovery_point = min(self.recovery_point, self.next_offset)
        if self.is_padded:
            return Recovery(self.next_offset, self.file_size_bytes)
        end = content_end(self.file, self.end_position)
        dropped_bytes = end - self.end_position
        if dropped_bytes <= 0:
            return Recovery(self.next_offset, self.end_position)
        self.has_remains = True
        aside: tuple[str, ...] = ()
        if self.keeps_remains_aside and self.is_writable:
            aside = keep_tail(
                self.fs,
                self.file,
                self.end_position,
                directory=self.aside_directory,
                end_position=end,
            )
        reason = reason or f"{self.path}: position {self.end_position}: nothing valid stands here"
        return Recovery(self.next_offset, end, dropped_bytes, reason, aside)

    def set_aside(self) -> tuple[str, ...]:
        """Keep the whole file under another name, unless it is derived from others."""
        if not (self.keeps_remains_aside and self.is_writable):
            return ()
        return set_aside(self.fs, self.file, directory=self.aside_directory)

    def _refuse_entry(self, position: int, reason: str) -> NoReturn:
        raise CorruptEntryError(self.path, position, reason)
