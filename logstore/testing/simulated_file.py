"""Open files and held locks of a simulated disk."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from logstore.testing.directory_tree import os_error
from logstore.testing.disk_faults import Fault, FaultKind
from logstore.testing.file_image import FileImage
from logstore.testing.simulated_drive import SimulatedDrive, raise_planned

if TYPE_CHECKING:
    from typing_extensions import Buffer


class SimulatedFile:
    """
    A :class:`logstore.host.File` on a :class:`SimulatedDrive`.

    Follows its file through renames and removal. After a power loss or the death of the process
    the handle is dead: everything but ``close`` raises ``OSError(EIO)``.
    """

    __slots__ = ("_drive", "_image", "_is_open", "_is_writable", "_life", "path")

    def __init__(
        self, drive: SimulatedDrive, path: str, image: FileImage, *, is_writable: bool
    ) -> None:
        self.path = path
        self._drive = drive
        self._image = image
        self._is_writable = is_writable
        self._is_open = True
        self._life = drive.life

    def size(self) -> int:
        """Return the length in bytes."""
        self._check()
        return self._image.content.size_bytes

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        self._check()
        self._drive.look("read", self.path)
        if position < 0 or size_bytes < 0:
            raise os_error(errno.EINVAL, self.path)
        return self._image.content.read(position, size_bytes)

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        data = self.read(position, target.nbytes)
        target.cast("B")[: len(data)] = data
        return len(data)

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`; where the disk is full, what fits, and raise."""
        self._check(changes=True)
        if position < 0:
            raise os_error(errno.EINVAL, self.path)
        view = memoryview(data).cast("B")
        fault = self._begin("write")
        code: int | None = None
        if fault is not None and fault.code is None:
            self._write_elsewhere(fault, position, view)
            return
        if fault is not None:
            code = fault.code
            view = view[: fault.partial_bytes]
        free_bytes = self._drive.free_bytes
        if free_bytes is not None:
            fitting = self._image.content.fitting_bytes(position, len(view), free_bytes)
            if fitting < len(view):
                code = code or errno.ENOSPC
                view = view[:fitting]
        if len(view):
            self._image.write(position, view)
            self._changed()
        self._drive.journal.record("write", self.path, self._image.number, position, len(view))
        if code is not None:
            raise os_error(code, self.path)

    def truncate(self, size_bytes: int) -> None:
        """Cut or (sparsely) extend the file to `size_bytes`."""
        self._check(changes=True)
        if size_bytes < 0:
            raise os_error(errno.EINVAL, self.path)
        raise_planned(self._begin("truncate"), self.path)
        self._image.truncate(size_bytes)
        self._changed()
        self._drive.journal.record("truncate", self.path, self._image.number, size_bytes)

    def next_data(self, position: int) -> int | None:
        """Return the first position from there on at which something is stored, or None."""
        self._check()
        return self._image.content.next_stored(position)

    def sync(self) -> None:
        """Return once data and size survive a power loss (unless the disk lies)."""
        self._check()
        fault = self._begin("sync")
        if fault is not None and fault.drops_unsynced:
            self._image.drop_unsynced()
        raise_planned(fault, self.path)
        if not self._drive.faults.sync_lies:
            self._image.sync()
        self._drive.journal.record("sync", self.path, self._image.number)

    def fileno(self) -> int | None:
        """Return None: there is no descriptor."""
        return None

    def close(self) -> None:
        """Give the handle back."""
        self._is_open = False

    def _check(self, *, changes: bool = False) -> None:
        if not self._is_open or (changes and not self._is_writable):
            raise os_error(errno.EBADF, self.path)
        if self._life != self._drive.life:
            raise os_error(errno.EIO, self.path)

    def _begin(self, kind: FaultKind) -> Fault | None:
        return self._drive.begin(kind, self.path)

    def _changed(self) -> None:
        self._image.modified_ms = self._drive.clock.wall_ms()

    def _write_elsewhere(self, fault: Fault, position: int, data: memoryview) -> None:
        """Let the file grow as it should, and the bytes go where they should not, or nowhere."""
        size_bytes = max(self._image.content.size_bytes, position + len(data))
        self._image.truncate(size_bytes)
        self._changed()
        self._drive.journal.record("write", self.path, self._image.number, position, len(data))
        if fault.target is not None:
            self._drive.damage(fault.target, position, bytes(data))
        elif fault.shift_bytes:
            self._drive.damage(self.path, position + fault.shift_bytes, bytes(data))


class SimulatedLock:
    """A held lock; the power loss and the death of the process release it."""

    def __init__(self, drive: SimulatedDrive, file: int) -> None:
        self._drive = drive
        self._file = file

    def release(self) -> None:
        """Let others in."""
        self._drive.unlock(self._file, self)
