"""A compaction against a model: what stays, what goes, and when."""

from __future__ import annotations

import random

import attrs
import pytest

from logstore.errors import CorruptEntryError, MissingSegmentError
from logstore.segments.kafka.compaction import (
    Compaction,
    CompactionLimits,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.compaction.compaction_pass import grouped
from logstore.segments.kafka.compaction.offset_map import key_count_max
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record
from logstore.testing import SimulatedHost
from tests.segments.kafka.compaction.compacted_log import (
    CONFIG,
    DIRECTORY,
    RETENTION_MS,
    START_MS,
    Filler,
    committed,
    filled,
    make_host,
    opened,
    run_pass,
    stored_bytes,
)

SEEDS = range(25)
PASS_MS = START_MS + 100_000


def survivors(
    records: list[Record], end_offset: int, *, has_tombstones: bool = True
) -> list[Record]:
    """Return what the last record of each key below `end_offset` leaves of them."""
    newest = {record.key: record.offset for record in records if record.offset < end_offset}
    return [
        record
        for record in records
        if record.offset >= end_offset
        or (record.offset == newest[record.key] and (record.value is not None or has_tombstones))
    ]


def last_batches(partition: KafkaPartition) -> dict[int, tuple[int, int]]:
    """Return by producer the last sequence and its offset."""
    return {
        entry.producer_id: (entry.last_sequence, entry.recent[-1][2])
        for entry in partition.producers
        if entry.recent
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_record_of_each_key_stays(seed: int) -> None:
    """Of what read_committed readers get nothing else goes, and nothing changes its place."""
    partition = filled(seed)
    before, span = committed(partition), partition.span
    compaction = run_pass(partition, PASS_MS)
    assert committed(partition) == survivors(before, compaction.end_offset)
    assert partition.span == span
    assert compaction.end_offset <= partition.last_stable_offset


@pytest.mark.parametrize("seed", SEEDS)
def test_tombstones_go_when_their_time_is_over(seed: int) -> None:
    """The first pass starts their time, a pass within it keeps them, and one after it does not."""
    partition = filled(seed)
    before = committed(partition)
    end = run_pass(partition, PASS_MS).end_offset
    run_pass(partition, PASS_MS + RETENTION_MS - 1)
    assert committed(partition) == survivors(before, end)
    run_pass(partition, PASS_MS + RETENTION_MS)
    assert committed(partition) == survivors(before, end, has_tombstones=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_passes_over_a_growing_log_keep_the_newest_of_each_key(seed: int) -> None:
    """Pass after pass, each from where the last one ended, and after a stop and a start."""
    dice = random.Random(seed)
    host = make_host(seed)
    partition = opened(host)
    filler = Filler(partition, dice)
    checkpoint = 0
    view: list[Record] = []
    for _ in range(4):
        filler.write(dice.randrange(30))
        new = [record for record in committed(partition) if record not in view]
        view = sorted([*view, *new], key=lambda record: record.offset)
        checkpoint = run_pass(partition, PASS_MS, checkpoint).end_offset
        view = survivors(view, checkpoint)
        assert committed(partition) == view
        states = last_batches(partition)
        partition.close()
        filler.partition = partition = opened(host)
        assert committed(partition) == view
        assert last_batches(partition) == states


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_pass_changes_nothing(seed: int) -> None:
    """Without transactions, whose markers go step by step, not one byte."""
    partition = filled(seed, has_transactions=False)
    run_pass(partition, PASS_MS)
    once = stored_bytes(partition)
    run_pass(partition, PASS_MS)
    assert stored_bytes(partition) == once


@pytest.mark.parametrize("seed", SEEDS)
def test_producers_stay_known(seed: int) -> None:
    """Whoever has only the compacted log, no snapshot, knows every producer's last sequence."""
    partition = filled(seed)
    host = partition.host
    assert isinstance(host, SimulatedHost)
    run_pass(partition, PASS_MS)
    run_pass(partition, PASS_MS + RETENTION_MS)
    states = last_batches(partition)
    assert states
    partition.close()
    for entry in host.fs.list_directory(DIRECTORY):
        if entry.name.endswith(".snapshot"):
            host.fs.remove(f"{DIRECTORY}/{entry.name}")
    assert last_batches(opened(host, recovery_point=0)) == states


def test_the_active_segment_is_not_touched() -> None:
    """Nor is anything that an open transaction holds back."""
    partition = filled(1, has_transactions=False)
    filler = Filler(partition, random.Random(1))
    open_since = partition.end_offset
    filler.append(30, is_transactional=True)
    filler.append(-1)
    partition.log.roll()
    filler.append(-1)
    assert partition.last_stable_offset == open_since
    assert run_pass(partition, PASS_MS).end_offset == open_since
    kept = [record.offset for record in partition.read_records(open_since, 1000)]
    assert kept == list(range(open_since, partition.end_offset))


@pytest.mark.parametrize("seed", range(6))
def test_a_full_map_ends_the_pass_early(seed: int) -> None:
    """What was mapped is cleaned; the next pass goes on there and the end is the same."""
    partition = filled(seed, has_transactions=False)
    before = committed(partition)
    bound = partition.log.active.base_offset
    limits = CompactionLimits(buffer_bytes=24 * 5, load_factor=1.0)
    checkpoint, passes = 0, 0
    while checkpoint < bound:
        following = run_pass(partition, PASS_MS, checkpoint, limits).end_offset
        assert checkpoint < following
        checkpoint, passes = following, passes + 1
    assert passes > 1
    assert committed(partition) == survivors(before, bound)


def test_small_segments_are_put_together() -> None:
    """As many as fit into one; the snapshots of those that are gone go too."""
    partition = filled(3, 120, has_transactions=False)
    count = len(partition.log.segments)
    run_pass(partition, PASS_MS)
    run_pass(partition, PASS_MS)
    bases = list(partition.log.segments)
    assert len(bases) < count / 2
    assert set(partition.history.snapshots) <= {*bases, partition.end_offset}
    for segment in partition.log.segments.values():
        assert segment.end_position <= CONFIG.segment_bytes


def test_groups_keep_to_the_size_of_a_segment_and_its_indexes() -> None:
    """The sum of the data, and of each index, is what one segment may have."""
    partition = filled(4, 100)
    segments = list(partition.log.segments.values())[:-1]
    small = attrs.evolve(CONFIG, segment_index_bytes=24)
    for config in (CONFIG, small, attrs.evolve(CONFIG, segment_bytes=4000)):
        groups = grouped(segments, config, partition.log.active.base_offset)
        assert [s for group in groups for s in group] == segments
        for group in groups[:-1]:
            for sizes, limit in (
                ([s.end_position for s in group], config.segment_bytes),
                ([s.offset_index.size_bytes for s in group], config.segment_index_bytes),
                ([s.time_index.size_bytes for s in group], config.segment_index_bytes),
            ):
                assert len(group) == 1 or sum(sizes) <= limit


def test_a_segment_keeps_the_time_of_its_newest_part() -> None:
    """Retention by time and the age of old tombstones go by it."""
    partition = filled(5)
    fs = partition.host.fs
    for number, segment in enumerate(list(partition.log.segments.values())):
        fs.set_modified_ms(segment.path, START_MS + number)
    groups = grouped(
        list(partition.log.segments.values())[:-1], CONFIG, partition.log.active.base_offset
    )
    expected = {group[0].base_offset: fs.modified_ms(group[-1].path) for group in groups}
    run_pass(partition, PASS_MS)
    found = {
        base: fs.modified_ms(segment.path)
        for base, segment in partition.log.segments.items()
        if base in expected
    }
    assert found == expected


def test_records_can_be_looked_up_in_what_was_compacted() -> None:
    """Every offset, also one in a hole, leads to the next record; every time to its record."""
    partition = filled(6)
    run_pass(partition, PASS_MS)
    records = partition.read_records(partition.start_offset, 10_000)
    for offset in range(partition.start_offset, partition.end_offset):
        expected = [record.offset for record in records if record.offset >= offset]
        assert [r.offset for r in partition.read_records(offset, 10_000)] == expected
    newest = max(record.timestamp_ms for record in records)
    found = partition.find_max_timestamp()
    assert found is not None
    assert found.timestamp_ms == newest


def test_damage_stops_a_pass_and_leaves_the_log() -> None:
    """A batch with a wrong CRC is not copied under a new one; nothing half done stays behind."""
    partition = filled(7)
    host = partition.host
    assert isinstance(host, SimulatedHost)
    segment = partition.log.segments.values()[0]
    host.fs.damage(segment.path, 70, b"\xff\xff")
    names = [entry.name for entry in host.fs.list_directory(DIRECTORY)]
    with pytest.raises(CorruptEntryError):
        run_pass(partition, PASS_MS)
    assert [entry.name for entry in host.fs.list_directory(DIRECTORY)] == names
    assert partition.log.refusal is None


def test_a_segment_that_went_meanwhile_is_not_brought_back() -> None:
    """Retention may be quicker: the copy is given up."""
    partition = filled(8)
    cleanable = find_cleanable(partition, 0, PASS_MS)
    compaction = Compaction(cleanable, PASS_MS, CompactionLimits())
    start = partition.log.segments.keys()[2]
    for step in compaction.steps():
        if step is not None:
            partition.delete_records(start)
            assert partition.retain()
            with pytest.raises(MissingSegmentError):
                step.apply()
            break
    compaction.abandon()
    assert partition.start_offset == start
    host = partition.host
    assert not [e for e in host.fs.list_directory(DIRECTORY) if ".cleaned" in e.name]
    assert partition.log.refusal is None


def test_a_dry_pass_counts_and_writes_nothing() -> None:
    """What it says would stay is what then stays."""
    partition = filled(9)
    cleanable = find_cleanable(partition, 0, PASS_MS)
    before = stored_bytes(partition)
    dry = Compaction(cleanable, PASS_MS, CompactionLimits(), is_dry=True)
    compact(dry)
    assert stored_bytes(partition) == before
    assert run_pass(partition, PASS_MS, 0).tally == dry.tally
    assert dry.bytes_done == dry.bytes_in_all


@pytest.mark.parametrize(
    ("buffer_bytes", "load_factor", "keys"),
    [(240, 0.9, 9), (1, 0.9, 1), (240, 1e300, 2**31 - 1), (1 << 40, float("inf"), 2**31 - 1)],
)
def test_how_many_keys_a_map_holds(buffer_bytes: int, load_factor: float, keys: int) -> None:
    """No more than Java's ints count, whatever the settings say."""
    assert key_count_max(buffer_bytes, load_factor) == keys
