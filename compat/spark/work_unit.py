"""A piece of one segment file that a task reads on its own."""

from __future__ import annotations

import os
from typing import TypeVar

import attrs

from logstore.compat.spark.rocketmq_unit import RocketMQUnit

#: how much of a file a unit has, unless the option `splitBytes` says otherwise
UNIT_BYTES = 128 * 1024 * 1024
#: so many tasks are enough to keep a machine's cores busy, and end together
_TASK_COUNT_USUAL = 32
_TASK_BYTES_MAX = 512 * 1024 * 1024


@attrs.frozen
class AbortedSpan:
    """The transactional batches of one producer in ``[first_offset, last_offset]`` were aborted."""

    producer_id: int
    first_offset: int
    last_offset: int


@attrs.frozen
class FileStamp:
    """What a file of this machine has whatever it is called: its number, size, and time in ns."""

    number: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileStamp:
        """Return the stamp of a file."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)

    def is_same(self, other: FileStamp) -> bool:
        """
        Tell whether both are of one file, which may have grown.

        Some file systems draw numbers anew. And what compaction makes has the time of what it
        replaces, but only where nothing was removed its size, and then the same places.
        """
        if self.number == other.number:
            return True
        return (self.size_bytes, self.modified_ns) == (other.size_bytes, other.modified_ns)


@attrs.frozen
class WorkUnit:
    """
    The batches in ``[position, end_position)`` of a ``.log``.

    Of their records those in ``[start_offset, end_offset)`` are wanted. `stamp` tells its file
    from others of that name, None where nothing can.
    """

    path: str
    topic: str
    partition: int
    position: int
    end_position: int
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedSpan, ...] = ()
    stamp: FileStamp | None = None
    #: whether offsets alone tell what it holds: no other unit is of the same segment
    is_alone: bool = False

    @property
    def size_bytes(self) -> int:
        """How much of the file it covers."""
        return self.end_position - self.position


#: what a task reads
Unit = WorkUnit | RocketMQUnit
UnitT = TypeVar("UnitT", bound=Unit)


def gathered(units: list[UnitT], task_bytes: int, count_min: int) -> list[list[UnitT]]:
    """
    Put neighbours together into tasks of about `task_bytes`, at least `count_min` if there are.

    Small segments share a task: starting one costs more than reading them. With 0 for `task_bytes`
    tasks are larger where there is much to read.
    """
    size_bytes = sum(unit.size_bytes for unit in units)
    if not task_bytes:
        task_bytes = min(max(UNIT_BYTES, size_bytes // _TASK_COUNT_USUAL), _TASK_BYTES_MAX)
    if count_min > 1:
        task_bytes = max(1, min(task_bytes, size_bytes // count_min))
    tasks: list[list[UnitT]] = []
    filled_bytes = 0
    for unit in units:
        if not tasks or filled_bytes + unit.size_bytes > task_bytes:
            tasks.append([])
            filled_bytes = 0
        tasks[-1].append(unit)
        filled_bytes += unit.size_bytes
    return tasks
