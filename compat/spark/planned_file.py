"""
The file that a unit was planned for, though a broker may have replaced or removed it since.

Kafka gives a segment that it compacts, or that is too old, another name before it removes it a
minute later (``log.segment.delete.delay.ms``): under that name it can be read to the end. Another
segment may have the name that it had; its positions mean something else, its offsets do not.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.work_unit import FileStamp, WorkUnit
from logstore.errors import CorruptEntryError, MissingSegmentError
from logstore.segments.kafka.batch_walk import walk_batches

if TYPE_CHECKING:
    from logstore.host import File, FileSystem

_DELETED = ".deleted"
#: a segment, or one that is about to be
_SEGMENT = re.compile(r"(\d{20})\.log(\.swap)?")
_LOOKS_MAX = 20


def stamp_of(path: str) -> FileStamp | None:
    """Return the stamp of a file of this machine, None of others."""
    try:
        return FileStamp.of(os.stat(path))
    except OSError:
        return None


@contextmanager
def opened(fs: FileSystem, unit: WorkUnit) -> Generator[list[tuple[File, WorkUnit]]]:
    """
    Open what a unit is to be read from: its file, or those that have its records now.

    Compaction puts other segments in the place of some, with what is left of the same records.
    That can be told only of a unit that has a segment for itself.

    Raises:
        MissingSegmentError: its file is gone, and no other has its records.

    """
    try:
        parts = [(open_planned(fs, unit), unit)]
    except MissingSegmentError:
        parts = _opened_now(fs, unit) if unit.is_alone else []
        if not parts:
            raise
    try:
        yield parts
    finally:
        for file, _ in parts:
            file.close()


def open_planned(fs: FileSystem, unit: WorkUnit) -> File:
    """
    Open the file of a unit.

    Raises:
        MissingSegmentError: it is gone.

    """
    for path in (unit.path, unit.path + _DELETED):
        try:
            file = fs.open(path, writable=False)
        except FileNotFoundError:
            continue
        if _is_planned(file, unit):
            return file
        file.close()
    raise MissingSegmentError(
        f"{unit.path}: was replaced or removed since it was listed (compaction, retention): "
        "ask again"
    )


def _is_planned(file: File, unit: WorkUnit) -> bool:
    descriptor = file.fileno()
    if descriptor is not None and unit.stamp is not None:
        found = FileStamp.of(os.fstat(descriptor))
        return unit.stamp.is_same(found) and found.size_bytes >= unit.end_position
    return file.size() >= unit.end_position


def _opened_now(fs: FileSystem, unit: WorkUnit) -> list[tuple[File, WorkUnit]]:
    """Open the segments that have the records of a unit now; none if some were removed."""
    for _ in range(_LOOKS_MAX):
        files: list[File] = []
        try:
            files.extend(fs.open(path, writable=False) for path in _paths_now(fs, unit))
        except FileNotFoundError:  # they are just being replaced
            for file in files:
                file.close()
            continue
        return [(file, _moved(unit, file)) for file in files]
    return []


def _moved(unit: WorkUnit, file: File) -> WorkUnit:
    """Return the part of another file that reaches into the offsets of a unit."""
    position = end_position = 0
    try:
        for batch in walk_batches(file, file.path, is_checked=False):
            if batch.base_offset >= unit.end_offset:
                break
            end_position += batch.size_bytes
            if batch.last_offset < unit.start_offset:
                position = end_position
    except CorruptEntryError:
        end_position = file.size()  # who decodes it says what is wrong
    return attrs.evolve(
        unit, path=file.path, position=position, end_position=end_position, stamp=None
    )


def _paths_now(fs: FileSystem, unit: WorkUnit) -> list[str]:
    """Return the segments that reach into the offsets of a unit, if its first is among them."""
    directory, _, name = unit.path.rpartition("/")
    paths: dict[int, str] = {}
    for entry in fs.list_directory(directory):
        found = _SEGMENT.fullmatch(entry.name)
        if found is not None:  # a `.swap` comes behind the one that it replaces
            paths[int(found[1])] = f"{directory}/{entry.name}"
    bases = sorted(paths)
    first = bisect_right(bases, int(name.partition(".")[0])) - 1
    wanted = bases[first : bisect_left(bases, unit.end_offset)] if first >= 0 else []
    return [paths[base] for base in wanted]
