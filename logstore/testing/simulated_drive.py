"""
What lies below a simulated file system: names and bytes, power, damage, faults, and a journal.

Knows nothing of open files. They, and the file system, know the drive.
"""

from __future__ import annotations

import copy
import errno
import random
from collections.abc import Iterator

from logstore.host import Clock, Lock
from logstore.testing.directory_tree import DirectoryImage, DirectoryTree, os_error
from logstore.testing.disk_faults import DiskFaults, Fault, FaultKind
from logstore.testing.disk_journal import DiskJournal
from logstore.testing.file_image import SECTOR_BYTES, FileImage
from logstore.testing.power_loss import LOSE_UNSYNCED, PowerLoss, PowerLost


class SimulatedDrive:
    """
    What is stored, whether there is power, and what goes wrong.

    :class:`logstore.testing.simulated_disk.SimulatedDisk` is the file system on it, and what tests
    hold in their hands.
    """

    def __init__(self, clock: Clock, *, sector_bytes: int = SECTOR_BYTES) -> None:
        self.clock = clock
        self.sector_bytes = sector_bytes
        self.journal = DiskJournal()
        self.faults = DiskFaults()
        #: counts power losses and deaths of the process; handles of an earlier life are dead
        self.life = 0
        #: how many state-changing operations were begun
        self.operation_count = 0
        self.is_off = False
        self._off_at: int | None = None
        self._tree = DirectoryTree(clock.wall_ms())
        self._locks: dict[int, Lock] = {}

    # Power.

    def cut_power_after(self, count: int) -> None:
        """Let `count` more state-changing operations happen; the next one raises PowerLost."""
        self._off_at = self.operation_count + count

    def power_loss(self, loss: PowerLoss = LOSE_UNSYNCED) -> None:
        """Lose power, and come back with what the medium holds; the journal goes on."""
        rng = random.Random(loss.seed)
        self._tree.lose_power(loss.names, rng)
        for image in sorted(self._tree.files(), key=lambda image: image.number):
            image.lose_power(loss, rng)
        self.journal.record("power_loss", "", -1)
        self.process_death()

    def process_death(self) -> None:
        """Let the process die and start again: handles and locks are gone, all writes stay."""
        self.life += 1
        self.is_off = False
        self._off_at = None
        self._locks.clear()

    def unsynced_paths(self) -> list[str]:
        """Return the files whose content, and names whose existence, a power loss may change."""
        return sorted(set(self._unsynced_below("", self._tree.root)))

    # Damage.

    def fill_up(self, free_bytes: int = 0) -> None:
        """Let the disk have room for `free_bytes` more; ``faults.clear()`` ends it."""
        self.faults.capacity_bytes = self.used_bytes + free_bytes

    def flip(self, path: str, position: int, bit: int = 0) -> None:
        """Flip one bit on the medium, unseen by everyone."""
        byte = self._file(path).content.read(position, 1)
        assert byte, f"{path} has no byte at {position}"
        self.damage(path, position, bytes([byte[0] ^ 1 << bit]))

    def damage(self, path: str, position: int, data: bytes) -> None:
        """Overwrite bytes on the medium, as far as the file reaches, unseen by everyone."""
        content = self._file(path).content
        start, stop = max(0, position), min(position + len(data), content.size_bytes)
        if start < stop:
            content.write(start, data[start - position : stop - position])

    @property
    def used_bytes(self) -> int:
        """How much the files take; holes are free."""
        return sum(image.content.stored_bytes for image in self._tree.files())

    @property
    def free_bytes(self) -> int | None:
        """How much more fits, or None where there is no limit."""
        capacity_bytes = self.faults.capacity_bytes
        return None if capacity_bytes is None else max(0, capacity_bytes - self.used_bytes)

    # For the file system, its open files and its locks.

    def look(self, kind: FaultKind, path: str) -> None:
        """Let an operation that changes nothing begin: raise if it is to fail."""
        self.check_power()
        if self.faults.planned:
            raise_planned(self.faults.strike(kind, path), path)

    def begin(self, kind: FaultKind, path: str) -> Fault | None:
        """Let a state-changing operation begin; return the planned fault that it meets."""
        self._count_operation(path, changes=kind not in ("sync", "sync_directory"))
        return self.faults.strike(kind, path) if self.faults.planned else None

    def check_power(self) -> None:
        """Raise PowerLost while the power is off."""
        if self.is_off:
            raise PowerLost("the power is off")

    def unlock(self, file: int, lock: Lock) -> None:
        """Release `lock` if it is still held."""
        if self._locks.get(file) is lock:
            del self._locks[file]

    def resemble(self, other: SimulatedDrive) -> None:
        """Become an equal of `other` that goes its own way; locks stay with the other."""
        self.journal = other.journal.copy()
        self.faults, self._tree = copy.deepcopy(other.faults), other._tree.copy()
        self.life = other.life
        self.operation_count = other.operation_count
        self.is_off = other.is_off
        self._off_at = other._off_at

    @property
    def _names(self) -> DirectoryTree:
        self.check_power()
        return self._tree

    def _count_operation(self, path: str, *, changes: bool) -> None:
        self.is_off = self.is_off or self.operation_count == self._off_at
        self.check_power()
        self.operation_count += 1
        if changes and self.faults.is_read_only:
            raise os_error(errno.EROFS, path)

    def _file(self, path: str) -> FileImage:
        node = self._tree.find(path)
        assert isinstance(node, FileImage), f"{path} is not a file"
        return node

    def _unsynced_below(self, path: str, directory: DirectoryImage) -> Iterator[str]:
        yield from (f"{path}/{name}" for name in self._tree.unsynced_names(directory))
        for name, node in directory.entries.items():
            if isinstance(node, DirectoryImage):
                yield from self._unsynced_below(f"{path}/{name}", node)
            elif not node.is_synced:
                yield f"{path}/{name}"


def raise_planned(fault: Fault | None, path: str) -> None:
    """Raise what the fault says, if there is one."""
    if fault is not None and fault.code is not None:
        raise os_error(fault.code, path)
