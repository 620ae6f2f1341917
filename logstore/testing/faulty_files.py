"""
The operating system's files, some of whose operations fail because a test says so.

What can be planned is what :class:`~logstore.testing.disk_faults.DiskFaults` plans. What shows only
when power is lost, as a lying sync or one that drops pages, shows on the simulated disk alone.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from logstore.os_host import SystemFile, SystemFileSystem, SystemLock
from logstore.testing.disk_faults import DiskFaults, Fault, FaultKind

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.host import DirectoryEntry, VolumeSpace


def _refusal(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class FaultyFile(SystemFile):
    """A file that asks before each operation whether it is to fail."""

    __slots__ = ("_faults",)

    def __init__(self, path: str, descriptor: int, faults: DiskFaults) -> None:
        super().__init__(path, descriptor)
        self._faults = faults

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        self._meet("read")
        return super().read(position, size_bytes)

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        self._meet("read")
        return super().read_into(position, target)

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data`; a planned failure leaves as much behind as it was told to."""
        faults = self._faults
        if faults.planned or faults.is_read_only or faults.capacity_bytes is not None:
            self._meet_writing(position, memoryview(data).cast("B"))
        else:
            super().write(position, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut or (sparsely) extend the file to `size_bytes`."""
        self._meet("truncate")
        if self._faults.is_read_only:
            raise _refusal(errno.EROFS, self.path)
        super().truncate(size_bytes)

    def sync(self) -> None:
        """Return once data and size are on stable storage."""
        self._meet("sync")
        if not self._faults.sync_lies:
            super().sync()

    def fileno(self) -> int | None:
        """Return the descriptor; None while reads are to fail, or the kernel would read past us."""
        if any(fault.kind == "read" for fault in self._faults.planned):
            return None
        return super().fileno()

    def _meet(self, kind: FaultKind) -> None:
        if self._faults.planned:
            fault = self._faults.strike(kind, self.path)
            if fault is not None and fault.code is not None:
                raise _refusal(fault.code, self.path)

    def _meet_writing(self, position: int, data: memoryview) -> None:
        if self._faults.is_read_only:
            raise _refusal(errno.EROFS, self.path)
        fault = self._faults.strike("write", self.path)
        if fault is None:
            self._write_what_fits(position, data)
        elif fault.code is not None:
            super().write(position, data[: fault.partial_bytes])
            raise _refusal(fault.code, self.path)
        else:
            self._write_elsewhere(fault, position, data)

    def _write_what_fits(self, position: int, data: memoryview) -> None:
        capacity_bytes = self._faults.capacity_bytes
        grown_bytes = position + len(data) - self.size()
        if capacity_bytes is None or grown_bytes <= 0:
            super().write(position, data)
            return
        self._faults.capacity_bytes = max(0, capacity_bytes - grown_bytes)
        excess_bytes = max(0, grown_bytes - capacity_bytes)
        super().write(position, data[: len(data) - excess_bytes])
        if excess_bytes:
            raise _refusal(errno.ENOSPC, self.path)

    def _write_elsewhere(self, fault: Fault, position: int, data: memoryview) -> None:
        """Acknowledge a write that lands in the wrong place, or nowhere but in the file's size."""
        if self.size() < position + len(data):
            super().truncate(position + len(data))
        path, start = fault.target or self.path, position + fault.shift_bytes
        if fault.target is not None or fault.shift_bytes:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                room_bytes = max(0, os.fstat(descriptor).st_size - start)
                os.pwrite(descriptor, data[:room_bytes], start)
            finally:
                os.close(descriptor)


class FaultyFileSystem(SystemFileSystem):
    """
    The operating system's files with the failures planned in `faults`.

    ``faults.capacity_bytes`` is how much files may still grow, all of them together.
    """

    def __init__(self, faults: DiskFaults | None = None) -> None:
        self.faults = DiskFaults() if faults is None else faults

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FaultyFile:
        """Open a file, as :meth:`SystemFileSystem.open` does."""
        self._meet("open", path, changes=create and not self.exists(path))
        file = super().open(path, create=create, writable=writable)
        return FaultyFile(path, file.release(), self.faults)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries, sorted by name."""
        self._meet("list_directory", path)
        return super().list_directory(path)

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents; fine if it exists."""
        self._meet("make_directory", path, changes=not self.exists(path))
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        """Move atomically, replacing `target`."""
        self._meet("rename", source, changes=True)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._meet("remove", path, changes=True)
        super().remove(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; fine if it is not there."""
        self._meet("remove_directory", path, changes=True)
        super().remove_directory(path)

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in the directory durable."""
        self._meet("sync_directory", path)
        if not self.faults.sync_lies:
            super().sync_directory(path)

    def volume_space(self, path: str) -> VolumeSpace:
        """Return the space of the volume; of a full one what is left of its capacity."""
        self._meet("volume_space", path)
        space = super().volume_space(path)
        capacity_bytes = self.faults.capacity_bytes
        if capacity_bytes is None:
            return space
        return space._replace(usable_bytes=min(space.usable_bytes, capacity_bytes))

    def lock(self, path: str) -> SystemLock:
        """Take the exclusive record lock on `path` or raise BlockingIOError."""
        self._meet("lock", path)
        return super().lock(path)

    def _meet(self, kind: FaultKind, path: str, *, changes: bool = False) -> None:
        if changes and self.faults.is_read_only:
            raise _refusal(errno.EROFS, path)
        if self.faults.planned:
            fault = self.faults.strike(kind, path)
            if fault is not None and fault.code is not None:
                raise _refusal(fault.code, path)
