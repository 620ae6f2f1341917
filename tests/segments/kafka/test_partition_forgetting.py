"""What a partition forgets: deleted records, retention by time and size, truncation."""

from __future__ import annotations

import attrs
import pytest

from logstore.errors import (
    OffsetOutOfRangeError,
)
from logstore.segments.kafka.producer_snapshot import list_snapshots
from logstore.testing import SimulatedHost
from tests.segments.kafka.test_partition import (
    CONFIG,
    DIRECTORY,
    NOW_MS,
    batch_of,
    fill,
    host,
    open_partition,
)

__all__ = ["host"]


def test_deleted_records_cannot_be_read_and_stay_deleted(host: SimulatedHost) -> None:
    """The log start only goes up; -1 means the end; above the end is out of range."""
    partition = open_partition(host)
    fill(partition, 10)
    assert partition.delete_records(4) == 4
    assert partition.delete_records(2) == 4
    with pytest.raises(OffsetOutOfRangeError):
        partition.read(3, 100)
    assert [r.offset for r in partition.read_records(4, 2)] == [4, 5]
    with pytest.raises(OffsetOutOfRangeError):
        partition.delete_records(11)
    assert partition.delete_records(-1) == 10
    assert partition.read(10, 100) is None


def test_a_log_start_above_the_end_starts_the_log_anew(host: SimulatedHost) -> None:
    """A checkpoint may know of a start that the log, after a loss, does not reach."""
    partition = open_partition(host)
    fill(partition, 3)
    partition.close()
    partition = open_partition(host, log_start_offset=50)
    assert (partition.start_offset, partition.end_offset) == (50, 50)
    assert partition.append_produced(batch_of(), NOW_MS).base_offset == 50
    assert [entry.name for entry in host.fs.list_directory(DIRECTORY) if "50.log" in entry.name]


def test_retention_by_time_looks_at_the_youngest_record(host: SimulatedHost) -> None:
    """A segment goes when its largest timestamp is too old, oldest first, the active one too."""
    config = attrs.evolve(CONFIG, retention_ms=10_000)
    partition = open_partition(host, config)
    for delta in (0, 100, 9000, 200, 300, 400, 500, 600, 700):
        partition.append_produced(batch_of(timestamp_ms=NOW_MS + delta), NOW_MS)
    segments = len(partition.log.segments)
    host.clock.advance(10_000 + 8000)
    assert partition.retain() == 0, "the first segment has a record of 9 s later"
    host.clock.advance(1001)
    assert partition.retain() == segments
    assert partition.start_offset == partition.end_offset == 9
    assert list_snapshots(host.fs, DIRECTORY) == [9]
    assert partition.append_produced(batch_of(), NOW_MS).base_offset == 9


def test_retention_by_size_keeps_at_least_that_much(host: SimulatedHost) -> None:
    """The oldest segment goes only while what remains is not less than ``retention.bytes``."""
    partition = open_partition(host, attrs.evolve(CONFIG, retention_bytes=700))
    fill(partition, 20)
    first = partition.log.segments.peekitem(0)[1].end_position
    before = partition.log.size_bytes
    gone = partition.retain()
    assert gone == (before - 700) // first
    assert 700 <= partition.log.size_bytes < 700 + first
    assert partition.start_offset == partition.log.start_offset
    assert partition.leader_epochs.entries == []


def test_a_compacted_log_retains_all_but_what_was_deleted(host: SimulatedHost) -> None:
    """Without ``delete`` in its policy only segments below the log start go."""
    config = attrs.evolve(CONFIG, cleanup_policy=("compact",), retention_ms=1, retention_bytes=1)
    partition = open_partition(host, config)
    fill(partition, 12)
    host.clock.advance(10**9)
    assert partition.retain() == 0
    bases = list(partition.log.segments)
    partition.delete_records(bases[1] + 1)
    assert partition.retain() == 1
    assert partition.start_offset == bases[1] + 1


def test_truncation_takes_epochs_and_producers_along(host: SimulatedHost) -> None:
    """What is above the cut never happened: no epoch, no sequence, no offset of it is known."""
    partition = open_partition(host)
    partition.become_leader(1)
    partition.append_produced(batch_of(2, producer_id=7, sequence=0), NOW_MS)
    partition.become_leader(2)
    partition.append_produced(batch_of(2, producer_id=7, sequence=2), NOW_MS)
    partition.truncate(2)
    assert partition.leader_epochs.entries == [(1, 0)]
    assert partition.end_offset == 2
    again = partition.append_produced(batch_of(2, producer_id=7, sequence=2), NOW_MS)
    assert (again.base_offset, again.is_duplicate) == (2, False)


def test_a_truncation_into_a_hole_behind_a_segment_ends_there(host: SimulatedHost) -> None:
    """The log goes on at the offset asked for, and nothing below it is found at or above it."""
    partition = open_partition(host)
    fill(partition, 1)
    partition.log.roll(5)
    fill(partition, 1)
    partition.truncate(3)
    assert (partition.start_offset, partition.end_offset) == (0, 3)
    assert [batch.base_offset for batch in partition.batches(1)] == []
    extent = partition.read(1, 100)
    assert extent is not None
    assert extent.size_bytes == 0
    assert partition.append_produced(batch_of(), NOW_MS).base_offset == 3
    assert [batch.base_offset for batch in partition.batches(1)] == [3]
