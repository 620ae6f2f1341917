"""
The walk of a pull over queue units: what it takes goes into a result.

Units are taken one by one as Java does it (:meth:`UnitScan._take`), or many at once where that is
sure to come to the same: all of them without a filter, and those between two that match with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import add, le
from typing import TYPE_CHECKING, TypeAlias, cast

from logstore.segments.rocketmq.queues.batch_consume_queue import BATCH_UNIT
from logstore.segments.rocketmq.queues.consume_queue_ext import ADDRESS_MAX
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, UNIT_BYTES
from logstore.segments.rocketmq.reading.get_message_result import (
    GetMessageResult,
    GetMessageStatus,
)
from logstore.segments.rocketmq.reading.matching_units import (
    StoredRun,
    numbers_of_units,
    tagged_units,
)

if TYPE_CHECKING:
    from logstore.host import File
    from logstore.segments.rocketmq.reading.get_message import (
        ReadableBatches,
        ReadableCommitLog,
        ReadableQueue,
        ReadableUnits,
    )
    from logstore.segments.rocketmq.reading.get_message_limits import GetMessageLimits
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

__all__ = ["UnitScan"]

_NEVER = -(1 << 63)
#: so many units are looked at in one go, and fewer at first if their messages must be read
_FILTERED_UNITS, _READ_UNITS = 800, 160
#: where the size stands in a unit, and what it is below if two of its four bytes are 0
_SIZE_AT, _SHORT_MAX = 8, 0xFFFF
#: (physical offset, size, tags code), queue offset, number of messages
_Numbered: TypeAlias = tuple[tuple[int, int, int], int, int]


class UnitScan:
    """One walk over queue units: what it takes goes into a result."""

    __slots__ = (
        "commit_log",
        "count_max",
        "end",
        "far",
        "file",
        "file_size",
        "file_start",
        "first_units",
        "in_memory_from",
        "last_physical_offset",
        "limits",
        "low",
        "message_filter",
        "near",
        "reads_messages",
        "run_end",
        "run_start",
        "skip_below",
    )

    def __init__(
        self,
        commit_log: ReadableCommitLog,
        message_filter: MessageFilter | None,
        limits: GetMessageLimits,
        count_max: int,
        size_max: int,
    ) -> None:
        self.commit_log = commit_log
        self.message_filter = message_filter
        self.reads_messages = message_filter is not None and message_filter.reads_messages
        self.first_units = 1 if message_filter is None else _FILTERED_UNITS
        if self.reads_messages:  # if many match, the others would be for nothing
            self.first_units = _READ_UNITS
        self.limits = limits
        self.count_max = count_max
        #: how many bytes and messages a pull gets, near the end of the commit log and far from it
        self.near = min(limits.in_memory_bytes_max, size_max), limits.in_memory_count_max
        self.far = min(limits.on_disk_bytes_max, size_max), limits.on_disk_count_max
        self.file_size = commit_log.file_size_bytes
        self.low = commit_log.min_physical_offset
        self.end = commit_log.max_physical_offset
        self.in_memory_from = self.end - limits.in_memory_bytes
        self.last_physical_offset = 0
        #: after a message that is gone all others of its commit log file are passed over
        self.skip_below = _NEVER
        self.run_start = self.run_end = self.file_start = -1
        self.file: File | None = None

    def one_file(self, queue: ReadableUnits, result: GetMessageResult, asked: int) -> None:
        """Scan from the result's next queue offset to the end of that consume queue file."""
        unit_size = queue.unit_size_bytes
        scanned_max = -(-max(self.limits.filter_bytes_max, self.count_max * unit_size) // unit_size)
        simple = cast("ReadableQueue", queue) if unit_size == UNIT_BYTES else None
        begin = result.next_begin_offset
        end = min(asked + scanned_max, queue.max_queue_offset)
        if simple is not None:
            file_end = simple.roll_next_file(begin)
            end = min(end, file_end)
            left = end - begin
        else:  # units of a batch queue are not as many as its queue offsets
            file_end = begin + 1
            left = cast("ReadableBatches", queue).units_to_file_end(begin)
        chunk = max(self.count_max, self.first_units)
        while result.next_begin_offset < end and left:
            begin = result.next_begin_offset
            units = queue.units(begin, min(chunk, end - begin, left))
            left -= len(units) // unit_size
            if not units:
                result.status = GetMessageStatus.OFFSET_FOUND_NULL
                if self.limits.corrects_queue_offset:
                    result.next_begin_offset = file_end
                break
            if simple is not None and self._take_whole(units, begin, result):
                is_full = result.count >= self.count_max
            elif simple is not None and self.message_filter is not None:
                is_full = self._take_matching(bytes(units), begin, simple, result)
            else:
                is_full = self._take(_numbered(units, unit_size, begin, end), simple, result)
            if is_full or result.next_begin_offset == begin:
                break
            chunk = max(chunk, _FILTERED_UNITS)
        self._end_run(result, self.run_end)

    def _take_whole(self, units: memoryview, begin: int, result: GetMessageResult) -> bool:
        """
        Take the first units of a pull all at once, where nothing speaks against any of them.

        That is what :meth:`_take` finds out one by one; False, and nothing taken, is up to it.
        """
        if self.message_filter is not None or result.count or self.skip_below != _NEVER:
            return False
        numbers = numbers_of_units(len(units) // UNIT_BYTES).unpack(units)
        offsets, sizes = numbers[::3], numbers[1::3]
        ends = (*map(add, offsets, sizes),)
        is_joined = ends[:-1] == offsets[1:]
        size_bytes_max, count_max = self.near
        first, last, total = offsets[0], ends[-1], sum(sizes)
        if (
            len(sizes) > min(count_max, self.count_max)
            or total > size_bytes_max
            or min(sizes) <= 0
            or first < max(self.low, self.in_memory_from)
            or last > self.end
            or first // self.file_size != (last - 1) // self.file_size
            or not (is_joined or all(map(le, ends, offsets[1:])))
        ):
            return False
        run_end = self.run_end
        joined = ((first, last),) if is_joined else zip(offsets, ends, strict=True)
        for physical_offset, end in joined:
            if physical_offset != run_end:
                self._end_run(result, run_end)
                self.run_start = physical_offset
            run_end = end
        self.run_end, self.last_physical_offset = run_end, offsets[-1]
        result.next_begin_offset = begin + len(sizes)
        result.size_bytes, result.count = total, len(sizes)
        result.status = GetMessageStatus.FOUND
        return True

    def _take_matching(
        self, units: bytes, begin: int, queue: ReadableQueue, result: GetMessageResult
    ) -> bool:
        """
        Take what matches of these units and pass over what is between; tell as :meth:`_take`.

        That is asked about all from the first one on that may be too much, or is not there.
        """
        units_end = begin + len(units) // UNIT_BYTES
        found = self._matching(units)
        share = None if found is None else self._share(units)
        if found is None or share is None:
            return self._take(_numbered(units, UNIT_BYTES, begin, units_end), queue, result)
        (indexes, count), (surely_max, count_max) = found, share
        file_size, low, end, unpack = self.file_size, self.low, self.end, UNIT.unpack_from
        total, total_count, run_end, done = result.size_bytes, result.count, self.run_end, 0
        for index in indexes:
            if total and (total > surely_max or total_count >= count_max):
                break
            physical_offset, size, _ = unpack(units, index * UNIT_BYTES)
            position, next_physical_offset = physical_offset % file_size, physical_offset + size
            is_there = low <= physical_offset < next_physical_offset <= end
            if not is_there or position + size > file_size:
                break
            if physical_offset != run_end or not position:
                self._end_run(result, run_end)
                self.run_start = physical_offset
            run_end, done = next_physical_offset, index + 1
            total += size
            total_count += 1
        else:
            if not total or (total <= surely_max and total_count < count_max):
                done = count
        self.run_end = run_end
        if done:
            if self.reads_messages:
                result.filtered_count += done - (total_count - result.count)
            self.last_physical_offset = unpack(units, (done - 1) * UNIT_BYTES)[0]
            result.next_begin_offset = begin + done
            result.status = GetMessageStatus.FOUND if total else GetMessageStatus.NO_MATCHED_MESSAGE
            result.size_bytes, result.count = total, total_count
        if begin + done == units_end:
            return total_count >= self.count_max
        rest = units[done * UNIT_BYTES :]
        return self._take(_numbered(rest, UNIT_BYTES, begin + done, units_end), queue, result)

    def _matching(self, units: bytes) -> tuple[Iterator[int], int] | None:
        """
        Return the indexes of what matches, and of how many of the units that tells.

        None where it must be found out one by one, as it must behind a message that is gone.
        """
        message_filter = self.message_filter
        if message_filter is None or self.skip_below != _NEVER:
            return None
        codes = message_filter.tags_codes
        if self.reads_messages is (codes is not None):
            return None
        if codes is not None:
            tagged = tagged_units(units, codes)
            return None if tagged is None else (tagged, len(units) // UNIT_BYTES)
        run = StoredRun.of(units, self.commit_log)
        if run is None:
            return None
        return run.matching(self.commit_log, message_filter), len(run.offsets)

    def _share(self, units: bytes) -> tuple[int, int] | None:
        """
        Return with how many bytes the next message is surely not too much, and how many it gets.

        None where some of the messages are near the end of the commit log and others are not.
        """
        size_max, most = self.near
        if self.in_memory_from > 0 or not units[::UNIT_BYTES].isascii():
            offsets = numbers_of_units(len(units) // UNIT_BYTES).unpack(units)[::3]
            if min(offsets) < self.in_memory_from:
                if max(offsets) >= self.in_memory_from:
                    return None
                size_max, most = self.far
        return size_max - _largest(units, size_max), min(most, self.count_max)

    def _take(
        self, units: Iterable[_Numbered], queue: ReadableQueue | None, result: GetMessageResult
    ) -> bool:
        """Take what matches of these units; tell whether the pull is full."""
        # A pull spends its time here: what the loop needs is local.
        message_filter, file_size, low, end = (
            self.message_filter,
            self.file_size,
            self.low,
            self.end,
        )
        in_memory_from, near, far = self.in_memory_from, self.near, self.far
        count_max, total, total_count = self.count_max, result.size_bytes, result.count
        run_end, is_full = self.run_end, False
        for (physical_offset, size, tags_code), begin, count in units:
            if total:
                size_max, most = near if physical_offset >= in_memory_from else far
                is_full = total + size > size_max or total_count >= most
                if is_full or total_count + count > count_max:
                    is_full = True
                    break
            self.last_physical_offset = physical_offset
            result.next_begin_offset = begin + count
            if physical_offset < self.skip_below:
                continue
            position = physical_offset % file_size
            next_physical_offset = physical_offset + size
            is_there = low <= physical_offset < next_physical_offset <= end
            if message_filter is not None and not _matches(message_filter, queue, tags_code):
                reason = GetMessageStatus.NO_MATCHED_MESSAGE
            elif not is_there or position + size > file_size:
                reason = GetMessageStatus.MESSAGE_WAS_REMOVING
                self.skip_below = physical_offset - position + file_size
            elif message_filter is not None and not self._reads_match(physical_offset, size):
                reason = GetMessageStatus.NO_MATCHED_MESSAGE
                result.filtered_count += 1
            else:
                if physical_offset != run_end or not position:
                    self._end_run(result, run_end)
                    self.run_start = physical_offset
                run_end, self.skip_below = next_physical_offset, _NEVER
                total += size
                total_count += count
                continue
            result.status = result.status if total else reason
        self.run_end, result.size_bytes, result.count = run_end, total, total_count
        result.status = GetMessageStatus.FOUND if total else result.status
        return is_full

    def _reads_match(self, physical_offset: int, size: int) -> bool:
        """Ask the filter about the message itself, if it wants to see it."""
        message_filter = self.message_filter
        if message_filter is None or not message_filter.reads_messages:
            return True
        return message_filter.matches_message(self.commit_log.read(physical_offset, size))

    def _end_run(self, result: GetMessageResult, run_end: int) -> None:
        """Hand the run of neighbours that ends at `run_end` to the result."""
        start = self.run_start
        if start < 0:
            return
        position = start % self.file_size
        if start - position != self.file_start:
            self.file = self.commit_log.extent(start, run_end - start).file
            self.file_start = start - position
        assert self.file is not None
        result.runs.append((self.file, position, run_end - start))
        self.run_start = -1


def _largest(units: bytes, size_max: int) -> int:
    """Return a size that no message of these units is above: the exact one where that matters."""
    top, second = (units[_SIZE_AT + digit :: UNIT_BYTES] for digit in (0, 1))
    if size_max > 4 * _SHORT_MAX and not top.strip(b"\0") and not second.strip(b"\0"):
        return _SHORT_MAX
    return int(max(numbers_of_units(len(units) // UNIT_BYTES).unpack(units)[1::3]))


def _numbered(
    units: bytes | memoryview, unit_size: int, begin: int, end: int
) -> Iterable[_Numbered]:
    """Yield (physical offset, size, tags code), queue offset and message count of each unit."""
    if unit_size == UNIT_BYTES:
        return zip(UNIT.iter_unpack(units), range(begin, end), repeat(1))
    return (
        ((physical_offset, size, tags_code), base, count)
        for physical_offset, size, tags_code, _, base, count, _, _ in BATCH_UNIT.iter_unpack(units)
        if base < end
    )


def _matches(message_filter: MessageFilter, queue: ReadableQueue | None, tags_code: int) -> bool:
    """Ask the filter about a queue unit."""
    if tags_code > ADDRESS_MAX:
        codes = message_filter.tags_codes
        if codes is not None:
            return ((tags_code + 0x80000000) & 0xFFFFFFFF) - 0x80000000 in codes
        return message_filter.matches_unit(tags_code, None)
    ext = None if queue is None else queue.ext_unit(tags_code)
    return message_filter.matches_unit(None if ext is None else ext.tags_code, ext)
