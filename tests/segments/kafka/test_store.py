"""A data directory: whose it is, how it was left, what comes back when it is opened again."""

from __future__ import annotations

import errno
import logging

import pytest

from logstore.errors import (
    CorruptFileError,
    ForeignDirectoryError,
    LockedError,
    MissingSegmentError,
    WriteFailedError,
)
from logstore.host import read_file, write_file
from logstore.partition import Record
from logstore.segments.kafka import checkpoints, clean_shutdown
from logstore.segments.kafka.config_keys import ConfigError
from logstore.segments.kafka.partition_metadata import PartitionMetadata
from logstore.segments.kafka.store import LAYOUT, KafkaStore, StoreOptions
from logstore.testing import LOSE_UNSYNCED, SimulatedHost

DATA = "/data"


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def open_store(host: SimulatedHost, *, is_writable: bool = True, **log_defaults: str) -> KafkaStore:
    """Open the store in DATA; defaults by topic setting with underscores for dots."""
    defaults = {name.replace("_", "."): value for name, value in log_defaults.items()}
    return KafkaStore(host, DATA, StoreOptions(is_writable=is_writable, log_defaults=defaults))


def fill(store: KafkaStore, topic: str, index: int, count: int, *, size_bytes: int = 20) -> None:
    """Append `count` batches of one record."""
    partition = store.partition(topic, index)
    for number in range(count):
        partition.append_records([Record(b"%d" % number, b"v" * size_bytes, 1_700_000_000_000)])


def names(host: SimulatedHost, directory: str = DATA) -> list[str]:
    """Return what is in a directory."""
    return [entry.name for entry in host.fs.list_directory(directory)]


def every_file(host: SimulatedHost, directory: str = "") -> dict[str, bytes]:
    """Return all files of the world with their content."""
    found: dict[str, bytes] = {}
    for entry in host.fs.list_directory(directory or "/"):
        path = f"{directory}/{entry.name}"
        if entry.is_directory:
            found |= every_file(host, path)
        else:
            found[path] = read_file(host.fs, path)
    return found


# life


def test_a_new_directory_gets_an_identity(host: SimulatedHost) -> None:
    """Cluster and directory ids are drawn once and found again."""
    store = open_store(host)
    meta = store.meta
    assert meta is not None
    assert (meta.node_id, meta.version) == (1, 1)
    store.close()
    assert open_store(host).meta == meta


def test_topics_come_back_with_ids_settings_and_records(host: SimulatedHost) -> None:
    """After a clean stop everything is as it was, and nothing had to be recovered."""
    store = open_store(host)
    orders = store.create_topic("orders", 2, {"retention.ms": "5", "cleanup.policy": "compact"})
    store.create_topic("plain", 1)
    fill(store, "orders", 1, 3)
    store.close()
    store = open_store(host)
    assert store.was_clean
    assert sorted(store.topics()) == ["orders", "plain"]
    again = store.topics_by_name["orders"]
    assert (again.topic_id, again.settings) == (orders.topic_id, orders.settings)
    assert store.topics_by_id[orders.topic_id] is again
    assert [p.end_offset for p in again.partitions.values()] == [0, 3]
    assert store.partition("orders", 1).config.retention_ms == 5
    assert all(partition.recovery is None for partition in store.partitions())


def test_the_clean_marker_is_there_only_while_nobody_has_the_directory(
    host: SimulatedHost,
) -> None:
    """It goes before anything is loaded, so that a crash while loading counts as unclean."""
    open_store(host).close()
    assert clean_shutdown.exists(host.fs, DATA)
    store = open_store(host)
    assert not clean_shutdown.exists(host.fs, DATA)
    host.fs.process_death()
    store = open_store(host)
    assert not store.was_clean
    store.close()
    assert clean_shutdown.exists(host.fs, DATA)


def test_every_power_loss_after_a_clean_stop_is_survived(host: SimulatedHost) -> None:
    """What a clean stop wrote is durable before the marker is."""
    store = open_store(host, segment_bytes="1048576")
    store.create_topic("t", 2, {"flush.messages": "9"})
    fill(store, "t", 0, 5)
    store.close()
    host.power_loss(LOSE_UNSYNCED)
    store = open_store(host)
    assert store.was_clean
    assert [r.key for r in store.partition("t", 0).read_records(0, 9)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert store.topics_by_name["t"].settings == {"flush.messages": "9"}


def test_checkpoints_tell_where_recovery_starts(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """After a crash only what lies past the recovery point is checked; damage there is reported."""
    store = open_store(host)
    store.create_topic("t", 1, {"internal.segment.bytes": "300"})
    fill(store, "t", 0, 6)
    store.partition("t", 0).flush()
    store.write_checkpoints()
    partition = store.partition("t", 0)
    recovery_point = partition.log.recovery_point
    bases = list(partition.log.segments)
    fill(store, "t", 0, 1)
    active = partition.log.active
    host.fs.flip(f"{DATA}/t-0/{0:020d}.log", 80)
    host.fs.damage(active.path, active.end_position - 1, b"\xff")
    host.fs.process_death()
    with caplog.at_level(logging.WARNING):
        store = open_store(host)
    recovery = store.partition("t", 0).recovery
    assert recovery is not None
    assert (recovery.next_offset, bases[0]) == (recovery_point, 0)
    assert not recovery.is_clean
    assert "t-0: recovered up to offset 6" in caplog.text
    assert "kept aside in /data/t-0/" in caplog.text
    assert f"{bases[0]:020d}.log:" not in caplog.text, "damage below the recovery point is not seen"


def test_checkpoints_are_written_where_something_has_changed(host: SimulatedHost) -> None:
    """A broker does it every minute between requests, and a sync may take half a second."""
    store = open_store(host)
    store.create_topic("t", 1)
    fill(store, "t", 0, 3)
    store.write_checkpoints()
    host.fs.faults.fail_next("sync", errno.EIO, path=f"{DATA}/recovery-point*")
    fill(store, "t", 0, 3)  # nothing is flushed: the recovery point stays
    store.write_checkpoints()
    store.partition("t", 0).flush()
    with pytest.raises(OSError, match="recovery-point"):
        store.write_checkpoints()
    host.fs.faults.clear()
    store.write_checkpoints()
    path = f"{DATA}/{checkpoints.RECOVERY_POINT}"
    assert checkpoints.read_offset_checkpoint(host.fs, path) == {("t", 0): 6}


def test_log_starts_survive_only_with_their_checkpoint(host: SimulatedHost) -> None:
    """A log start inside of a segment is kept in a checkpoint, not in the log."""
    store = open_store(host)
    store.create_topic("t", 2)
    fill(store, "t", 0, 6)
    fill(store, "t", 1, 6)
    store.partition("t", 0).delete_records(4)
    store.write_checkpoints()
    store.partition("t", 1).delete_records(5)
    path = f"{DATA}/{checkpoints.LOG_START}"
    assert checkpoints.read_offset_checkpoint(host.fs, path) == {("t", 0): 4}
    host.fs.process_death()
    store = open_store(host)
    assert [p.start_offset for p in store.partitions()] == [4, 0]
    store.close()
    assert [p.start_offset for p in open_store(host).partitions()] == [4, 0]


def test_a_tiered_log_keeps_the_start_of_its_remote_segments(host: SimulatedHost) -> None:
    """
    The broker that tiers finds where its log starts, below all that is here.

    What is removed here is removed there, too: then the log starts where we say.
    """
    path = f"{DATA}/{checkpoints.LOG_START}"
    store = open_store(host)
    for topic in ("tiered", "plain"):
        settings = {"remote.storage.enable": str(topic == "tiered").lower()}
        store.create_topic(topic, 1, settings | {"internal.segment.bytes": "300"})
        fill(store, topic, 0, 20)
        partition = store.partition(topic, 0)
        partition.delete_records(15)
        partition.retain()
    assert 0 < store.partition("tiered", 0).log.start_offset <= 15
    store.close()
    checkpoints.write_offset_checkpoint(host.fs, path, {("tiered", 0): 7})
    store = open_store(host)
    start = store.partition("tiered", 0).start_offset
    assert start == store.partition("tiered", 0).log.start_offset, "what is not here is not read"
    fill(store, "tiered", 0, 1)
    store.write_log_starts()
    assert checkpoints.read_offset_checkpoint(host.fs, path) == {("tiered", 0): 7}
    store.close()
    assert checkpoints.read_offset_checkpoint(host.fs, path) == {("tiered", 0): 7}
    store = open_store(host)
    store.partition("tiered", 0).delete_records(start + 1)
    store.close()
    assert checkpoints.read_offset_checkpoint(host.fs, path) == {("tiered", 0): start + 1}


def test_an_unreadable_checkpoint_counts_as_empty(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is then checked, and the warning names the file."""
    store = open_store(host)
    store.create_topic("t", 1)
    fill(store, "t", 0, 3)
    host.fs.process_death()
    write_file(host.fs, f"{DATA}/{checkpoints.RECOVERY_POINT}", b"rubbish\n")
    with caplog.at_level(logging.WARNING):
        store = open_store(host)
    assert store.partition("t", 0).end_offset == 3
    assert f"{DATA}/{checkpoints.RECOVERY_POINT}: " in caplog.text


def test_a_stop_that_fails_is_not_clean(host: SimulatedHost) -> None:
    """One partition that cannot be closed: the others are, the lock goes, the marker stays away."""
    store = open_store(host)
    store.create_topic("t", 2)
    fill(store, "t", 0, 2)
    fill(store, "t", 1, 2)
    host.fs.faults.fail_next("sync", errno.EIO, path=f"{DATA}/t-0/*.log")
    with pytest.raises((OSError, WriteFailedError)):
        store.close()
    host.fs.faults.clear()
    assert not clean_shutdown.exists(host.fs, DATA)
    store = open_store(host)
    assert not store.was_clean
    assert [p.end_offset for p in store.partitions()] == [2, 2]


def test_a_log_that_refuses_is_not_stopped_cleanly(host: SimulatedHost) -> None:
    """Also where all is flushed: the next start looks what the failing disk has left."""
    store = open_store(host)
    store.create_topic("t", 1)
    fill(store, "t", 0, 2)
    partition = store.partition("t", 0)
    partition.flush()
    host.fs.faults.fail_next("sync", errno.EIO, path=f"{DATA}/t-0/*.log")
    with pytest.raises(OSError, match="EIO"):
        partition.flush()
    assert partition.log.recovery_point == partition.end_offset
    with pytest.raises(WriteFailedError, match="open the log anew"):
        store.close()
    assert not clean_shutdown.exists(host.fs, DATA)
    assert open_store(host).partition("t", 0).end_offset == 2


def test_loading_tells_how_far_it_is(host: SimulatedHost) -> None:
    """Progress is told before each partition and once at the end."""
    store = open_store(host)
    store.create_topic("t", 3)
    store.close()
    told: list[tuple[int, int, str]] = []

    def note(done: int, total: int, name: str) -> None:
        told.append((done, total, name))

    KafkaStore(host, DATA, StoreOptions(progress=note))
    assert told == [(0, 3, "t-0"), (1, 3, "t-1"), (2, 3, "t-2"), (3, 3, "")]


# topics


def test_a_topic_may_grow(host: SimulatedHost) -> None:
    """New partitions come behind the old ones, with the same topic id, led in epoch 0."""
    store = open_store(host)
    topic = store.create_topic("t", 1)
    store.add_partitions(topic, 3)
    assert sorted(topic.partitions) == [0, 1, 2]
    assert topic.partitions[2].leader_epochs.entries == [(0, 0)]
    store.close()
    assert len(open_store(host).topics_by_id[topic.topic_id].partitions) == 3
    with pytest.raises(MissingSegmentError, match="/data: there is no partition t-3"):
        store.partition("t", 3)
    with pytest.raises(MissingSegmentError, match="there is no partition nix-0"):
        store.partition("nix", 0)


def test_a_deleted_topic_goes_in_two_steps(host: SimulatedHost) -> None:
    """Its directories are renamed at once and removed after the delay; its name is free again."""
    store = open_store(host)
    topic = store.create_topic("t", 2, {"file.delete.delay.ms": "1000"})
    store.create_topic("kept", 1, {"retention.ms": "9"})
    store.delete_topic(topic)
    assert sorted(store.topics()) == ["kept"]
    assert topic.topic_id not in store.topics_by_id
    assert sum(name.endswith("-delete") for name in names(host)) == 2
    again = store.create_topic("t", 1)
    assert again.topic_id != topic.topic_id
    assert again.partitions[0].end_offset == 0
    host.clock.advance(999)
    store.purge()
    assert sum(name.endswith("-delete") for name in names(host)) == 2
    host.clock.advance(1)
    store.purge()
    assert [name for name in names(host) if name.endswith("-delete")] == []
    store.close()
    assert open_store(host).topics_by_name["t"].settings == {}


def test_what_a_broker_had_no_time_to_remove_is_removed_by_the_next(host: SimulatedHost) -> None:
    """Directories of deleted topics do not stay for ever because the delay outlived the broker."""
    store = open_store(host)
    topic = store.create_topic("t", 2)
    fill(store, "t", 0, 3)
    store.delete_topic(topic)
    store.abandon()
    assert sum(name.endswith("-delete") for name in names(host)) == 2
    reader = open_store(host, is_writable=False)
    reader.purge()
    assert sum(name.endswith("-delete") for name in names(host)) == 2, "who reads removes nothing"
    store = open_store(host)
    store.purge()
    assert [name for name in names(host) if name.endswith("-delete")] == []


def test_who_stops_cleanly_removes_what_was_deleted(host: SimulatedHost) -> None:
    """Before its time: indexes are not put in order for it. If the disk refuses, the next does."""
    for is_refused in (False, True):
        store = open_store(host)
        store.delete_topic(store.create_topic("t", 2))
        if is_refused:
            host.fs.faults.fail_next("remove", errno.EIO, path=f"{DATA}/*-delete*")
        store.close()
        assert any(name.endswith("-delete") for name in names(host)) == is_refused
        assert open_store(host, is_writable=False).was_clean


def test_an_abandoned_copy_stands_for_its_partition(host: SimulatedHost) -> None:
    """
    Where a move between directories was cut short before its last rename, the records are there.

    Beside the partition itself, and of a topic that the cluster does not know, a copy stays one.
    """
    store = open_store(host)
    for topic in ("moved", "there"):
        store.create_topic(topic, 1)
        fill(store, topic, 0, 3)
    store.close()
    unique = "0123456789abcdef0123456789abcdef"
    fs = host.fs
    fs.rename(f"{DATA}/moved-0", f"{DATA}/moved-0.{unique}-future")
    for name in (f"there-0.{unique}-future", f"unknown-0.{unique}-future"):
        fs.make_directory(f"{DATA}/{name}")
        PartitionMetadata(b"\1" * 16).write(fs, f"{DATA}/{name}")
    assert open_store(host, is_writable=False).partition("there", 0).end_offset == 3
    store = open_store(host)
    assert [store.partition(topic, 0).end_offset for topic in ("moved", "there")] == [3, 3]
    assert sorted(store.topics()) == ["moved", "there"]
    copies = [name for name in names(host) if name.endswith("-future")]
    assert copies == [f"there-0.{unique}-future", f"unknown-0.{unique}-future"]


def test_settings_are_checked_kept_and_used(host: SimulatedHost) -> None:
    """A value that is not allowed changes nothing; the broker's defaults hold where none is set."""
    store = open_store(host, retention_ms="77")
    with pytest.raises(ConfigError):
        store.create_topic("bad", 1, {"retention.ms": "soon"})
    assert store.topics() == {}
    assert [name for name in names(host) if name.startswith("bad")] == []
    topic = store.create_topic("t", 1, {"segment.ms": "1000"})
    config = topic.partitions[0].config
    assert (config.retention_ms, config.segment_ms) == (77, 1000)
    with pytest.raises(ConfigError):
        store.change_settings(topic, {"segment.ms": "0"})
    assert topic.settings == {"segment.ms": "1000"}
    store.change_settings(topic, {"retention.ms": "5"})
    assert topic.partitions[0].config.retention_ms == 5
    assert topic.partitions[0].config.segment_ms == 604_800_000
    store.close()
    store = open_store(host)
    assert store.topics_by_name["t"].settings == {"retention.ms": "5"}


def test_retention_passes_over_every_topic(host: SimulatedHost) -> None:
    """One call gives up what each topic's settings say, but for those that the cleaner retains."""
    store = open_store(host)
    for name, retention, policy in (
        ("short", "1000", "delete"), ("long", "-1", "delete"), ("both", "1000", "compact,delete"),
    ):  # fmt: skip
        store.create_topic(
            name, 1,
            {"internal.segment.bytes": "300", "retention.ms": retention,
             "cleanup.policy": policy, "file.delete.delay.ms": "0"},
        )  # fmt: skip
        fill(store, name, 0, 8)
    host.clock.advance(2000)
    assert store.retain() == len(store.partition("long", 0).log.segments)
    store.purge()
    starts = {name: store.partition(name, 0).start_offset for name in ("short", "long", "both")}
    assert starts == {"short": 8, "long": 0, "both": 0}
    assert len([name for name in names(host, f"{DATA}/short-0") if name.endswith(".log")]) == 1


# directories that are not to be used


def test_one_broker_at_a_time(host: SimulatedHost) -> None:
    """A second one is refused with the file that says so; after a stop the next may come."""
    store = open_store(host)
    with pytest.raises(LockedError, match=r"/data/\.lock: another broker serves this directory"):
        open_store(host)
    store.close()
    open_store(host)


def test_a_failed_opening_lets_the_lock_go(host: SimulatedHost) -> None:
    """Whoever mends the directory need not restart anything else."""
    open_store(host).close()
    meta = read_file(host.fs, f"{DATA}/meta.properties")
    write_file(host.fs, f"{DATA}/meta.properties", b"version=9\n")
    with pytest.raises(CorruptFileError, match=r"/data/meta\.properties: unknown version 9"):
        open_store(host)
    write_file(host.fs, f"{DATA}/meta.properties", meta)
    open_store(host).close()


def test_a_directory_of_something_else_is_refused(host: SimulatedHost) -> None:
    """One that is no partition's is named before any partition is opened; the lock is free."""
    open_store(host).close()
    host.fs.make_directory(f"{DATA}/nonsense")
    with pytest.raises(ForeignDirectoryError, match=r"/data/nonsense: .*holds partitions only"):
        open_store(host)
    host.fs.remove_directory(f"{DATA}/nonsense")
    open_store(host)


def test_a_settings_file_that_is_none_is_named(host: SimulatedHost) -> None:
    """Settings are not dropped in silence."""
    open_store(host).close()
    write_file(host.fs, f"{DATA}/topic-settings.json", b"{")
    with pytest.raises(CorruptFileError, match=r"topic-settings\.json: not a table"):
        open_store(host)


# only reading


def test_who_only_reads_needs_no_lock_and_leaves_no_trace(host: SimulatedHost) -> None:
    """Beside a running broker, after a crash, and with an empty partition."""
    with pytest.raises(ForeignDirectoryError, match="/data: there is no such directory"):
        open_store(host, is_writable=False)
    store = open_store(host)
    store.create_topic("t", 2)
    fill(store, "t", 0, 4)
    host.fs.make_directory(f"{DATA}/empty-0")
    for _ in ("beside a broker", "after a crash"):
        before = every_file(host)
        host.fs.faults.is_read_only = True
        reader = open_store(host, is_writable=False)
        assert [r.key for r in reader.partition("t", 0).read_records(0, 9)] == [
            b"0", b"1", b"2", b"3",
        ]  # fmt: skip
        assert reader.partition("empty", 0).end_offset == 0
        reader.close()
        host.fs.faults.clear()
        assert every_file(host) == before
        host.fs.process_death()


def test_the_layout_knows_its_directories(host: SimulatedHost) -> None:
    """By meta.properties, or by a partition with a segment in it; not by a name alone."""
    open_store(host).close()
    assert LAYOUT.recognises(host, DATA)
    host.fs.make_directory("/pile/t-0")
    assert not LAYOUT.recognises(host, "/pile")
    write_file(host.fs, f"/pile/t-0/{0:020d}.log", b"")
    assert LAYOUT.recognises(host, "/pile")
    assert not LAYOUT.recognises(host, f"/pile/t-0/{0:020d}.log")
    opened = LAYOUT.open(host, DATA, writable=False)
    assert opened.directory == DATA
    assert opened.topics() == {}
    opened.close()
