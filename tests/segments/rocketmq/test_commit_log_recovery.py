"""The commit log of a store: its recovery, and what its files are cut to."""

from __future__ import annotations

import pytest

from logstore.host import read_file
from logstore.os_host import system_host
from logstore.segments.rocketmq.log.commit_log import CommitLog, CommitLogSettings
from logstore.testing import KEEP_EVERYTHING, LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.small_commit_log import (
    DIRECTORY,
    FIRST,
    SETTINGS,
    SIZE,
    append,
    file_names,
    opened,
)


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
