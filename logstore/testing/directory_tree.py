"""The names of a simulated disk: the tree that the process sees, and which of it is durable."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from functools import lru_cache

import attrs

from logstore.testing.file_image import FileImage
from logstore.testing.power_loss import Kept


def os_error(code: int, path: str) -> OSError:
    """Return what the operating system raises: ENOENT becomes FileNotFoundError, and so on."""
    return OSError(code, errno.errorcode[code], path)


class DirectoryImage:
    """One directory: names, and what they stand for now."""

    __slots__ = ("entries", "modified_ms", "number")

    def __init__(self, number: int, modified_ms: int) -> None:
        self.number = number
        self.modified_ms = modified_ms
        self.entries: dict[str, Node] = {}


Node = FileImage | DirectoryImage


@attrs.frozen
class Binding:
    """One name in one directory, and what it stands for before and after a change."""

    directory: DirectoryImage
    name: str
    before: Node | None
    after: Node | None

    @property
    def key(self) -> tuple[int, str]:
        """What identifies the name."""
        return self.directory.number, self.name


def _directory_twin(directory: DirectoryImage, twins: dict[int, Node]) -> DirectoryImage:
    """Return the twin of a directory and of all in it; `twins` holds those made, by number."""
    found = twins.get(directory.number)
    if isinstance(found, DirectoryImage):
        return found
    twin = twins[directory.number] = DirectoryImage(directory.number, directory.modified_ms)
    for name, node in directory.entries.items():
        twin.entries[name] = _twin(node, twins)
    return twin


def _twin(node: Node, twins: dict[int, Node]) -> Node:
    if isinstance(node, DirectoryImage):
        return _directory_twin(node, twins)
    found = twins.get(node.number)
    if found is None:
        found = twins[node.number] = node.copy()
    return found


def _binding_twin(binding: Binding, twins: dict[int, Node]) -> Binding:
    before, after = (
        None if node is None else _twin(node, twins) for node in (binding.before, binding.after)
    )
    return Binding(_directory_twin(binding.directory, twins), binding.name, before, after)


class DirectoryTree:
    """
    The live tree and the changes of names that are not durable yet.

    A change (a creation, a removal, a rename with its two names) survives whole or not at all. It
    survives only together with all earlier changes of the same names and with the creation of the
    directory that it is in, because every file system orders at least those; unrelated changes
    survive in any combination.
    """

    def __init__(self, modified_ms: int) -> None:
        self.root = DirectoryImage(0, modified_ms)
        self._count = 0
        self._unsynced: list[tuple[Binding, ...]] = []

    def copy(self) -> DirectoryTree:
        """Return an equal tree that goes its own way, with files of its own."""
        twins: dict[int, Node] = {}
        twin = DirectoryTree.__new__(DirectoryTree)
        twin.root = _directory_twin(self.root, twins)
        twin._count = self._count
        twin._unsynced = [
            tuple(_binding_twin(binding, twins) for binding in change) for change in self._unsynced
        ]
        return twin

    def next_number(self) -> int:
        """Return a number for a new file or directory; never the same twice."""
        self._count += 1
        return self._count

    def find(self, path: str) -> Node | None:
        """Return what `path` stands for, or None where a part of it is missing."""
        node: Node = self.root
        for name in parts_of(path):
            if not isinstance(node, DirectoryImage):
                raise os_error(errno.ENOTDIR, path)
            found = node.entries.get(name)
            if found is None:
                return None
            node = found
        return node

    def directory(self, path: str) -> DirectoryImage:
        """Return the directory at `path`, or raise ENOENT or ENOTDIR."""
        node = self.find(path)
        if node is None:
            raise os_error(errno.ENOENT, path)
        if not isinstance(node, DirectoryImage):
            raise os_error(errno.ENOTDIR, path)
        return node

    def parent(self, path: str) -> tuple[DirectoryImage, str]:
        """Return the directory that holds, or would hold, the last name of `path`."""
        head, _, name = path.rstrip("/").rpartition("/")
        return self.directory(head), name

    def binding(self, path: str, after: Node | None) -> Binding:
        """Return the change of one name, not made yet."""
        directory, name = self.parent(path)
        return Binding(directory, name, directory.entries.get(name), after)

    def bind(self, modified_ms: int, *change: Binding) -> None:
        """Make one atomic change of names; it is durable once a directory of it is synced."""
        for binding in change:
            put(binding, binding.after)
            binding.directory.modified_ms = modified_ms
        self._unsynced.append(change)

    def sync(self, directory: DirectoryImage) -> None:
        """Make the names in `directory` durable, with the changes that they build upon."""
        remaining: list[tuple[Binding, ...]] = []
        keys: set[tuple[int, str]] = set()
        for change in reversed(self._unsynced):
            own = {binding.key for binding in change}
            if own & keys or any(binding.directory is directory for binding in change):
                keys |= own
            else:
                remaining.append(change)
        self._unsynced = remaining[::-1]

    def unsynced_names(self, directory: DirectoryImage) -> list[str]:
        """Return the names in `directory` of which a power loss may undo the latest change."""
        return sorted(
            {b.name for change in self._unsynced for b in change if b.directory is directory}
        )

    def lose_power(self, names: Kept, rng: random.Random) -> None:
        """Become what the medium may hold."""
        lost = self._unsynced if names is Kept.NOTHING else []
        if names is Kept.SOME:
            lost = self._pick_lost(rng)
        for change in reversed(lost):
            for binding in change:
                put(binding, binding.before)
        self._unsynced = []

    def _pick_lost(self, rng: random.Random) -> list[tuple[Binding, ...]]:
        chance = rng.random()
        lost: list[tuple[Binding, ...]] = []
        keys: set[tuple[int, str]] = set()
        missing: set[int] = set()  # directories whose creation is lost
        for change in self._unsynced:
            own = {binding.key for binding in change}
            is_homeless = any(binding.directory.number in missing for binding in change)
            if is_homeless or own & keys or rng.random() >= chance:
                lost.append(change)
                keys |= own
                if len(change) == 1 and isinstance(change[0].after, DirectoryImage):
                    missing.add(change[0].after.number)
        return lost

    def files(self) -> Iterator[FileImage]:
        """Yield every file that has a name."""
        pending = [self.root]
        while pending:
            for node in pending.pop().entries.values():
                if isinstance(node, DirectoryImage):
                    pending.append(node)
                else:
                    yield node


@lru_cache(4096)  # a power loss at every point asks for the same few paths a hundred thousand times
def parts_of(path: str) -> tuple[str, ...]:
    """Split an absolute path into its names."""
    assert path.startswith("/") or not path, f"{path!r} is not absolute"
    names = tuple(name for name in path.split("/") if name)
    assert "." not in names, f"{path!r} is not normal"
    assert ".." not in names, f"{path!r} is not normal"
    return names


def put(binding: Binding, node: Node | None) -> None:
    """Let the name of `binding` stand for `node`."""
    if node is None:
        binding.directory.entries.pop(binding.name, None)
    else:
        binding.directory.entries[binding.name] = node
