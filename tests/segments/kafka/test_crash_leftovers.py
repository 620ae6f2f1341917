"""What each ending of a file's name means after a crash, at every point of a replacement."""

from __future__ import annotations

import errno

import pytest

from logstore.host import read_file, write_file
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.crash_leftovers import clear_leftovers, offset_of
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost, every_failure, every_power_loss
from logstore.testing.disk_faults import FaultKind

DIRECTORY = "/t-0"
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=200, index_interval_bytes=100, segment_index_bytes=240)
FIRST, SECOND, THIRD = (f"{offset:020d}" for offset in (0, 2, 4))


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with three segments of two batches each, at 0, 2 and 4, and an empty one at 6."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    host.fs.sync_directory("/")
    partition = opened(host)
    for number in range(6):
        batch = encode_batch([Record(0, NOW_MS + number, b"k", b"%d" % number)])
        partition.append_produced(memoryview(batch), NOW_MS)
    partition.log.roll()
    partition.close()
    assert list(partition.log.segments) == [0, 2, 4, 6]
    return host


def opened(host: SimulatedHost) -> KafkaPartition:
    """Open the partition after a clean stop."""
    return KafkaPartition(host, SegmentFiles(host, DIRECTORY, CONFIG), "t", 0)


def names_in(host: SimulatedHost) -> list[str]:
    """Return the names of all files."""
    return [entry.name for entry in host.fs.list_directory(DIRECTORY)]


def cleared(host: SimulatedHost) -> bool:
    """Clear the directory of leftovers."""
    return clear_leftovers(host.fs, DIRECTORY, names_in(host))


def values(host: SimulatedHost) -> list[bytes | None]:
    """Return the values that are read once the partition is open again."""
    partition = opened(host)
    return [record.value for record in partition.read_records(partition.start_offset, 100)]


def merged(host: SimulatedHost) -> bytes:
    """Return the data file that stands for the first two segments, without the second record."""
    first = read_file(host.fs, f"{DIRECTORY}/{FIRST}.log")
    second = read_file(host.fs, f"{DIRECTORY}/{SECOND}.log")
    return first[: len(first) // 2] + second


KINDS: list[FaultKind] = ["remove", "rename", "sync_directory"]
BEFORE = [b"0", b"1", b"2", b"3", b"4", b"5"]
AFTER = [b"0", b"2", b"3", b"4", b"5"]


def test_a_directory_without_leftovers_is_left_alone(host: SimulatedHost) -> None:
    """Nothing is removed, nothing is renamed, and the caller need not look again."""
    before = names_in(host)
    assert not cleared(host)
    assert names_in(host) == before


def test_what_was_deleted_goes(host: SimulatedHost) -> None:
    """Of every kind of file."""
    for name in (f"{FIRST}.log.deleted", f"{FIRST}.index.deleted", f"{SECOND}.snapshot.deleted"):
        write_file(host.fs, f"{DIRECTORY}/{name}", b"old")
    assert values(host) == BEFORE
    assert not any(name.endswith(".deleted") for name in names_in(host))


def test_what_was_being_cleaned_goes(host: SimulatedHost) -> None:
    """The segments that it was made from are all there."""
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.log.cleaned", merged(host)[:50])
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.index.cleaned", b"")
    assert values(host) == BEFORE
    assert not any(name.endswith(".cleaned") for name in names_in(host))


def test_a_complete_replacement_takes_the_place_of_what_it_covers(host: SimulatedHost) -> None:
    """All files with offsets that it covers go, snapshots too; what lies behind stays."""
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.log.swap", merged(host))
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.index.swap", b"")
    snapshots = [name for name in names_in(host) if name.endswith(".snapshot")]
    assert snapshots == [f"{offset:020d}.snapshot" for offset in (2, 4, 6)]
    assert values(host) == AFTER
    found = names_in(host)
    assert not any(name.startswith(SECOND) for name in found)
    assert f"{THIRD}.snapshot" in found
    assert read_file(host.fs, f"{DIRECTORY}/{FIRST}.index") == b""


def test_a_replacement_that_was_split_counts_when_all_of_it_is_there(host: SimulatedHost) -> None:
    """One segment may become several: what was renamed already is undone while one is missing."""
    whole = read_file(host.fs, f"{DIRECTORY}/{SECOND}.log")
    half = len(whole) // 2
    write_file(host.fs, f"{DIRECTORY}/{SECOND}.log.cleaned", whole[:half])
    write_file(host.fs, f"{DIRECTORY}/{3:020d}.log.swap", whole[half:])
    assert values(host) == BEFORE
    assert f"{3:020d}.log" not in names_in(host)
    write_file(host.fs, f"{DIRECTORY}/{SECOND}.log.swap", whole[:half])
    write_file(host.fs, f"{DIRECTORY}/{3:020d}.log.swap", whole[half:])
    assert values(host) == BEFORE
    assert f"{3:020d}.log" in names_in(host)


def test_an_index_alone_is_only_given_its_name(host: SimulatedHost) -> None:
    """The crash came after its data file had got its own."""
    index = f"{DIRECTORY}/{FIRST}.index"
    host.fs.rename(index, f"{index}.swap")
    assert values(host) == BEFORE
    assert f"{FIRST}.index.swap" not in names_in(host)


@pytest.mark.parametrize("size_bytes", [0, 30, -5])
def test_a_damaged_replacement_covers_what_it_still_tells(
    host: SimulatedHost, size_bytes: int
) -> None:
    """As far as its batches can be walked; nothing behind that is removed for it."""
    write_file(host.fs, f"{DIRECTORY}/{SECOND}.log.swap", merged(host)[:size_bytes])
    assert cleared(host)
    assert f"{THIRD}.log" in names_in(host)
    assert read_file(host.fs, f"{DIRECTORY}/{SECOND}.log") == merged_prefix(size_bytes, host)


def merged_prefix(size_bytes: int, host: SimulatedHost) -> bytes:
    """Return what the damaged replacement held."""
    first = read_file(host.fs, f"{DIRECTORY}/{FIRST}.log")
    second = encoded(2) + encoded(3)
    return (first[: len(first) // 2] + second)[:size_bytes]


def encoded(offset: int) -> bytes:
    """Return the batch that stands at an offset."""
    records = [Record(offset, NOW_MS + offset, b"k", b"%d" % offset)]
    return bytes(encode_batch(records, base_offset=offset, leader_epoch=0))


def test_every_power_loss_while_clearing_is_survived(host: SimulatedHost) -> None:
    """The directory means the same afterwards: the next start finishes what this one began."""
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.log.swap", merged(host))
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.index.swap", b"")
    write_file(host.fs, f"{DIRECTORY}/{THIRD}.log.deleted", b"old")
    count = 0
    for point in every_power_loss(cleared, make_host=host.fork, random_losses=20):
        assert values(point.host) == AFTER, point
        count += 1
    assert count > 100


@pytest.mark.parametrize("kind", KINDS)
def test_clearing_that_the_disk_refused_is_finished_by_the_next_start(
    host: SimulatedHost, kind: FaultKind
) -> None:
    """A failure of any of its operations leaves a directory that still means the same."""
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.log.swap", merged(host))
    write_file(host.fs, f"{DIRECTORY}/{FIRST}.index.swap", b"")
    write_file(host.fs, f"{DIRECTORY}/{THIRD}.log.deleted", b"old")
    points = list(every_failure(cleared, kind, errno.EIO, make_host=host.fork))
    assert points
    for point in points:
        assert isinstance(point.error, OSError)
        assert values(point.host) == AFTER, point


@pytest.mark.parametrize(
    ("name", "offset"),
    [(f"{SECOND}.log.swap", 2), ("leader-epoch-checkpoint", None), (".lock", None)],
)
def test_names_without_an_offset_are_nobodys(name: str, offset: int | None) -> None:
    """The files of the partition as a whole are never taken for those of a segment."""
    assert offset_of(name) == offset
