"""What cannot be opened is told by file, place and remedy, and nothing is deleted or changed."""

from __future__ import annotations

import pytest

from logstore.errors import (
    CorruptFileError,
    ForeignDirectoryError,
    LockedError,
    MissingSegmentError,
    StorageError,
)
from logstore.host import read_file
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import DIRECTORY, bodies, small_store

LOG = f"{DIRECTORY}/commitlog"
QUEUE = f"{DIRECTORY}/consumequeue/TopicTest/0"
FILES = [f"{LOG}/{base:020d}" for base in (0, 4096, 8192, 12288)]


@pytest.fixture
def host() -> SimulatedHost:
    """A store of four commit log files that was stopped cleanly."""
    host = SimulatedHost()
    store = small_store(host)
    for number in range(12):
        store.put_message(draft(body=b"%02d" % number + bytes(1000)))
    store.dispatch()
    store.close()
    assert [entry.name for entry in host.fs.list_directory(LOG)] == [
        path.rpartition("/")[2] for path in FILES
    ]
    return host


def content(host: SimulatedHost, path: str = DIRECTORY) -> dict[str, bytes]:
    """Return every file below a directory but the lock."""
    found: dict[str, bytes] = {}
    for entry in host.fs.list_directory(path):
        inner = f"{path}/{entry.name}"
        if entry.is_directory:
            found.update(content(host, inner))
        elif entry.name != "lock":
            found[inner] = read_file(host.fs, inner)
    return found


def write(host: SimulatedHost, path: str, position: int, data: bytes) -> None:
    """Write into a file, which is created if it is missing."""
    file = host.fs.open(path, create=True)
    file.write(position, data)
    file.close()


def resize(host: SimulatedHost, path: str, size_bytes: int) -> None:
    """Cut or grow a file."""
    file = host.fs.open(path)
    file.truncate(size_bytes)
    file.close()


def refused(host: SimulatedHost, error: type[StorageError], *words: str) -> bool:
    """Tell whether opening raises `error` with these words, and leaves every file as it was."""
    before = content(host)
    texts: list[str] = []
    for is_writable in (True, False):
        with pytest.raises(error) as caught:
            small_store(host, is_writable=is_writable)
        texts.append(str(caught.value))
    host.fs.lock(f"{DIRECTORY}/lock").release()  # the lock was let go
    return content(host) == before and all(word in text for word in words for text in texts)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("size_bytes", [4000, 4097, 8192])
def test_a_commit_log_file_of_a_wrong_size_is_named(
    host: SimulatedHost, number: int, size_bytes: int
) -> None:
    """The error names the file, its length and the setting that it does not fit."""
    resize(host, FILES[number], size_bytes)
    assert refused(
        host, CorruptFileError, FILES[number], str(size_bytes), "mappedFileSizeCommitLog"
    )


def test_an_empty_last_commit_log_file_is_no_hindrance(host: SimulatedHost) -> None:
    """As in 5.5.0 it is removed; what stands before it is there."""
    write(host, f"{LOG}/{16384:020d}", 0, b"")
    store = small_store(host)
    assert len(bodies(store)) == 12
    assert not host.fs.exists(f"{LOG}/{16384:020d}")
    store.close()


def test_a_hole_in_the_commit_log_is_named(host: SimulatedHost) -> None:
    """The error says which file is missing and what may be done."""
    host.fs.remove(FILES[1])
    assert refused(host, MissingSegmentError, FILES[1], "put it back")


def test_a_strange_file_in_the_commit_log_is_named(host: SimulatedHost) -> None:
    """A name that is no number is not removed and not passed over."""
    write(host, f"{LOG}/notes.txt", 0, b"mine")
    assert refused(host, CorruptFileError, f"{LOG}/notes.txt")


def test_a_consume_queue_file_of_a_wrong_size_is_named(host: SimulatedHost) -> None:
    """The error names the file and the setting."""
    resize(host, f"{QUEUE}/{0:020d}", 99)
    assert refused(host, CorruptFileError, f"{QUEUE}/{0:020d}", "mappedFileSizeConsumeQueue")


def test_folders_that_are_no_queues_are_passed_over(host: SimulatedHost) -> None:
    """A folder without a number for a name, and a file among the topics, stay as they are."""
    host.fs.make_directory(f"{DIRECTORY}/consumequeue/TopicTest/backup")
    write(host, f"{DIRECTORY}/consumequeue/readme", 0, b"mine")
    store = small_store(host)
    assert len(bodies(store)) == 12
    store.close()
    assert host.fs.exists(f"{DIRECTORY}/consumequeue/TopicTest/backup")
    assert read_file(host.fs, f"{DIRECTORY}/consumequeue/readme") == b"mine"


def test_queues_of_the_other_kind_are_named(host: SimulatedHost) -> None:
    """A topic that became one of batches while it has plain queues cannot be opened."""
    store = small_store(host)
    store.topic_table.put(TopicConfig("TopicTest", attributes={"queue.type": "BatchCQ"}))
    store.topic_table.persist()
    store.close()
    assert refused(host, CorruptFileError, "consumequeue/TopicTest", "queue.type", "topics.json")


def test_a_checkpoint_that_is_cut_short_or_gone_costs_time_alone(host: SimulatedHost) -> None:
    """Its fields are lower bounds: without them all of the log is looked at after a crash."""
    for size_bytes in (10, 0, None):
        if size_bytes is None:
            host.fs.remove(f"{DIRECTORY}/checkpoint")
        else:
            resize(host, f"{DIRECTORY}/checkpoint", size_bytes)
        store = small_store(host)
        store.abandon()
        again = small_store(host)
        assert again.recovery.dispatched_count == 12
        assert len(bodies(again)) == 12
        again.close()


def test_a_damaged_table_without_a_backup_is_named(host: SimulatedHost) -> None:
    """A JSON file that cannot be understood, nor its backup, is an error that names it."""
    for name in ("topics.json", "topics.json.bak"):
        host.fs.make_directory(f"{DIRECTORY}/config")
        write(host, f"{DIRECTORY}/config/{name}", 0, b"{[")
    assert refused(host, CorruptFileError, "config/topics.json")


def test_another_broker_keeps_us_out(host: SimulatedHost) -> None:
    """While the lock is held the store cannot be opened to be written, only to be read."""
    lock = host.fs.lock(f"{DIRECTORY}/lock")
    with pytest.raises(LockedError, match=f"{DIRECTORY}/lock"):
        small_store(host)
    reading = small_store(host, is_writable=False)
    assert len(bodies(reading)) == 12
    reading.close()
    lock.release()
    small_store(host).close()


def test_a_directory_of_other_things_is_left_alone() -> None:
    """Nothing is created among files that are not RocketMQ's; a file is no directory."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    write(host, f"{DIRECTORY}/holiday.jpg", 0, b"...")
    with pytest.raises(ForeignDirectoryError, match=r"holiday\.jpg"):
        small_store(host)
    assert [entry.name for entry in host.fs.list_directory(DIRECTORY)] == ["holiday.jpg"]
    host.fs.remove(f"{DIRECTORY}/holiday.jpg")
    host.fs.remove_directory(DIRECTORY)
    with pytest.raises(ForeignDirectoryError, match="no such directory"):
        small_store(host, is_writable=False)
    write(host, DIRECTORY, 0, b"")
    with pytest.raises(ForeignDirectoryError, match="is a file"):
        small_store(host)


def test_damage_in_the_middle_of_a_cleanly_stopped_log_cuts_nothing_off(
    host: SimulatedHost,
) -> None:
    """5.x does not look at old files after a clean stop, and loses nothing that stands behind."""
    write(host, FILES[0], 300, b"\xff\xff")
    store = small_store(host)
    assert store.max_queue_offset("TopicTest", 0) == 12
    last = store.queue("TopicTest", 0).messages(11, 1)
    assert last[0].body[:2] == b"11"
    store.close()


def test_damage_at_the_end_is_told_with_its_physical_offset(host: SimulatedHost) -> None:
    """The recovery names file and position, and keeps what it cut off aside."""
    store = small_store(host)
    store.put_message(draft(body=b"torn" + bytes(900)))
    store.dispatch()
    end = store.commit_log.max_physical_offset
    store.abandon()
    position = end % 4096 - 60
    write(host, f"{LOG}/{end - end % 4096:020d}", position, b"\xff\xff\xff")
    again = small_store(host)
    assert again.recovery.log is not None
    assert again.recovery.log.reason is not None
    assert f"{LOG}/{end - end % 4096:020d}" in again.recovery.log.reason
    assert again.recovery.log.next_offset < end
    assert len(bodies(again)) == 12
    assert again.recovery.log.kept_aside
    again.close()


def test_what_is_left_of_a_deleted_topic_may_be_of_either_kind(host: SimulatedHost) -> None:
    """A power loss amid a deletion takes the topic and leaves its queues: the store opens."""
    store = small_store(host)
    store.topic_table.put(TopicConfig("Batches", attributes={"queue.type": "BatchCQ"}))
    store.topic_table.persist()
    assert store.put_message(draft("Batches")).is_ok
    store.close()
    store = small_store(host)
    assert isinstance(store.consume_queues.get("Batches", 0), BatchConsumeQueue)
    store.topic_table.remove("Batches")
    store.topic_table.persist()
    store.close()
    store = small_store(host)
    assert isinstance(store.consume_queues.get("Batches", 0), BatchConsumeQueue)
    assert len(bodies(store)) == 12
    assert store.delete_topics({"Batches"}) == 1
    assert not host.fs.exists(f"{DIRECTORY}/batchconsumequeue/Batches")
