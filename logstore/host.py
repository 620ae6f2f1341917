"""
The world as one argument: files, clock and chance.

Nothing in the core or in a layout touches the operating system on its own. It gets a
:class:`Host`; :func:`logstore.os_host.system_host` returns the real one,
:class:`logstore.testing.simulated_host.SimulatedHost` keeps a live and a durable image and can
lose power, tear, flip and fill up.

Paths are absolute ``str`` with ``/`` between their parts. All methods raise ``OSError`` as the
operating system would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import attrs

if TYPE_CHECKING:
    import random

    from typing_extensions import Buffer


class File(Protocol):
    """An open file that is read and written at positions; it has no cursor."""

    path: str

    def size(self) -> int:
        """Return the length in bytes."""
        ...

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        ...

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        ...

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`, or raise; a failed write may leave a part behind."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut or (sparsely) extend the file to `size_bytes`."""
        ...

    def next_data(self, position: int) -> int | None:
        """
        Return the first position from there on that need not be a zero of a hole, None for none.

        Preallocated files are mostly holes: nobody has to read those.
        """
        ...

    def sync(self) -> None:
        """Return once data and size are on stable storage."""
        ...

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sends, or None where there is none."""
        ...

    def close(self) -> None:
        """Give the handle back. Does not sync. Closing twice is fine."""
        ...


class Lock(Protocol):
    """A held lock on a file."""

    def release(self) -> None:
        """Let others in."""
        ...


class DirectoryEntry(NamedTuple):
    """One name in a directory. `size_bytes` is 0 for directories."""

    name: str
    is_directory: bool
    size_bytes: int


class VolumeSpace(NamedTuple):
    """
    The size of a volume, and how much of it this process may still fill.

    `reserved_bytes` are free as well, and for others: root's share, what a quota withholds.
    """

    total_bytes: int
    usable_bytes: int
    reserved_bytes: int = 0


class FileSystem(Protocol):
    """What the store needs of a file system."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """
        Open a file; `create` makes it if missing.

        The name of a new file is durable only after a sync of its directory.
        """
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of that name is there."""
        ...

    def is_directory(self, path: str) -> bool:
        """Tell whether `path` is a directory."""
        ...

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries, sorted by name."""
        ...

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents; fine if it exists."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move atomically, replacing `target`. Durable after a sync of the directory."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; fine if it is not there."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in the directory durable."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in ms since the epoch."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Say when the file was last written: what is made from another may keep its age."""
        ...

    def volume_space(self, path: str) -> VolumeSpace:
        """Return the space of the volume that the file or directory is on."""
        ...

    def lock(self, path: str) -> Lock:
        """
        Take the exclusive POSIX record lock on `path`, which is created if missing.

        Raises:
            BlockingIOError: another process has it.

        """
        ...


class Clock(Protocol):
    """Two clocks: one that people read, one that only goes forward."""

    def wall_ms(self) -> int:
        """Return ms since the epoch; may jump."""
        ...

    def monotonic_ms(self) -> float:
        """Return ms since some start; never goes back."""
        ...


@attrs.frozen
class Host:
    """Files, clock and chance, given to constructors."""

    fs: FileSystem
    clock: Clock
    rng: random.Random


def read_file(fs: FileSystem, path: str) -> bytes:
    """Return a whole (small) file."""
    file = fs.open(path, writable=False)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def write_file(fs: FileSystem, path: str, data: bytes, *, sync: bool = True) -> None:
    """
    Replace a (small) file so that a reader sees the old or the new content, never a mix.

    Writes ``<path>.tmp``, syncs it, renames it and syncs the directory: the order in which Kafka
    and RocketMQ write their checkpoints. `sync=False` leaves out both syncs.
    """
    temporary = f"{path}.tmp"
    file = fs.open(temporary, create=True)
    try:
        if file.size():
            file.truncate(0)  # what an interrupted attempt left behind
        file.write(0, data)
        if sync:
            file.sync()
    finally:
        file.close()
    fs.rename(temporary, path)
    if sync:
        fs.sync_directory(path.rpartition("/")[0])
