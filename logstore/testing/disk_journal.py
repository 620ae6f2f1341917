"""The recording of a simulated disk: what was done to it, in order."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Literal, overload

import attrs

OperationKind = Literal[
    "open",  # `size_bytes` is the length found
    "create",
    "write",  # `position`, `size_bytes`; a failed write is recorded with what it left behind
    "truncate",  # `position` is the new length
    "sync",
    "rename",  # `target` is the new path
    "remove",
    "make_directory",
    "remove_directory",
    "sync_directory",
    "lock",
    "power_loss",
    "note",  # written by the test, not by the disk: see DiskJournal.note
]


@attrs.frozen
class Operation:
    """One thing that was done. `file` identifies the file or directory through all renames."""

    number: int
    kind: OperationKind
    path: str
    file: int = -1
    position: int = 0
    size_bytes: int = 0
    target: str = ""
    value: object = None

    def __str__(self) -> str:
        text = f"{self.number}: {self.kind} {self.path}"
        if self.kind == "write":
            return f"{text} [{self.position}, {self.position + self.size_bytes})"
        if self.kind == "truncate":
            return f"{text} to {self.position}"
        if self.kind == "rename":
            return f"{text} to {self.target}"
        return f"{text} {self.value!r}" if self.kind == "note" else text


class DiskJournal:
    """
    All operations so far, for laws about their order ("sync before rename", "data before index").

    Paths are matched with shell patterns in which ``*`` crosses ``/``: ``*.index``.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        #: turn off where millions of operations would only fill memory
        self.is_recording = True

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    def __str__(self) -> str:
        return "\n".join(map(str, self.operations))

    def record(
        self,
        kind: OperationKind,
        path: str,
        file: int,
        position: int = 0,
        size_bytes: int = 0,
        target: str = "",
    ) -> None:
        """Remember an operation that was done."""
        if self.is_recording:
            number = len(self.operations)
            self.operations.append(
                Operation(number, kind, path, file, position, size_bytes, target)
            )

    def note(self, name: str, value: object = None) -> None:
        """
        Write a remark of the test between the operations.

        A workload notes what it was promised (``note("flushed", 42)``); after the power loss the
        check reads the promises back with :meth:`notes`.
        """
        self.operations.append(Operation(len(self.operations), "note", name, value=value))

    @overload
    def notes(self, name: str) -> list[object]: ...
    @overload
    def notes(self, name: str, kind: type[int]) -> list[int]: ...

    def notes(self, name: str, kind: type[int] | None = None) -> list[object] | list[int]:
        """Return the values of all remarks of that name, in order; `kind` checks their type."""
        values = [o.value for o in self.operations if o.kind == "note" and o.path == name]
        assert kind is None or all(isinstance(value, kind) for value in values)
        return values

    def matching(self, kind: OperationKind | None = None, path: str = "*") -> list[Operation]:
        """Return the operations of that kind (any if None) on paths that match."""
        return [
            operation
            for operation in self.operations
            if (kind is None or operation.kind == kind) and fnmatchcase(operation.path, path)
        ]

    def unsynced_at(self, number: int, file: int) -> list[Operation]:
        """Return the writes and truncations of `file` that no sync covers before `number`."""
        found: list[Operation] = []
        for operation in self.operations[:number]:
            if operation.file == file and operation.kind in ("write", "truncate"):
                found.append(operation)
            elif operation.file == file and operation.kind == "sync":
                found.clear()
        return found

    def renames_of_unsynced(self) -> list[Operation]:
        """Return the renames that break "sync before rename"."""
        return [o for o in self.matching("rename") if self.unsynced_at(o.number, o.file)]

    def unsynced_directories(self) -> list[str]:
        """Return directories of which a name changed after their last sync, sorted."""
        changed: set[str] = set()
        for operation in self.operations:
            if operation.kind == "sync_directory":
                changed.discard(operation.path.rstrip("/"))
            elif operation.kind in NAME_KINDS:
                changed.add(parent_of(operation.path))
                if operation.target:
                    changed.add(parent_of(operation.target))
        return sorted(path or "/" for path in changed)

    def unpreceded(
        self, kind: OperationKind, path: str, *, by_kind: OperationKind, by_path: str
    ) -> list[Operation]:
        """
        Return operations that break "never this without that before it".

        ``unpreceded("write", "*.index", by_kind="write", by_path="*.log")`` lists the index writes
        that had no data write between themselves and the index write before them.
        """
        found: list[Operation] = []
        is_preceded = False
        for operation in self.operations:
            if operation.kind == by_kind and fnmatchcase(operation.path, by_path):
                is_preceded = True
            elif operation.kind == kind and fnmatchcase(operation.path, path):
                if not is_preceded:
                    found.append(operation)
                is_preceded = False
        return found

    def copy(self) -> DiskJournal:
        """Return an equal journal that goes on on its own."""
        twin = DiskJournal()
        twin.operations = self.operations[:]
        twin.is_recording = self.is_recording
        return twin


#: What changes a directory.
NAME_KINDS = ("create", "rename", "remove", "make_directory", "remove_directory")


def parent_of(path: str) -> str:
    """Return the directory part of a path, "" for the root."""
    return path.rstrip("/").rpartition("/")[0]
