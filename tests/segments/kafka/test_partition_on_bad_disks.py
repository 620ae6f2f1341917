"""A partition on disks that refuse, and across power losses in the middle of what it does."""

from __future__ import annotations

import contextlib
import errno

import attrs
import pytest

from logstore.errors import WriteFailedError
from logstore.testing import PowerLoss, PowerLost, SimulatedHost
from tests.segments.kafka.transactional_writer import (
    CONFIG,
    DIRECTORY,
    NOW_MS,
    ONE,
    TWO,
    Writer,
    a_host,
    open_partition,
)


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with the directory of a partition."""
    return a_host()


def test_a_transaction_whose_marker_was_deleted_does_not_stay_open(host: SimulatedHost) -> None:
    """A recovery goes on from no snapshot that tells of a log which is not there any more."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    writer.write()
    partition.flush()
    partition.history.take_snapshot(1)  # as a recovery does that ends here
    writer.end(is_commit=True)
    while len(partition.log.segments) < 2:
        Writer(partition, TWO).write()
        Writer(partition, TWO).end(is_commit=True)
        partition.append_produced(
            writer.batch(
                is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1
            ),
            NOW_MS,
        )
    second = partition.log.active.base_offset
    partition.delete_records(second)
    assert partition.retain() == 1
    partition.flush()
    partition.files.purge(everything=True)
    path = f"{DIRECTORY}/{second:020d}.snapshot"
    file = host.fs.open(path)
    file.truncate(0)  # what a power loss makes of a file that was not synced
    file.close()
    host.fs.process_death()
    again = open_partition(host, recovery_point=0)
    assert again.start_offset == second
    assert again.last_stable_offset == again.end_offset


def test_no_marker_is_written_whose_transaction_cannot_be_indexed(host: SimulatedHost) -> None:
    """Where the index cannot be read the marker is refused, and the next try notes all of it."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    writer.write()
    writer.end(is_commit=False)
    writer.write()
    partition.close()
    again = open_partition(host)
    writer.partition = again
    end = again.end_offset
    host.fs.faults.fail_next("open", errno.EIO, path="*.txnindex")
    with pytest.raises(WriteFailedError, match="no marker was appended"):
        writer.end(is_commit=False)
    assert (again.end_offset, again.last_stable_offset) == (end, end - 1)
    marker = writer.end(is_commit=False)
    entries = list(again.log.active.transaction_index.entries())
    assert [(one.first_offset, one.last_offset) for one in entries] == [(0, 1), (2, marker)]


@pytest.mark.parametrize("opened", range(6))
def test_a_log_whose_roll_failed_twice_goes_on(host: SimulatedHost, opened: int) -> None:
    """A disk that opens no file keeps a log from rolling, and from having its indexes back."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    while len(partition.log.segments) < 2 or partition.log.active.end_position < 300:
        writer.write()
    failures = 0
    while len(partition.log.segments) < 3:
        host.fs.faults.fail_next("open", errno.EIO, path="*/t-0/*", after=opened, count=None)
        try:
            writer.write()
        except WriteFailedError:
            failures += 1
            if failures == 2:
                break
        finally:
            host.fs.faults.clear()
    end = partition.end_offset
    for number in range(6):
        assert writer.write() == end + number
    assert [batch.base_offset for batch in partition.batches()] == list(range(end + 6))


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_expired_as_a_whole_goes_on_at_its_end(seed: int) -> None:
    """However the power goes while retention removes all segments, no offset is given twice."""
    for count in range(12):
        host = a_host()
        partition = open_partition(host, config=attrs.evolve(CONFIG, retention_ms=1000))
        Writer(partition, ONE).write(2)
        partition.flush()
        host.clock.advance(10_000_000_000)
        host.fs.cut_power_after(count)
        with contextlib.suppress(PowerLost):
            partition.retain()
        host.power_loss(PowerLoss.random(100 * seed + count))
        assert open_partition(host, recovery_point=2).end_offset == 2
