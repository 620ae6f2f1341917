"""
Every record of a commit log file, good ones in runs, and what stands between them.

A broker stops at the first bad record. Here the search goes on behind it: a record is taken for one
when its magic, its lengths and its CRC are right and the physical offset in it is its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.recovery import pieces
from logstore.segments.rocketmq.log.record_walk import (
    FastChecker,
    RecordChecks,
    RecordWalk,
    RunChecker,
    check_run,
)
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK_BYTES,
    PHYSICAL_OFFSET_POSITION,
    VERSIONS,
)
from logstore.zero_tail import written_length

if TYPE_CHECKING:
    from logstore.tools.inspection.rocketmq.stored_files import StoredFiles

_CHUNK_BYTES = 1 << 20
_HEAD_BYTES = 40
_RECORD_BYTES_MAX = 1 << 26


@attrs.frozen
class Run:
    """Whole, good records one behind the other, from `position` of the file on."""

    position: int
    data: memoryview

    @property
    def end_position(self) -> int:
        """Where the last of them ends."""
        return self.position + len(self.data)

    def until(self, position: int) -> Run:
        """Return the records that start before `position`; all of them are whole."""
        end = 0
        while end < len(self.data) and self.position + end < position:
            end += int.from_bytes(self.data[end : end + 4])
        return Run(self.position, self.data[:end])


@attrs.frozen
class Stretch:
    """
    Bytes that are no records, ``[position, end_position)``.

    `is_followed` tells whether good records stand behind them in the file. Zeros are none of them
    unless records follow.
    """

    position: int
    end_position: int
    reason: str
    is_followed: bool

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return self.end_position - self.position


@attrs.frozen
class End:
    """Where the records of the file end; `is_padded` where a BLANK says that the log goes on."""

    position: int
    is_padded: bool


Piece: TypeAlias = Run | Stretch | End


class LogScan:
    """Scans files of one commit log; the check becomes a vectorised one where it pays."""

    def __init__(self, checks: RecordChecks | None = None, *, is_long: bool = False) -> None:
        """`is_long` lets it be the vectorised one from the start; see :func:`is_long`."""
        self.checks = checks or RecordChecks()
        self.check: RunChecker = FastChecker(0) if is_long else FastChecker()

    def pieces(self, file: File, path: str, base: int, position: int = 0) -> Iterator[Piece]:
        """
        Yield the runs and stretches of a file that begins at physical offset `base`.

        `position` is where a record starts, or must.
        """
        while True:
            walk = RecordWalk(file, path, base, position, self.checks, check=self.check)
            reason = "zeros stand where records go on behind them"
            is_damaged = False
            try:
                for start, data in walk.runs():
                    yield Run(start, data)
            except CorruptEntryError as error:
                reason, is_damaged = error.reason, True
            position = walk.position
            if walk.is_padded:
                yield from self._behind_blank(file, path, base, position)
                return
            first = _first_set_byte(file, position)
            if first is None:
                yield End(position, is_padded=False)
                return
            following = self._next_record(file, base, max(position + 1, first - _HEAD_BYTES))
            if following is None:
                end = file.size()
                said = reason if is_damaged else "bytes behind zeros are no records"
                yield Stretch(position, last_set_byte(file, position, end), said, False)
                yield End(position, is_padded=False)
                return
            yield Stretch(position, following, reason, True)
            position = following

    def _behind_blank(self, file: File, path: str, base: int, position: int) -> Iterator[Piece]:
        """Say where the file ends; a BLANK must tell how much of it is left."""
        del path, base
        stated = int.from_bytes(file.read(position, 4), "big", signed=True)
        left = file.size() - position
        if stated != left:
            said = f"the BLANK says that {stated} bytes of the file are left, there are {left}"
            yield Stretch(position, position + BLANK_BYTES, said, False)
        yield End(position, is_padded=True)

    def _next_record(self, file: File, base: int, position: int) -> int | None:
        """Return where the next good record of the file starts."""
        size_bytes = file.size()
        while position < size_bytes:
            data = file.read(position, min(_CHUNK_BYTES + _HEAD_BYTES, size_bytes - position))
            for place in _candidates(data, base + position):
                if self._is_record(file, base, position + place):
                    return position + place
            position += _CHUNK_BYTES
        return None

    def _is_record(self, file: File, base: int, position: int) -> bool:
        size_bytes = int.from_bytes(file.read(position, 4), "big", signed=True)
        if not 0 < size_bytes <= min(file.size() - position, _RECORD_BYTES_MAX):
            return False
        data = memoryview(file.read(position, size_bytes))
        return check_run(data, base + position, self.checks)[0] == size_bytes


def is_long(log: StoredFiles, size_bytes: int) -> bool:
    """Tell whether anything stands so far behind the start of a commit log; files are sparse."""
    return any(log.read(log.start + size_bytes, _CHUNK_BYTES))


def _candidates(data: bytes, physical_offset: int) -> list[int]:
    """Return the places in `data` with a magic and, where it belongs, their physical offset."""
    found: list[int] = []
    for magic in VERSIONS:
        at = data.find(magic, 4)
        while at >= 0:
            place = at - 4
            stated = data[place + PHYSICAL_OFFSET_POSITION : place + PHYSICAL_OFFSET_POSITION + 8]
            if place < _CHUNK_BYTES and int.from_bytes(stated) == physical_offset + place:
                found.append(place)
            at = data.find(magic, at + 1)
    return sorted(found)


def _first_set_byte(file: File, position: int) -> int | None:
    """Return the first position that is not zero, None if all is zeros to the end."""
    for start, piece in pieces(file, position):
        return start + len(piece) - len(piece.lstrip(b"\0"))
    return None


def last_set_byte(file: File, position: int, end: int) -> int:
    """Return the position behind the last byte that is not zero."""
    found = position
    for start, piece in pieces(file, position):
        if start >= end:
            break
        length = written_length(piece[: end - start])
        if length:
            found = start + length
    return found
