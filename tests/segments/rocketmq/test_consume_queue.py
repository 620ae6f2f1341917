"""One queue of 20-byte units: buffered puts, Java's rules for what comes out of order, recovery."""

from __future__ import annotations

import errno
import logging

import pytest

from logstore.errors import CorruptFileError, WriteFailedError
from logstore.host import read_file
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.queues.consume_queue_unit import PRE_BLANK, UNIT, ConsumeQueueUnit
from logstore.testing import KEEP_EVERYTHING, LOSE_UNSYNCED, SimulatedHost
from logstore.testing.power_loss import PowerLoss
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

DIRECTORY = "/store/consumequeue/TopicTest/3"
FIRST = f"{DIRECTORY}/{0:020d}"
#: ten units a file
SIZE = 200


def opened(host: SimulatedHost, *, is_clean: bool = False) -> ConsumeQueue:
    """Open and recover the queue."""
    queue = ConsumeQueue(host, DIRECTORY, "TopicTest", 3, file_size_bytes=SIZE, is_clean=is_clean)
    queue.recover()
    return queue


def put(queue: ConsumeQueue, start: int, end: int) -> None:
    """Put the units of messages of 100 bytes, one behind the other."""
    for queue_offset in range(start, end):
        assert queue.put(queue_offset * 100, 100, queue_offset % 7, queue_offset)


def numbers(units: memoryview) -> list[int]:
    """Return the physical offsets of units."""
    return [unit[0] for unit in UNIT.iter_unpack(units)]


def filled(count: int = 25) -> tuple[SimulatedHost, ConsumeQueue]:
    """Return a queue of so many units, all of them durable."""
    host = SimulatedHost()
    queue = opened(host)
    put(queue, 0, count)
    queue.flush()
    return host, queue


def test_a_unit_is_twenty_bytes() -> None:
    """Physical offset, size, tags code, big-endian."""
    unit = ConsumeQueueUnit(1024, 123, -2)

    assert unit.encode().hex() == "00000000000004000000007bfffffffffffffffe"
    assert ConsumeQueueUnit.decode(b"??" + unit.encode(), 2) == unit
    assert ConsumeQueueUnit.decode(PRE_BLANK).is_pre_blank
    assert not unit.is_pre_blank


def test_an_empty_queue_has_no_file() -> None:
    """And nothing to read."""
    host = SimulatedHost()
    queue = opened(host)

    assert (queue.min_queue_offset, queue.max_queue_offset) == (0, 0)
    assert (queue.max_physical_offset, queue.last_physical_offset) == (-1, -1)
    assert numbers(queue.units(0, 10)) == []
    assert not host.fs.exists(DIRECTORY)


def test_puts_are_buffered_and_seen_at_once() -> None:
    """One write puts all of a file's units into it."""
    host = SimulatedHost()
    queue = opened(host)
    put(queue, 0, 8)
    assert numbers(queue.units(6, 10)) == [600, 700]
    assert not host.fs.exists(DIRECTORY)

    queue.write()

    assert len(host.fs.journal.matching("write", FIRST)) == 1
    put(queue, 8, 13)
    assert numbers(queue.units(6, 10)) == [600, 700, 800, 900], "a run lies in one file"
    assert numbers(queue.units(10, 10)) == [1000, 1100, 1200]
    queue.write()
    assert numbers(queue.units(10, 2)) == [1000, 1100]
    assert (queue.max_queue_offset, queue.last_physical_offset) == (13, 1200)
    assert queue.max_physical_offset == 1300


def test_a_write_that_the_disk_refuses_is_tried_again() -> None:
    """The units wait on, and are read meanwhile."""
    host = SimulatedHost()
    queue = opened(host)
    put(queue, 0, 3)
    queue.write()
    put(queue, 3, 25)
    host.fs.fill_up(30)

    with pytest.raises(WriteFailedError):
        queue.write()
    assert numbers(queue.units(3, 3)) == [300, 400, 500]
    host.fs.faults.clear()
    queue.write()

    queue.close()
    again = opened(host)
    assert [number for n in range(25) for number in numbers(again.units(n, 1))] == [
        n * 100 for n in range(25)
    ]


def test_what_is_in_the_queue_is_passed_over() -> None:
    """A unit that leads below what the queue knows was built already."""
    _, queue = filled(5)

    assert not queue.put(400, 100, 4, 4)
    assert not queue.put(450, 50, 4, 5)
    assert not queue.put(900, 100, 4, 2), "its queue offset has a unit"
    assert queue.max_queue_offset == 5
    assert queue.put(500, 100, 5, 5)


def test_a_unit_that_comes_too_early_is_written_in_the_next_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in Java, and said as an error: messages are missing."""
    _, queue = filled(5)

    with caplog.at_level(logging.ERROR):
        assert queue.put(5000, 100, 5, 9)

    assert "queue offset 9 comes when 5 is next" in caplog.text
    assert numbers(queue.units(5, 1)) == [5000]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_queue_whose_messages_are_gone_goes_on_where_the_next_one_belongs(
    *, is_written: bool
) -> None:
    """Units of others that are gone too may be missing: their places are not taken."""
    host, queue = filled(7) if is_written else (SimulatedHost(), None)
    if queue is None:
        queue = opened(host)
        for number in range(7):
            queue.put(number * 100, 100, number, number)
    queue.correct_min(5000)
    assert queue.put(5000, 100, 9, 9)
    queue.write()
    assert (queue.min_queue_offset, queue.max_queue_offset) == (9, 10)
    assert numbers(queue.units(9, 5)) == [5000]
    queue.close()
    again = opened(host)
    again.correct_min(5000)
    assert (again.min_queue_offset, again.max_queue_offset) == (9, 10)


def test_a_queue_may_begin_anywhere() -> None:
    """The first file is filled up to there, and the minimum is where the units begin."""
    host = SimulatedHost()
    queue = opened(host)
    assert queue.put(5000, 100, 1, 13)
    assert (queue.min_queue_offset, queue.max_queue_offset) == (13, 14)
    assert numbers(queue.units(13, 5)) == [5000]

    queue.write()

    path = f"{DIRECTORY}/{200:020d}"
    expected = PRE_BLANK * 3 + UNIT.pack(5000, 100, 1)
    assert read_file(host.fs, path) == expected.ljust(SIZE, b"\0")
    assert numbers(queue.units(12, 5)) == []
    queue.close()
    again = opened(host)
    again.correct_min(0)
    assert (again.min_queue_offset, again.max_queue_offset) == (13, 14)
    assert again.max_physical_offset == 5100


def test_a_queue_that_begins_anywhere_is_filled_up_though_the_disk_refused_it_at_first() -> None:
    """Else its first unit would stand in the place of the one that is filled up first."""
    host = SimulatedHost()
    queue = opened(host)
    assert queue.put(5000, 100, 1, 13)
    host.fs.faults.fail_next("write", errno.EIO)
    with pytest.raises(WriteFailedError):
        queue.write()
    queue.write()
    assert numbers(queue.units(13, 5)) == [5000]
    expected = PRE_BLANK * 3 + UNIT.pack(5000, 100, 1)
    assert read_file(host.fs, f"{DIRECTORY}/{200:020d}") == expected.ljust(SIZE, b"\0")


def test_a_run_of_units_is_taken_at_once() -> None:
    """As the units of a batch, which follow one another."""
    _, queue = filled(5)
    run = b"".join(UNIT.pack(n * 100, 100, 0) for n in range(5, 30))

    queue.put_run(run, 5, 3000)

    assert (queue.max_queue_offset, queue.max_physical_offset) == (30, 3000)
    queue.write()
    assert numbers(queue.units(20, 99)) == [n * 100 for n in range(20, 30)]


def test_a_queue_comes_back_after_a_stop() -> None:
    """With its end, and with what it knows of the commit log."""
    for count in (1, 9, 10, 11, 20, 35):
        host, queue = filled(count)
        queue.close()

        again = opened(host, is_clean=True)

        assert again.max_queue_offset == count
        assert again.max_physical_offset == count * 100
        assert numbers(again.units(count - 1, 5)) == [count * 100 - 100]
        put(again, count, count + 3)
        again.write()


def test_units_that_are_no_units_end_the_queue() -> None:
    """A size of nothing, a negative size or offset; what stands behind stays on disk."""
    for bad in (UNIT.pack(5, 0, 0), UNIT.pack(5, -1, 0), UNIT.pack(-1, 5, 0)):
        host, queue = filled(9)
        queue.close()
        host.fs.damage(FIRST, 100, bad)
        before = read_file(host.fs, FIRST)

        again = opened(host)

        assert (again.max_queue_offset, again.max_physical_offset) == (5, 500)
        assert again.has_remains
        again.close()
        assert read_file(host.fs, FIRST) == before


def test_only_the_last_three_files_are_looked_at() -> None:
    """As in Java: what is wrong before them is met when it is read."""
    host, queue = filled(45)
    queue.close()
    host.fs.damage(FIRST, 0, bytes(20))

    assert opened(host).max_queue_offset == 45


def test_after_a_crash_files_are_looked_at_from_where_the_checkpoint_vouches_for_them() -> None:
    """However many there are: a power loss may have taken units of any that was not synced."""
    host, queue = filled(45)
    queue.close()
    host.fs.damage(FIRST, 60, bytes(20))
    for durable_until, end in ((0, 3), (999, 3), (1000, 45), (9000, 45)):
        queue = ConsumeQueue(host.fork(), DIRECTORY, "TopicTest", 3, file_size_bytes=SIZE)
        queue.recover(durable_until)
        assert queue.max_queue_offset == end, durable_until


def test_the_first_file_is_durable_before_the_second_is_made() -> None:
    """Or a power loss leaves it short in front of the other, which no start takes."""
    for seed in range(40):
        host = SimulatedHost(seed)
        queue = opened(host)
        put(queue, 0, 25)
        queue.write()
        host.power_loss(PowerLoss.random(seed))
        queue = ConsumeQueue(host, DIRECTORY, "TopicTest", 3, file_size_bytes=SIZE, is_clean=False)
        queue.recover(0)
        assert numbers(queue.units(0, 10)) == [n * 100 for n in range(queue.max_queue_offset)][:10]


def test_dirty_units_are_let_go_of() -> None:
    """They lead to the end of the commit log or behind it; the files of nothing else go."""
    for end, names in ((25, 3), (21, 3), (20, 2), (11, 2), (10, 1), (1, 1)):
        host, queue = filled(25)
        before = read_file(host.fs, FIRST)

        queue.truncate_dirty(end * 100)

        assert (queue.max_queue_offset, queue.max_physical_offset) == (end, end * 100)
        assert len(host.fs.list_directory(DIRECTORY)) == names
        assert read_file(host.fs, FIRST) == before, "as in Java they stay on disk"
        put(queue, end, end + 2)
        queue.flush()
        host.power_loss(LOSE_UNSYNCED)
        assert opened(host).max_queue_offset == end + 2, "and do not come back"


def test_a_queue_of_nothing_but_dirty_units_is_empty() -> None:
    """Its files go, as in Java."""
    host, queue = filled(25)

    queue.truncate_dirty(0)

    assert (queue.max_queue_offset, queue.max_physical_offset) == (0, 0)
    assert host.fs.list_directory(DIRECTORY) == []
    put(queue, 0, 3)
    assert numbers(queue.units(0, 9)) == [0, 100, 200]


def test_dirty_units_are_zeroed_when_the_store_settles() -> None:
    """Before anything is appended anywhere: the log may soon reach where they lead."""
    host, queue = filled(9)
    queue.truncate_dirty(500)
    assert queue.has_remains

    queue.settle()

    assert not queue.has_remains
    for loss in (LOSE_UNSYNCED, KEEP_EVERYTHING):
        fork = host.fork()
        fork.power_loss(loss)
        assert opened(fork).max_queue_offset == 5


def test_the_minimum_follows_the_commit_log() -> None:
    """It is the first unit whose message is there, the end of the queue if none is."""
    _, queue = filled(25)
    for min_physical_offset, expected in ((0, 0), (1, 1), (500, 5), (1801, 19), (2400, 24)):
        queue.correct_min(min_physical_offset)
        assert queue.min_queue_offset == expected
    queue.correct_min(99999)
    assert queue.min_queue_offset == queue.max_queue_offset == 25
    assert numbers(queue.units(24, 1)) == []


def test_files_of_which_every_message_is_gone_are_removed() -> None:
    """Never the last one."""
    host, queue = filled(25)
    assert queue.delete_below(900) == 0
    assert queue.delete_below(901) == 1
    assert (queue.min_queue_offset, len(queue.queue_files())) == (10, 2)
    assert queue.delete_below(99999) == 1
    assert [entry.name for entry in host.fs.list_directory(DIRECTORY)] == [f"{400:020d}"]
    assert queue.min_queue_offset == 25
    put(queue, 25, 26)
    assert numbers(queue.units(25, 9)) == [2500]


def test_its_files_are_told_by_the_queue_offsets_in_them() -> None:
    """Those without a unit are left out."""
    _, queue = filled(20)

    spans = [(file.first_queue_offset, file.end_queue_offset) for file in queue.queue_files()]

    assert spans == [(0, 10), (10, 20)]
    assert (queue.roll_next_file(13), queue.roll_next_file(20)) == (20, 30)


def test_a_flush_waits_for_pages_and_makes_names_durable() -> None:
    """The file, the queue's directory and those above it survive a power loss then."""
    host = SimulatedHost()
    queue = opened(host)
    put(queue, 0, 3)
    assert not queue.flush(2)
    assert queue.flush()
    assert queue.flushed_where == 3
    assert not queue.flush()

    host.power_loss(LOSE_UNSYNCED)

    assert opened(host).max_queue_offset == 3


def test_a_configured_size_is_rounded_up_to_whole_units() -> None:
    """As in Java."""
    host = SimulatedHost()
    queue = ConsumeQueue(host, DIRECTORY, "TopicTest", 3, file_size_bytes=181)
    put(queue, 0, 1)
    queue.write()

    assert queue.units_per_file == 10
    assert len(read_file(host.fs, FIRST)) == 200


def test_a_file_of_another_size_is_named() -> None:
    """With the setting that would explain it."""
    host, queue = filled(5)
    queue.close()
    host.fs.open(FIRST).truncate(220)

    with pytest.raises(CorruptFileError, match="mappedFileSizeConsumeQueue") as caught:
        opened(host)

    assert caught.value.path == FIRST


def test_a_queue_that_is_destroyed_leaves_nothing() -> None:
    """Not even its directory."""
    host, queue = filled(25)

    queue.destroy()

    assert not host.fs.exists(DIRECTORY)
    assert queue.max_queue_offset == 0


def test_a_queue_whose_removal_the_disk_refuses_is_empty() -> None:
    """Its first message is not said to stand behind its end."""
    host, queue = filled(7)
    queue.correct_min(5000)
    host.fs.faults.fail_next("rename", errno.ENOSPC)
    with pytest.raises(OSError, match="ENOSPC"):
        queue.destroy()
    assert (queue.min_queue_offset, queue.max_queue_offset) == (0, 0)


@pytest.mark.parametrize("case", golden_cases("plain", "properties"), ids=lambda case: case.id)
def test_the_queues_of_a_real_broker_are_read(case: GoldenCase) -> None:
    """Every queue has its units where they end, and the same units put again give equal files."""
    (store,) = case.stores.values()
    host = SimulatedHost()
    count = 0
    for directory in sorted((store / "consumequeue").glob("*/*")):
        files = sorted(directory.iterdir())
        size_bytes = files[0].stat().st_size
        stored = b"".join(file.read_bytes() for file in files)
        units = [unit for unit in UNIT.iter_unpack(stored) if unit[1] > 0]
        queue = ConsumeQueue(
            host, str(directory), directory.parent.name, 0, file_size_bytes=size_bytes
        )
        for queue_offset, unit in enumerate(units):
            assert queue.put(unit[0], unit[1], unit[2], queue_offset)
        queue.close()
        assert [read_file(host.fs, str(file)) for file in files] == [
            file.read_bytes() for file in files
        ]
        again = ConsumeQueue(
            host, str(directory), directory.parent.name, 0, file_size_bytes=size_bytes
        )
        again.recover()
        assert again.max_queue_offset == len(units)
        assert again.max_physical_offset == units[-1][0] + units[-1][1]
        count += len(units)
    assert count >= len(case.expected)


def test_a_queue_that_cannot_be_written_any_more_can_be_asked() -> None:
    """A failed sync is final for writes: what waits is not in a file, all else is found."""
    host, queue = filled(25)
    put(queue, 25, 28)
    queue.write()
    host.fs.faults.fail_next("sync", errno.EIO, path=f"{DIRECTORY}/*")
    with pytest.raises(OSError, match="EIO"):
        queue.flush()
    put(queue, 28, 30)
    with pytest.raises(WriteFailedError):
        queue.write()
    spans = [(file.first_queue_offset, file.end_queue_offset) for file in queue.queue_files()]
    assert spans == [(0, 10), (10, 20), (20, 28)]
    assert numbers(queue.units(27, 10)) == [2700, 2800, 2900]


def test_a_queue_of_which_only_what_was_filled_up_is_left_takes_its_first_unit() -> None:
    """A crash between the two must not make it think that it knows two gigabytes of the log."""
    host = SimulatedHost()
    queue = opened(host)
    assert queue.put(5000, 100, 1, 12)
    queue.flush()
    queue.close()
    host.fs.damage(f"{DIRECTORY}/{200:020d}", 40, bytes(20))
    queue = opened(host)
    assert (queue.max_queue_offset, queue.max_physical_offset) == (12, -1)
    assert queue.put(5000, 100, 1, 12)
    assert numbers(queue.units(12, 10)) == [5000]
