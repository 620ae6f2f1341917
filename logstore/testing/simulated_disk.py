"""
A disk in memory that can lose power, tear, lie, flip, misdirect and fill up.

What survives a power loss (:meth:`SimulatedDisk.power_loss`), and what may not:

- **Synced data stays.** After ``File.sync`` the file's bytes and its size survive; before, every
  512-byte sector of the file holds any one of the versions that it had since the last sync, each
  sector on its own. Writes are therefore torn at sector boundaries and reordered; a sector itself
  is written whole (disks promise 512 bytes), so that a tear inside of a sector happens only where a
  test asks for it (``PowerLoss.torn``). Tests with tiny files may ask for tiny sectors.
- **The size is on its own too.** It is one of the sizes since the last sync, or lies between them
  on a sector boundary. A size that survives without its data shows zeros; data that survives
  without its size is cut off. Freed blocks of other files never shine through.
- **A truncation is like a write.** Unsynced, it may be undone, and the bytes that it cut come back,
  possibly behind bytes that were appended after it.
- **Names are not data.** Syncing a file does not make its name durable. Creations, renames and
  removals are durable once a directory that holds one of their names is synced; syncing that
  directory does not make its own name durable in its parent. Until then each may be undone, in any
  combination that keeps the order of changes of the same name. A rename is atomic: afterwards its
  target is the old file or the new one. A file removed without a sync of the directory comes back.
- **A name is not data.** A durable name may lead to a file without its bytes.

That is POSIX read without optimism. ext4 in its default mode promises more (it commits names in
order, and syncing a new file saves its name as well); XFS and btrfs promise other parts of it.

The death of the process alone (:meth:`SimulatedDisk.process_death`) loses nothing that was
written. Damage that nobody ordered (:meth:`SimulatedDisk.flip`) and planned faults
(:class:`logstore.testing.disk_faults.DiskFaults`) come on top. A power loss in the middle of an
operation needs no case of its own: it leaves what a power loss after it may leave.

Not simulated: permissions, links, change times after a power loss, threads (callers take turns).
"""

from __future__ import annotations

import errno
from typing import Literal

from logstore.host import Clock, DirectoryEntry, VolumeSpace
from logstore.testing.directory_tree import Binding, DirectoryImage, Node, os_error, parts_of
from logstore.testing.file_image import FileImage
from logstore.testing.simulated_drive import SimulatedDrive, raise_planned
from logstore.testing.simulated_file import SimulatedFile, SimulatedLock

#: the size of a disk that was given none
UNLIMITED_BYTES = 1 << 50

NameChangeKind = Literal["rename", "remove", "make_directory", "remove_directory"]


class SimulatedDisk(SimulatedDrive):
    """A :class:`logstore.host.FileSystem`; the header of this module says what it simulates."""

    # What logstore.host.FileSystem asks for.

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimulatedFile:
        """Open a file; `create` makes it if missing."""
        self.look("open", path)
        node = self._names.find(path)
        if isinstance(node, DirectoryImage):
            raise os_error(errno.EISDIR, path)
        if node is None:
            if not create:
                raise os_error(errno.ENOENT, path)
            node = self._create(path)
        else:
            size_bytes = node.content.size_bytes
            self.journal.record("open", path, node.number, size_bytes=size_bytes)
        return SimulatedFile(self, path, node, is_writable=writable)

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of that name is there."""
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Tell whether `path` is a directory."""
        return isinstance(self._find(path), DirectoryImage)

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries, sorted by name."""
        self.look("list_directory", path)
        entries = self._names.directory(path).entries
        return [
            DirectoryEntry(name, True, 0)
            if isinstance(node, DirectoryImage)
            else DirectoryEntry(name, False, node.content.size_bytes)
            for name, node in sorted(entries.items())
        ]

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents; fine if it exists."""
        below = ""
        names = parts_of(path)
        for name in names:
            below += f"/{name}"
            node = self._names.find(below)
            if isinstance(node, FileImage):
                raise os_error(
                    errno.EEXIST if below.count("/") == len(names) else errno.ENOTDIR, path
                )
            if node is None:
                number = self._names.next_number()
                directory = DirectoryImage(number, self.clock.wall_ms())
                self._bind("make_directory", below, number, self._names.binding(below, directory))

    def rename(self, source: str, target: str) -> None:
        """Move atomically, replacing `target`."""
        removal = self._names.binding(source, None)
        moved = removal.before
        replacement = self._names.binding(target, moved)
        if moved is None:
            raise os_error(errno.ENOENT, source)
        if replacement.before is moved:
            return
        code = reason_against(replacement, parts_of(source), parts_of(target))
        if code is not None:
            raise os_error(code, target)
        self._bind("rename", source, moved.number, replacement, removal, target=target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        node = self._names.find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        if isinstance(node, DirectoryImage):
            raise os_error(errno.EISDIR, path)
        self._bind("remove", path, node.number, self._names.binding(path, None))

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is in it, name by name; fine if it is not there."""
        node = self._names.find(path)
        if node is None:
            return
        if not isinstance(node, DirectoryImage):
            raise os_error(errno.ENOTDIR, path)
        for name in sorted(node.entries):
            below = f"{path.rstrip('/')}/{name}"
            if isinstance(node.entries[name], DirectoryImage):
                self.remove_directory(below)
            else:
                self.remove(below)
        self._bind("remove_directory", path, node.number, self._names.binding(path, None))

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in the directory durable."""
        directory = self._names.directory(path)
        raise_planned(self.begin("sync_directory", path), path)
        if not self.faults.sync_lies:
            self._names.sync(directory)
        self.journal.record("sync_directory", path, directory.number)

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in ms since the epoch."""
        node = self._names.find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        return node.modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Say when the file was last written."""
        node = self._find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        node.modified_ms = modified_ms

    def volume_space(self, path: str) -> VolumeSpace:
        """Return the disk's capacity (a pebibyte where it is not limited), and what is left."""
        self.look("volume_space", path)
        if self._names.find(path) is None:
            raise os_error(errno.ENOENT, path)
        capacity_bytes = self.faults.capacity_bytes
        total_bytes = UNLIMITED_BYTES if capacity_bytes is None else capacity_bytes
        return VolumeSpace(total_bytes, max(0, total_bytes - self.used_bytes))

    def lock(self, path: str) -> SimulatedLock:
        """Take the exclusive lock on `path` (created if missing) or raise BlockingIOError."""
        self.look("lock", path)
        node = self._names.find(path)
        if isinstance(node, DirectoryImage):
            raise os_error(errno.EISDIR, path)
        if node is None:
            node = self._create(path)
        if node.number in self._locks:
            raise os_error(errno.EAGAIN, path)
        self.journal.record("lock", path, node.number)
        lock = self._locks[node.number] = SimulatedLock(self, node.number)
        return lock

    def fork(self, clock: Clock) -> SimulatedDisk:
        """Return an equal disk that goes its own way; open files and locks stay with this one."""
        twin = SimulatedDisk(clock, sector_bytes=self.sector_bytes)
        twin.resemble(self)
        return twin

    def _find(self, path: str) -> Node | None:
        try:
            return self._names.find(path)
        except NotADirectoryError:
            return None

    def _create(self, path: str) -> FileImage:
        image = FileImage(self._names.next_number(), self.clock.wall_ms(), self.sector_bytes)
        binding = self._names.binding(path, image)
        self._count_operation(path, changes=True)
        self._names.bind(self.clock.wall_ms(), binding)
        self.journal.record("create", path, image.number)
        return image

    def _bind(
        self, kind: NameChangeKind, path: str, file: int, *change: Binding, target: str = ""
    ) -> None:
        raise_planned(self.begin(kind, path), path)
        self._names.bind(self.clock.wall_ms(), *change)
        self.journal.record(kind, path, file, target=target)


def reason_against(
    replacement: Binding, source_parts: tuple[str, ...], target_parts: tuple[str, ...]
) -> int | None:
    """Return the error with which Linux refuses a rename, None if it does not."""
    if target_parts[: len(source_parts)] == source_parts:
        return errno.EINVAL
    if source_parts[: len(target_parts)] == target_parts:
        return errno.ENOTEMPTY
    old = replacement.before
    if isinstance(replacement.after, DirectoryImage):
        if isinstance(old, FileImage):
            return errno.ENOTDIR
        return errno.ENOTEMPTY if old is not None and old.entries else None
    return errno.EISDIR if isinstance(old, DirectoryImage) else None
