"""
The files of one log: names, the rules of loading, creating, and the file that is made ahead.

A file is named after the byte of the log with which it begins, in 20 digits. Loading follows Java's
``MappedFileQueue.doLoad``: directories are passed over, a last file of no length is removed, any
other length than the configured one is an error, and so are a strange name and, unlike in Java, a
hole in the sequence. A crash leaves no hole: the name of each file is durable before the next one
holds anything.

The commit log has its next file made ahead (Java: ``AllocateMappedFileService``), so that a roll
costs nothing. Such a *spare* holds zeros alone; it is removed at a clean stop, and one that is
found at a start is taken where it fits and removed where it does not.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logstore.errors import CorruptFileError, MissingSegmentError
from logstore.recovery import holds_something
from logstore.segments.rocketmq.files.mapped_file import MappedFile

if TYPE_CHECKING:
    from logstore.host import FileSystem

_log = logging.getLogger(__name__)

MappedFileT = TypeVar("MappedFileT", bound=MappedFile[Any])

NAME_DIGITS = 20


def file_name(byte: int) -> str:
    """Return the name of the file that begins with that byte (``UtilAll.offset2FileName``)."""
    return f"{byte:0{NAME_DIGITS}d}"


class MappedFileDirectory(Generic[MappedFileT]):
    """
    A :class:`logstore.segment_family.SegmentFamily` of files of one size.

    `make_file` makes a file of file system, path, base offset, size and bytes per offset.
    `is_clean` says that the last stop was clean. The directory need not be there. With
    `defers_first_sync` the names of a log's first file and of its directories are made durable by
    :meth:`sync_names`, before its first flush: a store has thousands of queues.

    Raises, on construction:
        CorruptFileError: a file has another size, or a name that is no number.
        MissingSegmentError: there is a hole between two files.
    """

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        make_file: Callable[[FileSystem, str, int, int, int], MappedFileT],
        file_size_bytes: int,
        *,
        offset_bytes: int = 1,
        size_setting: str = "the file size",
        is_clean: bool = True,
        is_writable: bool = True,
        makes_spare: bool = False,
        defers_first_sync: bool = False,
        aside_directory: str | None = None,
    ) -> None:
        assert file_size_bytes % offset_bytes == 0, "a file holds whole units"
        self.fs = fs
        self.directory = directory
        self.file_size_bytes = file_size_bytes
        self.offset_bytes = offset_bytes
        self.is_clean = is_clean
        self.is_writable = is_writable
        self.makes_spare = makes_spare
        self.defers_first_sync = defers_first_sync
        self.aside_directory = aside_directory
        self._make_file = make_file
        self._size_setting = size_setting
        self._offsets_per_file = file_size_bytes // offset_bytes
        #: directories in which a name was made that may not survive a power loss
        self._unsynced: list[str] = []
        #: files of zeros behind the last one that holds something
        self._spares: set[int] = set()
        self._bases = self._load()

    # names

    def path(self, base_offset: int) -> str:
        """Return where the file that starts at `base_offset` stands."""
        return f"{self.directory}/{file_name(base_offset * self.offset_bytes)}"

    def base_offsets(self) -> list[int]:
        """Return the base offsets of the files on disk, in order; spares are none of them."""
        return self._bases[:]

    def has_spare(self, base_offset: int) -> bool:
        """Tell whether a file of zeros that starts there is ready."""
        return base_offset in self._spares

    # loading

    def _load(self) -> list[int]:
        sizes = self._list()
        bytes_ = sorted(sizes)
        if bytes_ and sizes[bytes_[-1]] == 0:
            path = f"{self.directory}/{file_name(bytes_.pop())}"
            _log.warning("%s: is empty and the last one; it is removed, as Java does", path)
            if self.is_writable:
                self.fs.remove(path)
        self._set_spares_apart(bytes_, sizes)
        if bytes_ and self.defers_first_sync and not self.is_clean:
            self._lengthen(bytes_[-1], sizes)
        for byte in bytes_:
            self._check_size(byte, sizes[byte])
        for byte, following in pairwise(bytes_):
            if byte + self.file_size_bytes != following:
                missing = f"{self.directory}/{file_name(byte + self.file_size_bytes)}"
                raise MissingSegmentError(
                    f"{missing}: is missing, but {file_name(following)} is there; put it back, or "
                    "move the files behind it away, to go on without what stands in them"
                )
        return [byte // self.offset_bytes for byte in bytes_]

    def _list(self) -> dict[int, int]:
        if not self.fs.exists(self.directory):
            return {}
        sizes: dict[int, int] = {}
        for entry in self.fs.list_directory(self.directory):
            if entry.is_directory:
                continue
            path = f"{self.directory}/{entry.name}"
            if not (entry.name.isascii() and entry.name.isdigit()):
                raise CorruptFileError(path, "its name is no number; move it out of the directory")
            byte = int(entry.name)
            if entry.name != file_name(byte) or byte % self.file_size_bytes:
                self._check_size(byte, entry.size_bytes)
                raise CorruptFileError(
                    path,
                    f"no file of {self.file_size_bytes} bytes begins there; give "
                    f"{self._size_setting} its former value, or move the file away",
                )
            sizes[byte] = entry.size_bytes
        return sizes

    def _check_size(self, byte: int, size_bytes: int) -> None:
        if size_bytes != self.file_size_bytes:
            raise CorruptFileError(
                f"{self.directory}/{file_name(byte)}",
                f"is {size_bytes} bytes long, not {self.file_size_bytes} as {self._size_setting} "
                "says; correct the setting, or move the file away to go on without what is in it",
            )

    def _lengthen(self, byte: int, sizes: dict[int, int]) -> None:
        """Give a file its size of which a power loss took a part before it was made durable."""
        if sizes[byte] >= self.file_size_bytes:
            return
        sizes[byte] = self.file_size_bytes
        if not self.is_writable:
            return
        file = self.fs.open(f"{self.directory}/{file_name(byte)}")
        try:
            file.truncate(self.file_size_bytes)
            file.sync()
        finally:
            file.close()

    def _set_spares_apart(self, bytes_: list[int], sizes: dict[int, int]) -> None:
        """
        Take files of zeros off the end of the list: they were made ahead and never used.

        A crash may have left one short; nothing stands in it, so that it is given its size.
        """
        while len(bytes_) > 1 or (bytes_ and bytes_[0] == 0):
            byte = bytes_[-1]
            is_short = sizes[byte] < self.file_size_bytes and not self.is_clean
            if sizes[byte] != self.file_size_bytes and not is_short:
                return
            file = self.fs.open(f"{self.directory}/{file_name(byte)}", writable=self.is_writable)
            try:
                if holds_something(file, 0):
                    return
                if is_short and self.is_writable:
                    file.truncate(self.file_size_bytes)
                    file.sync()
            finally:
                file.close()
            self._spares.add(bytes_.pop() // self.offset_bytes)

    # files

    def create(self, base_offset: int) -> MappedFileT:
        """
        Create the file that starts at `base_offset`, or take the spare; make the next spare.

        Its size and its name are durable before anything stands in it: so no crash leaves a file
        of a wrong size, which Java would refuse, or a hole in the sequence.

        Raises:
            MissingSegmentError: the log is only read, and there is nothing to read.

        """
        file = self._segment(base_offset)
        if base_offset % self._offsets_per_file:
            raise MissingSegmentError(f"{file.path}: no file begins at offset {base_offset}")
        if not self.is_writable:
            raise MissingSegmentError(f"{file.path}: is not there, and the log is only read")
        if base_offset not in self._spares:
            is_first = not self._bases
            self._create_file(file.path, is_deferred=is_first and self.defers_first_sync)
        self._spares.discard(base_offset)
        if base_offset not in self._bases:
            insort(self._bases, base_offset)
        if self.makes_spare:
            self._make_spare(base_offset + self._offsets_per_file)
        return file

    def _create_file(self, path: str, *, is_deferred: bool = False) -> None:
        self._make_directories()
        file = self.fs.open(path, create=True)
        try:
            if file.size():
                file.truncate(0)  # left over; old entries must not come back behind new ones
            file.truncate(self.file_size_bytes)
            if not is_deferred:
                file.sync()
        except OSError:
            # One whose size may not last must not be taken for a spare by the next start.
            with suppress(OSError):
                self.fs.remove(path)
            raise
        finally:
            file.close()
        self._unsynced.append(self.directory)
        if not is_deferred:
            self.sync_names()

    def _make_directories(self) -> None:
        made = self.directory
        parents: list[str] = []
        while not self.fs.is_directory(made):
            made = made.rpartition("/")[0] or "/"
            parents.append(made)
        if parents:
            self.fs.make_directory(self.directory)
            self._unsynced += parents

    def sync_names(self) -> None:
        """Make the names of files and directories durable that are not; in any thread."""
        names = list(self._unsynced)
        for name in dict.fromkeys(names):
            try:
                self.fs.sync_directory(name)
            except FileNotFoundError:  # the topic went meanwhile: nothing there is to last
                if self.fs.exists(name):
                    raise
        del self._unsynced[: len(names)]

    def _make_spare(self, base_offset: int) -> None:
        """Make the next file ahead; where that fails the next roll tries again."""
        if base_offset in self._spares or base_offset in self._bases:
            return
        try:
            self._create_file(self.path(base_offset))
        except OSError as error:
            _log.warning("%s: cannot be made ahead: %s", self.path(base_offset), error)
        else:
            self._spares.add(base_offset)

    def open(self, base_offset: int, *, is_active: bool) -> MappedFileT:
        """
        Open a file that is on disk.

        One that is not the last counts as full: what stands in it is looked at when it is read.
        """
        file = self._segment(base_offset)
        if is_active:
            self._load_end(file)
        else:
            file.next_offset = self._bases[bisect_right(self._bases, base_offset)]
            file.end_position = self.file_size_bytes
        file.recovery_point = file.next_offset
        return file

    def _load_end(self, file: MappedFileT) -> None:
        """Find the end of the last file after a clean stop; otherwise a recovery follows."""
        if self.is_clean:
            outcome = file.recover()
            if not outcome.is_clean:
                _log.warning("%s; the log ends there", outcome.reason)

    def remove(self, segment: MappedFileT) -> None:
        """Remove the file; whoever still reads it keeps it until he lets go."""
        segment.close()
        if self.is_writable and self.fs.exists(segment.path):  # a recovery may have kept it aside
            self.fs.remove(segment.path)
        if segment.base_offset in self._bases:
            self._bases.remove(segment.base_offset)

    def remove_spares(self, but: int | None = None) -> None:
        """Remove the files that were made ahead and not used, but the one that starts at `but`."""
        for base_offset in sorted(self._spares - {but}, reverse=True):
            self.fs.remove(self.path(base_offset))
            self._spares.discard(base_offset)

    def _segment(self, base_offset: int) -> MappedFileT:
        file = self._make_file(
            self.fs, self.path(base_offset), base_offset, self.file_size_bytes, self.offset_bytes
        )
        file.is_writable = self.is_writable
        file.aside_directory = self.aside_directory
        file.reset_observations()
        return file
