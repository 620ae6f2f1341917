"""
What a recovery found and did; returned and logged, never silent.

What it takes out of a log is kept in files of their own, ``<file>.cut-at-<position>``, for whoever
wants to look what can be saved: beside the log, or, where a foreign program would stumble over
strange names, in a directory of their own. What an earlier recovery kept under the same name is
replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from logstore.host import File, FileSystem

#: how much of a file is copied, or looked at for zeros, in one go
_PIECE_BYTES = 1 << 20
#: what comes first: behind it there is a hole most of the time
_FIRST_PIECE_BYTES = 4096
_ZEROS = bytes(_PIECE_BYTES)


class Recovery(NamedTuple):
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


def keep_tail(
    fs: FileSystem,
    file: File,
    position: int,
    *,
    directory: str | None = None,
    end_position: int | None = None,
) -> tuple[str, ...]:
    """
    Copy all from `position` on to a file of its own, durably; return its name.

    A tail of nothing but zeros, preallocated or never written, holds nothing to keep. The copy
    reaches to `end_position`, or as far as the file does; it stands in `directory`, or beside it.
    """
    if not holds_something(file, position):
        return ()
    path = _name_of(fs, file, position, directory)
    copy = fs.open(path, create=True)
    try:
        copy.truncate(0)
        for start, piece in pieces(file, position):
            copy.write(start - position, piece)
        copy.truncate((file.size() if end_position is None else end_position) - position)
        copy.sync()
    finally:
        copy.close()
    fs.sync_directory(path.rpartition("/")[0])
    return (path,)


def set_aside(fs: FileSystem, file: File, *, directory: str | None = None) -> tuple[str, ...]:
    """
    Give the whole file the name under which it is kept, in `directory` or beside it; return that.

    Durable after a sync of the directory that the file was in. Nothing is done to a file of nothing
    but zeros.
    """
    if not holds_something(file, 0):
        return ()
    path = _name_of(fs, file, 0, directory)
    file.sync()
    fs.rename(file.path, path)
    if directory is not None:
        fs.sync_directory(directory)  # before the old name goes durably
    return (path,)


def _name_of(fs: FileSystem, file: File, position: int, directory: str | None) -> str:
    if directory is None:
        return f"{file.path}.cut-at-{position}"
    if not fs.is_directory(directory):
        fs.make_directory(directory)
        fs.sync_directory(directory.rpartition("/")[0] or "/")
    return f"{directory}/{file.path.rpartition('/')[2]}.cut-at-{position}"


def holds_something(file: File, position: int) -> bool:
    """Tell whether anything but zeros stands from `position` on."""
    return next(pieces(file, position), None) is not None


def content_end(file: File, position: int) -> int:
    """Return the position behind the last byte that is no zero; `position` if there is none."""
    end = position
    for start, piece in pieces(file, position):
        end = start + len(piece.rstrip(b"\0"))
    return end


def pieces(file: File, position: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of what stands from there on, but for holes and pieces of zeros."""
    end = file.size()
    piece_bytes = _FIRST_PIECE_BYTES
    while position < end:
        start = file.next_data(position)
        if start is None:
            return
        piece = file.read(start, piece_bytes)
        piece_bytes = min(piece_bytes * 16, _PIECE_BYTES)
        if piece != (_ZEROS if len(piece) == _PIECE_BYTES else bytes(len(piece))):
            yield start, piece
        position = start + max(len(piece), 1)
