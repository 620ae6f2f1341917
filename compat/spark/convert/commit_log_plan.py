"""
The commit log of a new RocketMQ store, laid out before it is written.

First every unit is measured: how many messages it has, and how many bytes. Then units are packed
into tasks, of which each writes commit log files of its own: it knows the physical offset of its
first byte and the queue offset of every unit's first message, and needs no other task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from logstore.compat.spark.work_unit import WorkUnit
from logstore.errors import LogStoreError

#: a BLANK at the end of every file but the last
BLANK_BYTES = 8
#: less is not worth a file of its own
_SHARE_BYTES_MIN = 64 * 1024 * 1024


class UnfitMessageError(LogStoreError):
    """A message is longer than a file of the commit log may be."""


@attrs.frozen
class Measured:
    """What a unit is as messages."""

    unit: WorkUnit
    message_count: int
    size_bytes: int
    message_bytes_max: int
    timestamp_ms_max: int


@attrs.frozen
class PlacedUnit:
    """A unit whose first message has this queue offset and is stored no earlier than that."""

    unit: WorkUnit
    first_queue_offset: int
    store_timestamp_ms_min: int


@attrs.frozen
class FileSpan:
    """Commit log files that one task writes: the first one's physical offset, and how many."""

    physical_offset: int
    file_count: int
    units: tuple[PlacedUnit, ...]
    is_last: bool = False


def lay_out(
    measured: Sequence[Measured],
    first_queue_offsets: dict[tuple[str, int], int],
    file_bytes: int,
    task_bytes: int,
    *,
    begin: int | None = None,
    store_timestamp_ms_min: int = 1,
    parallelism: int = 1,
) -> list[FileSpan]:
    """
    Return which task writes which files with which units, in the order of `measured`.

    The first message of a queue gets its `first_queue_offsets`. Where one is not 0 the commit log
    does not begin at 0 either, as if its first file had been removed: the places in front of it in
    the queue's first file lead to physical offset 0, and a broker takes those below the commit
    log's start for removed ones. `begin` is where the first file begins if there are others.
    Files are not filled where that would leave some of `parallelism` workers idle at the end.

    Raises:
        UnfitMessageError: a message does not fit into a file.

    """
    longest = max((one.message_bytes_max for one in measured), default=0)
    if longest > file_bytes - BLANK_BYTES:
        raise UnfitMessageError(
            f"a message has {longest} bytes, a commit log file of {file_bytes} holds "
            f"{file_bytes - BLANK_BYTES}; set mappedFileSizeCommitLog"
        )
    spans: list[FileSpan] = []
    physical_offset = file_bytes if any(first_queue_offsets.values()) else 0
    if begin is not None:
        physical_offset = begin
    placed = list(_placed(measured, first_queue_offsets, store_timestamp_ms_min))
    for group in _groups(measured, max(file_bytes, task_bytes) - BLANK_BYTES, parallelism):
        # Where a message does not fit any more a file ends: that much of each may stay empty.
        room = file_bytes - BLANK_BYTES - max(measured[index].message_bytes_max for index in group)
        size_bytes = sum(measured[index].size_bytes for index in group)
        is_one = size_bytes <= file_bytes - BLANK_BYTES
        file_count = 1 if is_one else -(-size_bytes // max(1, room))
        spans.append(FileSpan(physical_offset, file_count, tuple(placed[index] for index in group)))
        physical_offset += file_count * file_bytes
    if spans:
        spans[-1] = attrs.evolve(spans[-1], is_last=True)
    return spans


def _placed(
    measured: Sequence[Measured],
    first_queue_offsets: dict[tuple[str, int], int],
    store_timestamp_ms_min: int,
) -> Iterator[PlacedUnit]:
    next_offsets = dict(first_queue_offsets)
    newest: dict[tuple[str, int], int] = {}
    for one in measured:
        key = (one.unit.topic, one.unit.partition)
        floor = newest.get(key, store_timestamp_ms_min)
        yield PlacedUnit(one.unit, next_offsets[key], floor)
        next_offsets[key] += one.message_count
        newest[key] = max(floor, one.timestamp_ms_max)


def _groups(
    measured: Sequence[Measured], size_bytes_max: int, parallelism: int
) -> Iterator[list[int]]:
    """Yield runs of units that one task takes together; if there are many workers, even ones."""
    share = _share([one.size_bytes for one in measured], size_bytes_max, parallelism)
    group: list[int] = []
    filled_bytes = passed_bytes = 0
    limit = share
    for index, one in enumerate(measured):
        if one.message_count == 0:
            continue
        is_even = passed_bytes + one.size_bytes // 2 >= limit
        if group and (is_even or filled_bytes + one.size_bytes > size_bytes_max):
            yield group
            group, filled_bytes = [], 0
            limit += share if is_even else 0
        group.append(index)
        filled_bytes += one.size_bytes
        passed_bytes += one.size_bytes
    if group:
        yield group


def _share(sizes_bytes: Sequence[int], size_bytes_max: int, parallelism: int) -> int:
    """Return how much each of as many tasks gets that no worker has one more than another."""
    size_bytes = sum(sizes_bytes)
    if parallelism == 1:
        return size_bytes + size_bytes_max
    # A unit is not cut, so a task may have that much more than its share.
    count = -(-size_bytes // max(1, size_bytes_max - max(sizes_bytes, default=0)))
    count = -(-count // parallelism) * parallelism
    return max(_SHARE_BYTES_MIN, -(-size_bytes // max(1, count)))
