"""What becomes durable when, and in which order: seen by the disk's recording."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from logstore.errors import WriteFailedError
from logstore.host import Host, read_file
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.testing import ManualClock, SimulatedHost
from logstore.tools.bench.counted_files import CountedFileSystem
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def put(store: RocketMQStore, count: int, size_bytes: int = 500) -> None:
    """Put some messages and dispatch them."""
    for number in range(count):
        store.put_message(
            draft(body=b"%02d" % number + bytes(size_bytes), properties={"KEYS": f"k{number}"})
        )
    store.dispatch()


def kinds_of_syncs(host: SimulatedHost, since: int) -> list[str]:
    """
    Return which kind of file each sync was for, neighbours of one kind once.

    Syncs of files that are still empty are left out: they make a file's size durable.
    """
    found: list[str] = []
    written: set[int] = set()
    for operation in host.fs.journal.operations[since:]:
        if operation.kind == "write":
            written.add(operation.file)
        if operation.kind != "sync" or operation.file not in written:
            continue
        kind = operation.path.removeprefix(f"{DIRECTORY}/").partition("/")[0]
        if not found or found[-1] != kind:
            found.append(kind)
    return found


def test_commit_log_before_queues_and_index_before_the_checkpoint(host: SimulatedHost) -> None:
    """Whatever is due together is synced in this order, at ticks and at the stop."""
    store = small_store(host)
    since = len(host.fs.journal.operations)
    put(store, 5)
    host.clock.advance(61_000)
    store.tick()
    host.clock.advance(1_000)
    store.tick()
    kinds = kinds_of_syncs(host, since)
    assert kinds == ["commitlog", "consumequeue", "index", "checkpoint"]
    since = len(host.fs.journal.operations)
    put(store, 3)
    store.close()
    kinds = [kind for kind in kinds_of_syncs(host, since) if kind != "config"]
    assert kinds == ["commitlog", "consumequeue", "index", "checkpoint"]
    assert host.fs.journal.operations[-1].kind in ("sync_directory", "note")
    removed = [one.path for one in host.fs.journal.operations[since:] if one.kind == "remove"]
    assert removed[-1] == f"{DIRECTORY}/abort", "the abort file goes last of all"


def test_no_unit_is_written_before_its_message(host: SimulatedHost) -> None:
    """Every write to a queue or to the index finds all it leads to in the commit log's file."""
    store = small_store(host)
    for _ in range(6):
        put(store, 4)
        host.clock.advance(700)
        store.tick()
    written_end = 0
    for operation in host.fs.journal.operations:
        if operation.kind != "write" or "/commitlog/" not in operation.path:
            continue
        base = int(operation.path.rpartition("/")[2])
        written_end = max(written_end, base + operation.position + operation.size_bytes)
    queue = store.consume_queues.get("TopicTest", 0)
    assert queue is not None
    assert queue.max_physical_offset <= written_end
    order = [one.path for one in host.fs.journal.operations if one.kind == "write"]
    first_log = next(index for index, path in enumerate(order) if "/commitlog/" in path)
    first_unit = next(index for index, path in enumerate(order) if "/consumequeue/" in path)
    assert first_log < first_unit


def test_async_flush_waits_for_four_pages_or_ten_seconds(host: SimulatedHost) -> None:
    """Little data is flushed by the thorough interval, more of it every half second."""
    roomy = {"mappedFileSizeCommitLog": "1048576", "mappedFileSizeConsumeQueue": "20000"}
    store = small_store(host, settings=roomy)
    put(store, 1, 100)
    for _ in range(9):
        host.clock.advance(1000)
        store.tick()
    assert store.commit_log.flushed_where == 0
    host.clock.advance(1000)
    store.tick()
    assert store.commit_log.flushed_where == store.commit_log.max_physical_offset
    put(store, 20, 1000)
    host.clock.advance(500)
    store.tick()
    assert store.commit_log.flushed_where == store.commit_log.max_physical_offset


def test_sync_flush_leaves_nothing_to_the_clock_of_pages(host: SimulatedHost) -> None:
    """Under SYNC_FLUSH a tick flushes whatever nobody waited for."""
    store = small_store(host, settings={"flushDiskType": "SYNC_FLUSH"})
    store.put_message(draft())
    host.clock.advance(500)
    store.tick()
    assert store.commit_log.flushed_where == store.commit_log.max_physical_offset


def test_a_hundred_puts_share_one_sync(host: SimulatedHost) -> None:
    """All that was put before a flush began is durable when it ends."""
    roomy = {"mappedFileSizeCommitLog": "1048576"}
    store = small_store(host, settings=roomy)
    results = [store.put_message(draft()) for _ in range(100)]
    since = len(host.fs.journal.operations)
    task = store.commit_log.begin_flush()
    task.run()
    store.commit_log.end_flush(task)
    assert all(result.next_physical_offset <= store.commit_log.flushed_where for result in results)
    syncs = [one for one in host.fs.journal.operations[since:] if one.kind == "sync"]
    assert len(syncs) == 1


def test_the_checkpoint_follows_what_is_durable(host: SimulatedHost) -> None:
    """Its times and its physical offset are those of the last message flushed, never later ones."""
    store = small_store(host)
    put(store, 3)
    host.clock.advance(61_000)
    stored_ms = store.stats.clock.wall_ms() - 61_000
    sync = store.tick_without_syncs()
    assert sync is not None
    host.clock.advance(5)
    late = store.put_message(draft(body=b"late"))
    store.dispatch()
    assert store.checkpoint.logics_msg_timestamp_ms == 0
    sync.run()
    store.syncs.end(sync)
    assert store.checkpoint.physic_msg_timestamp_ms == stored_ms
    assert store.checkpoint.logics_msg_timestamp_ms == stored_ms
    assert store.checkpoint.logics_physical_offset < late.physical_offset


def test_a_sync_that_fails_promises_nothing(host: SimulatedHost) -> None:
    """The checkpoint stays as it was, and the log refuses puts: no later sync can be believed."""
    store = small_store(host)
    put(store, 3)
    host.clock.advance(61_000)
    host.fs.faults.fail_next_sync(errno.EIO, path="*/commitlog/*")
    with pytest.raises((OSError, WriteFailedError)):
        store.tick()
    assert store.checkpoint.physic_msg_timestamp_ms == 0
    assert store.checkpoint.logics_physical_offset == 0
    assert not store.put_message(draft()).is_ok
    assert not store.syncs.is_running
    store.abandon()


def test_while_syncs_run_elsewhere_no_others_begin(host: SimulatedHost) -> None:
    """A second one begins when the first was ended; puts go on meanwhile."""
    store = small_store(host)
    put(store, 3)
    host.clock.advance(61_000)
    first = store.tick_without_syncs()
    assert first is not None
    host.clock.advance(61_000)
    put(store, 2)
    assert store.tick_without_syncs() is None
    first.run()
    store.syncs.end(first)
    host.clock.advance(61_000)
    assert store.tick_without_syncs() is not None


def test_tables_that_change_are_written_by_the_clock(host: SimulatedHost) -> None:
    """Consumer offsets ten seconds after the start, then every five, if they have changed."""
    store = small_store(host)
    path = f"{DIRECTORY}/config/consumerOffset.json"
    store.consumer_offsets.commit("group", "TopicTest", 0, 7)
    host.clock.advance(9_000)
    store.tick()
    assert not host.fs.exists(path)
    host.clock.advance(1_000)
    store.tick()
    assert b'"TopicTest@group"' in read_file(host.fs, path)
    store.consumer_offsets.commit("group", "TopicTest", 0, 8)
    host.clock.advance(5_000)
    store.tick()
    store.abandon()
    assert small_store(host).consumer_offsets.query("group", "TopicTest", 0) == 8


def test_the_log_is_synced_before_a_table(host: SimulatedHost) -> None:
    """Or it says that a message is dealt with of which all that came of it may be lost."""
    store = small_store(host)
    host.clock.advance(14_000)
    store.tick()
    put(store, 1)
    store.consumer_offsets.commit("group", "TopicTest", 0, 1)
    host.clock.advance(5_000)
    store.tick()
    assert store.commit_log.flushed_where == store.commit_log.max_physical_offset > 0
    host.power_loss()
    again = small_store(host)
    assert again.consumer_offsets.query("group", "TopicTest", 0) == 1
    assert len(bodies(again)) == 1


def test_a_table_is_written_later_where_the_log_cannot_be(host: SimulatedHost) -> None:
    """Its change is not forgotten."""
    settings = {"transientStorePoolEnable": "true", "transientStorePoolSize": "2"}
    store = small_store(host, settings=settings)
    put(store, 1)
    store.consumer_offsets.commit("group", "TopicTest", 0, 1)
    host.clock.advance(10_000)
    host.fs.faults.fail_next("write", errno.ENOSPC, path="*/commitlog/*")
    with pytest.raises(WriteFailedError):
        store.tick()
    host.clock.advance(5_000)
    store.tick()
    assert b'"TopicTest@group"' in read_file(host.fs, f"{DIRECTORY}/config/consumerOffset.json")


def test_an_index_whose_sync_failed_is_made_anew(host: SimulatedHost) -> None:
    """What the disk has dropped then no later sync brings back: the stop counts as none."""
    settings = {"messageIndexSafe": "true"}
    store = small_store(host, settings=settings)
    put(store, 25)
    store.write_derived()
    host.fs.faults.fail_next("sync", errno.EIO, path=f"{DIRECTORY}/index/*")
    with pytest.raises(OSError, match="EIO"):
        store.syncs.run_here(store.syncs.begin_all())
    store.close()
    for _, file in zip(range(1), host.fs.list_directory(f"{DIRECTORY}/index"), strict=False):
        host.fs.damage(f"{DIRECTORY}/index/{file.name}", 40, bytes(200))
    again = small_store(host, settings=settings)
    assert not again.was_clean
    for number in range(25):
        found = again.index.query("TopicTest", f"k{number}", 9, 0, 1 << 62).physical_offsets
        assert len(found) == 1, number


@pytest.mark.parametrize("jump_ms", [-3_600_000, 0, 3_600_000])
def test_an_index_is_whole_whatever_the_clock_does(host: SimulatedHost, jump_ms: int) -> None:
    """A start builds again what was not synced, from the file on where the synced part ends."""
    settings = {"messageIndexSafe": "true"}
    store = small_store(host, settings=settings)
    for first in (0, 30):
        for number in range(first, first + 30):
            host.clock.advance(100)
            body = b"%02d" % number + bytes(300)
            store.put_message(draft(body=body, properties={"KEYS": f"k{number}"}))
            store.dispatch()
        if not first:
            store.syncs.run_here(store.syncs.begin_all())
            host.clock.jump_wall(jump_ms)
    store.write_derived()
    store.commit_log.flush()
    store.consume_queues.flush()
    store.checkpoint.logics_physical_offset = store.commit_log.flushed_where
    store.checkpoint.flush()
    store.abandon()
    host.power_loss()
    again = small_store(host, settings=settings)
    for number in range(60):
        found = again.index.query("TopicTest", f"k{number}", 9, 0, 1 << 62).physical_offsets
        assert found, number


def test_what_was_dispatched_is_readable_before_it_is_written(host: SimulatedHost) -> None:
    """Units and index entries wait in memory; reads see them."""
    store = small_store(host)
    put(store, 2)
    assert not host.fs.exists(f"{DIRECTORY}/consumequeue")
    assert len(bodies(store)) == 2
    assert store.query_message("TopicTest", "k1", 8, 0, 2**62).size_bytes > 0
    store.write_derived()
    assert host.fs.exists(f"{DIRECTORY}/consumequeue/TopicTest/0")


def test_write_buffers_are_committed_by_pages_until_the_thorough_interval(
    host: SimulatedHost,
) -> None:
    """``commitCommitLogLeastPages`` wait, but never longer than the thorough interval."""
    settings = {
        "mappedFileSizeCommitLog": "65536",
        "transientStorePoolEnable": "true",
        "commitCommitLogLeastPages": "2",
        "commitCommitLogThoroughInterval": "1000",
    }
    store = small_store(host, settings=settings)
    log = store.commit_log
    put(store, 3)
    host.clock.advance(200)
    store.tick()
    assert (log.committed_where, log.max_physical_offset) == (0, 0), "less than two pages"
    put(store, 12)
    host.clock.advance(200)
    store.tick()
    assert log.committed_where == log.wrote_where > 8192
    end = log.wrote_where
    put(store, 1)
    host.clock.advance(200)
    store.tick()
    assert log.committed_where == end
    host.clock.advance(1000)
    store.tick()
    assert log.committed_where == log.wrote_where > end


def test_a_topic_may_go_while_its_queues_are_synced(host: SimulatedHost) -> None:
    """A sync that runs beside a deletion passes over the directories and files that are gone."""
    store = small_store(host)
    put(store, 5)
    host.clock.advance(61_000)
    sync = store.tick_without_syncs()
    assert sync is not None
    assert sync.queue_tasks

    assert store.delete_topics({"TopicTest"}) > 0
    sync.run()
    store.syncs.end(sync)

    assert store.commit_log.flushed_where == store.commit_log.max_physical_offset


def test_a_stop_syncs_nothing_that_a_clean_stop_left(host: SimulatedHost) -> None:
    """Queues are known to be durable where the last stop was clean: there may be thousands."""
    store = small_store(host)
    put(store, 5)
    store.close()
    store = small_store(host)
    since = len(host.fs.journal.operations)
    store.close()
    assert not [one for one in kinds_of_syncs(host, since) if one == "consumequeue"]
    assert not [
        operation.path
        for operation in host.fs.journal.operations[since:]
        if "sync" in operation.kind and "consumequeue" in operation.path
    ]


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "killed"])
def test_a_start_reads_little_of_queues_with_little(tmp_path: Path, is_clean: bool) -> None:
    """Files of queues are large and mostly empty: what is behind their units is not read."""
    files = CountedFileSystem()
    host = Host(files, ManualClock(), random.Random(0))
    options = StoreOptions(settings={"mappedFileSizeCommitLog": "1048576"})
    store = RocketMQStore(host, str(tmp_path / "store"), options)
    for queue_id in range(40):
        store.put_message(draft(queue_id=queue_id))
    store.dispatch()
    store.close() if is_clean else store.abandon()
    files.read_bytes = 0
    store = RocketMQStore(host, str(tmp_path / "store"), options)
    assert files.read_bytes < 4 << 20
    assert [queue.max_queue_offset for queue in store.consume_queues] == [1] * 40
    store.close()
