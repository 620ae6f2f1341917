"""The commit log of a store: appending, files, reading, flushing, recovery."""

from __future__ import annotations

import pytest

from logstore.errors import (
    OffsetMismatchError,
    OffsetOutOfRangeError,
    RejectedAppendError,
    WriteFailedError,
)
from logstore.host import read_file
from logstore.os_host import system_host
from logstore.segments.rocketmq.log.commit_log import CommitLog, CommitLogSettings
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_MAGIC
from logstore.testing import KEEP_EVERYTHING, LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.drafts import batch, draft

DIRECTORY = "/store/commitlog"
SIZE = 4096
SETTINGS = CommitLogSettings(file_size_bytes=SIZE)
FIRST = f"{DIRECTORY}/{0:020d}"
#: a record with this body takes 1000 bytes: four of them leave no room for a fifth
BODY = bytes(1000 - 91 - len("TopicTest"))


def opened(
    host: SimulatedHost, settings: CommitLogSettings = SETTINGS, *, is_clean: bool = False
) -> CommitLog:
    """Open and recover the log."""
    log = CommitLog(host, DIRECTORY, settings, is_clean=is_clean)
    log.recover()
    return log


def append(log: CommitLog, count: int = 1, *, body: bytes = BODY, stored_ms: int = 5000) -> int:
    """Append messages; return where the last one stands."""
    physical_offset = -1
    for _ in range(count):
        message = draft(body=body)
        message.stamp(3, stored_ms)
        physical_offset = log.append(message).base_offset
    return physical_offset


def file_names(host: SimulatedHost) -> list[int]:
    """Return the bytes with which the files begin."""
    return [int(entry.name) for entry in host.fs.list_directory(DIRECTORY)]


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


# recovery


def crashed(count: int = 3) -> SimulatedHost:
    """Return a log that was flushed and whose process died."""
    host = SimulatedHost()
    log = opened(host)
    append(log, count)
    log.flush()
    host.fs.process_death()
    return host


def test_files_can_be_looked_at_before_the_recovery() -> None:
    """Where to begin depends on their first messages."""
    log = CommitLog(crashed(9), DIRECTORY, SETTINGS, is_clean=False)

    assert log.file_bases() == [0, SIZE, 2 * SIZE]
    assert int.from_bytes(log.peek(SIZE, 4), "big") == 1000
    assert len(log.peek(SIZE + 4000, 1000)) == 96
    assert log.peek(10 * SIZE, 4) == b""


def test_a_recovery_shows_every_record_from_its_first_file_on() -> None:
    """In runs of whole records; earlier files are not read."""
    log = CommitLog(crashed(9), DIRECTORY, SETTINGS, is_clean=False)
    seen: list[tuple[int, int]] = []

    outcome = log.recover(SIZE, lambda start, run: seen.append((start, len(run))))

    assert seen == [(SIZE, 4000), (2 * SIZE, 1000)]
    assert (outcome.is_clean, outcome.next_offset) == (True, 2 * SIZE + 1000)
    assert log.flushed_where == SIZE
    assert append(log) == 2 * SIZE + 1000


def test_a_recovery_leaves_what_stands_behind_the_end() -> None:
    """As in Java; a copy is kept aside, not in the directory: Java would stumble over it."""
    host = crashed()
    host.fs.damage(FIRST, 1999, b"\xff")
    before = read_file(host.fs, FIRST)

    log = CommitLog(host, DIRECTORY, SETTINGS, is_clean=False)
    outcome = log.recover()

    tail = before[1000:].rstrip(b"\0")
    assert (outcome.next_offset, outcome.dropped_bytes) == (1000, len(tail))
    assert outcome.reason is not None
    assert outcome.reason.startswith(f"{FIRST}: position 1000: ")
    assert outcome.kept_aside == (f"/store/kept-aside/{0:020d}.cut-at-1000",)
    assert read_file(host.fs, outcome.kept_aside[0]) == tail
    log.flush()
    log.close()
    assert read_file(host.fs, FIRST) == before
    assert file_names(host) == [0]


def test_what_a_recovery_left_is_zeroed_before_the_next_append() -> None:
    """Durably: else the old third message could follow the new second one after a crash."""
    host = crashed()
    old = read_file(host.fs, FIRST)
    host.fs.damage(FIRST, 1999, b"\xff")
    log = opened(host)
    host.fs.journal.operations.clear()

    append(log)

    kinds = [operation.kind for operation in host.fs.journal.matching(path=FIRST)]
    assert kinds == ["write", "sync", "write"]
    for loss in (LOSE_UNSYNCED, KEEP_EVERYTHING):
        fork = host.fork()
        fork.power_loss(loss)
        assert old[2000:3000] not in read_file(fork.fs, FIRST)
        assert opened(fork).max_physical_offset == (1000 if loss is LOSE_UNSYNCED else 2000)


def test_files_behind_the_end_are_taken_away_and_kept() -> None:
    """Java destroys them; what is in them is all that is left of those messages."""
    host = crashed(9)
    second = read_file(host.fs, f"{DIRECTORY}/{SIZE:020d}")
    host.fs.damage(FIRST, 3999, b"\xff")

    log = CommitLog(host, DIRECTORY, SETTINGS, is_clean=False)
    outcome = log.recover()

    assert outcome.next_offset == 3000
    assert file_names(host) == [0]
    assert [read_file(host.fs, path) for path in outcome.kept_aside][1] == second
    assert append(log) == 3000


def test_a_log_that_ends_with_a_blank_goes_on_in_the_next_file_if_there_is_one() -> None:
    """Of zeros, made ahead; without it the BLANK is overwritten. So it is in Java."""
    host = SimulatedHost()
    log = opened(host)
    append(log, 4)
    log.files()[0].pad()
    host.fs.process_death()
    without = host.fork()
    without.fs.remove(f"{DIRECTORY}/{SIZE:020d}")

    assert append(opened(host), body=b"x") == SIZE
    log = opened(without)
    assert log.max_physical_offset == 4000
    assert append(log, body=b"") == SIZE, "100 bytes do not fit before the end"


def test_a_log_that_is_only_read_is_not_changed() -> None:
    """Not even where a recovery would take files away."""
    host = crashed(9)
    host.fs.damage(FIRST, 3999, b"\xff")
    before = {name: read_file(host.fs, f"{DIRECTORY}/{name:020d}") for name in file_names(host)}

    log = CommitLog(host, DIRECTORY, SETTINGS, is_clean=False, is_writable=False)
    outcome = log.recover()

    assert (outcome.next_offset, outcome.is_clean) == (3000, False)
    assert len(log.read(2000, 1000)) == 1000
    log.close()
    after = {name: read_file(host.fs, f"{DIRECTORY}/{name:020d}") for name in file_names(host)}
    assert after == before
    assert not host.fs.exists("/store/kept-aside")


def test_a_cut_by_order_is_durable() -> None:
    """What is cut stands nowhere any more, whatever happens next."""
    host = SimulatedHost()
    log = opened(host)
    append(log, 6)
    log.flush()

    log.truncate(2000)
    host.power_loss(LOSE_UNSYNCED)

    assert read_file(host.fs, FIRST)[2000:] == bytes(SIZE - 2000)
    log = opened(host)
    assert log.max_physical_offset == 2000
    assert append(log) == 2000


def test_the_settings_are_javas() -> None:
    """By Java's keys, with Java's defaults."""
    assert CommitLogSettings.of({}) == CommitLogSettings(1024 * 1024 * 1024)
    assert CommitLogSettings.of(
        {
            "mappedFileSizeCommitLog": "65536",
            "transientStorePoolEnable": "true",
            "transientStorePoolSize": "7",
            "checkCRCOnRecover": "false",
            "forceVerifyPropCRC": "True",
        }
    ) == CommitLogSettings(65536, True, 7, False, True)


def test_files_take_no_space_before_something_stands_in_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A file of a gigabyte is a hole at first, and holes are passed over when it is opened."""
    directory = f"{tmp_path_factory.mktemp('store')}/commitlog"
    host = system_host()
    log = CommitLog(host, directory)
    log.recover()
    append(log, 2)
    log.close(is_clean=False)

    again = CommitLog(host, directory, is_clean=False)
    outcome = again.recover()

    assert (outcome.is_clean, outcome.next_offset) == (True, 2000)
    file = again.files()[0].file
    assert file.size() == 1024 * 1024 * 1024
    assert file.next_data(1024 * 1024) is None
    again.close()
