"""Power losses and failing disks in the middle of a compaction."""

from __future__ import annotations

import errno
import random

import attrs
import pytest

from logstore.errors import WriteFailedError
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records
from logstore.testing import SimulatedHost, every_failure, every_power_loss
from logstore.testing.disk_faults import FaultKind
from tests.segments.kafka.compaction.compacted_log import (
    CONFIG,
    DIRECTORY,
    START_MS,
    Filler,
    committed,
    filled,
    make_host,
    opened,
    run_pass,
)

PASS_MS = START_MS + 100_000
ONE_GROUP = attrs.evolve(CONFIG, segment_bytes=100_000)


def closed_host(seed: int, batch_count: int) -> SimulatedHost:
    """Return the disk of a log of several segments that was closed cleanly."""
    host = make_host(seed)
    partition = opened(host)
    filler = Filler(partition, random.Random(seed))
    filler.write(batch_count)
    for producer_id in (20, 21):  # what is open holds a compaction back
        filler.end_transaction(producer_id)
    partition.log.roll()
    partition.close()
    return host


def partition_records(partition: KafkaPartition) -> list[Record]:
    """Return every record, aborted ones too."""
    return [
        record
        for batch in partition.batches()
        if not batch.is_control
        for record in decode_records(batch.data)
    ]


@pytest.mark.parametrize("seed", range(2))
def test_every_power_loss_leaves_the_old_or_the_new_segments(seed: int) -> None:
    """All segments become one: at every point of it the log holds all that it held, or the copy."""
    host = closed_host(seed, 24)
    before_log = opened(host.fork(), config=ONE_GROUP)
    before, end = partition_records(before_log), before_log.end_offset
    recovery_point = before_log.log.active.base_offset
    after_log = opened(host.fork(), config=ONE_GROUP)
    run_pass(after_log, PASS_MS)
    assert len(after_log.log.segments) == 2
    after = partition_records(after_log)
    assert after != before

    def workload(world: SimulatedHost) -> None:
        run_pass(opened(world, config=ONE_GROUP), PASS_MS)
        world.fs.journal.note("done", 1)

    outcomes: set[bool] = set()
    for point in every_power_loss(workload, make_host=host.fork, random_losses=6):
        partition = opened(point.host, recovery_point, ONE_GROUP)
        found = partition_records(partition)
        assert found in (before, after), point
        if point.host.fs.journal.notes("done", int):
            assert found == after, point
        assert partition.end_offset == end, point
        assert not [
            entry.name
            for entry in point.host.fs.list_directory(DIRECTORY)
            if entry.name.endswith((".cleaned", ".swap", ".deleted"))
        ], point
        outcomes.add(found == after)
    assert outcomes == {False, True}


def test_every_power_loss_leaves_each_group_old_or_new() -> None:
    """Group by group: nothing that must stay is lost, nothing comes back twice, the end stands."""
    host = closed_host(5, 30)
    before_log = opened(host.fork())
    before, end = partition_records(before_log), before_log.end_offset
    committed_before = committed(before_log)
    recovery_point = before_log.log.active.base_offset
    after_log = opened(host.fork())
    run_pass(after_log, PASS_MS)
    after = partition_records(after_log)
    must_stay = [record.offset for record in committed(after_log)]
    assert len(after) < len(before)

    def workload(world: SimulatedHost) -> None:
        run_pass(opened(world), PASS_MS)

    for point in every_power_loss(workload, make_host=host.fork, random_losses=1):
        partition = opened(point.host, recovery_point)
        found = partition_records(partition)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets)), point
        assert set(offsets) <= {record.offset for record in before}, point
        assert set(offsets) >= {record.offset for record in after}, point
        readable = [record.offset for record in committed(partition)]
        assert set(must_stay) <= set(readable), point
        assert set(readable) <= {record.offset for record in committed_before}, point
        assert partition.end_offset == end, point


def test_after_a_power_loss_the_next_pass_goes_on() -> None:
    """From any point on, another pass leaves what an undisturbed one leaves."""
    host = closed_host(6, 20)
    reference = opened(host.fork(), config=ONE_GROUP)
    recovery_point = reference.log.active.base_offset
    run_pass(reference, PASS_MS)
    expected = committed(reference)

    def workload(world: SimulatedHost) -> None:
        run_pass(opened(world, config=ONE_GROUP), PASS_MS)

    for point in every_power_loss(workload, make_host=host.fork, random_losses=1):
        partition = opened(point.host, recovery_point, ONE_GROUP)
        run_pass(partition, PASS_MS)
        assert committed(partition) == expected, point


KINDS: list[FaultKind] = ["write", "sync", "rename", "sync_directory"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_refuses_leaves_a_log_that_opens(kind: FaultKind) -> None:
    """Whatever fails, the next start finds the old or the new segments, and says so meanwhile."""
    host = closed_host(7, 20)
    before_log = opened(host.fork(), config=ONE_GROUP)
    before = partition_records(before_log)
    reference = opened(host.fork(), config=ONE_GROUP)
    run_pass(reference, PASS_MS)
    after = partition_records(reference)
    count = 0

    def workload(world: SimulatedHost) -> None:
        run_pass(opened(world, config=ONE_GROUP), PASS_MS)

    for point in every_failure(workload, kind, errno.EIO, make_host=host.fork):
        if point.error is not None:
            assert isinstance(point.error, (OSError, WriteFailedError))
        point.host.fs.process_death()
        found = partition_records(opened(point.host, 0, ONE_GROUP))
        assert found in (before, after)
        count += 1
    assert count


def test_a_swap_that_fails_stops_the_writes() -> None:
    """Nobody knows then what a power loss leaves: the log takes nothing until it is opened anew."""
    partition = filled(2)
    host = partition.host
    assert isinstance(host, SimulatedHost)
    host.fs.faults.fail_next("rename", errno.EIO, path="*.cleaned")
    with pytest.raises(WriteFailedError):
        run_pass(partition, PASS_MS)
    assert partition.log.refusal is not None
    with pytest.raises(WriteFailedError):
        Filler(partition, random.Random(1)).append(-1)
