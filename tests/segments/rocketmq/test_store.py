"""A store's life: opened, ticked, read, closed, killed, opened to be read."""

from __future__ import annotations

import contextlib
import errno

import pytest

from logstore.errors import OffsetOutOfRangeError, RejectedAppendError, WriteFailedError
from logstore.host import read_file
from logstore.partition import Header, Record
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.store import LAYOUT
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import batch, draft
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store

ROOMY = {"mappedFileSizeCommitLog": "262144", "maxMessageSize": "65536"}


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def names(host: SimulatedHost, path: str = DIRECTORY) -> list[str]:
    """Return what stands in a directory."""
    return [entry.name for entry in host.fs.list_directory(path)]


def test_a_new_store_is_made_where_there_is_nothing(host: SimulatedHost) -> None:
    """The directory is created; while the store is open it has a lock and an abort file."""
    store = small_store(host)
    assert store.was_clean
    assert {"abort", "lock"} <= set(names(host))
    assert store.commit_log.max_physical_offset == 0
    store.close()
    assert "abort" not in names(host)


def test_what_is_put_can_be_read_after_dispatch(host: SimulatedHost) -> None:
    """Before it stands in the commit log alone; afterwards in queue and index."""
    store = small_store(host, settings=ROOMY)
    result = store.put_message(draft(body=b"a", properties={"KEYS": "k1", "UNIQ_KEY": "U1"}))
    assert store.max_queue_offset("TopicTest", 0) == 0
    assert store.max_queue_offset("TopicTest", 0, is_committed=False) == 1
    assert store.dispatch() == 1
    assert store.max_queue_offset("TopicTest", 0) == 1
    assert bodies(store) == [b"a"]
    now_ms = host.clock.wall_ms()
    for key in ("k1", "U1"):
        found = store.query_message("TopicTest", key, 10, now_ms - 1000, now_ms + 1000)
        assert found.read() == store.commit_log.read(0, result.size_bytes)
    assert store.message_at(0) == store.queue("TopicTest", 0).messages(0, 1)[0]


def test_pulls_get_messages_and_are_counted(host: SimulatedHost) -> None:
    """FOUND with the bytes of the commit log; beyond the end OFFSET_OVERFLOW_ONE."""
    store = small_store(host, settings=ROOMY)
    sizes = [store.put_message(draft(body=b"%d" % number)).size_bytes for number in range(3)]
    store.dispatch()
    found = store.get_message("group", "TopicTest", 0, 0, 32)
    missed = store.get_message("group", "TopicTest", 0, 3, 32)
    assert found is not None
    assert missed is not None
    assert (found.status, found.count, found.next_begin_offset) == (GetMessageStatus.FOUND, 3, 3)
    assert found.size_bytes == sum(sizes)
    assert missed.status is GetMessageStatus.OFFSET_OVERFLOW_ONE
    assert (store.stats.get_found_times, store.stats.get_missed_times) == (1, 1)
    assert store.stats.get_transferred_count == 3


def test_a_store_that_must_not_be_read_answers_nothing(host: SimulatedHost) -> None:
    """With the flag against reads, and once it is closed, a pull gets None."""
    store = small_store(host)
    store.running_flags.raise_flag(RunningFlag.NOT_READABLE)
    assert store.get_message("group", "TopicTest", 0, 0, 32) is None
    store.running_flags.lower_flag(RunningFlag.NOT_READABLE)
    store.close()
    assert store.get_message("group", "TopicTest", 0, 0, 32) is None


def test_times_are_found(host: SimulatedHost) -> None:
    """The first message at or after a time, when one was stored, and the oldest of all."""
    store = small_store(host, settings=ROOMY)
    start_ms = host.clock.wall_ms()
    for number in range(5):
        store.put_message(draft(body=b"%d" % number))
        host.clock.advance(1000)
    store.dispatch()
    assert store.queue_offset_for_time("TopicTest", 0, start_ms + 1500) == 2
    assert store.queue("TopicTest", 0).offset_for_timestamp(start_ms + 1500) == 2
    assert store.queue("TopicTest", 0).offset_for_timestamp(start_ms + 9000) is None
    assert store.store_timestamp_at("TopicTest", 0, 3) == start_ms + 3000
    assert store.store_timestamp_at("TopicTest", 0, 5) == -1
    assert store.earliest_store_timestamp_ms("TopicTest", 0) == start_ms
    assert store.earliest_store_timestamp_ms() == start_ms


def test_listeners_hear_of_every_message_once_it_can_be_read(host: SimulatedHost) -> None:
    """They are told topic, queue and queue offset, in the order of the commit log."""
    store = small_store(host, settings=ROOMY)
    heard: list[tuple[str, int, int]] = []

    def listen(request: object) -> None:
        topic, queue_id = getattr(request, "topic", ""), getattr(request, "queue_id", -1)
        assert store.max_queue_offset(topic, queue_id) > 0
        heard.append((topic, queue_id, getattr(request, "queue_offset", -1)))

    store.add_arrival_listener(listen)
    store.put_message(draft("A"))
    store.put_batch(batch(b"x", b"y", topic="B", queue_id=2))
    store.put_message(draft("A"))
    assert heard == []
    assert store.dispatch() == 4
    assert heard == [("A", 0, 0), ("B", 2, 0), ("B", 2, 1), ("A", 0, 1)]
    assert store.dispatch() == 0


def test_under_sync_flush_only_durable_messages_are_dispatched(host: SimulatedHost) -> None:
    """As in 5.x; ``readUnCommitted`` shows them at once, and so does 4.x."""
    store = small_store(host, settings={**ROOMY, "flushDiskType": "SYNC_FLUSH"})
    store.put_message(draft(body=b"a"))
    assert (store.dispatch(), bodies(store)) == (0, [])
    store.commit_log.flush()
    assert (store.dispatch(), bodies(store)) == (1, [b"a"])
    store.close()
    settings = {**ROOMY, "flushDiskType": "SYNC_FLUSH", "readUnCommitted": "true"}
    store = small_store(host, settings=settings)
    store.put_message(draft(body=b"b"))
    assert (store.dispatch(), bodies(store)) == (1, [b"a", b"b"])


def test_a_clean_stop_keeps_everything(host: SimulatedHost) -> None:
    """Messages, queue offsets, index, checkpoint and topics are there at the next start."""
    store = small_store(host)
    store.topic_table.put(TopicConfig("TopicTest", 4, 4))
    for number in range(20):
        store.put_message(draft(body=b"%02d" % number, properties={"KEYS": "k"}))
        host.clock.advance(10)
    last_ms = host.clock.wall_ms() - 10
    store.close()
    host.power_loss()
    again = small_store(host)
    assert again.was_clean
    assert again.recovery.dispatched_count == 0
    assert bodies(again) == [b"%02d" % number for number in range(20)]
    assert again.put_message(draft()).queue_offset == 20
    assert again.checkpoint.physic_msg_timestamp_ms == last_ms
    assert again.checkpoint.logics_msg_timestamp_ms == last_ms
    assert len(again.topics()["TopicTest"]) == 4
    assert again.query_message("TopicTest", "k", 64, 0, 2**62).size_bytes > 0


def test_a_killed_process_loses_nothing(host: SimulatedHost) -> None:
    """What was put and not even dispatched stands in the commit log, and is dispatched."""
    store = small_store(host)
    for number in range(20):
        store.put_message(draft(body=b"%02d" % number, properties={"KEYS": "k"}))
    store.abandon()
    again = small_store(host)
    assert not again.was_clean
    assert again.recovery.dispatched_count == 20
    assert bodies(again) == [b"%02d" % number for number in range(20)]
    assert again.put_message(draft()).queue_offset == 20


def test_opened_to_be_read_it_shows_all_and_writes_nothing(host: SimulatedHost) -> None:
    """Beside a broker that has the store open, what is not dispatched there can be read too."""
    store = small_store(host)
    for number in range(20):
        store.put_message(draft(body=b"%02d" % number))
        if number == 9:
            store.dispatch()
            store.write_derived()
    before = host.fs.operation_count
    reading = small_store(host, is_writable=False)
    assert bodies(reading) == [b"%02d" % number for number in range(20)]
    reading.tick()
    reading.close()
    assert host.fs.operation_count == before
    assert store.put_message(draft()).is_ok


def test_a_queue_reads_and_appends_records(host: SimulatedHost) -> None:
    """Key, value, headers and timestamp come back; what cannot be a message is refused."""
    store = small_store(host, settings=ROOMY)
    queue = store.queue("TopicTest", 1)
    records = [
        Record(b"k", b"value", 1_700_000_000_123, (Header("TAGS", b"T"), Header("a", b"1"))),
        Record(None, b"", 1_700_000_000_124),
    ]
    result = queue.append_records(records)
    assert (result.base_offset, result.next_offset) == (0, 2)
    found = queue.read_records(0, 10)
    assert [(one.key, one.value, one.timestamp_ms) for one in found] == [
        (b"k", b"value", 1_700_000_000_123),
        (None, b"", 1_700_000_000_124),
    ]
    assert {header.name: header.value for header in found[0].headers} == {"TAGS": b"T", "a": b"1"}
    assert [one.offset for one in found] == [0, 1]
    with pytest.raises(OffsetOutOfRangeError):
        queue.read_records(3, 1)
    for bad in (Record(b"\xff", b"", 0), Record(None, b"", 0, (Header("a", b"x\x02y"),))):
        with pytest.raises(RejectedAppendError):
            queue.append_records([bad])
    store.running_flags.raise_flag(RunningFlag.DISK_FULL)
    with pytest.raises(WriteFailedError, match="DISK_FULL"):
        queue.append_records([Record(None, b"x", 0)])


def test_a_deleted_topic_is_gone_and_starts_anew(host: SimulatedHost) -> None:
    """Its queues and their files go; a message of that name is the first one of its queue."""
    store = small_store(host)
    store.put_message(draft("Gone", b"old"))
    store.put_message(draft("Stays", b"s"))
    store.dispatch()
    store.write_derived()
    assert store.delete_topics({"Gone", "never there"}) == 1
    assert "Gone" not in names(host, f"{DIRECTORY}/consumequeue")
    assert store.put_message(draft("Gone", b"new")).queue_offset == 0
    store.dispatch()
    assert (bodies(store, "Gone"), bodies(store, "Stays")) == ([b"new"], [b"s"])


def test_a_queue_that_cannot_be_written_stops_puts_until_it_can(host: SimulatedHost) -> None:
    """The units wait in memory, the flag of queue errors refuses puts, and is cleared again."""
    store = small_store(host)
    store.put_message(draft(body=b"a"))
    store.dispatch()
    host.fs.faults.fail_next("write", errno.ENOSPC, path="*/consumequeue/*")
    with pytest.raises(WriteFailedError):
        store.write_derived()
    assert not store.put_message(draft()).is_ok
    assert bodies(store) == [b"a"]
    store.write_derived()
    assert store.put_message(draft(body=b"b")).is_ok
    store.close()
    assert bodies(small_store(host)) == [b"a", b"b"]


def test_an_index_that_cannot_be_made_stops_puts_until_it_can(host: SimulatedHost) -> None:
    """The message stands in its queue, is dispatched again, and is then in the index as well."""
    store = small_store(host)
    store.put_message(draft(body=b"a", properties={"KEYS": "k"}))
    host.fs.faults.fail_next("open", errno.ENOSPC, path="*/index/*", count=None)
    assert store.dispatch() == 0
    assert bodies(store) == [b"a"]
    assert "WRITE_INDEX_FILE_ERROR" in store.put_message(draft()).reason
    host.fs.faults.clear()
    assert store.dispatch() == 1
    assert store.put_message(draft(body=b"b")).is_ok
    store.dispatch()
    assert bodies(store) == [b"a", b"b"]
    assert store.query_message("TopicTest", "k", 8, 0, 2**62).size_bytes > 0


def test_a_stop_that_fails_leaves_the_abort_file(host: SimulatedHost) -> None:
    """What could not be made durable is recovered by the next start."""
    store = small_store(host)
    store.put_message(draft(body=b"a"))
    host.fs.faults.fail_next_sync(errno.EIO, path="*/commitlog/*", drops_unsynced=False)
    with pytest.raises((OSError, WriteFailedError)):
        store.close()
    assert "abort" in names(host)
    again = small_store(host)
    assert not again.was_clean
    assert bodies(again) == [b"a"]


def test_the_commit_log_may_stand_elsewhere(host: SimulatedHost) -> None:
    """``storePathCommitLog`` names its directory; several of them are refused by name."""
    settings = {"storePathCommitLog": "/fast/commitlog"}
    store = small_store(host, settings=settings)
    store.put_message(draft(body=b"a"))
    store.close()
    host.power_loss()
    assert "commitlog" not in names(host)
    assert names(host, "/fast/commitlog")[0] == f"{0:020d}"
    assert bodies(small_store(host, settings=settings, is_writable=False)) == [b"a"]
    for path in ("/a,/b", "relative"):
        with pytest.raises(ConfigError, match="storePathCommitLog"):
            small_store(host, settings={"storePathCommitLog": path})


def test_the_layout_knows_its_directories(host: SimulatedHost) -> None:
    """A commit log makes a store, or a checkpoint with tables or queues; other folders do not."""
    small_store(host).close()
    assert LAYOUT.recognises(host, DIRECTORY), "a store without messages is one"
    with contextlib.closing(LAYOUT.open(host, DIRECTORY, writable=False)) as opened:
        assert opened.topics() == {}
    store = small_store(host)
    store.put_message(draft())
    store.close()
    assert LAYOUT.recognises(host, DIRECTORY)
    host.fs.make_directory("/other/consumequeue")
    assert not LAYOUT.recognises(host, "/other")
    assert not LAYOUT.recognises(host, "/nowhere")


def test_opened_by_its_layout_the_files_tell_their_sizes(host: SimulatedHost) -> None:
    """Nobody need know the settings with which a store was written to read or to continue it."""
    store = small_store(host)
    for number in range(20):
        store.put_message(draft(body=b"%02d" % number + bytes(500)))
    store.close()
    reading = LAYOUT.open(host, DIRECTORY, writable=False)
    assert [body[:2] for body in bodies(reading)] == [b"%02d" % number for number in range(20)]
    reading.close()
    writing = LAYOUT.open(host, DIRECTORY)
    assert writing.put_message(draft(body=b"20")).queue_offset == 20
    writing.close()
    log = f"{DIRECTORY}/commitlog"
    assert {len(read_file(host.fs, f"{log}/{name}")) for name in names(host, log)} == {4096}
