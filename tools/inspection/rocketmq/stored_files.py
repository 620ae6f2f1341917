"""
The files of one log of a store as they stand: commit log, queue, extension, timer log.

Unlike :mod:`~logstore.segments.rocketmq.files.mapped_file_directory` this refuses nothing: what is
strange about the files is listed, and what is there can be read.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import attrs

from logstore.host import File, FileSystem
from logstore.segments.rocketmq.files.mapped_file_directory import file_name
from logstore.segments.rocketmq.opening.found_sizes import usual_length


@attrs.frozen
class StoredFile:
    """One file: its place, its path below the store, the byte of its log with which it begins."""

    path: str
    relative: str
    base: int
    size_bytes: int

    @property
    def end(self) -> int:
        """The byte of the log behind the file."""
        return self.base + self.size_bytes

    @property
    def has_full_name(self) -> bool:
        """Whether its name is one that a broker gives."""
        return self.path.endswith(f"/{file_name(self.base)}")


@attrs.frozen
class Oddity:
    """What is wrong with the files of a log as files; `relative` names the one."""

    kind: str
    relative: str
    reason: str


class StoredFiles:
    """
    The files in one folder of a store, by the numbers that are their names.

    `size_bytes` is how long each must be; where nothing is said most files show it.
    """

    def __init__(
        self, fs: FileSystem, store: str, folder: str, size_bytes: int | None = None
    ) -> None:
        self.fs = fs
        self.folder = folder
        self.oddities: list[Oddity] = []
        self._opened: tuple[str, File] | None = None
        path = f"{store}/{folder}"
        entries = fs.list_directory(path) if fs.is_directory(path) else []
        self.files: list[StoredFile] = []
        for entry in entries:
            relative = f"{folder}/{entry.name}"
            if entry.is_directory:
                continue
            if not (entry.name.isascii() and entry.name.isdigit()):
                reason = "its name is no number, and a broker refuses the store; move it away"
                self.oddities.append(Oddity("name", relative, reason))
                continue
            self.files.append(
                StoredFile(f"{path}/{entry.name}", relative, int(entry.name), entry.size_bytes)
            )
        self.files.sort(key=lambda file: file.base)
        places = [(file.base, file.size_bytes) for file in self.files]
        self.size_bytes = size_bytes or usual_length([places])
        self._judge()

    def _judge(self) -> None:
        last = self.files[-1] if self.files else None
        for file in self.files:
            if file.size_bytes == self.size_bytes:
                continue
            if file is last and not file.size_bytes:
                reason = "is empty, and the last one: the next start removes it"
            else:
                reason = (
                    f"is {file.size_bytes} bytes long, not {self.size_bytes} as the others or the "
                    "setting; a broker refuses the store: put the right file back, or salvage"
                )
            self.oddities.append(Oddity("size", file.relative, reason))
        for file in self.files:
            if not file.has_full_name or (self.size_bytes and file.base % self.size_bytes):
                reason = f"no file of {self.size_bytes} bytes begins at byte {file.base}"
                self.oddities.append(Oddity("name", file.relative, reason))
        for one, following in pairwise(self.files):
            expected = one.base + self.size_bytes
            if following.base > expected:
                reason = (
                    f"is missing, but {file_name(following.base)} is there; put it back, or move "
                    "the files behind it away, to go on without what stands in them"
                )
                self.oddities.append(Oddity("hole", f"{self.folder}/{file_name(expected)}", reason))

    @property
    def start(self) -> int:
        """The first byte that there is."""
        return self.files[0].base if self.files else 0

    @property
    def end(self) -> int:
        """The byte behind the last file."""
        return self.files[-1].end if self.files else 0

    def file_of(self, byte: int) -> StoredFile | None:
        """Return the file that holds a byte of the log."""
        number = bisect_right([file.base for file in self.files], byte) - 1
        if number < 0 or byte >= self.files[number].end:
            return None
        return self.files[number]

    def open(self, file: StoredFile) -> File:
        """Return a handle of the file; it is good until another file is asked for."""
        if self._opened is None or self._opened[0] != file.path:
            self.close()
            self._opened = (file.path, self.fs.open(file.path, writable=False))
        return self._opened[1]

    def read(self, byte: int, size_bytes: int) -> bytes:
        """Return bytes of one file; fewer where it ends, none where there is no file."""
        file = self.file_of(byte)
        if file is None:
            return b""
        return self.open(file).read(byte - file.base, size_bytes)

    def close(self) -> None:
        """Give the handle back."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None
