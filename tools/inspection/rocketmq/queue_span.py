"""What of a queue is there: its units from the first to the last one, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from logstore.segments.rocketmq.queues.batch_consume_queue import BatchUnit
from logstore.segments.rocketmq.queues.consume_queue_unit import ConsumeQueueUnit
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue

Unit = ConsumeQueueUnit | BatchUnit


@attrs.frozen
class QueueSpan:
    """
    The units ``[first, end)`` by number, and the queue offsets that they stand for.

    `min_queue_offset` is the first one whose message is still in the commit log.
    """

    first: int
    end: int
    min_queue_offset: int
    max_queue_offset: int
    min_physical_offset: int
    max_physical_offset: int
    file_count: int
    size_bytes: int


def decoded(queue: StoredQueue, data: bytes) -> Unit:
    """Return a unit of either kind."""
    return BatchUnit.decode(data) if queue.is_batch else ConsumeQueueUnit.decode(data)


def unit_at(queue: StoredQueue, number: int) -> Unit | None:
    """Return a unit by its number, None where no file holds it."""
    data = queue.files.read(number * queue.unit_bytes, queue.unit_bytes)
    return decoded(queue, data) if len(data) == queue.unit_bytes else None


def is_unit(unit: Unit | None) -> bool:
    """Tell whether a broker would take it for a unit."""
    return unit is not None and unit.physical_offset >= 0 and unit.size_bytes > 0


def queue_span(queue: StoredQueue, log_start: int, log_end: int) -> QueueSpan:
    """
    Find the units by binary search: a queue ends before the first one that is none.

    Units that lead to `log_end` or above are what a recovery cut off, those below `log_start` have
    lost their messages.
    """
    files, size = queue.files, queue.unit_bytes
    first, end = files.start // size, files.end // size
    end = _search(queue, first, end, lambda unit: _is_before(unit, log_end))
    low = _search(queue, first, end, lambda unit: _is_gone(unit, log_start))
    lowest = unit_at(queue, low) if low < end else None
    last = unit_at(queue, end - 1) if end > first else None
    return QueueSpan(
        first,
        end,
        _end_offset(last, end) if lowest is None else _queue_offset(lowest, low),
        _end_offset(last, end),
        -1 if lowest is None else lowest.physical_offset,
        -1 if last is None else last.physical_offset,
        len(files.files),
        sum(file.size_bytes for file in files.files),
    )


def _is_before(unit: Unit | None, log_end: int) -> bool:
    return unit is not None and is_unit(unit) and unit.physical_offset < log_end


def _is_gone(unit: Unit | None, log_start: int) -> bool:
    if isinstance(unit, ConsumeQueueUnit) and unit.is_pre_blank:
        return True
    return unit is not None and unit.physical_offset < log_start


def _search(
    queue: StoredQueue, low: int, high: int, is_before: Callable[[Unit | None], bool]
) -> int:
    """Return the first number in ``[low, high)`` whose unit is not before what is looked for."""
    while low < high:
        middle = (low + high) // 2
        if is_before(unit_at(queue, middle)):
            low = middle + 1
        else:
            high = middle
    return low


def _queue_offset(unit: Unit | None, number: int) -> int:
    return unit.queue_offset if isinstance(unit, BatchUnit) else number


def _end_offset(unit: Unit | None, end: int) -> int:
    return unit.queue_offset + unit.count if isinstance(unit, BatchUnit) else end
