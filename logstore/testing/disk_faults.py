"""What is going to go wrong with a simulated disk."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal, get_args

import attrs

FaultKind = Literal[
    "open",  # also of a file that is created
    "read",
    "write",
    "truncate",
    "sync",
    "rename",
    "remove",
    "make_directory",
    "remove_directory",
    "sync_directory",
    "list_directory",
    "volume_space",
    "lock",
]
_KINDS: tuple[str, ...] = get_args(FaultKind)


@attrs.define
class Fault:
    """One planned failure; counts itself down."""

    kind: FaultKind
    #: what the operation raises; None for a fault that nobody is told of
    code: int | None
    path: str
    after: int
    #: how often it still strikes; None is for ever
    count: int | None
    #: a failing write leaves so many bytes behind
    partial_bytes: int = 0
    #: a failing sync forgets the unsynced pages, so that the next sync succeeds and saves nothing
    drops_unsynced: bool = False
    #: a silent write lands so many bytes further on, or ...
    shift_bytes: int = 0
    #: ... in this other file, or, if neither is given, nowhere
    target: str | None = None
    has_struck: bool = False


class DiskFaults:
    """
    Plans failures. Paths are shell patterns in which ``*`` crosses ``/``.

    ``after`` lets so many matching operations pass first; ``count`` is how many then fail, None
    for all from there on.
    """

    def __init__(self) -> None:
        self.planned: list[Fault] = []
        #: every change raises EROFS
        self.is_read_only = False
        #: syncs of files and directories return at once and save nothing
        self.sync_lies = False
        #: writes beyond this raise ENOSPC after what still fits; see SimulatedDisk.fill_up
        self.capacity_bytes: int | None = None

    def fail_next(
        self,
        kind: FaultKind,
        code: int,
        *,
        path: str = "*",
        after: int = 0,
        count: int | None = 1,
        partial_bytes: int = 0,
    ) -> None:
        """Let operations raise ``OSError(code)``; a write first leaves `partial_bytes` behind."""
        if kind not in _KINDS:
            raise ValueError(f"no operation is called {kind!r}; it is {', '.join(_KINDS)}")
        if not isinstance(code, int):  # pyright: ignore[reportUnnecessaryIsInstance] - of callers without types
            raise TypeError(f"code is a number, as errno.EIO, not {code!r}")
        self.planned.append(Fault(kind, code, path, after, count, partial_bytes))

    def fail_next_sync(
        self, code: int, *, path: str = "*", after: int = 0, drops_unsynced: bool = True
    ) -> None:
        """
        Let one sync of a file raise, and lose what it should have saved.

        As on ext4 and XFS: the pages are marked clean, reads still see them, a second sync
        succeeds, and the data is gone at the next power loss unless the same sectors are written
        again. With `drops_unsynced` off the pages stay dirty and a second sync saves them.
        """
        self.planned.append(Fault("sync", code, path, after, 1, drops_unsynced=drops_unsynced))

    def misdirect_next(
        self, *, path: str = "*", shift_bytes: int = 0, target: str | None = None, after: int = 0
    ) -> None:
        """Let one write land elsewhere: so many bytes further on, or at its place in `target`."""
        assert (shift_bytes != 0) != (target is not None), "say how far, or into which file"
        self.planned.append(
            Fault("write", None, path, after, 1, shift_bytes=shift_bytes, target=target)
        )

    def lose_next_write(self, *, path: str = "*", after: int = 0) -> None:
        """Let one write be acknowledged and never happen (the size grows all the same)."""
        self.planned.append(Fault("write", None, path, after, 1))

    def clear(self) -> None:
        """Let everything work again."""
        self.planned.clear()
        self.is_read_only = False
        self.sync_lies = False
        self.capacity_bytes = None

    def strike(self, kind: FaultKind, path: str) -> Fault | None:
        """Return the planned fault that this operation meets, if any."""
        for fault in self.planned:
            if fault.kind != kind or not fnmatchcase(path, fault.path):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            fault.has_struck = True
            if fault.count is not None:
                fault.count -= 1
                if fault.count <= 0:
                    self.planned.remove(fault)
            return fault
        return None
