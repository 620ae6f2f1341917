"""
Which of many queue units match a filter, found out for all of them at once.

By tags code nothing but the units is looked at, byte by byte rather than as numbers. A filter that
reads messages gets them as they stand in the commit log, neighbours by one read.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from heapq import merge
from operator import add, le
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, UNIT_BYTES

if TYPE_CHECKING:
    from logstore.segments.rocketmq.reading.get_message import ReadableCommitLog
    from logstore.segments.rocketmq.reading.message_filter import MessageFilter

__all__ = ["StoredRun", "numbers_of_units", "tagged_units"]

#: 0xff for a byte that makes a number negative where it is the first one
_SIGNS = bytes(128) + b"\xff" * 128
#: where the tags code stands in a unit, and the 32 bits of it that count
_TAGS_AT, _CODE_AT = 12, 16
#: messages are read so many bytes at a time: few at first, for there they may be all that it needs
_FIRST_WINDOW_BYTES, _WINDOW_BYTES = 16384, 65536
#: so much between two messages is read rather than left out, taking all together
_GAP_BYTES = 4096


def tagged_units(units: bytes, codes: Iterable[int]) -> Iterator[int] | None:
    """
    Return the indexes of the units that have one of these tags codes, in order.

    None where some may lead to a consume queue extension, for that knows their codes, or where so
    many match that little would be gained.
    """
    lowest = units[UNIT_BYTES - 1 :: UNIT_BYTES]
    wanted = [
        code.to_bytes(4, "big", signed=True) for code in codes if -(1 << 31) <= code < 1 << 31
    ]
    if sum(lowest.count(code[3]) for code in wanted) > len(lowest) // 4 or not _have_codes(units):
        return None
    found = [_coded(units, lowest, code) for code in wanted]
    return found[0] if len(found) == 1 else merge(*found)


def _have_codes(units: bytes) -> bool:
    """Tell whether no unit has an address for a tags code: hash codes are 32-bit numbers."""
    sign = units[_TAGS_AT::UNIT_BYTES]
    if sign.isascii():  # none is negative, as addresses are
        return True
    return (
        all(sign == units[at::UNIT_BYTES] for at in range(_TAGS_AT + 1, _CODE_AT))
        and sign == units[_CODE_AT::UNIT_BYTES].translate(_SIGNS)
        and not sign.translate(None, b"\0\xff")
    )


def _coded(units: bytes, lowest: bytes, code: bytes) -> Iterator[int]:
    """Yield the indexes of units with this code; `lowest` are the last bytes of all codes."""
    find, last = lowest.find, code[3]
    index = find(last)
    while index >= 0:
        if units.startswith(code, index * UNIT_BYTES + _CODE_AT):
            yield index
        index = find(last, index + 1)


@attrs.frozen
class StoredRun:
    """Messages of a queue that stand in one commit log file, in order: where each begins, ends."""

    offsets: tuple[int, ...]
    ends: tuple[int, ...]

    @staticmethod
    def of(units: bytes, commit_log: ReadableCommitLog) -> StoredRun | None:
        """
        Return the first of these units' messages, as many as are there in one file.

        None where the first one is not, or where a unit is out of the usual: leads to a consume
        queue extension, or nowhere, or back.
        """
        numbers = _places_of_units(len(units) // UNIT_BYTES).unpack(units)
        offsets, sizes = numbers[::2], numbers[1::2]
        ends = (*map(add, offsets, sizes),)
        first, file_size = offsets[0], commit_log.file_size_bytes
        if (
            not _have_codes(units)
            or min(sizes) <= 0
            or first < commit_log.min_physical_offset
            or not (ends[:-1] == offsets[1:] or all(map(le, ends, offsets[1:])))
        ):
            return None
        file_end = first - first % file_size + file_size
        count = bisect_right(ends, min(commit_log.max_physical_offset, file_end))
        return StoredRun(offsets[:count], ends[:count]) if count else None

    def matching(
        self, commit_log: ReadableCommitLog, message_filter: MessageFilter
    ) -> Iterator[int]:
        """Yield the indexes of the messages that match, in order; read them as they are wanted."""
        offsets, ends = self.offsets, self.ends
        begin, count, window_bytes = 0, len(offsets), _FIRST_WINDOW_BYTES
        while begin < count:
            first = offsets[begin]
            end = max(bisect_right(ends, first + window_bytes), begin + 1)
            while not self._is_dense(begin, end):
                end = (begin + end) // 2
            data = commit_log.read(first, ends[end - 1] - first)
            for index in message_filter.matching_messages(
                data, offsets[begin:end], ends[begin:end]
            ):
                yield begin + index
            begin, window_bytes = end, _WINDOW_BYTES

    def _is_dense(self, begin: int, end: int) -> bool:
        """Tell whether so much of what is read is wanted that one read costs less than many."""
        offsets, ends = self.offsets[begin:end], self.ends[begin:end]
        wanted = sum(ends) - sum(offsets)
        return ends[-1] - offsets[0] - wanted <= _GAP_BYTES * (len(ends) - 1)


@lru_cache(maxsize=64)
def numbers_of_units(count: int) -> struct.Struct:
    """Return what reads so many queue units at once, three numbers each."""
    return struct.Struct(">" + UNIT.format.lstrip(">") * count)


@lru_cache(maxsize=64)
def _places_of_units(count: int) -> struct.Struct:
    """Return the same without tags codes."""
    return struct.Struct(">" + "qi8x" * count)
