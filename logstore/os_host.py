"""The real world: only this, `passing_files` and `streamed_files` touch the operating system."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import time
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from logstore.host import DirectoryEntry, Host, VolumeSpace

if TYPE_CHECKING:
    from typing_extensions import Buffer

_pwrite = os.pwrite  # a name less to look up in every append
#: what makes macOS's disks write what they hold; its fsync does not
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def sync_data(descriptor: int) -> None:
    """Return once data and size are on stable storage, as Java's ``FileChannel.force`` does."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
        return
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise  # what the disk refused once it may not tell again
        else:
            return
    os.fsync(descriptor)


class SystemFile:
    """
    A file descriptor that reads and writes at positions.

    Its errors name the file: the system knows only a number.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def size(self) -> int:
        """Return the length in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        try:
            data = os.pread(self._descriptor, size_bytes, position)
            if len(data) == size_bytes or not data:
                return data
            pieces = [data]
            remaining = size_bytes - len(data)
            while remaining and (
                data := os.pread(self._descriptor, remaining, position + size_bytes - remaining)
            ):
                pieces.append(data)
                remaining -= len(data)
        except OSError as error:
            error.filename = self.path
            raise
        return b"".join(pieces)

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        done = 0
        try:
            while done < len(target):
                count = os.preadv(self._descriptor, [target[done:]], position + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            error.filename = self.path
            raise
        return done

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`, or raise OSError that names the file."""
        try:
            written = _pwrite(self._descriptor, data, position)
            size_bytes = len(data) if type(data) is memoryview else memoryview(data).nbytes
            while written < size_bytes:
                rest = memoryview(data)[written:]
                written += os.pwrite(self._descriptor, rest, position + written)
        except OSError as error:
            error.filename = self.path
            raise

    def truncate(self, size_bytes: int) -> None:
        """Cut or (sparsely) extend the file to `size_bytes`."""
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            error.filename = self.path
            raise

    def next_data(self, position: int) -> int | None:
        """Return the first position from there on that need not be a zero of a hole, or None."""
        try:
            return os.lseek(self._descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
            return position if position < self.size() else None  # a file system without holes

    def sync(self) -> None:
        """Return once data and size are on stable storage."""
        try:
            sync_data(self._descriptor)
        except OSError as error:
            error.filename = self.path
            raise

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sends."""
        return self._descriptor

    def release(self) -> int:
        """Return the descriptor, which is the caller's to close from now on."""
        descriptor, self._descriptor = self._descriptor, -1
        return descriptor

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class SystemLock:
    """
    A POSIX record lock, the kind that Java's FileChannel takes, so the real brokers see it.

    It belongs to the process: the kernel grants it to the same process twice, and drops it when
    any descriptor of the file is closed. Hence the table of what this process holds, looked up
    before the file is opened again.
    """

    #: real paths of the locks that this process holds
    held: ClassVar[set[str]] = set()
    #: (device, inode) of the same files, by which every name of such a file is known
    held_files: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, real_path: str, descriptor: int) -> None:
        self._real_path = real_path
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._file = (status.st_dev, status.st_ino)
        SystemLock.held.add(real_path)
        SystemLock.held_files.add(self._file)

    @staticmethod
    def is_held(path: str) -> bool:
        """Tell whether this process holds a lock on the file, whatever name it has here."""
        if not SystemLock.held_files:
            return False
        try:
            status = os.stat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in SystemLock.held_files

    def release(self) -> None:
        """Let others in."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            SystemLock.held.discard(self._real_path)
            SystemLock.held_files.discard(self._file)


class SystemFileSystem:
    """The operating system's files."""

    #: what a file is that is opened to be read alone
    read_only_file: ClassVar[type[SystemFile]] = SystemFile

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """
        Open a file for reading and, unless told otherwise, writing at positions.

        Raises:
            BlockingIOError: this process holds the lock on it, and would lose it on closing.

        """
        if SystemLock.is_held(path):
            reason = "this process holds its lock, and would lose it by opening the file"
            raise BlockingIOError(errno.EAGAIN, reason, path)
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        descriptor = os.open(path, flags | os.O_CREAT if create else flags, 0o644)
        return (SystemFile if writable else self.read_only_file)(path, descriptor)

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of that name is there."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Tell whether `path` is a directory."""
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries, sorted by name."""
        found: list[DirectoryEntry] = []
        with os.scandir(path) as entries:
            for entry in entries:
                is_directory = entry.is_dir()
                try:
                    size_bytes = 0 if is_directory else entry.stat().st_size
                except FileNotFoundError:
                    continue  # removed between the listing and the look at it
                found.append(DirectoryEntry(entry.name, is_directory, size_bytes))
        found.sort(key=attrgetter("name"))
        return found

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents; fine if it exists."""
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move atomically, replacing `target`."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.remove(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; fine if it is not there."""
        import shutil  # rarely used, and it loads every codec of the standard library

        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in the directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in ms since the epoch."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Say when the file was last written."""
        os.utime(path, ns=(os.stat(path).st_atime_ns, modified_ms * 1_000_000))

    def volume_space(self, path: str) -> VolumeSpace:
        """Return what Java's ``FileStore`` calls total and usable: without what is root's alone."""
        volume = os.statvfs(path)
        return VolumeSpace(
            total_bytes=volume.f_blocks * volume.f_frsize,
            usable_bytes=volume.f_bavail * volume.f_frsize,
            reserved_bytes=max(0, volume.f_bfree - volume.f_bavail) * volume.f_frsize,
        )

    def lock(self, path: str) -> SystemLock:
        """Take the exclusive record lock on `path` or raise BlockingIOError."""
        real_path = os.path.realpath(path)
        if real_path in SystemLock.held or SystemLock.is_held(path):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(descriptor)
            raise
        return SystemLock(real_path, descriptor)


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Return ms since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Return ms since some start; never goes back."""
        return time.monotonic_ns() / 1_000_000


def system_host(seed: int | None = None) -> Host:
    """Return the real world; `seed` makes its random numbers repeatable."""
    return Host(SystemFileSystem(), SystemClock(), random.Random(seed))
