"""
The file that a unit was planned for, though a broker may have replaced or removed it since.

Kafka gives a segment that it compacts, or that is too old, another name before it removes it a
minute later (``log.segment.delete.delay.ms``): under that name it can be read to the end. Another
segment may have the name that it had; its positions mean something else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from logstore.errors import MissingSegmentError

if TYPE_CHECKING:
    from logstore.compat.spark.work_unit import WorkUnit
    from logstore.host import File, FileSystem

_DELETED = ".deleted"


def number_of(path: str) -> int:
    """Return the number that a file of this machine has whatever it is called, 0 of others."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


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
    if descriptor is not None and unit.file_number not in (0, os.fstat(descriptor).st_ino):
        return False
    return file.size() >= unit.end_position
