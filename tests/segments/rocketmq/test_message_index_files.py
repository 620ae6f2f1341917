"""The files of the message index: crashes, full disks, what a checkpoint vouches for, what goes."""

from __future__ import annotations

import pytest

from logstore.errors import WriteFailedError
from logstore.segments.rocketmq.index.index_file import IndexFile, IndexSizes
from logstore.segments.rocketmq.index.message_index import MessageIndex
from logstore.segments.rocketmq.index.vouching import vouched
from logstore.segments.rocketmq.opening.checkpoint import StoreCheckpoint
from logstore.segments.rocketmq.settings.release import Release
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.test_message_index import (
    ALL_TIME,
    DIRECTORY,
    hash_of,
    index_on,
    request_at,
)


def test_unclean_load_removes_what_the_checkpoint_does_not_vouch_for() -> None:
    """After a crash the files that end after the checkpoint's index time go, others stay."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 4)
    index = index_on(host, sizes, Release.V4)
    for number in range(9):
        index.put(request_at(number * 100, "k", store_ms=1000 * (number + 1)))
    index.flush()
    checkpoint = index.checkpoint
    assert checkpoint.index_msg_timestamp_ms == 6000
    checkpoint.flush()
    paths = [file.path for file in index.files]
    again = index_on(host, sizes)
    assert again.load(is_clean=False) == [paths[2]]
    assert [file.path for file in again.files] == paths[:2]
    assert [entry.name for entry in host.fs.list_directory(DIRECTORY)] == [
        path.rpartition("/")[2] for path in paths[:2]
    ]
    assert again.end_physical_offset == 500


def test_a_crash_behind_a_new_file_puts_nothing_in_twice() -> None:
    """A last file of which a crash left no more than the name begins where the one before ends."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 4)
    index = index_on(host, sizes, Release.V4)
    for number in range(4):
        index.put(request_at(number * 100, "k", store_ms=1000 * (number + 1)))
    flush = index.begin_flush()
    flush.run()
    index.end_flush(flush)
    index.checkpoint.flush()
    path = index.files[1].path
    assert IndexFile(host, path, sizes).end_physical_offset == 200  # as Java has it at once
    file = host.fs.open(path)
    file.truncate(0)
    file.close()
    again = index_on(host, sizes, Release.V4)
    assert again.load(is_clean=False) == [path]  # there is nothing in it
    for number in range(4):  # recovery dispatches all once more
        again.put(request_at(number * 100, "k", store_ms=1000 * (number + 1)))
    found = again.query("T", "k", 99, *ALL_TIME).physical_offsets
    assert found == [300, 200, 200, 100, 0]  # the last one of a full file: as in Java


def test_a_read_only_index_removes_nothing() -> None:
    """A store that is not writable leaves files newer than the checkpoint where they are."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(3, 4))
    index.put(request_at(100, "k"))
    index.flush()
    index.close()
    checkpoint = StoreCheckpoint(host, "/store/checkpoint")
    again = MessageIndex(host, DIRECTORY, checkpoint, sizes=IndexSizes(3, 4), is_writable=False)
    assert len(again.load(is_clean=False)) == 1
    assert not again.files
    assert len(host.fs.list_directory(DIRECTORY)) == 1


def test_strange_files_are_let_alone_and_told() -> None:
    """Names that are no numbers and wrong sizes are told; nothing is removed or changed."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(3, 9))
    index.put(request_at(100, "k"))
    index.flush()
    index.close()
    host.fs.make_directory(f"{DIRECTORY}/folder")
    host.fs.open(f"{DIRECTORY}/notes.txt", create=True).close()
    host.fs.open(f"{DIRECTORY}/{2**63}", create=True).close()
    again = index_on(host, IndexSizes(3, 8), load=True)
    names = [warning.partition(":")[0].rpartition("/")[2] for warning in again.warnings]
    assert names == [str(2**63), "folder", "notes.txt", index.files[0].path.rpartition("/")[2]]
    assert "232 bytes, expected 212" in again.warnings[3]
    again.load(is_clean=False)  # the checkpoint vouches for nothing
    assert len(host.fs.list_directory(DIRECTORY)) == 3


def test_files_below_the_commit_log_go_but_for_the_last() -> None:
    """Files whose messages were all deleted from the commit log are removed, never the last."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(3, 4), Release.V4)
    for number in range(9):
        index.put(request_at(number * 100, "k"))
    paths = [file.path for file in index.files]
    assert index.delete_below(200) == []
    assert index.delete_below(201) == paths[:1]
    assert index.delete_below(10_000) == paths[1:2]
    assert [file.path for file in index.files] == paths[2:]
    assert len(host.fs.list_directory(DIRECTORY)) == 1
    index.destroy()
    assert host.fs.list_directory(DIRECTORY) == []


def test_a_full_disk_loses_no_entry() -> None:
    """Where the disk refuses, entries stay in memory, are found, and are written later."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(3, 50))
    index.put(request_at(100, "k"))
    index.write()
    host.fs.fill_up()
    index.put(request_at(200, "k"))
    with pytest.raises(WriteFailedError, match="cannot write the index") as refused:
        index.write()
    assert index.query("T", "k", 9, *ALL_TIME).physical_offsets == [200, 100]
    index.put(request_at(300, "k"))
    assert refused.tb is not None, "somebody keeps the frames in which it was being written"
    host.fs.faults.clear()
    index.flush()
    index.close()
    again = index_on(host, IndexSizes(3, 50), load=True)
    assert again.query("T", "k", 9, *ALL_TIME).physical_offsets == [300, 200, 100]


def test_only_synced_files_move_the_checkpoint() -> None:
    """The checkpoint's index time is that of the newest full file that is durable, not earlier."""
    host = SimulatedHost()
    index = index_on(host, IndexSizes(3, 4), Release.V4)
    for number in range(5):
        index.put(request_at(number * 100, "k", store_ms=1000 * (number + 1)))
    checkpoint = index.checkpoint
    flush = index.begin_flush()
    assert [file.path for file in flush.files] == [index.files[0].path]
    assert checkpoint.index_msg_timestamp_ms == 0
    flush.run()
    index.end_flush(flush)
    assert checkpoint.index_msg_timestamp_ms == 3000
    host.power_loss()
    survived = IndexFile(host, index.files[0].path, IndexSizes(3, 4))
    assert (survived.is_full, survived.end_timestamp_ms) == (True, 3000)
    assert survived.select(hash_of("k"), 9, *ALL_TIME) == [200, 100, 0]
    assert index.begin_flush().files == []


@pytest.mark.parametrize(
    ("times_ms", "until_ms", "is_kept"),
    [
        ((1000, 2000, 3000), 3000, True),
        ((1000, 2000, 3000), 2999, False),
        ((1000, 2000), 3000, True),
        ((1000, 3000), 3000, False),
        ((3000, 3000, 3000), 3000, False),
        ((), 3000, False),
    ],
)
def test_a_checkpoint_vouches_for_full_files(
    times_ms: tuple[int, ...], until_ms: int, *, is_kept: bool
) -> None:
    """Not for one begun in the millisecond in which a full one ended, nor for an empty one."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 4)
    host.fs.make_directory(DIRECTORY)
    file = IndexFile.create(host, f"{DIRECTORY}/20260101000000000", sizes)
    for number, store_ms in enumerate(times_ms):
        file.put([number + 1], number * 100, store_ms)
    checkpoint = StoreCheckpoint(host, "/store/checkpoint")
    checkpoint.index_msg_timestamp_ms = until_ms
    assert vouched([file], checkpoint) == [file] * is_kept


def test_a_file_that_a_full_disk_left_empty_goes() -> None:
    """Others follow it, which the checkpoint vouches for."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 4)
    host.fs.make_directory(DIRECTORY)
    file = host.fs.open(f"{DIRECTORY}/20231114000000000", create=True)
    file.truncate(50)
    file.close()
    index = index_on(host, sizes)
    for number in range(7):
        host.clock.advance(1000)
        index.put(request_at(number * 100, "k", store_ms=1000 * number))
    index.flush()
    index.checkpoint.flush()
    assert len(host.fs.list_directory(DIRECTORY)) == len(index.files) + 1
    again = index_on(host, sizes)
    again.load(is_clean=False)
    assert again.files
    assert all(file.next_number > 1 for file in again.files)
    assert len(host.fs.list_directory(DIRECTORY)) == len(again.files)


@pytest.mark.parametrize("synced_count", [1, 2])
def test_files_are_vouched_for_in_their_order_where_the_clock_went_back(synced_count: int) -> None:
    """Not those that end earlier than the one that was synced last, but those before it."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 4)
    index = index_on(host, sizes, Release.V4)
    for number, store_ms in enumerate((3000, 4000, 5000, 1000, 2000, 2500, 2600)):
        index.put(request_at(number * 100, "k", store_ms=store_ms))
        if number == 3 * synced_count:
            index.flush()
    index.write()
    index.checkpoint.flush()
    again = index_on(host, sizes)
    again.load(is_clean=False)
    assert len(again.files) == synced_count
    assert again.end_physical_offset == (200 if synced_count == 1 else 500)


def test_a_damaged_count_of_slots_goes_round_as_in_java() -> None:
    """The header has the largest number; one slot more is the smallest, and the file goes on."""
    host = SimulatedHost()
    sizes = IndexSizes(3, 9)
    index = index_on(host, sizes)
    index.put(request_at(0, "k", store_ms=1000))
    index.flush()
    path = index.files[0].path
    file = host.fs.open(path)
    file.write(32, (2**31 - 1).to_bytes(4, "big"))
    file.close()
    damaged = IndexFile(host, path, sizes)
    other = next(number for number in range(9) if number % 3 != hash_of("k") % 3)
    assert not damaged.put([other], 100, 2000)
    damaged.write()
    again = IndexFile(host, path, sizes)
    assert (again.slot_count_used, again.next_number) == (-(2**31), 3)
    assert again.select(other, 9, 0, ALL_TIME[1]) == [100]
