"""Damaged objects: refused with object and position, or without any effect."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError, CorruptFileError, StorageError
from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.remote import (
    MissingObjectError,
    ObjectKind,
    PartitionSource,
    RemoteLog,
    RemoteStorage,
    SegmentMetadata,
    restore_partition,
    upload_partition,
)
from logstore.segments.kafka.store import KafkaStore
from tests.segments.kafka.remote.stored import TIERED, contents, host, kafka_storage

NAMES = {kind.value: kind for kind in ObjectKind}


@pytest.fixture
def storage(tmp_path: Path) -> RemoteStorage:
    """The transactions of the golden set, stored by us: with a manifest."""
    found = RemoteStorage(host().fs, str(tmp_path / "remote"))
    upload_partition(PartitionSource(host(), str(TIERED / "data" / "tiered-transactions-0")), found)
    return found


def second(storage: RemoteStorage) -> SegmentMetadata:
    """Return a segment with something in every kind of object."""
    return storage.segments(storage.partitions()[0])[1]


def refused(storage: RemoteStorage, data: Path) -> StorageError:
    """Return why the partition cannot be restored; nothing of it may be left."""
    data.mkdir(exist_ok=True)
    with pytest.raises(StorageError) as caught:
        restore_partition(RemoteLog(storage, storage.partitions()[0]), host(), str(data))
    assert list(data.iterdir()) == []
    return caught.value


def flips(content: bytes, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield the content with one bit wrong, every `step` bytes."""
    for position in range(0, len(content), step):
        yield (
            position,
            (
                content[:position]
                + bytes((content[position] ^ 1 << position % 8,))
                + content[position + 1 :]
            ),
        )


@pytest.mark.parametrize("kind", ObjectKind, ids=lambda kind: kind.value[1:])
def test_no_flipped_bit_of_an_object_is_taken(
    storage: RemoteStorage, kind: ObjectKind, tmp_path: Path
) -> None:
    """Wherever a bit of an object flips, the restore names that object."""
    path = Path(storage.path(second(storage), kind))
    whole = path.read_bytes()
    assert whole, "the segment has something in every kind of object"
    for position, bad in flips(whole, 61 if kind is ObjectKind.LOG else 1):
        path.write_bytes(bad)
        error = refused(storage, tmp_path / "data")
        assert isinstance(error, CorruptEntryError | CorruptFileError)
        assert error.path == str(path), f"{position}: {error}"
        if isinstance(error, CorruptEntryError):
            assert error.position <= position
    path.write_bytes(whole)
    restore_partition(RemoteLog(storage, storage.partitions()[0]), host(), str(tmp_path / "data"))


def test_a_bad_batch_is_told_by_its_position(storage: RemoteStorage, tmp_path: Path) -> None:
    """The error names the log and where in it the batch starts, not only where the log is."""
    metadata = second(storage)
    log = RemoteLog(storage, metadata.partition)
    path = Path(storage.path(metadata, ObjectKind.LOG))
    whole = path.read_bytes()
    batches = list(log.batches(metadata.start_offset))[:3]
    start = batches[0].size_bytes + batches[1].size_bytes
    for at, reason in ((70, "CRC is"), (3, "offset"), (12, "leader epoch")):
        bad = bytearray(whole)
        bad[start + at] ^= 0x20
        path.write_bytes(bad)
        error = refused(storage, tmp_path / "data")
        assert isinstance(error, CorruptEntryError)
        assert (error.path, error.position) == (str(path), start)
        assert reason in error.reason


def test_a_fetch_meets_damage_where_it_reads(storage: RemoteStorage) -> None:
    """Batches before the bad one are served, the bad one is refused with its position."""
    metadata = second(storage)
    path = Path(storage.path(metadata, ObjectKind.LOG))
    bad = bytearray(path.read_bytes())
    first, second_batch = list(RemoteLog(storage, metadata.partition).batches(10))[:2]
    bad[first.size_bytes + 70] ^= 1
    path.write_bytes(bad)
    log = RemoteLog(storage, metadata.partition)
    assert log.fetch(first.base_offset, 1) == first.data
    with pytest.raises(CorruptEntryError) as caught:
        log.fetch(second_batch.base_offset, 1)
    assert (caught.value.path, caught.value.position) == (str(path), first.size_bytes)


@pytest.mark.parametrize("kind", [ObjectKind.OFFSET_INDEX, ObjectKind.TIME_INDEX])
def test_a_damaged_index_is_not_read_by(storage: RemoteStorage, kind: ObjectKind) -> None:
    """With the sum of the manifest a fetch knows that an index is not what was copied."""
    metadata = second(storage)
    path = Path(storage.path(metadata, kind))
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    log = RemoteLog(storage, metadata.partition)
    is_by_offset = kind is ObjectKind.OFFSET_INDEX
    read = partial(log.fetch, size_bytes_max=1) if is_by_offset else log.find_timestamp
    asked = metadata.start_offset if is_by_offset else metadata.max_timestamp_ms
    with pytest.raises(CorruptFileError) as caught:
        read(asked)
    assert caught.value.path == str(path)


def test_an_index_that_leads_astray_is_noticed_without_a_sum(tmp_path: Path) -> None:
    """An index of Kafka's that leads behind the offset is refused at the batch it leads to."""
    storage = kafka_storage(tmp_path / "remote")
    metadata = storage.segments(storage.find("tiered", 0))[1]
    path = Path(storage.path(metadata, ObjectKind.OFFSET_INDEX))
    (_, first), (offset, position) = struct.iter_unpack(">ii", path.read_bytes()[:16])
    path.write_bytes(struct.pack(">ii", 0, position) + path.read_bytes()[8:])
    assert first < position
    assert offset > 0
    log = RemoteLog(storage, metadata.partition)
    with pytest.raises(CorruptEntryError, match="the index leads here") as caught:
        log.fetch(metadata.start_offset, 1)
    assert caught.value.position == position


@pytest.mark.parametrize("kind", ObjectKind, ids=lambda kind: kind.value[1:])
def test_a_missing_object_is_named(
    storage: RemoteStorage, kind: ObjectKind, tmp_path: Path
) -> None:
    """A bundle that was finished and lacks an object is refused, not restored without it."""
    metadata = second(storage)
    path = Path(storage.path(metadata, kind))
    path.unlink()
    if kind is ObjectKind.LOG:
        error = refused(storage, tmp_path / "data")
        assert isinstance(error, MissingObjectError)
    else:
        error = refused(storage, tmp_path / "data")
    assert str(path) in str(error)


def test_new_indexes_need_no_old_ones(storage: RemoteStorage, tmp_path: Path) -> None:
    """Where both indexes are lost the partition is restored with new ones."""
    metadata = second(storage)
    for kind in (ObjectKind.OFFSET_INDEX, ObjectKind.TIME_INDEX):
        Path(storage.path(metadata, kind)).unlink()
    data = tmp_path / "data"
    data.mkdir()
    log = RemoteLog(storage, metadata.partition)
    done = restore_partition(log, host(), str(data), has_new_indexes=True)
    found = contents(Path(done.path), ".index", ".timeindex")
    assert len(found) == 2 * done.segment_count
    assert found[f"{metadata.start_offset:020d}.timeindex"]


def test_a_damaged_segment_is_not_stored(tmp_path: Path) -> None:
    """A copy of damage would outlive the log; it is refused before anything is written."""
    store = KafkaStore(system_host(1), str(tmp_path / "data"))
    topic = store.create_topic("t", 1, {"internal.segment.bytes": "500"})
    partition = topic.partitions[0]
    for number in range(5):
        batch = encode_batch([Record(0, 1_700_000_000_000 + number, b"k", b"v" * 300)])
        partition.append_produced(memoryview(batch), 1_700_000_000_000)
    store.close()
    source = PartitionSource(host(), str(tmp_path / "data" / "t-0"))
    bad = Path(source.path(2, ObjectKind.LOG))
    content = bytearray(bad.read_bytes())
    content[100] ^= 1
    bad.write_bytes(content)
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    with pytest.raises(CorruptEntryError) as caught:
        upload_partition(source, storage)
    assert (caught.value.path, caught.value.position) == (str(bad), 0)
    assert [m.start_offset for m in storage.segments(source.partition)] == [0, 1]
    assert len(list(Path(storage.location).rglob("*.json"))) == 2
