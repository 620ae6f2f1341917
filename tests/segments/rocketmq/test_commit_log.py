"""The commit log of a store: appending, files, reading, flushing."""

from __future__ import annotations

import pytest

from logstore.errors import (
    OffsetMismatchError,
    OffsetOutOfRangeError,
    RejectedAppendError,
    WriteFailedError,
)
from logstore.host import read_file
from logstore.segments.rocketmq.log.commit_log import CommitLogSettings
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_MAGIC
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.drafts import batch
from tests.segments.rocketmq.small_commit_log import (
    DIRECTORY,
    FIRST,
    SIZE,
    append,
    file_names,
    opened,
)

# appending


def test_an_empty_log_has_no_file() -> None:
    """The first message makes it, and the next one ahead."""
    host = SimulatedHost()
    log = opened(host)
    assert not host.fs.exists(DIRECTORY)
    assert (log.min_physical_offset, log.max_physical_offset, log.flushed_where) == (0, 0, 0)
    assert log.read(0, 100) == b""

    assert append(log) == 0

    assert file_names(host) == [0, SIZE]
    assert read_file(host.fs, FIRST)[:1000] == log.read(0, 1000)
    assert len(read_file(host.fs, FIRST)) == SIZE


def test_a_message_goes_into_a_file_if_eight_bytes_are_left_behind_it() -> None:
    """One byte less, and the file ends with a BLANK."""
    for spare_bytes, expected in ((8, 3000), (7, SIZE)):
        log = opened(SimulatedHost())
        append(log, 3)
        body = bytes(SIZE - 3000 - 100 - spare_bytes)
        assert append(log, body=body) == expected


def test_a_full_file_ends_with_a_blank() -> None:
    """Eight bytes that tell how much is left, and the magic; behind them zeros."""
    host = SimulatedHost()
    log = opened(host)
    append(log, 4)

    assert append(log) == SIZE

    tail = read_file(host.fs, FIRST)[4000:]
    assert tail == BLANK.pack(96, BLANK_MAGIC) + bytes(88)
    assert log.max_physical_offset == SIZE + 1000
    assert [file.base_offset for file in log.files()] == [0, SIZE]


def test_a_batch_is_not_parted() -> None:
    """If its records together do not fit, all go into the next file."""
    log = opened(SimulatedHost())
    append(log, 3)
    message = batch(*[bytes(200)] * 4)
    message.stamp(0, 5000)
    entry = log.append(message)

    assert entry.base_offset == SIZE
    assert log.read(SIZE, entry.size_bytes) == bytes(memoryview(entry.data))


def test_what_fits_into_no_file_is_rejected() -> None:
    """And the file that is begun stays as it was."""
    host = SimulatedHost()
    log = opened(host)
    append(log)

    with pytest.raises(RejectedAppendError, match="mappedFileSizeCommitLog"):
        append(log, body=bytes(SIZE))

    assert (log.max_physical_offset, file_names(host)) == (1000, [0, SIZE])


def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    """The append is refused, by path and position, and the next one goes to the same place."""
    host = SimulatedHost()
    log = opened(host)
    append(log, 2)
    host.fs.fill_up(500)

    with pytest.raises(WriteFailedError, match=f"{FIRST}: position 2000"):
        append(log)
    host.fs.faults.clear()

    assert append(log) == 2000
    assert read_file(host.fs, FIRST)[3000:] == bytes(SIZE - 3000)


def test_bytes_of_a_master_are_taken_as_they_come() -> None:
    """Cut anywhere, a BLANK and what is behind it as data: both logs are equal byte for byte."""
    master_host, slave_host = SimulatedHost(), SimulatedHost()
    master, slave = opened(master_host), opened(slave_host)
    append(master, 7)
    position = 0
    while position < master.max_physical_offset:
        size_bytes = min(333, master.roll_next_file(position) - position)
        data = master.read(position, size_bytes)
        slave.append_raw(position, data)
        position += len(data)

    assert slave.max_physical_offset == master.max_physical_offset == SIZE + 3000
    for base in (0, SIZE):
        path = f"{DIRECTORY}/{base:020d}"
        assert read_file(slave_host.fs, path) == read_file(master_host.fs, path)
    with pytest.raises(OffsetMismatchError):
        slave.append_raw(0, b"x")
    slave.close()
    assert opened(slave_host).max_physical_offset == SIZE + 3000


def test_a_slave_begins_where_a_file_of_its_master_begins() -> None:
    """Nowhere else."""
    log = opened(SimulatedHost())
    with pytest.raises(OffsetMismatchError):
        log.append_raw(SIZE + 1, b"x")

    log.append_raw(3 * SIZE, b"x" * 10)

    assert (log.min_physical_offset, log.max_physical_offset) == (3 * SIZE, 3 * SIZE + 10)


# reading


def test_what_is_read_lies_in_one_file() -> None:
    """A run ends where its file does, or where the log does."""
    log = opened(SimulatedHost())
    append(log, 6)

    assert log.extent(3000, SIZE).size_bytes == SIZE - 3000
    assert log.rest_of_file(SIZE + 500).size_bytes == 1500
    assert log.extent(log.max_physical_offset, 10).size_bytes == 0
    for outside in (-1, log.max_physical_offset + 1):
        with pytest.raises(OffsetOutOfRangeError):
            log.extent(outside, 1)
        assert log.read(outside, 1) == b""


def test_a_file_that_is_removed_is_read_to_its_end() -> None:
    """By whoever is still sending it; nobody else finds it any more."""
    log = opened(SimulatedHost())
    append(log, 9)
    extent = log.extent(1000, 1000)
    expected = extent.read()

    removed = log.delete_below(2 * SIZE)

    assert [file.base_offset for file in removed] == [0, SIZE]
    assert extent.read() == expected
    assert log.min_physical_offset == 2 * SIZE
    with pytest.raises(OffsetOutOfRangeError):
        log.extent(1000, 1000)
    assert log.delete_below(100 * SIZE) == [], "the last file stays"


# flushing


def test_a_flush_waits_for_pages() -> None:
    """So many whole pages of 4096 bytes; a full file waits for none, and 0 asks for anything."""
    settings = CommitLogSettings(file_size_bytes=8 * SIZE)
    log = opened(SimulatedHost(), settings)
    append(log, 8)
    assert log.needs_flush(1)
    assert not log.needs_flush(2)
    assert not log.flush(4)
    assert log.flushed_where == 0

    append(log, 1)
    assert log.flush(2)

    assert log.flushed_where == 9000
    assert not log.flush(0)
    append(log, 24)
    assert log.max_physical_offset == 8 * SIZE + 1000
    assert log.needs_flush(100), "the first file is full"


def test_a_flush_tells_the_time_of_the_newest_message_it_covers() -> None:
    """The checkpoint wants to know; what came while it ran is not covered."""
    log = opened(SimulatedHost())
    append(log, stored_ms=7000)
    task = log.begin_flush()
    append(log, stored_ms=8000)
    task.run()
    assert (log.flushed_where, log.flushed_store_timestamp_ms) == (0, 0)

    log.end_flush(task)

    assert (log.flushed_where, log.flushed_store_timestamp_ms) == (1000, 7000)
    log.flush()
    assert (log.flushed_where, log.flushed_store_timestamp_ms) == (2000, 8000)


def test_after_a_failed_sync_nothing_is_taken() -> None:
    """The kernel may have forgotten what it was to write."""
    host = SimulatedHost()
    log = opened(host)
    append(log)
    host.fs.faults.fail_next_sync(5, path=FIRST)

    with pytest.raises(OSError, match=FIRST):
        log.flush()

    assert log.refusal is not None
    with pytest.raises(WriteFailedError, match="open the log anew"):
        append(log)
    assert len(log.read(0, 1000)) == 1000


# the pool


POOLED = CommitLogSettings(file_size_bytes=SIZE, has_transient_store_pool=True)


def test_what_waits_in_the_pool_is_neither_read_nor_flushed() -> None:
    """Only a commit puts it into the file, in one write, and a flush makes it durable."""
    host = SimulatedHost()
    log = opened(host, POOLED)
    append(log, 3, stored_ms=6000)
    assert (log.wrote_where, log.committed_where, log.max_physical_offset) == (3000, 0, 0)
    assert not log.needs_flush()
    assert log.read(0, 1000) == b""
    assert read_file(host.fs, FIRST) == bytes(SIZE)

    host.fs.journal.operations.clear()
    assert log.commit()

    assert len(host.fs.journal.matching("write", FIRST)) == 1
    assert (log.committed_where, log.max_physical_offset, log.flushed_where) == (3000, 3000, 0)
    append(log, stored_ms=9000)
    assert log.flush()
    assert (log.flushed_where, log.flushed_store_timestamp_ms) == (3000, 6000)


def test_a_commit_waits_for_pages() -> None:
    """As a flush does."""
    log = opened(SimulatedHost(), CommitLogSettings(8 * SIZE, has_transient_store_pool=True))
    append(log, 8)
    assert not log.commit(2)
    append(log)
    assert log.commit(2)
    assert not log.commit()


def test_what_waits_in_the_pool_dies_with_the_process() -> None:
    """It was never counted as flushed; the log goes on behind what was committed."""
    host = SimulatedHost()
    log = opened(host, POOLED)
    append(log, 2)
    log.commit()
    append(log)
    host.fs.process_death()

    log = opened(host, POOLED)

    assert log.max_physical_offset == 2000
    assert append(log) == 2000


def test_a_full_file_is_committed_and_gives_its_buffer_back() -> None:
    """The next one borrows it."""
    host = SimulatedHost()
    log = opened(host, POOLED)
    append(log, 5)
    assert log.pool is not None

    assert log.pool.borrowed_count == 1
    assert (log.committed_where, log.wrote_where) == (SIZE, SIZE + 1000)
    assert read_file(host.fs, FIRST)[4000:4008] == BLANK.pack(96, BLANK_MAGIC)
    log.commit()
    assert log.read(SIZE, 1000) != b""


def test_a_commit_that_the_disk_refuses_is_tried_again() -> None:
    """What waits goes on waiting."""
    host = SimulatedHost()
    log = opened(host, POOLED)
    append(log, 3)
    host.fs.fill_up(100)
    with pytest.raises(WriteFailedError, match="waits for room"):
        log.commit()
    host.fs.faults.clear()

    assert log.commit()

    log.flush()
    host.power_loss(LOSE_UNSYNCED)
    assert opened(host, POOLED).max_physical_offset == 3000
