"""Pulls with a filter: many units at once come to the same as one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.filters.sql_filter import SqlFilter
from logstore.segments.rocketmq.queues.consume_queue_ext import ADDRESS_MAX, ConsumeQueueExtUnit
from logstore.segments.rocketmq.reading import unit_scan
from logstore.segments.rocketmq.reading.get_message import (
    GetMessageLimits,
    GetMessageResult,
    GetMessageStatus,
    get_message,
)
from logstore.segments.rocketmq.reading.matching_units import tagged_units
from logstore.segments.rocketmq.reading.message_filter import MessageFilter, TagFilter
from tests.segments.rocketmq.filters.test_sql_filter import filter_of, stored
from tests.segments.rocketmq.memory_store import UNIT, MemoryCommitLog, MemoryQueue

FILE_BYTES = 4096
CODES = (65, 66, -66, (5 << 32) + 65, -(1 << 40) + 65, 0x4141_4141, 0xFFFF_FFFF)
A = SqlFilter(filter_of("a = '7'"))


class ExtQueue(MemoryQueue):
    """A queue whose addresses lead to units with a tags code of 65 or 66."""

    def ext_unit(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return what the extension says."""
        return None if address % 3 == 0 else ConsumeQueueExtUnit(64 + address % 3, 1, None)


class OneByOne(unit_scan.UnitScan):
    """A scan that asks about each unit."""

    def _matching(self, units: bytes) -> None:
        del units


@attrs.frozen
class Case:
    """A pull: of which queue and log, from where, and how much."""

    queue: MemoryQueue
    log: MemoryCommitLog
    begin: int
    count_max: int
    size_bytes_max: int
    limits: GetMessageLimits

    def result(self, message_filter: MessageFilter) -> dict[str, Any]:
        """Return all that the pull gets."""
        found = get_message(
            self.queue, self.log, self.begin, self.count_max, self.size_bytes_max, message_filter,
            self.limits,
        )  # fmt: skip
        return {name: getattr(found, name) for name in GetMessageResult.__slots__}

    def assert_as_one_by_one(self, message_filter: MessageFilter) -> None:
        """Compare with a pull that asks about each unit."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("logstore.segments.rocketmq.reading.get_message.UnitScan", OneByOne)
            wanted = self.result(message_filter)
        assert self.result(message_filter) == wanted


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a pull; what its queue leads to is mostly as it should be."""
    data, units = bytearray(), list[tuple[int, int, int]]()
    first = draw(st.sampled_from([0, FILE_BYTES]))
    codes = draw(st.sampled_from([CODES[:2], CODES[:3], CODES]))
    for _ in range(draw(st.integers(1, 60))):
        value = draw(st.sampled_from([b"7", b"8", b"77"]))
        body = bytes(draw(st.sampled_from([0, 10, 10, 300, 2000])))
        message = stored(b"a\x01" + value + b"\x02", body=body)
        data += bytes(draw(st.sampled_from([0, 0, 0, 50, 9000])))
        if len(data) % FILE_BYTES + len(message) > FILE_BYTES:
            data += bytes(-len(data) % FILE_BYTES)
        unit = first + len(data), len(message), draw(st.sampled_from(codes))
        data += message
        if draw(st.integers(0, 60)) == 0:
            unit = draw(
                st.sampled_from(
                    [(-5, 100, 65), (0, 1 << 30, 65), (unit[0], -1, 65), (0, 100, 65), (90, 0, 66)]
                )
            )
        units.append(unit)
    log = MemoryCommitLog.of_bytes(bytes(data), FILE_BYTES, first=first)
    log.max_physical_offset -= draw(st.sampled_from([0, 0, 1, 5000]))
    limits = GetMessageLimits(
        filter_bytes_max=draw(st.sampled_from([40, 16000])),
        memory_bytes=draw(st.sampled_from([0, 5000, 20000, 1 << 30])),
        in_memory_bytes_max=draw(st.sampled_from([500, 3000, 262144])),
        on_disk_bytes_max=900,
        files_max=draw(st.integers(1, 2)),
    )
    queue = ExtQueue(
        b"".join(UNIT.pack(*unit) for unit in units),
        units_per_file=draw(st.sampled_from([7, 40, 300_000])),
    )
    begin = draw(st.integers(0, len(units) - 1))
    return Case(queue, log, begin, draw(st.integers(0, 40)), draw(st.integers(0, 9000)), limits)


@given(case=cases(), codes=st.lists(st.sampled_from([65, 66, -66, 1 << 40, 7]), max_size=3))
def test_tags(case: Case, codes: list[int]) -> None:
    """By tags a pull gets to the byte and to the count what one by one gives."""
    case.assert_as_one_by_one(TagFilter(codes))


@given(case=cases(), expression=st.sampled_from(["a = '7'", "a > 7", "a IS NULL", "b = 'x'"]))
def test_expressions(case: Case, expression: str) -> None:
    """So, too, by an expression, how many were read and passed over included."""
    case.assert_as_one_by_one(SqlFilter(filter_of(expression)))


@given(
    codes=st.lists(
        st.one_of(st.sampled_from(CODES), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=50
    ),
    wanted=st.frozensets(st.sampled_from([65, 66, -66, 0x4141_4141, -1, 0, 1 << 50])),
)
def test_tagged_units(codes: Sequence[int], wanted: frozenset[int]) -> None:
    """Units are found by the lower 32 bits of their code, unless one may be an address."""
    units = b"".join(UNIT.pack(0x4141_4141, 65, code) for code in codes)
    found = tagged_units(units, wanted)
    if found is not None:
        lower = [struct.unpack(">i", UNIT.pack(0, 0, code)[16:])[0] for code in codes]
        assert list(found) == [index for index, code in enumerate(lower) if code in wanted]
        assert min(codes, default=0) > ADDRESS_MAX


def test_many_are_passed_over_at_once() -> None:
    """Few of many messages are found with one look at the units, and little reading."""
    message, other = stored(b"a\x017\x02"), stored(b"a\x018\x02")
    data = b"".join(message if index % 50 == 0 else other for index in range(800))
    units = [(index * len(message), len(message), 65 + (index % 50 > 0)) for index in range(800)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit) for unit in units))
    for message_filter, reads_max in ((TagFilter([65]), 0), (A, 8)):
        log = MemoryCommitLog.of_bytes(data)
        result = get_message(queue, log, 0, 32, message_filter=message_filter)
        assert (result.status, result.count) == (GetMessageStatus.FOUND, 16)
        assert result.next_begin_offset == 800
        assert sum(file.read_count for file in log.files.values()) <= reads_max
        assert result.filtered_count == (784 if reads_max else 0)
