"""From times to queue offsets, as 5.x and as 4.9.8 do it."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.reading.time_lookup import (
    BoundaryType,
    nearest_queue_offset,
    queue_offset_for_time,
    store_timestamp_at,
)
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import UNIT, MemoryCommitLog, MemoryQueue

SIZE = 100


def message_of(time_ms: int, *, has_long_host: bool = False) -> bytes:
    """Return as much of a stored message as a search by time looks at."""
    head = bytearray(SIZE)
    struct.pack_into(">i", head, 36, 0x10 if has_long_host else 0)
    struct.pack_into(">q", head, 68 if has_long_host else 56, time_ms)
    return bytes(head)


def stored(times: list[int], units_per_file: int = 1000) -> tuple[MemoryQueue, MemoryCommitLog]:
    """Return a queue of messages stored at these times."""
    data = b"".join(message_of(time_ms, has_long_host=time_ms % 2 == 1) for time_ms in times)
    units = b"".join(UNIT.pack(index * SIZE, SIZE, 0) for index in range(len(times)))
    return MemoryQueue(units, units_per_file), MemoryCommitLog.of_bytes(data, 1 << 24)


@pytest.mark.parametrize(
    ("time_ms", "lower", "upper"),
    [(5, 0, 0), (10, 0, 2), (15, 3, 2), (20, 3, 4), (25, 5, 4), (30, 5, 5), (35, 6, 5)],
)
def test_boundaries(time_ms: int, lower: int, upper: int) -> None:
    """LOWER is the first message at or after a time, UPPER the last at or before it."""
    queue, commit_log = stored([10, 10, 10, 20, 20, 30])
    assert queue_offset_for_time(queue, commit_log, time_ms, BoundaryType.LOWER) == lower
    assert queue_offset_for_time(queue, commit_log, time_ms, BoundaryType.UPPER) == upper


@pytest.mark.parametrize(
    ("time_ms", "nearest"),
    [(5, 0), (10, 0), (14, 0), (15, 0), (16, 1), (20, 1), (25, 1), (26, 2), (30, 2), (99, 2)],
)
def test_nearest(time_ms: int, nearest: int) -> None:
    """4.9.8 takes the nearest message, the older one of two as near."""
    queue, commit_log = stored([10, 20, 30])
    assert nearest_queue_offset(queue, commit_log, time_ms) == nearest


def test_nearest_by_file_times() -> None:
    """4.9.8 looks in the first file that was written at or after the time only."""
    queue, commit_log = stored([10, 20, 30, 40], units_per_file=2)
    queue.modified_ms = {0: 35, 2: 45}
    assert nearest_queue_offset(queue, commit_log, 30) == 1
    assert nearest_queue_offset(queue, commit_log, 36) == 3
    assert nearest_queue_offset(queue, commit_log, 50) == 3


def test_empty_queue() -> None:
    """A queue without messages answers 0 to any time."""
    queue, commit_log = stored([])
    for boundary in BoundaryType:
        assert queue_offset_for_time(queue, commit_log, 5, boundary) == 0
    assert nearest_queue_offset(queue, commit_log, 5) == 0


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=40).map(sorted),
    time_ms=st.integers(-2, 42),
    units_per_file=st.integers(1, 12),
)
def test_as_bisect(times: list[int], time_ms: int, units_per_file: int) -> None:
    """Over any number of files both boundaries are what a search over all times finds."""
    queue, commit_log = stored(times, units_per_file)
    lower = queue_offset_for_time(queue, commit_log, time_ms, BoundaryType.LOWER)
    upper = queue_offset_for_time(queue, commit_log, time_ms, BoundaryType.UPPER)
    assert lower == bisect_left(times, time_ms)
    assert upper == max(bisect_right(times, time_ms) - 1, 0)


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True).map(sorted),
    time_ms=st.integers(-2, 42),
)
def test_nearest_as_min(times: list[int], time_ms: int) -> None:
    """4.9.8's answer in one file is the nearest of all messages."""
    queue, commit_log = stored(times)
    found = nearest_queue_offset(queue, commit_log, time_ms)
    assert found == min(range(len(times)), key=lambda index: (abs(times[index] - time_ms), index))


def test_deleted_messages_are_older() -> None:
    """Messages whose commit log file is gone count as too old; the answer is in the queue."""
    times = list(range(10, 20))
    queue, _ = stored(times)
    units = b"".join(UNIT.pack(4096 - 500 + index * SIZE, SIZE, 0) for index in range(10))
    queue.data = units
    data = b"".join(message_of(time_ms) for time_ms in times)
    commit_log = MemoryCommitLog.of_bytes(data[500:], 4096, first=4096)
    queue.min_queue_offset = 5
    assert queue_offset_for_time(queue, commit_log, 12) == 5
    assert queue_offset_for_time(queue, commit_log, 17) == 7
    assert queue_offset_for_time(queue, commit_log, 12, BoundaryType.UPPER) == 5
    queue.min_queue_offset = 0  # the queue was not corrected yet
    assert queue_offset_for_time(queue, commit_log, 17) == 7
    assert nearest_queue_offset(queue, commit_log, 12) == 5


def test_unreadable_message() -> None:
    """Where a message that is asked for its time cannot be read the queue's start is the answer."""
    queue, commit_log = stored([10, 20, 30, 40, 50])
    units = bytearray(queue.data)
    units[2 * 20 : 3 * 20] = UNIT.pack(1 << 40, SIZE, 0)
    queue.data = bytes(units)
    queue.min_queue_offset = 1
    assert queue_offset_for_time(queue, commit_log, 45) == 1
    assert nearest_queue_offset(queue, commit_log, 45) == 0


@pytest.mark.parametrize(
    ("physical_offset", "size_bytes"), [(-1, SIZE), (0, 75), (0, SIZE + 1), (SIZE, 91), (0, -5)]
)
def test_no_store_time(physical_offset: int, size_bytes: int) -> None:
    """A unit that leads out of the commit log, or to less than a message, has no time."""
    _, commit_log = stored([10])
    assert store_timestamp_at(commit_log, physical_offset, size_bytes) == -1
    assert store_timestamp_at(commit_log, 0, SIZE) == 10


@pytest.mark.parametrize(
    ("name", "boundary"),
    [
        ("upper", BoundaryType.UPPER),
        ("UPPER", BoundaryType.UPPER),
        ("x", BoundaryType.LOWER),
        (None, BoundaryType.LOWER),
    ],
)
def test_names(name: str | None, boundary: BoundaryType) -> None:
    """Boundaries are named in any case; whatever is none means the lower one."""
    assert BoundaryType.named(name) is boundary


@pytest.mark.parametrize("case", golden_cases("plain", "ipv6"), ids=lambda one: one.id)
def test_golden(case: GoldenCase) -> None:
    """In a real broker's store each message is found by its own store time."""
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    for topic, queue_id in sorted({(one["topic"], one["queueId"]) for one in case.expected}):
        queue = MemoryQueue.of_store(case.store, topic, queue_id)
        times = [
            one["storeTimestamp"]
            for one in case.expected
            if (one["topic"], one["queueId"]) == (topic, queue_id)
        ]
        for time_ms in times:
            assert queue_offset_for_time(queue, commit_log, time_ms) == times.index(time_ms)
            upper = queue_offset_for_time(queue, commit_log, time_ms, BoundaryType.UPPER)
            assert upper == bisect_right(times, time_ms) - 1
