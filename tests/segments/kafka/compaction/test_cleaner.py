"""The cleaner of a running broker: what it takes, when, and what it leaves alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from logstore.host import read_file, write_file
from logstore.segments.kafka.compaction import (
    Cleaner,
    CompactionLimits,
    find_cleanable,
)
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.testing import SimulatedHost
from tests.segments.kafka.compaction.compacted_log import (
    CONFIG,
    DIRECTORY,
    START_MS,
    Filler,
    committed,
    make_host,
    opened,
    stored_bytes,
)

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
NOW_MS = START_MS + 100_000
CHECKPOINT = "/cleaner-offset-checkpoint"


@attrs.define
class Bench:
    """A cleaner over one partition whose turns a test takes one by one, or all at once."""

    host: SimulatedHost
    partition: KafkaPartition
    filler: Filler
    queue: list[tuple[Work, Done]] = attrs.field(factory=list[tuple[Work, Done]])
    at_once: bool = True

    def offload(self, work: Work, done: Done) -> None:
        """Do the work now, or when the test says so."""
        self.queue.append((work, done))
        if self.at_once:
            self.turn()

    def turn(self) -> None:
        """Do what waits longest."""
        work, done = self.queue.pop(0)
        error: BaseException | None = None
        try:
            work()
        except Exception as failure:  # noqa: BLE001 - handed on, as a server does
            error = failure
        done(error)

    def cleaner(self, partitions: list[KafkaPartition] | None = None) -> Cleaner:
        """Return a new cleaner, as after a start."""
        there = [self.partition] if partitions is None else partitions
        return Cleaner(self.host, "", lambda: there, lambda: self.offload, CompactionLimits())


@pytest.fixture
def bench() -> Bench:
    """A log of several segments, all dirty."""
    host = make_host()
    host.clock.advance(NOW_MS - host.clock.wall_ms())
    partition = opened(host)
    filler = Filler(partition, random.Random(1))
    filler.write(60, has_transactions=False)
    partition.log.roll()
    return Bench(host, partition, filler)


def reconfigured(bench: Bench, **settings: Any) -> None:
    """Give the partition other settings."""
    config: LogConfig = attrs.evolve(CONFIG, **settings)
    bench.partition.reconfigure(config)


def test_a_dirty_log_is_cleaned_and_its_checkpoint_written(bench: Bench) -> None:
    """The file says where the next pass begins, in Kafka's form."""
    before = len(committed(bench.partition))
    bench.cleaner().clean()
    assert len(committed(bench.partition)) < before
    bound = bench.partition.log.active.base_offset
    text = read_file(bench.host.fs, CHECKPOINT).decode()
    assert text == f"0\n1\nc 0 {bound}\n"


def test_a_clean_log_is_left_alone(bench: Bench) -> None:
    """Also by the cleaner of the next start, that reads the checkpoint."""
    bench.cleaner().clean()
    cleaner = bench.cleaner()
    assert cleaner.checkpoint.get(bench.partition) == bench.partition.log.active.base_offset
    assert cleaner.dirtiest() is None
    bench.at_once = False
    cleaner.clean()
    assert bench.queue == []


def test_a_log_waits_until_enough_of_it_is_dirty(bench: Bench) -> None:
    """More than min.cleanable.dirty.ratio, not just as much."""
    cleaner = bench.cleaner()
    cleaner.clean()
    bench.filler.write(6, has_transactions=False)
    bench.partition.log.roll()
    found = find_cleanable(bench.partition, cleaner.checkpoint.get(bench.partition), NOW_MS)
    assert 0 < found.dirty_ratio < 1
    reconfigured(bench, min_cleanable_dirty_ratio=found.dirty_ratio)
    assert cleaner.dirtiest() is None
    reconfigured(bench, min_cleanable_dirty_ratio=found.dirty_ratio - 1e-9)
    assert cleaner.dirtiest() is not None


def test_the_dirtiest_log_is_first(bench: Bench) -> None:
    """By its ratio, not by its size; logs that are not compacted are not looked at."""
    cleaner = bench.cleaner()
    cleaner.clean()
    other_host = make_host(3)
    other = opened(other_host)
    Filler(other, random.Random(2)).write(9, has_transactions=False)
    other.log.roll()
    bench.filler.write(200, has_transactions=False)
    bench.partition.log.roll()
    plain = opened(make_host(4), config=LogConfig())
    Filler(plain, random.Random(2)).write(9)
    plain.log.roll()
    cleaner = bench.cleaner([bench.partition, plain, other])
    found = cleaner.dirtiest()
    assert found is not None
    assert found.partition is other


def test_old_dirt_does_not_wait(bench: Bench) -> None:
    """max.compaction.lag.ms goes over the ratio, as soon as a segment's first batch is older."""
    cleaner = bench.cleaner()
    cleaner.clean()
    bench.filler.write(3, has_transactions=False)
    bench.partition.log.roll()
    base = cleaner.checkpoint.get(bench.partition)
    assert base is not None
    segment = bench.partition.log.find(base)
    assert segment is not None
    first = segment.decode(0)
    assert first is not None
    age_ms = NOW_MS - first.max_timestamp_ms
    reconfigured(bench, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=age_ms)
    assert cleaner.dirtiest() is None
    reconfigured(bench, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=age_ms - 1)
    assert cleaner.dirtiest() is not None


def test_young_segments_are_not_cleaned(bench: Bench) -> None:
    """From the first one on with a record younger than min.compaction.lag.ms."""
    segments = list(bench.partition.log.segments.values())
    third = segments[2]
    newest = max(segment.max_timestamp_ms for segment in segments[:2])
    lag_ms = NOW_MS - newest
    assert third.max_timestamp_ms > newest
    reconfigured(bench, min_compaction_lag_ms=lag_ms)
    found = find_cleanable(bench.partition, None, NOW_MS)
    assert found.first_uncleanable_offset == third.base_offset
    bench.cleaner().clean()
    assert read_file(bench.host.fs, CHECKPOINT).decode().endswith(f"c 0 {third.base_offset}\n")


@pytest.mark.parametrize("content", [b"0\n1\nc 0 999999\n", b"garbage", b"0\n1\nother 0 7\n"])
def test_a_checkpoint_that_cannot_be_is_not_believed(bench: Bench, content: bytes) -> None:
    """Behind the log's end, unreadable, or another's: all of the log counts as dirty."""
    write_file(bench.host.fs, CHECKPOINT, content)
    cleaner = bench.cleaner()
    found = cleaner.dirtiest()
    assert found is not None
    assert found.first_dirty_offset == 0
    cleaner.clean()
    bound = bench.partition.log.active.base_offset
    assert read_file(bench.host.fs, CHECKPOINT).decode() == f"0\n1\nc 0 {bound}\n"


def test_appends_and_reads_go_on_meanwhile(bench: Bench) -> None:
    """Between any two turns; what was appended then is there, and not cleaned."""
    bench.at_once = False
    cleaner = bench.cleaner()
    cleaner.clean()
    turns = 0
    while bench.queue:
        bench.turn()
        bench.filler.append(-1)
        assert committed(bench.partition)
        cleaner.clean()  # has no effect while one is under way
        assert len(bench.queue) <= 1
        turns += 1
    assert turns > 5
    assert not cleaner.is_busy
    assert committed(bench.partition)[-1].offset == bench.partition.end_offset - 1


def test_damage_is_said_once_and_left_alone(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """The log can still be read and written; it is tried again after the next start."""
    bench.host.fs.damage(bench.partition.log.segments.values()[0].path, 70, b"\xff\xff")
    cleaner = bench.cleaner()
    cleaner.clean()
    cleaner.clean()
    assert cleaner.uncleanable == {bench.partition}
    assert len([r for r in caplog.records if "cannot be compacted" in r.message]) == 1
    bench.filler.append(-1)
    assert not bench.host.fs.exists(CHECKPOINT)


def test_retention_may_be_quicker(bench: Bench) -> None:
    """Segments that go while they are copied stay gone; the next call cleans the rest."""
    bench.at_once = False
    cleaner = bench.cleaner()
    cleaner.clean()
    bench.turn()
    start = bench.partition.log.segments.keys()[2]
    bench.partition.delete_records(start)
    assert bench.partition.retain() == 2
    while bench.queue:
        bench.turn()
    assert bench.partition.start_offset == start
    assert cleaner.uncleanable == set()
    bench.at_once = True
    cleaner.clean()
    assert cleaner.checkpoint.get(bench.partition) == bench.partition.log.active.base_offset
    assert bench.partition.log.start_offset == start


def test_a_stop_in_the_middle_leaves_nothing_half_done(bench: Bench) -> None:
    """Not even files; the next start begins anew."""
    bench.at_once = False
    cleaner = bench.cleaner()
    before = stored_bytes(bench.partition)
    cleaner.clean()
    bench.turn()
    cleaner.close()
    while bench.queue:
        bench.turn()
    names = [entry.name for entry in bench.host.fs.list_directory(DIRECTORY)]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert stored_bytes(bench.partition) == before
    bench.at_once = True
    bench.cleaner().clean()
    assert len(stored_bytes(bench.partition)) < len(before)


def test_what_is_below_the_start_of_a_compacted_log_goes(bench: Bench) -> None:
    """Nobody has to wait for the check of retention, which is for other logs (KIP-71)."""
    cleaner = bench.cleaner()
    cleaner.clean()
    bench.filler.write(60, has_transactions=False)
    bench.partition.log.roll()
    reconfigured(bench, min_cleanable_dirty_ratio=1.0)
    start = bench.partition.log.segments.keys()[2]
    bench.partition.delete_records(start)
    cleaner.clean()
    assert bench.partition.log.start_offset == start


def test_what_a_compacted_log_no_longer_keeps_goes(bench: Bench) -> None:
    """With the policy compact,delete, after it was cleaned or where nothing is to be cleaned."""
    reconfigured(bench, cleanup_policy=("compact", "delete"), retention_ms=10_000)
    bench.host.clock.advance(20_000)
    cleaner = bench.cleaner()
    cleaner.clean()
    assert committed(bench.partition) == []
    assert cleaner.checkpoint.get(bench.partition), "it was compacted first"


def test_a_log_that_cannot_be_cleaned_is_not_retained(bench: Bench) -> None:
    """Nothing of it is touched, as in Kafka, until the next start."""
    reconfigured(bench, cleanup_policy=("compact", "delete"), retention_ms=10_000)
    bench.host.clock.advance(20_000)
    bench.host.fs.damage(bench.partition.log.segments.values()[0].path, 70, b"\xff\xff")
    cleaner = bench.cleaner()
    cleaner.clean()
    cleaner.clean()
    assert cleaner.uncleanable == {bench.partition}
    assert bench.partition.start_offset == 0
