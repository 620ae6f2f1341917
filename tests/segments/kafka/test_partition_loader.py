"""Opening the partitions of a directory: in which order, by how many, and what is made good."""

from __future__ import annotations

import errno
import gc
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.errors import CorruptFileError
from logstore.host import DirectoryEntry, Host, read_file, write_file
from logstore.os_host import SystemFileSystem, SystemLock, system_host
from logstore.partition import Record
from logstore.recovery import Recovery
from logstore.segments.kafka import clean_shutdown
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.testing import CORNERS, NAMES_WITHOUT_DATA, PowerLoss, SimulatedHost

DATA = "/data"
METADATA = "partition.metadata"
SECONDS_MAX = 30


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def fill(store: KafkaStore, topic: str, index: int, count: int) -> None:
    """Append `count` batches of one record."""
    partition = store.partition(topic, index)
    for number in range(count):
        partition.append_records([Record(b"%d" % number, b"v" * 50, 1_700_000_000_000)])


class WatchedFileSystem(SystemFileSystem):
    """Calls `look` with the path of every directory that is listed, in the thread that does it."""

    def __init__(self, look: Callable[[str], None]) -> None:
        self._look = look
        self.is_released = threading.Event()

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """List it, once `look` has returned."""
        self._look(path)
        return super().list_directory(path)

    def lock(self, path: str) -> SystemLock:
        """Take the lock; `is_released` is set when it goes."""
        lock = super().lock(path)
        release = lock.release

        def note_release() -> None:
            self.is_released.set()
            release()

        lock.release = note_release  # type: ignore[method-assign]
        return lock


class WatchedHost(Host):
    """The real world with watched listings."""

    fs: WatchedFileSystem


def watched_host(look: Callable[[str], None]) -> WatchedHost:
    """Return the real world; `look` is called with every directory that is listed."""
    real = system_host()
    return WatchedHost(WatchedFileSystem(look), real.clock, real.rng)


def left_behind(directory: Path, partition_count: int, *, is_clean: bool = False) -> None:
    """Leave a directory with three records in each partition, after a crash unless told not."""
    store = KafkaStore(system_host(), str(directory))
    store.create_topic("t", partition_count)
    for index in range(partition_count):
        fill(store, "t", index, 3)
    store.close()
    if not is_clean:
        clean_shutdown.remove(system_host().fs, str(directory))


class TestThreads:
    """``num.recovery.threads.per.data.dir``."""

    def test_partitions_are_recovered_beside_each_other(self, tmp_path: Path) -> None:
        """So many at a time: two threads meet in two partitions, or neither gets on."""
        left_behind(tmp_path, 2)
        meeting = threading.Barrier(2, timeout=SECONDS_MAX)
        seen: set[str] = set()

        def look(path: str) -> None:
            name = path.rpartition("/")[2]
            if name in ("t-0", "t-1") and name not in seen:
                seen.add(name)
                meeting.wait()

        options = StoreOptions(recovery_thread_count=2)
        store = KafkaStore(watched_host(look), str(tmp_path), options)
        assert [p.recovery for p in store.partitions()] == [
            Recovery(3, p.log.size_bytes) for p in store.partitions()
        ]
        store.close()

    @pytest.mark.parametrize(
        ("thread_count", "partition_count", "is_clean"),
        [(1, 4, False), (4, 1, False), (4, 4, True)],
    )
    def test_no_thread_where_it_is_of_no_use(
        self, tmp_path: Path, thread_count: int, partition_count: int, is_clean: bool
    ) -> None:
        """With one allowed, with one partition, and after a clean stop, which reads no data."""
        left_behind(tmp_path, partition_count, is_clean=is_clean)
        threads: set[str] = set()
        host = watched_host(lambda _: threads.add(threading.current_thread().name))
        options = StoreOptions(recovery_thread_count=thread_count)
        KafkaStore(host, str(tmp_path), options).close()
        assert threads == {threading.current_thread().name}

    def test_the_outcome_is_that_of_one_thread(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Order of topics and partitions, what was cut off, progress and warnings."""
        names = ("b", "a", "a-0", "c")
        store = KafkaStore(system_host(), str(tmp_path))
        for name in names:
            store.create_topic(name, 3)
            for index in range(3):
                fill(store, name, index, 5 + index)
        damaged = [Path(store.partition(name, 1).log.active.path) for name in names]
        store.close()
        outcomes = [outcome_of(tmp_path, damaged, caplog, count) for count in (1, 4)]
        assert outcomes[0] == outcomes[1]
        topics, recoveries, told, messages = outcomes[0]
        assert topics == [(name, [0, 1, 2]) for name in ("a", "a-0", "b", "c")]
        assert [recovery.is_clean for recovery in recoveries if recovery] == [True, False, True] * 4
        assert [told[0], told[3], told[-1]] == [(0, 12, "a-0"), (3, 12, "a-0-0"), (12, 12, "")]
        assert len(messages) == len(names)

    def test_nobody_writes_any_more_when_the_lock_goes(self, tmp_path: Path) -> None:
        """If one partition cannot be opened, those that others are at are waited for."""
        left_behind(tmp_path, 2)
        meeting = threading.Barrier(2, timeout=SECONDS_MAX)
        seen: set[str] = set()
        locked: list[bool] = []

        def look(path: str) -> None:
            name = path.rpartition("/")[2]
            if name in ("t-0", "t-1") and name not in seen:
                seen.add(name)
                meeting.wait()
                if name == "t-0":
                    raise OSError(errno.EIO, "a bad disk", path)
                if name == "t-1":
                    assert not world.fs.is_released.wait(0.3)
                    locked.append(str(tmp_path / ".lock") in SystemLock.held)

        world = watched_host(look)
        options = StoreOptions(recovery_thread_count=2)
        with pytest.raises(OSError, match=r"a bad disk.*t-0"):
            KafkaStore(world, str(tmp_path), options)
        assert world.fs.is_released.is_set()
        assert locked == [True]


def outcome_of(
    directory: Path, damaged: list[Path], caplog: pytest.LogCaptureFixture, thread_count: int
) -> tuple[
    list[tuple[str, list[int]]], list[Recovery | None], list[tuple[int, int, str]], list[str]
]:
    """Damage the ends of some logs, and return what a recovery by so many threads tells of it."""
    clean_shutdown.remove(system_host().fs, str(directory))
    for path in damaged:
        path.write_bytes(path.read_bytes() + b"torn")
    (directory / "recovery-point-offset-checkpoint").unlink()
    told: list[tuple[int, int, str]] = []

    def note(done: int, total: int, name: str) -> None:
        told.append((done, total, name))

    caplog.clear()
    options = StoreOptions(progress=note, recovery_thread_count=thread_count)
    store = KafkaStore(system_host(), str(directory), options)
    topics = [(name, list(partitions)) for name, partitions in store.topics().items()]
    recoveries = [partition.recovery for partition in store.partitions()]
    store.close()
    return topics, recoveries, told, caplog.messages


@pytest.mark.parametrize(
    ("is_clean", "is_writable"), [(True, True), (False, True), (True, False), (False, False)]
)
def test_what_is_opened_holds_no_descriptors(
    tmp_path: Path, is_clean: bool, is_writable: bool
) -> None:
    """Ten thousand partitions must open where a process may have a thousand files."""
    left_behind(tmp_path, 20, is_clean=is_clean)
    before = len(os.listdir("/proc/self/fd"))
    store = KafkaStore(system_host(), str(tmp_path), StoreOptions(is_writable=is_writable))
    assert len(os.listdir("/proc/self/fd")) - before <= 1, "the lock"
    if is_writable:
        fill(store, "t", 0, 1)
        assert [record.key for record in store.partition("t", 0).read_records(3, 1)] == [b"0"]
    store.close()


class TestTopicIds:
    """Every partition says which topic it belongs to, or is told."""

    def stripped(self, host: SimulatedHost, *indexes: int) -> bytes:
        """Leave a topic of three partitions, some without their file; return its id."""
        store = KafkaStore(host, DATA)
        topic_id = store.create_topic("t", 3).topic_id
        store.close()
        for index in indexes:
            host.fs.remove(f"{DATA}/t-{index}/{METADATA}")
        return topic_id

    def ids(self, host: SimulatedHost) -> list[bytes | None]:
        """Return what the files say."""
        found = [PartitionMetadata.read(host.fs, f"{DATA}/t-{index}") for index in range(3)]
        return [None if metadata is None else metadata.topic_id for metadata in found]

    def test_a_topic_without_an_id_gets_one_for_good(self, host: SimulatedHost) -> None:
        """As Kafka did when it began to have them: all partitions the same, also after a crash."""
        before = self.stripped(host, 0, 1, 2)
        host.fs.remove_directory(f"{DATA}/__cluster_metadata-0")
        store = KafkaStore(host, DATA)
        topic_id = store.topics_by_name["t"].topic_id
        assert topic_id != before
        assert self.ids(host) == [topic_id] * 3
        host.power_loss()
        assert KafkaStore(host, DATA).topics_by_name["t"].topic_id == topic_id

    @pytest.mark.parametrize("indexes", [(0,), (1, 2), (0, 2)])
    def test_a_partition_without_an_id_gets_that_of_its_topic(
        self, host: SimulatedHost, indexes: tuple[int, ...]
    ) -> None:
        """Whichever partition still knows it."""
        topic_id = self.stripped(host, *indexes)
        assert list(KafkaStore(host, DATA).topics_by_id) == [topic_id]
        assert self.ids(host) == [topic_id] * 3

    def test_who_only_reads_writes_none(self, host: SimulatedHost) -> None:
        """The id then lasts as long as the store is open."""
        self.stripped(host, 0, 1, 2)
        store = KafkaStore(host, DATA, StoreOptions(is_writable=False))
        assert len(store.topics_by_id) == 1
        assert self.ids(host) == [None] * 3

    @pytest.mark.parametrize("is_clean", [True, False])
    def test_a_damaged_file_is_replaced(
        self, host: SimulatedHost, caplog: pytest.LogCaptureFixture, is_clean: bool
    ) -> None:
        """It says nothing that is not known from elsewhere, too; what is done is said."""
        topic_id = self.stripped(host)
        write_file(host.fs, f"{DATA}/t-0/{METADATA}", b"version: 0\ntopic")
        if not is_clean:
            clean_shutdown.remove(host.fs, DATA)
        with caplog.at_level(logging.WARNING):
            KafkaStore(host, DATA)
        assert self.ids(host) == [topic_id] * 3
        assert f"{DATA}/t-0/{METADATA}: line 2 has no topic_id; written with" in caplog.text

    @pytest.mark.parametrize("loss", [*CORNERS, *(PowerLoss.random(seed) for seed in range(10))])
    @pytest.mark.parametrize("is_flushed", [False, True])
    def test_every_power_loss_after_a_creation_is_survived(
        self, host: SimulatedHost, loss: PowerLoss, is_flushed: bool
    ) -> None:
        """One topic, one id that stays, an epoch to lead in, and what was flushed."""
        store = KafkaStore(host, DATA)
        topic_id = store.create_topic("t", 3).topic_id
        if is_flushed:
            fill(store, "t", 1, 2)
            store.partition("t", 1).flush()
        host.power_loss(loss)
        store = KafkaStore(host, DATA)
        (found,) = store.topics_by_id
        assert self.ids(host) == [found] * 3
        if is_flushed:
            assert found == topic_id
            assert store.partition("t", 1).end_offset == 2
        assert [p.leader_epochs.entries for p in store.partitions()] == [[(0, 0)]] * 3
        store.close()
        assert list(KafkaStore(host, DATA).topics_by_id) == [found]


class TestMending:
    """What a clean start has to do all the same."""

    def test_an_index_that_is_made_anew_is_told_of(self, host: SimulatedHost) -> None:
        """A partition says that it was recovered, although the last stop was clean."""
        store = KafkaStore(host, DATA)
        store.create_topic("t", 2)
        fill(store, "t", 0, 3)
        log = store.partition("t", 0).log.active
        size_bytes = log.end_position
        store.close()
        host.fs.remove(log.offset_index.path)
        store = KafkaStore(host, DATA)
        assert store.was_clean
        assert [p.recovery for p in store.partitions()] == [Recovery(3, size_bytes), None]

    def test_what_is_cut_off_then_is_told_of(
        self, host: SimulatedHost, caplog: pytest.LogCaptureFixture
    ) -> None:
        """In the outcome and in the log, with the file where it is kept, over all segments."""
        store = KafkaStore(host, DATA)
        store.create_topic("t", 1, {"internal.segment.bytes": "300"})
        fill(store, "t", 0, 6)
        store.close()
        segments = list(store.partition("t", 0).log.segments.values())
        for segment in segments[:2]:
            host.fs.remove(segment.offset_index.path)
            host.fs.flip(segment.path, segment.end_position - 1)
        with caplog.at_level(logging.WARNING):
            store = KafkaStore(host, DATA)
        recovery = store.partition("t", 0).recovery
        assert recovery is not None
        assert recovery.next_offset == 6
        assert not recovery.is_clean
        assert str(recovery.reason).startswith(segments[0].path)
        assert len(recovery.kept_aside) == 2
        assert all(host.fs.exists(path) for path in recovery.kept_aside)
        assert f"t-0: recovered up to offset 6; {recovery.dropped_bytes} bytes" in caplog.text

    def test_the_indexes_made_anew_are_durable(self, host: SimulatedHost) -> None:
        """The next clean start believes them, also after a power loss."""
        store = KafkaStore(host, DATA)
        store.create_topic("t", 1, {"internal.segment.bytes": "600", "index.interval.bytes": "0"})
        fill(store, "t", 0, 8)
        store.close()
        index = store.partition("t", 0).log.segments.values()[0].offset_index.path
        before = read_file(host.fs, index)
        assert before
        host.fs.remove(index)
        KafkaStore(host, DATA).close()
        host.power_loss(NAMES_WITHOUT_DATA)
        assert read_file(host.fs, index) == before


def test_what_cannot_be_opened_leaves_the_marker_of_the_clean_stop(host: SimulatedHost) -> None:
    """As long as no partition was touched: nothing needs a recovery because of it."""
    KafkaStore(host, DATA).close()
    write_file(host.fs, f"{DATA}/topic-settings.json", b"{")
    with pytest.raises(CorruptFileError):
        KafkaStore(host, DATA)
    assert clean_shutdown.exists(host.fs, DATA)


@pytest.mark.parametrize("extra", [b"", b"\0" * 40, b"\1" * 200], ids=["cut", "zeros", "garbage"])
def test_a_log_that_is_cut_although_the_stop_was_clean_is_recovered(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture, extra: bytes
) -> None:
    """Up to the last whole batch, and told; what is cut off is kept, the others are as ever."""
    store = KafkaStore(host, DATA)
    store.create_topic("t", 2)
    fill(store, "t", 0, 3)
    fill(store, "t", 1, 3)
    log = store.partition("t", 0).log.active
    last = log.locate(2)
    store.close()
    file = host.fs.open(log.path)
    whole = file.read(0, file.size())
    file.truncate(len(whole) - 1 if not extra else len(whole))
    file.write(file.size(), extra)
    end, cut_at = (3, len(whole)) if extra else (2, last)
    store = KafkaStore(host, DATA)
    torn, sound = store.partition("t", 0), store.partition("t", 1)
    assert (torn.end_offset, sound.end_offset) == (end, 3)
    assert torn.recovery is not None
    assert torn.recovery.dropped_bytes == len(extra) or not extra
    assert sound.recovery is None
    assert f"{log.path}: position {cut_at}: a batch is cut short" in caplog.text
    kept = f"{log.path}.cut-at-{cut_at}"
    assert host.fs.exists(kept) == (extra != b"\0" * 40)
    fill(store, "t", 0, 1)
    store.close()
    store = KafkaStore(host, DATA)
    assert (store.partition("t", 0).end_offset, store.partition("t", 0).recovery) == (end + 1, None)
    assert file.read(0, cut_at) == whole[:cut_at]
    store.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_nobody_looks_for_garbage_while_a_clean_store_opens(tmp_path: Path, is_clean: bool) -> None:
    """What a start makes stays; a recovery reads a lot, and is collected after."""
    store = KafkaStore(system_host(), str(tmp_path))
    store.create_topic("orders", 3)
    store.close()
    if not is_clean:
        clean_shutdown.remove(system_host().fs, str(tmp_path))
    seen: list[bool] = []

    def look(path: str) -> None:
        if "orders-" in path:
            seen.append(gc.isenabled())

    store = KafkaStore(watched_host(look), str(tmp_path))

    assert set(seen) == {not is_clean}
    assert gc.isenabled()
    store.abandon()
