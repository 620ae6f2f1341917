"""Producers and their snapshots: which one a start loads, which ones go, which ones are taken."""

from __future__ import annotations

import pytest

from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.producer_history import ProducerHistory
from logstore.segments.kafka.producer_snapshot import list_snapshots, snapshot_name
from logstore.segments.kafka.producer_state import EXPIRATION_MS, ProducerStates
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost

DIRECTORY = "/t-0"
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=200, index_interval_bytes=100, segment_index_bytes=240)


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with the directory of a partition."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    host.fs.sync_directory("/")
    return host


def written(host: SimulatedHost) -> KafkaPartition:
    """Return a log with a snapshot at each of its segments: 2, 4, 6 and 8; it ends at 9."""
    files = SegmentFiles(host, DIRECTORY, CONFIG)
    partition = KafkaPartition(host, files, "t", 0)
    for sequence in range(9):
        batch = encode_batch(
            [Record(0, NOW_MS, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=sequence
        )
        partition.append_produced(memoryview(batch), NOW_MS)
    assert list_snapshots(host.fs, DIRECTORY) == [2, 4, 6, 8]
    return partition


def history_of(host: SimulatedHost, *, is_writable: bool = True) -> ProducerHistory:
    """Return what a start begins with."""
    snapshots = list_snapshots(host.fs, DIRECTORY)
    return ProducerHistory(host, DIRECTORY, snapshots, is_writable=is_writable)


def rebuilt(
    host: SimulatedHost, partition: KafkaPartition, end_offset: int, *, start_offset: int = 0
) -> ProducerHistory:
    """Return the history of the log up to an offset."""
    history = history_of(host)
    history.rebuild(list(partition.log.segments.values()), start_offset, end_offset)
    return history


def last_sequence(history: ProducerHistory) -> int | None:
    """Return how far the one producer has got."""
    entry = history.states.get(7)
    return None if entry is None else entry.last_sequence


@pytest.mark.parametrize("end_offset", range(10))
def test_the_newest_snapshot_below_the_end_is_loaded_and_the_rest_replayed(
    host: SimulatedHost, end_offset: int
) -> None:
    """Snapshots above the end go; one at the end is taken."""
    history = rebuilt(host, written(host), end_offset)
    assert last_sequence(history) == (end_offset - 1 if end_offset else None)
    kept = [offset for offset in (2, 4, 6, 8) if offset < end_offset]
    assert list_snapshots(host.fs, DIRECTORY) == kept + ([end_offset] if end_offset else [])
    assert history.snapshots == list_snapshots(host.fs, DIRECTORY)


def test_a_damaged_snapshot_is_removed_and_the_one_before_it_used(host: SimulatedHost) -> None:
    """Nothing is lost by it: more is replayed, and the snapshot is taken again."""
    partition = written(host)
    host.fs.damage(f"{DIRECTORY}/{snapshot_name(8)}", 3, b"\xff")
    assert last_sequence(rebuilt(host, partition, 9)) == 8
    assert list_snapshots(host.fs, DIRECTORY) == [2, 4, 6, 8, 9]
    states = ProducerStates()
    states.load(host.fs, f"{DIRECTORY}/{snapshot_name(8)}")
    entry = states.get(7)
    assert entry is not None
    assert entry.last_sequence == 7


def test_without_snapshots_the_whole_log_is_replayed(host: SimulatedHost) -> None:
    """And snapshots are taken at the last two segments and at the end."""
    partition = written(host)
    for offset in list_snapshots(host.fs, DIRECTORY):
        host.fs.remove(f"{DIRECTORY}/{snapshot_name(offset)}")
    assert last_sequence(rebuilt(host, partition, 9)) == 8
    assert list_snapshots(host.fs, DIRECTORY) == [6, 8, 9]


def test_after_a_clean_stop_without_snapshots_there_were_no_producers(host: SimulatedHost) -> None:
    """Nothing is replayed, as when Kafka is upgraded; empty snapshots say so to the next start."""
    partition = written(host)
    for offset in list_snapshots(host.fs, DIRECTORY):
        host.fs.remove(f"{DIRECTORY}/{snapshot_name(offset)}")
    history = history_of(host)
    history.rebuild(list(partition.log.segments.values()), 0, 9, is_clean=True)
    assert len(history.states) == 0
    assert list_snapshots(host.fs, DIRECTORY) == [6, 8, 9]


def test_snapshots_below_the_log_start_go(host: SimulatedHost) -> None:
    """Also the one right at it: there is nothing before it."""
    history = rebuilt(host, written(host), 9, start_offset=4)
    assert history.snapshots == [6, 8, 9]


def test_the_snapshot_of_an_emptied_log_stays_after_a_clean_stop(host: SimulatedHost) -> None:
    """Where every record was deleted, retries are still recognised; Kafka forgets them."""
    partition = written(host)
    rebuilt(host, partition, 9)
    history = history_of(host)
    history.rebuild(list(partition.log.segments.values()), 9, 9, is_clean=True)
    assert (history.snapshots, last_sequence(history)) == ([9], 8)


def test_who_was_silent_for_a_day_is_forgotten_when_a_snapshot_is_loaded(
    host: SimulatedHost,
) -> None:
    """A replay knows them again, as in Kafka."""
    partition = written(host)
    host.clock.advance(EXPIRATION_MS)
    assert last_sequence(rebuilt(host, partition, 8)) is None
    assert last_sequence(rebuilt(host, partition, 9)) == 8


def test_strays_are_those_of_no_segment(host: SimulatedHost) -> None:
    """The newest of them stays, where it lies at or behind the last segment."""
    written(host)
    history = history_of(host)
    history.remove_strays([0, 4, 6])
    assert history.snapshots == list_snapshots(host.fs, DIRECTORY) == [4, 6, 8]
    history.remove_strays([0, 4, 9])
    assert history.snapshots == list_snapshots(host.fs, DIRECTORY) == [4]


def test_what_was_written_without_sync_is_written_again(host: SimulatedHost) -> None:
    """A snapshot of a roll is not on disk for sure; that of a stop is, and taken once."""
    history = history_of(host)
    history.take_snapshot(5, sync=False)
    host.fs.remove(f"{DIRECTORY}/{snapshot_name(5)}")
    history.take_snapshot(5)
    assert list_snapshots(host.fs, DIRECTORY) == [5]
    host.fs.remove(f"{DIRECTORY}/{snapshot_name(5)}")
    history.take_snapshot(5)
    assert list_snapshots(host.fs, DIRECTORY) == []


def test_a_restart_forgets_all(host: SimulatedHost) -> None:
    """Producers and snapshots, as a log that begins anew at an offset."""
    history = rebuilt(host, written(host), 9)
    history.restart(50)
    assert (len(history.states), history.snapshots) == (0, [])
    assert list_snapshots(host.fs, DIRECTORY) == []
    history.take_snapshot(50)
    assert list_snapshots(host.fs, DIRECTORY) == []


def test_who_only_reads_changes_no_file(host: SimulatedHost) -> None:
    """States are rebuilt all the same, past what is damaged."""
    partition = written(host)
    host.fs.damage(f"{DIRECTORY}/{snapshot_name(8)}", 3, b"\xff")
    history = history_of(host, is_writable=False)
    history.remove_strays([0, 2, 4, 6])
    history.rebuild(list(partition.log.segments.values()), 2, 9)
    assert last_sequence(history) == 8
    assert list_snapshots(host.fs, DIRECTORY) == [2, 4, 6, 8]
