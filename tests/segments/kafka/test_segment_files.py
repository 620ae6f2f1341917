"""The files of a partition: what each is called, what a start finds, mends and leaves alone."""

from __future__ import annotations

import logging

import attrs
import pytest

from logstore.host import read_file, write_file
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles, offset_file_name
from logstore.testing import SimulatedHost

DIRECTORY = "/data/t-0"
CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=240, file_delete_delay_ms=1000)
T = 1_700_000_000_000
BATCH_BYTES = 100


@pytest.fixture
def host() -> SimulatedHost:
    """A world with an empty partition directory."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    return host


def files_of(
    host: SimulatedHost, *, is_clean: bool = True, is_writable: bool = True
) -> SegmentFiles:
    """Look at the directory as a start does."""
    return SegmentFiles(host, DIRECTORY, CONFIG, is_clean=is_clean, is_writable=is_writable)


def names(host: SimulatedHost) -> list[str]:
    """Return what is in the directory."""
    return [entry.name for entry in host.fs.list_directory(DIRECTORY)]


def sizes(host: SimulatedHost) -> dict[str, int]:
    """Return what is in the directory, with sizes."""
    return {entry.name: entry.size_bytes for entry in host.fs.list_directory(DIRECTORY)}


def append(segment: KafkaSegment, count: int) -> None:
    """Append batches of one record and BATCH_BYTES."""
    for _ in range(count):
        offset = segment.next_offset
        data = encode_batch([Record(offset, T + offset, None, b"v" * 32)], base_offset=offset)
        segment.append(RecordBatch(memoryview(data), len(data)))


def two_segments(host: SimulatedHost) -> None:
    """Leave two cleanly closed segments: offsets 0 to 5, and 6 to 9."""
    files = files_of(host)
    for base_offset, count in ((0, 6), (6, 4)):
        segment = files.create(base_offset)
        append(segment, count)
        segment.flush()
        segment.seal()
        segment.close()
    for path in (DIRECTORY, "/data", "/"):
        host.fs.sync_directory(path)


def test_names_are_offsets_of_twenty_digits() -> None:
    """As the first offset a file can hold, so its name."""
    assert offset_file_name(0, ".log") == "00000000000000000000.log"
    assert offset_file_name(2**62, ".index") == "04611686018427387904.index"
    assert SegmentFiles(SimulatedHost(), "/d", CONFIG, is_new=True).path(7, ".snapshot") == (
        "/d/00000000000000000007.snapshot"
    )


def test_a_new_segment_has_an_empty_log_and_indexes_with_the_first_flush(
    host: SimulatedHost,
) -> None:
    """Index files stand at their full size from then on, and shrink to what is used when sealed."""
    segment = files_of(host).create(42)
    assert sizes(host) == {"00000000000000000042.log": 0}
    segment.flush()
    assert sizes(host) == {
        "00000000000000000042.log": 0,
        "00000000000000000042.index": 240,
        "00000000000000000042.timeindex": 240,
    }
    segment.seal()
    assert set(sizes(host).values()) == {0}
    assert files_of(host).base_offsets() == [42]


def test_leftovers_of_the_same_name_lose_their_content(host: SimulatedHost) -> None:
    """A segment starts empty, whatever stood there."""
    write_file(host.fs, f"{DIRECTORY}/{0:020d}.log", b"x" * 500)
    write_file(host.fs, f"{DIRECTORY}/{0:020d}.index", b"x" * 500)
    segment = files_of(host).create(0)
    append(segment, 1)
    segment.seal()
    assert sizes(host) == {
        "00000000000000000000.log": BATCH_BYTES,
        "00000000000000000000.index": 0,
        "00000000000000000000.timeindex": 12,
    }


def test_a_start_finds_segments_and_snapshots_in_order(host: SimulatedHost) -> None:
    """Only names that are offsets of twenty digits count; what else is there is not the log's."""
    for name in (
        "9.log",
        "00000000000000000006.snapshot",
        "00000000000000000002.snapshot",
        "x.log",
    ):
        write_file(host.fs, f"{DIRECTORY}/{name}", b"")
    two_segments(host)
    files = files_of(host)
    assert files.base_offsets() == [0, 6]
    assert files.snapshot_offsets() == [2, 6]


def test_a_start_removes_what_was_condemned_and_orphans(host: SimulatedHost) -> None:
    """Files marked .deleted, and indexes without their log, are gone; snapshots need no log."""
    two_segments(host)
    before = names(host)
    for name in (
        "00000000000000000000.log.deleted", "00000000000000000003.index",
        "00000000000000000003.timeindex", "00000000000000000003.txnindex",
    ):  # fmt: skip
        write_file(host.fs, f"{DIRECTORY}/{name}", b"x")
    write_file(host.fs, f"{DIRECTORY}/00000000000000000003.snapshot", b"x")
    files_of(host)
    assert names(host) == sorted([*before, "00000000000000000003.snapshot"])


def test_who_only_reads_removes_mends_and_makes_nothing(host: SimulatedHost) -> None:
    """Orphans stay, a missing index stays missing, an empty directory stays empty."""
    two_segments(host)
    host.fs.remove(f"{DIRECTORY}/{0:020d}.index")
    write_file(host.fs, f"{DIRECTORY}/{3:020d}.index", b"x")
    before = sizes(host)
    files = files_of(host, is_writable=False)
    for base_offset in files.base_offsets():
        segment = files.open(base_offset, is_active=base_offset == 6)
        assert next(iter(segment.entries())).base_offset == base_offset
        segment.close()
    empty = files.create(100)
    assert list(empty.entries()) == []
    assert sizes(host) == before


def test_who_only_reads_asks_for_no_right_to_write(host: SimulatedHost) -> None:
    """A disk that is mounted read-only can be read."""
    two_segments(host)
    host.fs.faults.is_read_only = True
    files = files_of(host, is_writable=False)
    segment = files.open(6, is_active=True)
    assert segment.next_offset == 10
    with pytest.raises(OSError, match="EBADF"):
        segment.file.write(0, b"x")


def test_a_sealed_segment_ends_where_the_next_starts(host: SimulatedHost) -> None:
    """Its times come from its time index; nothing of its log is read."""
    two_segments(host)
    host.fs.damage(f"{DIRECTORY}/{0:020d}.log", 0, b"\xff" * 600)
    segment = files_of(host).open(0, is_active=False)
    assert (segment.base_offset, segment.next_offset, segment.end_position) == (
        0,
        6,
        6 * BATCH_BYTES,
    )
    assert segment.recovery_point == 6
    assert (segment.max_timestamp_ms, segment.max_timestamp_offset) == (T + 5, 5)


def test_a_missing_index_is_rebuilt_and_said(
    host: SimulatedHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its .index a segment's indexes are made again, byte for byte, and a warning given."""
    two_segments(host)
    index, times = f"{DIRECTORY}/{0:020d}.index", f"{DIRECTORY}/{0:020d}.timeindex"
    before = read_file(host.fs, index), read_file(host.fs, times)
    assert before[0]
    host.fs.remove(index)
    with caplog.at_level(logging.WARNING):
        files_of(host).open(0, is_active=False)
    assert (read_file(host.fs, index), read_file(host.fs, times)) == before
    assert "had no 00000000000000000000.index; rebuilt up to offset 6" in caplog.text


def test_a_missing_time_index_alone_is_not_rebuilt(host: SimulatedHost) -> None:
    """As in Kafka: the segment is then as old as its file."""
    two_segments(host)
    host.fs.remove(f"{DIRECTORY}/{0:020d}.timeindex")
    segment = files_of(host).open(0, is_active=False)
    assert segment.max_timestamp_ms == -1
    assert segment.largest_timestamp_ms() == host.fs.modified_ms(segment.path)


def test_after_a_crash_a_sealed_segment_still_knows_its_times(host: SimulatedHost) -> None:
    """Below the recovery point nothing is recovered; times and indexes must be right anyway."""
    two_segments(host)
    segment = files_of(host, is_clean=False).open(0, is_active=False)
    assert (segment.max_timestamp_ms, segment.max_timestamp_offset) == (T + 5, 5)


@pytest.mark.parametrize("lost", ["last entry", "half of it", "trim", "all"])
def test_indexes_whose_sealing_a_power_loss_undid_are_sealed_again(
    host: SimulatedHost, lost: str
) -> None:
    """Zeros behind the entries are cut, the last time entry comes back, before they mislead."""
    two_segments(host)
    index, times = f"{DIRECTORY}/{0:020d}.index", f"{DIRECTORY}/{0:020d}.timeindex"
    whole = read_file(host.fs, index), read_file(host.fs, times)
    if lost != "trim":
        shorter = {"last entry": whole[1][:-12], "half of it": whole[1][:-5], "all": b""}
        write_file(host.fs, times, shorter[lost])
    if lost in ("trim", "all"):
        for path in (index, times):
            host.fs.open(path).truncate(240)
    files_of(host, is_clean=False).open(0, is_active=False)
    found = read_file(host.fs, index), read_file(host.fs, times)
    assert found[0] == whole[0]
    if lost == "half of it":
        assert found[1] == whole[1][:-5]  # Kafka leaves it; times are found by walking then
    else:
        assert found[1][-12:] == whole[1][-12:]
        assert len(found[1]) % 12 == 0
    host.power_loss()
    again = files_of(host).open(0, is_active=False)
    assert (again.max_timestamp_ms, again.max_timestamp_offset) == (T + 5, 5)
    assert [again.locate(offset) for offset in range(6)] == [n * BATCH_BYTES for n in range(6)]


def test_removal_takes_two_steps(host: SimulatedHost) -> None:
    """Files are renamed at once, so that a start forgets them, and removed after the delay."""
    two_segments(host)
    write_file(host.fs, f"{DIRECTORY}/{0:020d}.txnindex", b"")
    write_file(host.fs, f"{DIRECTORY}/{0:020d}.snapshot", b"")
    files = files_of(host)
    files.remove(files.open(0, is_active=False))
    files.remove_snapshot(0)
    kept = [name for name in names(host) if not name.endswith(".deleted")]
    assert kept == [f"{6:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]
    assert sum(name.endswith(".deleted") for name in names(host)) == 5
    host.clock.advance(CONFIG.file_delete_delay_ms - 1)
    files.purge()
    assert sum(name.endswith(".deleted") for name in names(host)) == 5
    host.clock.advance(1)
    files.purge()
    assert names(host) == kept


def test_a_purge_of_everything_waits_for_nothing(host: SimulatedHost) -> None:
    """At a clean stop what is condemned goes at once; what somebody else removed is no error."""
    two_segments(host)
    files = files_of(host)
    files.remove(files.open(0, is_active=False))
    host.fs.remove(f"{DIRECTORY}/{0:020d}.index.deleted")
    files.purge(everything=True)
    assert [name for name in names(host) if name.endswith(".deleted")] == []


def test_settings_of_later_segments_may_change(host: SimulatedHost) -> None:
    """A segment gets the settings that hold when it is created."""
    files = files_of(host)
    files.create(0)
    files.config = attrs.evolve(CONFIG, segment_index_bytes=48)
    assert files.create(1).offset_index.bytes_max == 48
