"""Topics come and go whole."""

from __future__ import annotations

import errno

import pytest

from logstore.errors import LogStoreError
from logstore.host import write_file
from logstore.partition import Record
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record as StoredRecord
from logstore.segments.kafka.record import encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import PowerLoss


@pytest.mark.parametrize("fault", ["make_directory", "open", "write", "rename", "sync_directory"])
def test_a_topic_that_cannot_be_created_leaves_nothing(fault: FaultKind) -> None:
    """Whichever operation the disk refuses, neither the store nor the directory knows the topic."""
    for number in range(1, 100):
        host = SimulatedHost()
        store = KafkaStore(host, "/data")
        host.fs.faults.fail_next(fault, errno.ENOSPC, path="/data*", after=number - 1)
        planned = host.fs.faults.planned[-1]
        try:
            store.create_topic("t", 3, {"retention.ms": "1"})
        except (OSError, LogStoreError):
            host.fs.faults.clear()
            assert store.topics() == {}
            names = [entry.name for entry in host.fs.list_directory("/data")]
            assert [name for name in names if name.startswith("t-")] == []
            assert len(store.create_topic("t", 3).partitions) == 3
        if not planned.has_struck:
            return
    raise AssertionError("a topic of three partitions takes fewer than 100 operations")


def with_records(store: KafkaStore, values: list[bytes]) -> KafkaPartition:
    """Create the topic `t` with one partition that holds these records, a batch each."""
    partition = store.create_topic("t", 1).partitions[0]
    for value in values:
        partition.append_records([Record(None, value, 1_700_000_000_000)])
    return partition


@pytest.mark.parametrize("is_restarted", [False, True], ids=["one life", "killed between"])
@pytest.mark.parametrize("has_power", [True, False], ids=["kill -9", "power loss"])
def test_a_topic_made_anew_owes_nothing_to_the_old_one(has_power: bool, is_restarted: bool) -> None:
    """Log start and recovery point of a deleted topic of the same name are not believed."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    old = with_records(store, [b"1", b"2", b"3", b"4", b"5"])
    old.flush()
    old.delete_records(4)
    store.write_checkpoints()

    store.delete_topic(store.topics_by_name["t"])
    if is_restarted:
        store.abandon()
        store = KafkaStore(host, "/data")
    new = with_records(store, [b"a", b"b"])
    if has_power:
        store.abandon()
    else:
        new.flush()
        host.power_loss(LOSE_UNSYNCED)

    again = KafkaStore(host, "/data").topics_by_name["t"].partitions[0]
    assert (again.start_offset, again.end_offset) == (0, 2)
    assert [record.value for record in again.read_records(0, 9)] == [b"a", b"b"]


def test_a_topic_whose_old_checkpoints_cannot_be_changed_is_not_made() -> None:
    """What could not be told apart after a crash must not come to be: the refusal is passed on."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    with_records(store, [b"1"])
    store.write_checkpoints()
    store.delete_topic(store.topics_by_name["t"])
    host.fs.faults.fail_next("write", errno.ENOSPC, path="/data/*-checkpoint*")
    with pytest.raises(OSError, match="ENOSPC"):
        store.create_topic("t", 1)
    assert store.topics() == {}
    host.fs.faults.clear()
    assert with_records(store, [b"2"]).end_offset == 1


def test_a_partition_made_anew_owes_nothing_to_the_one_that_went() -> None:
    """A directory that somebody removed leaves its old recovery point behind."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    with_records(store, [b"1", b"2", b"3"])
    store.close()
    host.fs.remove_directory("/data/t-0")

    store = KafkaStore(host, "/data")
    store.topics_by_name["t"].partitions[0].append_records([Record(None, b"a", 1)])
    store.abandon()
    again = KafkaStore(host, "/data").topics_by_name["t"].partitions[0]
    assert [record.value for record in again.read_records(0, 9)] == [b"a"]


def unfinished(*names: str, content: bytes = b"") -> SimulatedHost:
    """Return a disk with one topic, and directories of which a crash left the metadata nothing."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    with_records(store, [b"1"])
    for name in names:
        host.fs.make_directory(f"/data/{name}")
        write_file(host.fs, f"/data/{name}/00000000000000000000.log", content)
    store.abandon()
    return host


def test_a_topic_that_was_not_finished_is_none() -> None:
    """A crash amid a creation leaves some of its partitions, which would be a topic with holes."""
    host = unfinished("u-1", "u-2", "t-2")
    store = KafkaStore(host, "/data")
    assert {name: list(parts) for name, parts in store.topics().items()} == {"t": [0]}
    assert len(store.create_topic("u", 4).partitions) == 4
    store.add_partitions(store.topics_by_name["t"], 3)
    store.close()
    store = KafkaStore(host, "/data")
    counts = {name: len(parts) for name, parts in store.topics().items()}
    assert counts == {"t": 3, "u": 4}


def test_records_that_nobody_knows_of_are_kept() -> None:
    """A directory with records in it was put there, whatever the metadata say."""
    data = encode_batch([StoredRecord(offset=0, timestamp_ms=1, key=None, value=b"mine")])
    store = KafkaStore(unfinished("u-1", content=bytes(data)), "/data")
    (found,) = store.topics_by_name["u"].partitions.values()
    assert [record.value for record in found.read_records(0, 9)] == [b"mine"]


def test_an_empty_partition_is_kept_where_the_last_stop_was_clean() -> None:
    """No crash has left it, so somebody has put it there."""
    host = unfinished("u-0")
    KafkaStore(host, "/data").close()
    host.fs.make_directory("/data/u-0")
    write_file(host.fs, "/data/u-0/00000000000000000000.log", b"")
    assert list(KafkaStore(host, "/data").topics()["u"]) == [0]


def test_what_a_torn_write_left_does_not_come_back_as_the_metadata_logs_epochs() -> None:
    """The file in their place is synced: a loss of power left one that no start can read."""
    for seed in range(40):
        host = SimulatedHost(seed)
        store = KafkaStore(host, "/data")
        store.create_topic("t", 1)
        store.abandon()
        store = KafkaStore(host, "/data")
        path = "/data/__cluster_metadata-0/leader-epoch-checkpoint*"
        host.fs.faults.fail_next("write", errno.ENOSPC, path=path, partial_bytes=10)
        with pytest.raises(OSError, match="ENOSPC"):
            store.create_topic("u", 1)
        store.create_topic("u", 1)
        host.power_loss(PowerLoss.random(seed))
        assert set(KafkaStore(host, "/data").topics()) == {"t", "u"}


def test_topics_that_are_made_together_wait_for_the_disk_once() -> None:
    """And are all there after a loss of power, as is that another was deleted among them."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    store.create_topic("old", 1)
    before = len(host.fs.journal)
    with store.together():
        for name in ("a", "b", "c"):
            store.create_topic(name, 2)
        store.delete_topic(store.topics_by_name["old"])
    syncs = [one for one in list(host.fs.journal)[before:] if one.kind.startswith("sync")]
    assert [one.path for one in syncs if one.path == "/data"] == ["/data"]
    assert len([one for one in syncs if one.path.startswith("/data/__cluster_metadata-0/")]) == 1
    host.power_loss(LOSE_UNSYNCED)
    assert set(KafkaStore(host, "/data").topics_by_name) == {"a", "b", "c"}


@pytest.mark.parametrize("path", ["/data", "/data/__cluster_metadata-0/*.log"])
def test_topics_of_which_the_disk_loses_track_are_told_of(path: str) -> None:
    """The last sync of all fails: whoever made them hears of it."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    store.create_topic("old", 1)
    kind: FaultKind = "sync_directory" if path == "/data" else "sync"
    host.fs.faults.fail_next(kind, errno.EIO, path=path)
    with pytest.raises((OSError, LogStoreError)):
        make_together(store, "a", "b")
    make_together(store)  # nothing is owed any more


def make_together(store: KafkaStore, *names: str) -> None:
    """Make topics of one partition that wait for the disk once."""
    with store.together():
        for name in names:
            store.create_topic(name, 1)


def test_a_topic_that_goes_is_not_put_in_order() -> None:
    """No file is made in a directory that is about to be removed."""
    host = SimulatedHost()
    store = KafkaStore(host, "/data")
    with_records(store, [b"1", b"2"])
    before = [entry.name for entry in host.fs.list_directory("/data/t-0")]
    store.delete_topic(store.topics_by_name["t"])
    (gone,) = [one for one in host.fs.list_directory("/data") if one.name.endswith("-delete")]
    left = [entry.name for entry in host.fs.list_directory(f"/data/{gone.name}")]
    assert left == before
