"""Which segments make up a log: leaders that came and went, overlaps, holes."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from logstore.errors import CorruptFileError
from logstore.os_host import system_host
from logstore.segments.kafka.kafka_uuid import random_uuid
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.remote import (
    MissingOffsetsError,
    PartitionSource,
    RemoteLog,
    RemotePartition,
    RemoteStorage,
    SegmentId,
    SegmentMetadata,
    restore_partition,
    upload_partition,
)
from logstore.segments.kafka.remote.lineage import (
    Epochs,
    chain,
    epochs_between,
    newest,
    read_epochs,
)
from logstore.segments.kafka.store import KafkaStore
from tests.segments.kafka.remote.stored import contents, host, records_of

PARTITION = RemotePartition("t", 0, bytes(15) + b"\x02")
T = 1_700_000_000_000


def segment(start: int, end: int, *epochs: tuple[int, int], event_ms: int = 0) -> SegmentMetadata:
    """Return the metadata of a segment with the offsets [start, end)."""
    uuid = random_uuid(system_host().rng)
    return SegmentMetadata(
        PARTITION,
        SegmentId(start, uuid),
        end - 1,
        0,
        1,
        epochs or ((0, start),),
        event_timestamp_ms=event_ms,
    )


def spans(segments: list[SegmentMetadata], lineage: Epochs = ((0, 0),)) -> list[tuple[int, int]]:
    """Return from where to where each segment of the chain is used."""
    return [(link.start_offset, link.metadata.next_offset) for link in chain(segments, lineage)]


def test_segments_follow_each_other() -> None:
    """Whatever order they are listed in."""
    assert spans([segment(20, 30), segment(0, 10), segment(10, 20)]) == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]


def test_a_hole_is_an_error() -> None:
    """Offsets that are stored nowhere are named, not passed over."""
    with pytest.raises(MissingOffsetsError, match=r"offsets \[10, 20\) are not stored"):
        chain([segment(0, 10), segment(20, 30)], ((0, 0),))


def test_an_overlap_is_taken_from_where_the_one_before_ends() -> None:
    """A new leader copies by its own segments, which begin where they begin."""
    assert spans([segment(0, 10), segment(4, 16), segment(16, 20)]) == [(0, 10), (10, 16), (16, 20)]


def test_of_copies_of_the_same_the_last_and_longest_is_taken() -> None:
    """A segment that lies in another is not needed, and of two copies the newer one is read."""
    old, new = segment(0, 10, event_ms=1), segment(0, 10, event_ms=2)
    assert [link.metadata for link in chain([old, segment(0, 5), new], ((0, 0),))] == [new]


def test_a_leader_that_nobody_followed_is_left_out() -> None:
    """What a deposed leader copied of its own last offsets is not of this log."""
    lineage = ((0, 0), (2, 15))
    lost = segment(10, 25, (0, 10))  # epoch 0 ended at 15
    unknown = segment(15, 40, (1, 15))
    segments = [segment(0, 10), lost, unknown, segment(10, 20, (0, 10), (2, 15))]
    assert newest(segments) is segments[-1]
    assert spans(segments, lineage) == [(0, 10), (10, 20)]


def test_the_newest_is_the_latest_leaders_last() -> None:
    """The highest epoch decides, then the highest offset."""
    old, new = segment(0, 99, (1, 0)), segment(50, 60, (2, 50))
    assert newest([old, new]) is new
    assert newest([segment(0, 5, (2, 0)), new]) is new


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 5, ((0, 0),)),
        (0, 31, ((0, 0), (2, 10), (5, 30))),
        (10, 30, ((2, 10),)),
        (12, 40, ((2, 12), (5, 30))),
        (-1, 11, ((0, 0), (2, 10))),
        (40, 50, ((5, 40),)),
    ],
)
def test_epochs_are_cut_to_a_span(start: int, end: int, expected: Epochs) -> None:
    """The first one starts with the span, those that ended before or begin behind are left out."""
    assert epochs_between(((0, 0), (2, 10), (5, 30)), start, end) == expected


@pytest.mark.parametrize("text", ["0\n2\n1 0\n0 5\n", "0\n2\n0 5\n1 4\n", "0\n1\nx 0\n"])
def test_epochs_that_fall_are_refused(text: str, tmp_path: Path) -> None:
    """A history that goes back is none."""
    path = tmp_path / "epochs"
    path.write_text(text)
    with pytest.raises(CorruptFileError):
        read_epochs(host().fs, str(path))


def filled(data: Path, segment_bytes: int) -> PartitionSource:
    """Return a partition of the same 40 batches, in segments of about that size."""
    store = KafkaStore(system_host(seed=9), str(data))
    topic = store.create_topic(
        "t", 1, {"internal.segment.bytes": str(segment_bytes), "index.interval.bytes": "200"}
    )
    partition = topic.partitions[0]
    for number in range(40):
        batch = bytearray(encode_batch([Record(0, T + number, b"k", b"v" * 90)]))
        partition.append_stored(RecordBatch(batch, len(batch)).stamped(number, 0))
    store.close()
    return PartitionSource(system_host(), str(data / "t-0"), PARTITION.topic_id)


def test_overlapping_segments_are_restored_without_repeats(tmp_path: Path) -> None:
    """Two leaders copied the same log in segments of their own: each record comes back once."""
    storage = RemoteStorage(host().fs, str(tmp_path / "remote"))
    first, second = filled(tmp_path / "a", 1200), filled(tmp_path / "b", 1700)
    early = upload_partition(first, storage, end_offset=15)
    late = upload_partition(second, storage, has_active=True)
    for metadata in late:
        if metadata.next_offset <= early[-1].next_offset:
            storage.remove(metadata)
    log = RemoteLog(storage, PARTITION)
    assert not all(link.is_whole for link in log.links), "the test wants an overlap"
    expected = records_of(tmp_path / "a", "t", 0)
    assert [r for batch in log.batches() for r in decode_records(batch.data)] == expected
    assert list(log.records(17)) == expected[17:]
    data = tmp_path / "data"
    data.mkdir()
    done = restore_partition(log, host(), str(data))
    starts = [link.start_offset for link in log.links]
    assert [int(name[:20]) for name in contents(Path(done.path), ".log")] == starts
    assert done.size_bytes == sum(map(len, contents(Path(done.path), ".log").values()))
    assert records_of(data, "t", 0) == expected
    assert attrs.astuple(done.span) == (0, 40)
