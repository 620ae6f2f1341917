"""
What a recovery found and did; returned and logged, never silent.

What it takes out of a log is kept in files of their own beside it, ``<file>.cut-at-<position>``,
for whoever wants to look what can be saved. What an earlier recovery kept under the same name is
replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import File, FileSystem

#: how much of a file is copied, or looked at for zeros, in one go
_PIECE_BYTES = 1 << 20


@attrs.frozen
class Recovery:
    """
    The outcome of opening a log after an unclean stop.

    `next_offset` is where appends continue, `dropped_bytes` how much was cut off, `reason` why the
    first cut entry was not valid (None where nothing was cut), `kept_aside` the files that hold
    what was cut, in the order of the log.
    """

    next_offset: int
    checked_bytes: int = 0
    dropped_bytes: int = 0
    reason: str | None = None
    kept_aside: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Tell whether every byte found was good."""
        return self.dropped_bytes == 0

    def joined(self, later: Recovery) -> Recovery:
        """Return the outcome of this recovery followed by that of later segments."""
        return Recovery(
            later.next_offset,
            self.checked_bytes + later.checked_bytes,
            self.dropped_bytes + later.dropped_bytes,
            self.reason or later.reason,
            self.kept_aside + later.kept_aside,
        )


def keep_tail(fs: FileSystem, file: File, position: int) -> tuple[str, ...]:
    """
    Copy all from `position` on to a file of its own, durably; return its name.

    A tail of nothing but zeros, preallocated or never written, holds nothing to keep.
    """
    if not _holds_something(file, position):
        return ()
    path = _name_of(file, position)
    copy = fs.open(path, create=True)
    try:
        copy.truncate(0)
        for start, piece in _pieces(file, position):
            copy.write(start - position, piece)
        copy.truncate(file.size() - position)
        copy.sync()
    finally:
        copy.close()
    fs.sync_directory(path.rpartition("/")[0])
    return (path,)


def set_aside(fs: FileSystem, file: File) -> tuple[str, ...]:
    """
    Give the whole file the name under which it is kept; return that.

    Durable after a sync of the directory. Nothing is done to a file of nothing but zeros.
    """
    if not _holds_something(file, 0):
        return ()
    path = _name_of(file, 0)
    file.sync()
    fs.rename(file.path, path)
    return (path,)


def _name_of(file: File, position: int) -> str:
    return f"{file.path}.cut-at-{position}"


def _holds_something(file: File, position: int) -> bool:
    return next(_pieces(file, position), None) is not None


def _pieces(file: File, position: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of what stands from there on, but for pieces of zeros."""
    for start in range(position, file.size(), _PIECE_BYTES):
        piece = file.read(start, _PIECE_BYTES)
        if piece.count(0) < len(piece):
            yield start, piece
