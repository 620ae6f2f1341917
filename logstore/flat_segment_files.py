"""
The files of a log with one file per segment, named after base offsets. Ready for any layout.

A layout that needs no more than this writes a :class:`logstore.segment.LogSegment` and is done::

    files = FlatSegmentFiles(host.fs, directory, MySegment, is_clean=recovery_point is None)
    log = SegmentedLog(files, recovery_point)

``tests/contract`` has two whole layouts of that kind.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logstore.errors import CorruptEntryError, MissingSegmentError
from logstore.segment import LogSegment

if TYPE_CHECKING:
    from logstore.host import FileSystem

SegmentT = TypeVar("SegmentT", bound=LogSegment[Any])

#: digits of a file name: enough for every offset below 2**63, so that names sort as offsets do
OFFSET_DIGITS = 20


class FlatSegmentFiles(Generic[SegmentT]):
    """
    A :class:`logstore.segment_family.SegmentFamily`: ``<directory>/<base offset><extension>``.

    `make_segment` is the segment's class, or whatever makes one of file system, path and base
    offset. `is_clean` says that the last stop was clean: a bad entry is then an error, otherwise it
    is left to the recovery. Files of other names in the directory are left alone.

    Every segment is told to ``reset_observations`` before anything else, a new one too: what it
    keeps of its entries begins there.

    A layout with indexes or other files beside overrides :meth:`load`, and :meth:`create` and
    :meth:`remove` around those of this class.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        make_segment: Callable[[FileSystem, str, int], SegmentT],
        *,
        is_clean: bool,
        is_writable: bool = True,
        extension: str = ".log",
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.is_clean = is_clean
        self.is_writable = is_writable
        self.extension = extension
        self._make_segment = make_segment
        self._bases = sorted(
            int(entry.name[:OFFSET_DIGITS])
            for entry in fs.list_directory(directory)
            if not entry.is_directory and self._is_segment(entry.name)
        )

    def _is_segment(self, name: str) -> bool:
        digits = name[:OFFSET_DIGITS]
        is_offset = len(digits) == OFFSET_DIGITS and digits.isascii() and digits.isdigit()
        return is_offset and name[OFFSET_DIGITS:] == self.extension

    def path(self, base_offset: int) -> str:
        """Return where the segment that starts at `base_offset` stands."""
        return f"{self.directory}/{base_offset:0{OFFSET_DIGITS}d}{self.extension}"

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the segments that are on disk, in order."""
        return self._bases[:]

    def create(self, base_offset: int) -> SegmentT:
        """
        Create an empty segment; a file of its name that was left over loses its content.

        Raises:
            MissingSegmentError: the log is only read, and there is nothing to read.

        """
        segment = self._segment(base_offset)
        if not self.is_writable:
            raise MissingSegmentError(f"{segment.path}: is not there, and the log is only read")
        file = self.fs.open(segment.path, create=True)
        try:
            if file.size():
                file.truncate(0)
                file.sync()  # else a power loss could bring old entries back behind new ones
        finally:
            file.close()
        if base_offset not in self._bases:
            insort(self._bases, base_offset)
        return segment

    def open(self, base_offset: int, *, is_active: bool) -> SegmentT:
        """
        Open a segment that is on disk.

        A sealed one ends where the next one starts, whatever stands in it: a bad entry is met when
        it is read.
        """
        segment = self._segment(base_offset)
        self.load(segment)
        if not is_active:
            segment.next_offset = self._bases[bisect_right(self._bases, base_offset)]
            segment.end_position = segment.file.size()
        segment.recovery_point = segment.next_offset
        return segment

    def load(self, segment: SegmentT) -> None:
        """
        Observe what stands in the file, up to its end: here by reading every entry once.

        After an unclean stop, and where the log is only read (someone may be writing it), the first
        bad entry counts as the end.

        Raises:
            CorruptEntryError: an entry is bad although the last stop was clean.

        """
        try:
            segment.scan()
        except CorruptEntryError:
            if self.is_clean and self.is_writable:
                raise

    def remove(self, segment: SegmentT) -> None:
        """Remove the file; whoever still reads it keeps it until he lets go."""
        segment.close()
        if self.fs.exists(segment.path):  # a recovery may have kept it aside
            self.fs.remove(segment.path)
        self._bases.remove(segment.base_offset)

    def _segment(self, base_offset: int) -> SegmentT:
        segment = self._make_segment(self.fs, self.path(base_offset), base_offset)
        segment.is_writable = self.is_writable
        segment.reset_observations()
        return segment
