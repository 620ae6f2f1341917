"""Records of a partition between two offsets, read from its segments without opening the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from logstore.compat.spark.convert.committed_columns import committed_columns
from logstore.compat.spark.planned_file import open_planned
from logstore.compat.spark.work_unit import WorkUnit
from logstore.host import File, FileSystem
from logstore.segments.kafka.columns import RecordColumns
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch

_ENTRY = np.dtype([("offset", ">u4"), ("position", ">i4")])


def records_between(
    fs: FileSystem, units: Sequence[WorkUnit], first: int, last: int
) -> Iterator[RecordColumns]:
    """
    Yield the committed records with offsets in ``[first, last]``.

    `units` are those of one partition in order, of whole segments.
    """
    for unit, following in zip(units, [*units[1:], None], strict=True):
        if _base_offset(unit) > last:
            return
        if following is not None and _base_offset(unit) < _base_offset(following) <= first:
            continue
        found = _narrowed(fs, unit, first, last)
        if found is not None:
            yield from committed_columns(fs, found)


def _base_offset(unit: WorkUnit) -> int:
    return int(unit.path.rpartition("/")[2].partition(".")[0])


def _narrowed(fs: FileSystem, unit: WorkUnit, first: int, last: int) -> WorkUnit | None:
    """Return the part of a unit whose batches reach into ``[first, last]``, None if none does."""
    start = max(first, unit.start_offset)
    end = min(last + 1, unit.end_offset)
    if start >= end:
        return None
    file = open_planned(fs, unit)
    try:
        index = _index(fs, unit, file.path.removeprefix(unit.path))
        position = _first_position(file, unit, index, start)
        stop = _end_position(file, unit, index, position, end)
    finally:
        file.close()
    if position >= stop:
        return None
    return attrs.evolve(
        unit, position=position, end_position=stop, start_offset=start, end_offset=end
    )


def _index(fs: FileSystem, unit: WorkUnit, suffix: str) -> np.ndarray:
    """Return the segment's offset index; one that is not there is empty."""
    path = unit.path.removesuffix(".log") + ".index" + suffix
    if not fs.exists(path):
        return np.empty(0, dtype=_ENTRY)
    file = fs.open(path, writable=False)
    try:
        size_bytes = file.size()
        entries = np.frombuffer(file.read(0, size_bytes - size_bytes % 8), dtype=_ENTRY)
    finally:
        file.close()
    filled = np.flatnonzero(entries["position"])  # an active one ends in zeros
    return entries[: int(filled[-1]) + 1] if len(filled) else entries[:0]


def _first_position(file: File, unit: WorkUnit, index: np.ndarray, offset: int) -> int:
    """Return where the first batch stands that reaches to `offset`."""
    relative = offset - _base_offset(unit)
    row = int(np.searchsorted(index["offset"], relative, side="right")) - 1
    position = unit.position
    if row >= 0:
        position = max(position, int(index["position"][row]))
    for at, batch in _headers(file, position, unit.end_position):
        if batch.last_offset >= offset:
            return at
    return unit.end_position


def _end_position(file: File, unit: WorkUnit, index: np.ndarray, position: int, offset: int) -> int:
    """Return where the first batch stands that begins at `offset` or behind."""
    relative = offset - _base_offset(unit)
    row = int(np.searchsorted(index["offset"], relative, side="right")) - 1
    if row >= 0:
        # Entries name the last offset of what was appended: one back begins below for certain.
        position = max(position, int(index["position"][max(0, row - 1)]))
    for at, batch in _headers(file, position, unit.end_position):
        if batch.base_offset >= offset:
            return at
    return unit.end_position


def _headers(file: File, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    while position < end:
        data = file.read(position, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            return
        size_bytes = 12 + int.from_bytes(data[8:12], "big")
        yield position, RecordBatch(data, size_bytes)
        position += size_bytes
