"""Pulls from one queue: status, limits, next queue offset, bytes."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue, BatchUnit
from logstore.segments.rocketmq.reading.get_message import (
    GetMessageResult,
    GetMessageStatus,
    get_message,
)
from logstore.segments.rocketmq.reading.get_message_limits import GetMessageLimits
from logstore.segments.rocketmq.reading.message_filter import TagFilter
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import UNIT, MemoryCommitLog, MemoryQueue

FILE_BYTES = 4096


def queue_of(sizes: list[int], tags_codes: list[int] | None = None) -> MemoryQueue:
    """Return a queue whose messages stand one after the other from physical offset 0 on."""
    codes = tags_codes or [0] * len(sizes)
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    units = zip(starts, sizes, codes, strict=True)
    return MemoryQueue(b"".join(UNIT.pack(*unit) for unit in units))


def pull(
    sizes: list[int], queue_offset: int = 0, count_max: int = 32, **arguments: object
) -> GetMessageResult:
    """Pull from a queue of messages of these sizes in one commit log file."""
    commit_log = MemoryCommitLog.of_bytes(bytes(sum(sizes)), 1 << 24)
    return get_message(queue_of(sizes), commit_log, queue_offset, count_max, **arguments)  # type: ignore[arg-type]


def test_no_queue() -> None:
    """A pull from a queue that is not there starts again at 0."""
    result = get_message(None, MemoryCommitLog.of_bytes(b""), 5, 32)
    assert result.status is GetMessageStatus.NO_MATCHED_LOGIC_QUEUE
    assert result.next_begin_offset == 0


@pytest.mark.parametrize(
    ("queue_offset", "status", "begin"),
    [
        (2, GetMessageStatus.OFFSET_TOO_SMALL, 3),
        (10, GetMessageStatus.OFFSET_OVERFLOW_ONE, 10),
        (11, GetMessageStatus.OFFSET_OVERFLOW_BADLY, 10),
        (3, GetMessageStatus.FOUND, 10),
    ],
)
def test_outside(queue_offset: int, status: GetMessageStatus, begin: int) -> None:
    """Below the queue a pull is sent to its start, above it to its end, at its end it waits."""
    queue = queue_of([100] * 10)
    queue.min_queue_offset = 3
    result = get_message(queue, MemoryCommitLog.of_bytes(bytes(1000)), queue_offset, 32)
    assert (result.status, result.next_begin_offset) == (status, begin)
    assert (result.min_queue_offset, result.max_queue_offset) == (3, 10)


def test_slave_does_not_correct() -> None:
    """A slave that may only lag leaves a consumer's queue offset alone, unless told to check it."""
    limits = GetMessageLimits.of_settings({"brokerRole": "SLAVE"})
    result = pull([100], 7, limits=limits)
    assert result.status is GetMessageStatus.OFFSET_OVERFLOW_BADLY
    assert result.next_begin_offset == 7
    checked = GetMessageLimits.of_settings({"brokerRole": "SLAVE", "offsetCheckInSlave": "true"})
    assert pull([100], 7, limits=checked).next_begin_offset == 1


def test_empty_queue() -> None:
    """A queue without a message says so, whatever is asked for."""
    result = pull([], 4)
    assert result.status is GetMessageStatus.NO_MESSAGE_IN_QUEUE
    assert result.next_begin_offset == 0


def test_units_missing() -> None:
    """Where the queue's file cannot be read a pull is sent to the next file."""
    queue = MemoryQueue(bytes(20), units_per_file=4, first_queue_offset=9)
    result = get_message(queue, MemoryCommitLog.of_bytes(bytes(10)), 9, 32)
    assert result.status is GetMessageStatus.MESSAGE_WAS_REMOVING

    class Unreadable(MemoryQueue):
        def units(self, queue_offset: int, count_max: int) -> memoryview:  # noqa: ARG002
            return memoryview(b"")

    lost = Unreadable(bytes(20), units_per_file=4, first_queue_offset=9)
    result = get_message(lost, MemoryCommitLog.of_bytes(bytes(10)), 9, 32)
    assert result.status is GetMessageStatus.OFFSET_FOUND_NULL
    assert result.next_begin_offset == 12


@pytest.mark.parametrize(
    ("settings", "memory_bytes", "size", "count"),
    [
        ({}, 1 << 30, 100, 32),
        ({}, 1 << 30, 10000, 26),
        ({}, 0, 100, 8),
        ({}, 0, 10000, 6),
        ({"maxTransferCountOnMessageInMemory": "5"}, 1 << 30, 100, 5),
        ({"maxTransferBytesOnMessageInMemory": "1000"}, 1 << 30, 100, 10),
        ({"maxTransferCountOnMessageInDisk": "3"}, 0, 100, 3),
        ({"maxTransferBytesOnMessageInDisk": "250"}, 0, 100, 2),
    ],
)
def test_transfer_limits(
    settings: dict[str, str], memory_bytes: int, size: int, count: int
) -> None:
    """Messages near the log's end come in larger answers than those far from it."""
    limits = GetMessageLimits.of_settings(settings, memory_bytes)
    result = pull([size] * 60, count_max=50, limits=limits)
    assert result.count == count
    assert result.next_begin_offset == count
    assert result.suggests_slave is (memory_bytes == 0)


def test_first_message_always() -> None:
    """The first message comes whatever its size, so that no consumer is stuck before it."""
    result = pull([5 << 20, 100], size_bytes_max=1000)
    assert (result.count, result.size_bytes) == (1, 5 << 20)


def test_size_bytes_max() -> None:
    """A pull gets no more bytes than it asks for; at least 100 are granted."""
    assert pull([40] * 10, size_bytes_max=90).count == 2
    assert pull([40] * 10, size_bytes_max=0).count == 2
    assert pull([40] * 10, size_bytes_max=160).count == 4


def test_neighbours_are_one_piece() -> None:
    """Messages that stand side by side are one piece; another queue's between them parts them."""
    assert [piece.size_bytes for piece in pull([100] * 32).pieces] == [3200]
    units = [(0, 100), (100, 100), (300, 100), (400, 50)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit, 0) for unit in units))
    data = bytes(index % 251 for index in range(450))
    result = get_message(queue, MemoryCommitLog.of_bytes(data), 0, 32)
    assert [(piece.position, piece.size_bytes) for piece in result.pieces] == [(0, 200), (300, 150)]
    assert result.read() == data[:200] + data[300:]


def test_pieces_end_with_the_file() -> None:
    """A piece never goes on into the next commit log file."""
    units = [(0, 4000), (FILE_BYTES, 10)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit, 0) for unit in units))
    result = get_message(queue, MemoryCommitLog.of_bytes(bytes(5000), FILE_BYTES), 0, 32)
    assert [(piece.position, piece.size_bytes) for piece in result.pieces] == [(0, 4000), (0, 10)]
    crossing = MemoryQueue(UNIT.pack(FILE_BYTES - 5, 10, 0))
    result = get_message(crossing, MemoryCommitLog.of_bytes(bytes(5000), FILE_BYTES), 0, 32)
    assert result.status is GetMessageStatus.MESSAGE_WAS_REMOVING


def test_removed_messages() -> None:
    """Messages whose commit log file is gone are passed over; later ones are found."""
    units = [(0, 100), (100, 100), (FILE_BYTES, 100), (FILE_BYTES + 100, 100)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit, 0) for unit in units))
    commit_log = MemoryCommitLog.of_bytes(bytes(200), FILE_BYTES, first=FILE_BYTES)
    result = get_message(queue, commit_log, 0, 32)
    assert (result.status, result.count, result.next_begin_offset) == (
        GetMessageStatus.FOUND,
        2,
        4,
    )
    gone = MemoryCommitLog.of_bytes(bytes(200), FILE_BYTES, first=2 * FILE_BYTES)
    result = get_message(queue, gone, 0, 32)
    assert result.status is GetMessageStatus.MESSAGE_WAS_REMOVING
    assert result.next_begin_offset == 4
    assert not result.pieces


def test_unit_of_nonsense() -> None:
    """A unit that leads nowhere (negative, too long, past the end) takes nothing else with it."""
    for unit in [(-5, 100), (0, 0x7FFFFFFF), (0, -1), (1 << 62, 10), (0, 0)]:
        queue = MemoryQueue(UNIT.pack(*unit, 0) + UNIT.pack(FILE_BYTES, 10, 0))
        result = get_message(queue, MemoryCommitLog.of_bytes(bytes(5000), FILE_BYTES), 0, 32)
        assert result.next_begin_offset == 2
        assert result.size_bytes in (0, 10)


def test_filter_scan_limit() -> None:
    """A pull looks at 800 units at most if none of them matches, and goes on there next time."""
    sizes = [10] * 2000
    commit_log = MemoryCommitLog.of_bytes(bytes(20000))
    result = get_message(queue_of(sizes), commit_log, 0, 32, message_filter=TagFilter([7]))
    assert result.status is GetMessageStatus.NO_MATCHED_MESSAGE
    assert result.next_begin_offset == 800
    wide = get_message(queue_of(sizes), commit_log, 0, 1000, message_filter=TagFilter([7]))
    assert wide.next_begin_offset == 1000


def test_stops_at_the_queue_file() -> None:
    """A pull does not go on into the next consume queue file."""
    queue = queue_of([10] * 20)
    queue.units_per_file = 8
    result = get_message(queue, MemoryCommitLog.of_bytes(bytes(200)), 5, 32)
    assert (result.count, result.next_begin_offset) == (3, 8)


def test_next_file_while_nothing_matches() -> None:
    """With travelCqFileNumWhenGetMessage a pull that found nothing looks at so many files."""
    queue = queue_of([10] * 20, [0] * 17 + [7] * 3)
    queue.units_per_file = 8
    commit_log = MemoryCommitLog.of_bytes(bytes(200))
    one = get_message(queue, commit_log, 0, 32, message_filter=TagFilter([7]))
    assert (one.status, one.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 8)
    limits = GetMessageLimits.of_settings({"travelCqFileNumWhenGetMessage": "3"})
    three = get_message(queue, commit_log, 0, 32, message_filter=TagFilter([7]), limits=limits)
    assert (three.status, three.count, three.next_begin_offset) == (GetMessageStatus.FOUND, 3, 20)


@pytest.mark.parametrize(
    ("codes", "found"),
    [([7], [0, 3]), ([7, -2], [0, 1, 3]), ([], []), ([(1 << 32) + 7 - (1 << 32)], [0, 3])],
)
def test_tags_codes(codes: list[int], found: list[int]) -> None:
    """Messages pass whose tags code is one of the filter's; only 32 bits of it count."""
    queue = queue_of([10] * 4, [7, -2, 9, (5 << 32) + 7])
    data = bytes(40)
    result = get_message(
        queue, MemoryCommitLog.of_bytes(data), 0, 32, message_filter=TagFilter(codes)
    )
    assert result.count == len(found)
    assert sum(piece.size_bytes for piece in result.pieces) == 10 * len(found)
    assert result.next_begin_offset == 4


def test_last_reason_counts() -> None:
    """What the last message looked at lacked is the status: here it was there and did not match."""
    units = [(0, 100, 7), (FILE_BYTES, 100, 9)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit) for unit in units))
    commit_log = MemoryCommitLog.of_bytes(bytes(200), FILE_BYTES, first=FILE_BYTES)
    result = get_message(queue, commit_log, 0, 32, message_filter=TagFilter([7]))
    assert result.status is GetMessageStatus.NO_MATCHED_MESSAGE


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=60),
    tags=st.data(),
    count_max=st.integers(1, 40),
    size_max=st.integers(0, 3000),
    memory=st.sampled_from([0, 1000, 1 << 30]),
)
def test_as_one_by_one(
    sizes: list[int], tags: st.DataObject, count_max: int, size_max: int, memory: int
) -> None:
    """A pull gets what asking Java's rules message by message gives, and its exact bytes."""
    codes = tags.draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    begin = tags.draw(st.integers(0, len(sizes) - 1))
    data = bytes((index * 7 + index // 256) % 256 for index in range(sum(sizes)))
    limits = GetMessageLimits(memory_bytes=memory, in_memory_bytes_max=2000, on_disk_bytes_max=900)
    result = get_message(
        queue_of(sizes, codes),
        MemoryCommitLog.of_bytes(data, 1 << 24),
        begin,
        count_max,
        size_max,
        TagFilter([1, 2]),
        limits,
    )
    taken: list[bytes] = []
    position, next_begin = sum(sizes[:begin]), begin
    for index in range(begin, len(sizes)):
        size, total = sizes[index], sum(map(len, taken))
        in_memory = len(data) - position <= int(memory * 0.4)
        most_bytes, most = (2000, 32) if in_memory else (900, 8)
        if taken and (
            len(taken) >= min(count_max, most) or total + size > min(most_bytes, max(size_max, 100))
        ):
            break
        next_begin = index + 1
        if codes[index]:
            taken.append(data[position : position + size])
        position += size
    assert result.read() == b"".join(taken)
    assert (result.count, result.next_begin_offset) == (len(taken), next_begin)
    assert result.status is (
        GetMessageStatus.FOUND if taken else GetMessageStatus.NO_MATCHED_MESSAGE
    )


def test_batch_units() -> None:
    """A unit of a batch queue counts as all its messages, and the next pull starts behind them."""
    batch = struct.Struct(">qiqqqhii")
    units = [(0, 50, 0, 1, 100, 3), (50, 60, 0, 2, 103, 4), (110, 70, 0, 3, 107, 1)]

    class BatchQueue(MemoryQueue):
        unit_size_bytes = 46

        @property
        def max_queue_offset(self) -> int:
            return 108

        def units(self, queue_offset: int, count_max: int) -> memoryview:
            index = next(i for i, one in enumerate(units) if queue_offset < one[4] + one[5])
            chosen = units[index : index + count_max]
            return memoryview(b"".join(batch.pack(*unit, -1, 0) for unit in chosen))

        def units_to_file_end(self, queue_offset: int) -> int:
            return sum(queue_offset < one[4] + one[5] for one in units)

    queue = BatchQueue(b"", min_queue_offset=100)
    commit_log = MemoryCommitLog.of_bytes(bytes(180))
    whole = get_message(queue, commit_log, 100, 32)
    assert (whole.count, whole.next_begin_offset, whole.size_bytes) == (8, 108, 180)
    few = get_message(queue, commit_log, 101, 5)
    assert (few.count, few.next_begin_offset, few.size_bytes) == (3, 103, 50)
    inside = get_message(queue, commit_log, 104, 32)
    assert (inside.count, inside.next_begin_offset) == (5, 108)


def test_a_pull_ends_where_the_file_of_a_batch_queue_ends() -> None:
    """So much as its file holds is handed out, however much more was asked for."""
    queue = BatchConsumeQueue(
        SimulatedHost(), "/store/batches", "batches", 0, file_size_bytes=46 * 4
    )
    queue.recover()
    for number in range(10):
        queue.put(BatchUnit(number * 100, 100, 0, 1, number * 2, 2))
    commit_log = MemoryCommitLog.of_bytes(bytes(1000))
    begin, ends = 0, list[int]()
    while (result := get_message(queue, commit_log, begin, 32)).status is GetMessageStatus.FOUND:
        begin = result.next_begin_offset
        ends.append(begin)
    assert ends == [8, 16, 20]
    assert get_message(queue, commit_log, 5, 32).next_begin_offset == 8


def test_reading_near_pieces_at_once() -> None:
    """Pieces near each other in one file are read with what is between, far ones are not."""
    units = [(index * 200, 100) for index in range(20)] + [(900_000, 100)]
    queue = MemoryQueue(b"".join(UNIT.pack(*unit, 0) for unit in units))
    data = bytes(index % 253 for index in range(1_000_000))
    commit_log = MemoryCommitLog.of_bytes(data)
    result = get_message(queue, commit_log, 0, 32)
    assert result.read() == b"".join(data[start : start + size] for start, size in units)
    assert commit_log.files[0].read_count == 2


@pytest.mark.parametrize(
    "case",
    golden_cases("plain", "properties", "groups", "ipv6", "version-2"),
    ids=lambda one: one.id,
)
def test_golden(case: GoldenCase) -> None:
    """Pulls over a real broker's store give every message that a real client pulled from it."""
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    for topic, queue_id in sorted({(one["topic"], one["queueId"]) for one in case.expected}):
        queue = MemoryQueue.of_store(case.store, topic, queue_id)
        expected = [
            one for one in case.expected if (one["topic"], one["queueId"]) == (topic, queue_id)
        ]
        found: list[tuple[int, int]] = []
        begin = queue.first_queue_offset
        while begin < queue.max_queue_offset:
            result = get_message(queue, commit_log, begin, 32)
            assert result.status is GetMessageStatus.FOUND
            data, position = result.read(), 0
            while position < len(data):
                (size,) = struct.unpack_from(">i", data, position)
                found.append(struct.unpack_from(">qq", data, position + 20))
                position += size
            begin = result.next_begin_offset
        wanted = [(one["queueOffset"], one["commitLogOffset"]) for one in expected]
        assert [one for one in found if one[0] <= wanted[-1][0]] == wanted


def test_speed() -> None:
    """A pull of 32 neighbours takes less than 60 us, reading them included."""
    sizes = [1024] * 1000
    queue, commit_log = queue_of(sizes), MemoryCommitLog.of_bytes(bytes(1024000), 1 << 24)
    best = 1.0
    for _ in range(20):
        start = time.process_time()
        for begin in range(0, 960, 32):
            get_message(queue, commit_log, begin, 32).read()
        best = min(best, (time.process_time() - start) / 30)
    assert best < 60e-6, f"{best * 1e6:.1f} us"


@given(
    units=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([-1, 0, 40, 100, 3000])),
        min_size=1,
        max_size=40,
    ),
    queue_offset=st.integers(0, 40),
    count_max=st.integers(1, 40),
    limits=st.builds(
        GetMessageLimits,
        in_memory_bytes_max=st.sampled_from([500, 262144]),
        in_memory_count_max=st.sampled_from([5, 32]),
        memory_bytes=st.sampled_from([0, 10_000, 1 << 40]),
        files_max=st.integers(1, 2),
    ),
    log_bytes=st.sampled_from([1000, 50_000, 1 << 17]),
)
def test_messages_taken_at_once_are_those_taken_one_by_one(
    units: list[tuple[int, int]],
    queue_offset: int,
    count_max: int,
    limits: GetMessageLimits,
    log_bytes: int,
) -> None:
    """A pull of everything gets what a pull with a filter gets that lets everything through."""
    packed, position = b"", 0
    for gap, size in units:
        position += gap * 100
        packed += UNIT.pack(position, size, 7)
        position += size
    commit_log = MemoryCommitLog.of_bytes(bytes(log_bytes), FILE_BYTES * 4)
    of_all, filtered = (
        get_message(
            MemoryQueue(packed),
            commit_log,
            queue_offset,
            count_max,
            message_filter=one,
            limits=limits,
        )
        for one in (None, TagFilter([7]))
    )
    for name in GetMessageResult.__slots__:
        assert getattr(of_all, name) == getattr(filtered, name), name
