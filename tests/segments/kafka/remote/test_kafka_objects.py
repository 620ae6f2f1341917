"""What a real broker of 4.3 stored through LocalTieredStorage is read, and restored, here."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from logstore.errors import OffsetOutOfRangeError
from logstore.host import read_file
from logstore.partition import Record as PlainRecord
from logstore.segments.kafka.checkpoints import read_checkpoint
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.record import Record, decode_records
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from logstore.segments.kafka.remote import (
    Bundle,
    ObjectKind,
    RemoteLog,
    RemoteStorage,
    restore_partition,
)
from logstore.segments.kafka.remote.metadata_records import fold
from logstore.segments.kafka.store import KafkaStore
from tests.segments.kafka.remote.stored import (
    COPIED,
    TIERED,
    contents,
    host,
    kafka_storage,
    records_of,
)

TOPICS = ("tiered", "tiered-transactions")


@pytest.fixture
def storage(tmp_path: Path) -> RemoteStorage:
    """A copy of the golden objects."""
    return kafka_storage(tmp_path / "remote")


def batches_of(topic: str) -> list[RecordBatch]:
    """Return the batches that stand in the broker's own sealed segments."""
    logs = sorted((TIERED / "data" / f"{topic}-0").glob("*.log"))[:-1]
    return [b for log in logs for b in iterate_batches(memoryview(log.read_bytes()))]


def topic_metadata() -> list[bytes]:
    """Return the values of the broker's own metadata topic."""
    logs = sorted((TIERED / "data" / "__remote_log_metadata-0").glob("*.log"))
    return [
        record.value or b""
        for log in logs
        for batch in iterate_batches(memoryview(log.read_bytes()))
        for record in decode_records(batch.data)
    ]


def test_partitions_are_found_by_their_directories(storage: RemoteStorage) -> None:
    """Topic, number and topic id come out of the directory's name."""
    assert [str(partition) for partition in storage.partitions()] == [f"{t}-0" for t in TOPICS]
    assert storage.find("tiered", 0) == storage.partitions()[0]


@pytest.mark.parametrize("topic", TOPICS)
def test_metadata_read_from_the_objects_are_the_brokers(storage: RemoteStorage, topic: str) -> None:
    """Ends, largest timestamps, epochs and sizes are those that the broker kept in its topic."""
    expected = [
        attrs.evolve(metadata, broker_id=-1, event_timestamp_ms=-1)
        for metadata in fold(topic_metadata())
        if metadata.partition.topic == topic
    ]
    assert len(expected) >= 4
    assert storage.segments(storage.find(topic, 0)) == expected


@pytest.mark.parametrize("topic", TOPICS)
def test_every_bundle_of_the_broker_is_sound(storage: RemoteStorage, topic: str) -> None:
    """Batches, both indexes, aborted transactions, producers and epochs agree with each other."""
    for metadata in storage.segments(storage.find(topic, 0)):
        paths = {
            kind: storage.path(metadata, kind)
            for kind in ObjectKind
            if storage.fs.exists(storage.path(metadata, kind))
        }
        Bundle(storage.fs, paths, paths, metadata).check()


@pytest.mark.parametrize("topic", TOPICS)
def test_every_offset_is_fetched_in_place(storage: RemoteStorage, topic: str) -> None:
    """A fetch from any offset starts with the batch that holds it and ends with a whole one."""
    log = RemoteLog(storage, storage.find(topic, 0))
    batches = batches_of(topic)
    assert (log.span.start, log.span.end) == (0, batches[-1].next_offset)
    assert [bytes(b.data) for b in log.batches()] == [bytes(b.data) for b in batches]
    for batch in batches:
        for offset in range(batch.base_offset, batch.next_offset):
            assert log.fetch(offset, 1) == batch.data
        several = log.fetch(batch.base_offset, 1500)
        assert several.startswith(batch.data)
        assert len(several) <= max(1500, batch.size_bytes)
        assert sum(b.size_bytes for b in iterate_batches(memoryview(several))) == len(several)
    assert log.fetch(log.span.end, 1000) == b""
    with pytest.raises(OffsetOutOfRangeError):
        log.fetch(log.span.end + 1, 1000)


def test_times_lead_to_offsets(storage: RemoteStorage) -> None:
    """The first record that is at least that young is found, for every record's own time."""
    log = RemoteLog(storage, storage.find("tiered", 0))
    records = [r for batch in batches_of("tiered") for r in decode_records(batch.data)]
    for record in records:
        first = next(r for r in records if r.timestamp_ms >= record.timestamp_ms)
        found = log.find_timestamp(record.timestamp_ms)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (first.offset, first.timestamp_ms)
    assert log.find_timestamp(max(r.timestamp_ms for r in records) + 1) is None


def test_aborted_transactions_are_found(storage: RemoteStorage) -> None:
    """Those that a read_committed reader of any offset must leave out."""
    log = RemoteLog(storage, storage.find("tiered-transactions", 0))
    found = log.aborted_transactions(log.span.start, log.span.end)
    assert len(found) >= 7
    for entry in found:
        (marker,) = iterate_batches(memoryview(log.fetch(entry.last_offset, 1)))
        assert marker.is_control
        assert marker.producer_id == entry.producer_id
        only = log.aborted_transactions(entry.first_offset, entry.first_offset + 1)
        assert only == [entry]


@pytest.mark.parametrize("has_new_indexes", [False, True])
@pytest.mark.parametrize("topic", TOPICS)
def test_a_restored_partition_is_the_brokers_own(
    storage: RemoteStorage, topic: str, has_new_indexes: bool, tmp_path: Path
) -> None:
    """Sealed segments come back byte for byte; new indexes have the broker's bytes, too."""
    log = RemoteLog(storage, storage.find(topic, 0))
    data = tmp_path / "data"
    data.mkdir()
    config = parse_topic_configs({"index.interval.bytes": "300"})
    done = restore_partition(log, host(), str(data), config=config, has_new_indexes=has_new_indexes)
    theirs = TIERED / "data" / f"{topic}-0"
    expected = contents(theirs, *COPIED)
    active = sorted(expected)[-1].partition(".")[0]
    expected = {name: data for name, data in expected.items() if not name.startswith(active)}
    found = contents(Path(done.path), *COPIED)
    restarted = {name for name in expected if found[name] != expected[name]}
    assert found.keys() == expected.keys()
    if has_new_indexes:  # after a restart the broker counts an index interval from zero
        assert all(name.endswith(("index", "timeindex")) for name in restarted)
        assert len(restarted) <= 2
    else:
        assert restarted == set()
    assert (theirs / "partition.metadata").read_bytes() == (
        Path(done.path) / "partition.metadata"
    ).read_bytes()
    epochs = read_checkpoint(host().fs, f"{done.path}/leader-epoch-checkpoint", 2)
    known = read_checkpoint(host().fs, f"{theirs}/leader-epoch-checkpoint", 2)
    assert epochs == [entry for entry in known if int(entry[1]) < done.span.end]
    assert done.segment_count == len([name for name in expected if name.endswith(".log")])
    last_snapshot = f"{done.span.end:020d}.snapshot"
    assert (
        contents(Path(done.path), ".snapshot")[last_snapshot]
        == (theirs / last_snapshot).read_bytes()
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_our_store_goes_on_behind_the_restored_end(
    storage: RemoteStorage, topic: str, tmp_path: Path
) -> None:
    """The store opens it, reads every record, appends, and opens what it appended to."""
    log = RemoteLog(storage, storage.find(topic, 0))
    data = tmp_path / "data"
    data.mkdir()
    restore_partition(log, host(), str(data))
    expected = [r for batch in batches_of(topic) for r in decode_records(batch.data)]
    store = KafkaStore(host(), str(data))
    partition = store.topics()[topic][0]
    assert partition.start_offset == 0
    result = partition.append_records([PlainRecord(b"k", b"v", 1_700_000_999_000)])
    assert result.base_offset == log.span.end
    store.close()
    found = records_of(data, topic, 0)
    assert found[:-1] == expected
    assert found[-1] == Record(log.span.end, 1_700_000_999_000, b"k", b"v")


def test_the_golden_objects_are_untouched(storage: RemoteStorage) -> None:
    """Reading writes nothing: no manifest, no temporary file."""
    before = {p for p in Path(storage.location).rglob("*") if p.is_file()}
    for partition in storage.partitions():
        log = RemoteLog(storage, partition)
        assert read_file(storage.fs, storage.path(log.links[0].metadata, ObjectKind.LOG))
        log.fetch(0, 100)
    assert {p for p in Path(storage.location).rglob("*") if p.is_file()} == before
