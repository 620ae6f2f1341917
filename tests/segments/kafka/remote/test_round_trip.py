"""Partitions of real brokers stored away and restored: the same bytes, the same records."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from logstore.errors import ForeignDirectoryError
from logstore.host import FileSystem
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.remote import (
    ObjectKind,
    ObjectSum,
    PartitionExistsError,
    PartitionSource,
    RemoteLog,
    RemoteStorage,
    SegmentState,
    open_storage,
    restore_partition,
    upload,
    upload_partition,
)
from logstore.segments.kafka.remote.copying import copy_file
from logstore.segments.kafka.store import KafkaStore
from tests.segments.kafka.golden_case import GoldenCase, golden_cases
from tests.segments.kafka.remote.stored import COPIED, TIERED, contents, host, records_of

BASE = TIERED / "data"


def restored(log: RemoteLog, directory: Path) -> Path:
    """Restore into a new data directory; return the partition's."""
    directory.mkdir()
    return Path(restore_partition(log, host(), str(directory)).path)


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_golden_partition_survives(case: GoldenCase, tmp_path: Path) -> None:
    """Every partition of every golden set comes back with the bytes and records that it had."""
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    for number, folder in case.partition_folders.items():
        source = PartitionSource(host(), str(folder))
        copied = upload_partition(source, storage, has_active=True)
        if not copied:  # there is nothing in it
            assert not any(path.stat().st_size for path in folder.glob("*.log"))
            continue
        log = RemoteLog(storage, source.partition)
        found = restored(log, tmp_path / f"data-{number}")
        assert contents(found, ".log") == {
            name: data for name, data in contents(folder, ".log").items() if data
        }
        for name, data in contents(found, *COPIED).items():
            assert data == (folder / name).read_bytes(), name
        store = KafkaStore(host(), str(found.parent))
        batches = list(store.topics()[case.topic][number].batches())
        store.close()
        expected = case.stored_batches(number)
        assert [bytes(b.data) for b in batches] == [bytes(b.data) for b in expected]
        assert [r for b in batches for r in decode_records(b.data)] == [
            r for b in expected for r in decode_records(b.data)
        ]


def test_any_fsspec_path_will_do(tmp_path: Path) -> None:
    """The same partition through a file system of fsspec that keeps everything in memory."""
    storage = open_storage("memory://backups/eu", host())
    source = PartitionSource(host(), str(BASE / "tiered-0"))
    copied = upload_partition(source, storage)
    again = open_storage("memory://backups/eu", host())
    assert again.segments(again.find("tiered", 0)) == copied
    log = RemoteLog(again, again.find("tiered", 0))
    assert log.fetch(40, 1) == RemoteLog(storage, source.partition).fetch(40, 1)
    found = restored(log, tmp_path / "data")
    expected = contents(BASE / "tiered-0", ".log")
    assert contents(found, ".log") == dict(list(expected.items())[:-1])
    for metadata in copied:
        again.remove(metadata)
    assert again.segments(source.partition) == []


def test_a_local_url_and_a_directory_are_the_same(tmp_path: Path) -> None:
    """What went there through fsspec is read without it."""
    storage = open_storage(f"file://{tmp_path}/remote", host())
    copied = upload_partition(PartitionSource(host(), str(BASE / "tiered-0")), storage)
    plain = open_storage(f"{tmp_path}/remote/", host())
    assert plain.segments(plain.find("tiered", 0)) == copied


# what is copied, and when


def test_the_active_segment_stays_unless_asked_for(tmp_path: Path) -> None:
    """Sealed segments only; those that are stored are not copied again."""
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    source = PartitionSource(host(), str(BASE / "tiered-0"))
    sealed = upload_partition(source, storage)
    bases = sorted(int(path.stem) for path in (BASE / "tiered-0").glob("*.log"))
    assert [metadata.start_offset for metadata in sealed] == bases[:-1]
    assert upload_partition(source, storage) == []
    (active,) = upload_partition(source, storage, has_active=True)
    assert (active.start_offset, active.end_offset) == (bases[-1], 299)
    assert RemoteLog(storage, source.partition).span.end == 300


def test_segments_above_the_stable_offset_wait(tmp_path: Path) -> None:
    """Only what ends at or below the offset given is copied."""
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    source = PartitionSource(host(), str(BASE / "tiered-0"))
    ends = [segment.next_offset for segment in source.segments()]
    assert len(upload_partition(source, storage, end_offset=ends[1])) == 2
    assert upload_partition(source, storage, end_offset=ends[2] - 1) == []
    assert len(upload_partition(source, storage, end_offset=ends[2])) == 1


def test_a_copy_says_what_kafka_would_say_of_it(tmp_path: Path) -> None:
    """Ends, times, epochs and sizes are those that the objects of the broker itself have."""
    ours = RemoteStorage(host().fs, str(tmp_path / "remote"))
    theirs = RemoteStorage(host().fs, str(TIERED / "remote"))
    for topic in ("tiered", "tiered-transactions"):
        source = PartitionSource(host(), str(BASE / f"{topic}-0"))
        found = [
            attrs.evolve(m, segment=e.segment, sums={}, broker_id=-1, event_timestamp_ms=-1)
            for m, e in zip(
                upload_partition(source, ours, broker_id=7),
                theirs.segments(source.partition),
                strict=True,
            )
        ]
        assert found == theirs.segments(source.partition)
        for mine, other in zip(
            ours.segments(source.partition), theirs.segments(source.partition), strict=True
        ):
            assert mine.broker_id == 7
            for kind in ObjectKind:
                paths = ours.path(mine, kind), theirs.path(other, kind)
                is_there = Path(paths[1]).exists()
                assert Path(paths[0]).exists() == is_there
                assert not is_there or Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()


def test_producers_are_replayed_where_their_snapshot_is_gone(tmp_path: Path) -> None:
    """A bundle has the producers of its end although the partition lost the file."""
    copy = tmp_path / "tiered-transactions-0"
    shutil.copytree(BASE / "tiered-transactions-0", copy)
    kept = contents(copy, ".snapshot")
    for path in copy.glob("*.snapshot"):
        path.unlink()
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    for metadata in upload_partition(PartitionSource(host(), str(copy)), storage):
        snapshot = storage.path(metadata, ObjectKind.PRODUCER_SNAPSHOT)
        expected = kept.get(f"{metadata.next_offset:020d}.snapshot")
        assert expected is not None
        assert Path(snapshot).read_bytes() == expected


def test_a_directory_without_the_topics_id_wants_it_named(tmp_path: Path) -> None:
    """Objects carry the id of the topic; where the directory has none it must be given."""
    copy = tmp_path / "tiered-0"
    shutil.copytree(BASE / "tiered-0", copy)
    (copy / "partition.metadata").unlink()
    with pytest.raises(ForeignDirectoryError, match=r"no partition\.metadata"):
        PartitionSource(host(), str(copy))
    assert PartitionSource(host(), str(copy), bytes(15) + b"7").partition.topic_id[-1:] == b"7"
    with pytest.raises(ForeignDirectoryError, match="not a topic, a dash and a number"):
        PartitionSource(host(), str(tmp_path))


def test_a_failed_copy_leaves_nothing_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the storage fills up at any object: the segment does not count, and is gone."""
    source = PartitionSource(host(), str(BASE / "tiered-transactions-0"))
    for failing in range(4):
        storage = RemoteStorage(host().fs, str(tmp_path / f"remote-{failing}"))
        with monkeypatch.context() as patched:
            patched.setattr(upload, "copy_file", FullDisk(failing))
            with pytest.raises(OSError, match="No space left"):
                upload_partition(source, storage)
        assert storage.segments(source.partition) == []
        assert [p for p in Path(storage.location).rglob("*") if p.is_file()] == []
        assert len(upload_partition(source, storage)) == len(source.segments())


class FullDisk:
    """Copies files until the disk is full."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(
        self, source: FileSystem, source_path: str, target: FileSystem, target_path: str
    ) -> ObjectSum:
        """Copy one, or fail as a disk does."""
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room -= 1
        return copy_file(source, source_path, target, target_path)


def test_a_copy_that_was_cut_short_is_not_read(tmp_path: Path) -> None:
    """The manifest says started until all is there; the next copy goes by another id."""
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    source = PartitionSource(host(), str(BASE / "tiered-0"))
    copied = upload_partition(source, storage)
    storage.note(attrs.evolve(copied[2], state=SegmentState.COPY_SEGMENT_STARTED))
    assert storage.segments(source.partition) == [*copied[:2], *copied[3:]]
    (again,) = upload_partition(source, storage)
    assert again.start_offset == copied[2].start_offset
    assert again.segment.uuid != copied[2].segment.uuid
    assert RemoteLog(storage, source.partition).span.end == copied[-1].next_offset


# where it is restored to


def test_a_partition_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    """Whoever restores moves the old one away first."""
    storage = RemoteStorage(host().fs, str(TIERED / "remote"))
    log = RemoteLog(storage, storage.find("tiered", 0))
    found = restored(log, tmp_path / "data")
    with pytest.raises(PartitionExistsError):
        restore_partition(log, host(), str(found.parent))


def test_a_restored_partition_joins_the_others(tmp_path: Path) -> None:
    """Into a data directory with other topics, closed cleanly: it is opened with them."""
    data = tmp_path / "data"
    store = KafkaStore(host(), str(data))
    store.create_topic("other", 1)
    store.close()
    storage = RemoteStorage(host().fs, str(TIERED / "remote"))
    log = RemoteLog(storage, storage.find("tiered", 0))
    found = restore_partition(log, host(), str(data))
    store = KafkaStore(host(), str(data))
    assert sorted(store.topics()) == ["other", "tiered"]
    assert store.topics()["tiered"][0].end_offset == found.span.end
    store.close()
    assert len(records_of(data, "tiered", 0)) > 200
