"""A partition after crashes: what is rebuilt, cut, and stays cut."""

from __future__ import annotations

import attrs
import pytest

from logstore.errors import (
    WriteFailedError,
)
from logstore.host import read_file
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from tests.segments.kafka.test_partition import DIRECTORY, fill, host, open_partition

__all__ = ["host"]


def test_recovery_rebuilds_epochs_and_says_what_it_cut(host: SimulatedHost) -> None:
    """After a crash epochs come from the batches; a torn batch is cut, kept aside, reported."""
    partition = open_partition(host)
    partition.become_leader(1)
    fill(partition, 2)
    partition.become_leader(4)
    fill(partition, 1)
    active = partition.log.active
    file = host.fs.open(active.path)
    file.write(active.end_position, b"\x07" * 50)
    host.fs.process_death()
    host.fs.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    partition = open_partition(host, recovery_point=0)
    assert partition.leader_epochs.entries == [(1, 0), (4, 2)]
    recovery = partition.recovery
    assert recovery is not None
    assert (recovery.next_offset, recovery.dropped_bytes) == (3, 50)
    assert [read_file(host.fs, path) for path in recovery.kept_aside] == [b"\x07" * 50]
    partition.close()
    assert open_partition(host).recovery is None


def test_a_failed_write_that_was_cut_stays_cut(host: SimulatedHost) -> None:
    """Refused, rolled, lost power: no remains of the refused batch stand behind a good one."""
    partition = open_partition(host)
    partition.become_leader(0)
    fill(partition, 2)
    partition.flush()
    end = partition.log.active.end_position
    host.fs.fill_up(50)
    with pytest.raises(WriteFailedError):
        fill(partition, 1)
    host.fs.faults.clear()
    partition.log.roll()
    fill(partition, 1)
    partition.flush()
    host.power_loss(LOSE_UNSYNCED)
    partition = open_partition(host, recovery_point=3)
    assert host.fs.open(f"{DIRECTORY}/{0:020d}.log").size() == end
    assert [b.base_offset for b in partition.batches()] == [0, 1, 2]


def test_a_truncation_survives_a_power_loss_whole(host: SimulatedHost) -> None:
    """The files that keep epochs and offsets are as readable after it as before."""
    partition = open_partition(host)
    partition.become_leader(0)
    fill(partition, 12)
    partition.flush()
    partition.become_leader(1)
    partition.truncate(3)
    partition.delete_records(1)
    for seed in range(8):
        fork = host.fork()
        fork.power_loss(attrs.evolve(LOSE_UNSYNCED, seed=seed))
        recovered = open_partition(fork, recovery_point=3)
        assert [b.base_offset for b in recovered.batches(0)] == [0, 1, 2]
        assert recovered.leader_epochs.entries == [(0, 1)]
