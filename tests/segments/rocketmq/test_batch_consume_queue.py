"""One queue of batches: 46-byte units that are found by search."""

from __future__ import annotations

import pytest

from logstore.host import read_file
from logstore.segments.rocketmq.queues.batch_consume_queue import (
    BATCH_UNIT_BYTES,
    BatchConsumeQueue,
    BatchUnit,
)
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

DIRECTORY = "/store/batchconsumequeue/TopicTest/0"
#: ten units a file
SIZE = 460


def opened(host: SimulatedHost) -> BatchConsumeQueue:
    """Open and recover the queue."""
    queue = BatchConsumeQueue(host, DIRECTORY, "TopicTest", 0, file_size_bytes=SIZE, is_clean=False)
    queue.recover()
    return queue


def unit(number: int) -> BatchUnit:
    """Return the unit of batch `number`: three messages, stored a second after the one before."""
    return BatchUnit(1000 + number * 100, 100, 7, 50_000 + number * 1000, number * 3, 3)


def filled(count: int = 25) -> tuple[SimulatedHost, BatchConsumeQueue]:
    """Return a queue of so many batches, all of them durable."""
    host = SimulatedHost()
    queue = opened(host)
    for number in range(count):
        assert queue.put(unit(number))
    queue.flush()
    return host, queue


def found(queue: BatchConsumeQueue, queue_offset: int, count_max: int = 1) -> list[int]:
    """Return the first queue offsets of the units that a read gives."""
    data = queue.units(queue_offset, count_max)
    return [
        BatchUnit.decode(data, position).queue_offset
        for position in range(0, len(data), BATCH_UNIT_BYTES)
    ]


def test_a_unit_is_46_bytes() -> None:
    """The compacted offset is -1, the last four bytes are 0."""
    assert BatchUnit(1024, 123, -2, 5, 9, 3).encode().hex() == (
        "0000000000000400"
        "0000007b"
        "fffffffffffffffe"
        "0000000000000005"
        "0000000000000009"
        "0003"
        "ffffffff"
        "00000000"
    )


def test_a_queue_offset_leads_to_the_batch_that_holds_it() -> None:
    """From the buffer as from files; several units are those that follow."""
    host = SimulatedHost()
    queue = opened(host)
    for is_written in (False, True):
        for number in range(12):
            queue.put(unit(number))
        if is_written:
            queue.write()
        for queue_offset in range(36):
            assert found(queue, queue_offset) == [queue_offset // 3 * 3]
        assert found(queue, 22, 9) == [21, 24, 27], "a run lies in one file"
        assert found(queue, 36) == []
    assert (queue.min_queue_offset, queue.max_queue_offset) == (0, 36)


def test_a_message_that_is_no_batch_has_no_unit() -> None:
    """Java drops what tells no first queue offset, and what it has seen."""
    queue = opened(SimulatedHost())

    assert not queue.put(BatchUnit(1000, 100, 0, 5, -1, 1))
    assert not queue.put(BatchUnit(1000, 100, 0, 5, 0, -1))
    assert queue.put(unit(0))
    assert not queue.put(unit(0))
    assert (queue.max_queue_offset, queue.max_physical_offset) == (3, 1000)


def test_a_queue_comes_back_after_a_stop() -> None:
    """With its minimum, its end, and what it knows of the commit log."""
    for count in (1, 9, 10, 11, 25):
        host, queue = filled(count)
        queue.close()

        again = opened(host)

        assert (again.min_queue_offset, again.max_queue_offset) == (0, count * 3)
        assert again.max_physical_offset == again.last_physical_offset == 900 + count * 100
        assert again.put(unit(count))


def test_dirty_units_are_let_go_of() -> None:
    """And do not come back behind what is put after them."""
    for count in (25, 21, 20, 11, 10, 1):
        host, queue = filled(25)
        queue.truncate_dirty(1000 + count * 100)
        assert queue.max_queue_offset == count * 3
        assert queue.put(unit(count))
        queue.flush()
        host.power_loss(LOSE_UNSYNCED)

        assert opened(host).max_queue_offset == count * 3 + 3


def test_a_queue_of_nothing_but_dirty_units_is_empty() -> None:
    """It takes the units of the same places again."""
    host, queue = filled(25)

    queue.truncate_dirty(500)

    assert (queue.min_queue_offset, queue.max_queue_offset) == (0, 0)
    assert host.fs.list_directory(DIRECTORY) == []
    assert queue.put(unit(0))


def test_the_minimum_follows_the_commit_log() -> None:
    """It is the first queue offset of the first batch that is there."""
    host, queue = filled(25)
    for min_physical_offset, expected in ((0, 0), (1001, 3), (1100, 3), (3400, 72), (9999, 75)):
        queue.correct_min(min_physical_offset)
        assert queue.min_queue_offset == expected
    assert queue.delete_below(2000) == 1
    assert queue.min_queue_offset == 30
    assert found(queue, 29) == []
    assert found(queue, 31) == [30]
    assert len(host.fs.list_directory(DIRECTORY)) == 2


def test_a_queue_whose_files_are_gone_but_for_one_without_batches_begins_at_its_end() -> None:
    """A crash may leave one that was made for a batch that never came."""
    host, _ = filled(10)
    file = host.fs.open(f"{DIRECTORY}/{10 * BATCH_UNIT_BYTES:020}", create=True)
    file.truncate(10 * BATCH_UNIT_BYTES)
    file.close()
    queue = opened(host)
    assert queue.delete_below(9999) == 1
    assert (queue.min_queue_offset, queue.max_queue_offset) == (30, 30)


def test_a_time_leads_to_the_oldest_batch_of_that_time_or_later() -> None:
    """Within the file that it falls into: behind that file's last batch Java returns that one."""
    _, queue = filled(25)

    assert opened(SimulatedHost()).queue_offset_for_time(5) == -1
    assert queue.queue_offset_for_time(0) == 0
    assert queue.queue_offset_for_time(50_000) == 0
    assert queue.queue_offset_for_time(52_000) == 6
    assert queue.queue_offset_for_time(52_001) == 9
    assert queue.queue_offset_for_time(59_001) == 27
    assert queue.queue_offset_for_time(60_000) == 30
    assert queue.queue_offset_for_time(999_999) == 72


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [
        (0, 0),
        (50_000, 0),
        (51_000, 3),
        (51_999, -1),
        (52_500, 9),
        (56_500, -1),
        (58_001, 27),
        (60_000, 30),
        (999_999, 72),
    ],
)
def test_an_upper_boundary_leads_to_what_java_comes_upon(timestamp_ms: int, expected: int) -> None:
    """The batch of that time; between two the newer one, or none (``binarySearchRight``)."""
    _, queue = filled(25)

    assert queue.queue_offset_for_time(timestamp_ms, is_upper=True) == expected


def test_its_files_are_told_by_the_queue_offsets_in_them() -> None:
    """Of the messages, not of the units."""
    _, queue = filled(25)

    spans = [(file.first_queue_offset, file.end_queue_offset) for file in queue.queue_files()]

    assert spans == [(0, 30), (30, 60), (60, 75)]
    assert (queue.roll_next_file(5), queue.roll_next_file(30)) == (30, 60)


@pytest.mark.parametrize("case", golden_cases("batch-queue"), ids=lambda case: case.id)
def test_the_queues_of_a_real_broker_are_read(case: GoldenCase) -> None:
    """Every unit is found by its queue offset, and the same units give equal files."""
    (store,) = case.stores.values()
    host = SimulatedHost()
    count = 0
    for directory in sorted((store / "batchconsumequeue").glob("*/*")):
        files = sorted(directory.iterdir())
        size_bytes = files[0].stat().st_size
        stored = b"".join(file.read_bytes() for file in files)
        places = range(0, len(stored), BATCH_UNIT_BYTES)
        decoded = [BatchUnit.decode(stored, position) for position in places]
        units = [found_unit for found_unit in decoded if found_unit.size_bytes]
        queue = BatchConsumeQueue(host, str(directory), "T", 0, file_size_bytes=size_bytes)
        for found_unit in units:
            assert queue.put(found_unit)
        for found_unit in units:
            data = queue.units(found_unit.queue_offset + found_unit.count - 1, 1)
            assert BatchUnit.decode(data) == found_unit
        count += len(units)
        queue.close()
        assert [read_file(host.fs, str(file)) for file in files] == [
            file.read_bytes() for file in files
        ]
    assert count > 10
