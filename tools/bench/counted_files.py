"""Files that count what is read of them."""

from __future__ import annotations

import os

from logstore.os_host import SystemFile, SystemFileSystem


class CountedFile(SystemFile):
    """A file whose reads are added up in its file system."""

    __slots__ = ("_files",)

    def __init__(self, files: CountedFileSystem, path: str, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._files = files

    def read(self, position: int, size_bytes: int) -> bytes:
        """Read, and count."""
        data = super().read(position, size_bytes)
        self._files.read_bytes += len(data)
        return data

    def read_into(self, position: int, target: memoryview[int]) -> int:
        """Read, and count."""
        count = super().read_into(position, target)
        self._files.read_bytes += count
        return count


class CountedFileSystem(SystemFileSystem):
    """The real files; `read_bytes` says how much was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes = 0

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """Open a file that counts."""
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        descriptor = os.open(path, flags | os.O_CREAT if create else flags, 0o644)
        return CountedFile(self, path, descriptor)
