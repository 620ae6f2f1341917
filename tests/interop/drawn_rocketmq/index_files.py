"""What stands in a broker's index files, but for times."""

from __future__ import annotations

import struct
from pathlib import Path

import attrs

_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_SLOT = struct.Struct(">i")


@attrs.frozen
class IndexContent:
    """An index file's header without times, its slots, and its entries without times."""

    header: list[int]
    slots: list[int]
    #: hash, physical offset, number of the one before
    entries: list[str]


def files_of(data: Path) -> list[bytes]:
    """Return the contents of all index files of a store, oldest first."""
    directory = data / "index"
    return [one.read_bytes() for one in sorted(directory.iterdir())] if directory.exists() else []


def spans_of(data: Path, entry_count: int) -> list[tuple[int, int]]:
    """Return from when to when the full files of a store reach, in milliseconds."""
    headers = [_HEADER.unpack_from(one) for one in files_of(data)]
    return [(one[0], one[1]) for one in headers if one[5] >= entry_count]


def entries_of(data: Path, slot_count: int = 7) -> list[IndexContent]:
    """Return what stands in the index files of a store."""
    found: list[IndexContent] = []
    for one in files_of(data):
        header = _HEADER.unpack_from(one)
        start = _HEADER.size + _SLOT.size * slot_count
        slots = [number for (number,) in _SLOT.iter_unpack(one[_HEADER.size : start])]
        entries = [f"{row[0]} {row[1]} {row[3]}" for row in _ENTRY.iter_unpack(one[start:])]
        found.append(IndexContent([*header[2:]], slots, entries))
    return found
