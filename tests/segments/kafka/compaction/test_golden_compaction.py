"""What the real cleaner made of a log, ours makes of it too, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments.kafka.compaction import (
    Compaction,
    CompactionLimits,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing.manual_clock import ManualClock
from tests.segments.kafka.golden_case import GoldenCase

SETS = ("kafka-4.3", "kafka-3.9", "transactions-4.3")
COMPARED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
#: how many passes the broker made after the first one
LATER_PASSES = {"kafka-4.3": 1, "kafka-3.9": 1, "transactions-4.3": 2}
#: when the records were written; a day later their producers would be forgotten
DATA_TIME_MS = 1_700_000_000_000


@pytest.fixture(params=SETS)
def case(request: pytest.FixtureRequest) -> GoldenCase:
    """The compacted topic of one set."""
    return GoldenCase(request.param, "compacted")


def data_host() -> Host:
    """Return the real disk, and a clock that stands still while the data are young."""
    host = system_host()
    return Host(host.fs, ManualClock(wall_ms=DATA_TIME_MS), host.rng)


def batches_of(folder: Path) -> list[RecordBatch]:
    """Return the batches of all data files in order."""
    return [
        batch
        for path in sorted(folder.glob("*.log"))
        for batch in iterate_batches(memoryview(path.read_bytes()))
    ]


def time_of_pass(before: Path, after: Path, retention_ms: int) -> int:
    """Return when a pass ran: the horizons that it set say so."""
    known = {batch.delete_horizon_ms for batch in batches_of(before)}
    set_then = {batch.delete_horizon_ms for batch in batches_of(after)} - known
    (horizon_ms,) = set_then - {None}
    assert horizon_ms is not None
    return horizon_ms - retention_ms


def time_of_second_pass(earlier: Path, later: Path) -> int:
    """Return when the second pass ran, or a time that was the same to it."""
    known = {batch.delete_horizon_ms for batch in batches_of(earlier)} - {None}
    found = {batch.delete_horizon_ms for batch in batches_of(later)} - {None}
    new = [horizon for horizon in found - known if horizon is not None]
    if new:
        return min(new)  # the retention was set to 0 for this pass
    return max(horizon for horizon in known if horizon is not None) + 1


def opened(case: GoldenCase, folder: Path, target: Path) -> KafkaPartition:
    """Copy the files of a running broker's partition and open them, the active indexes cut."""
    shutil.copytree(folder, target)
    for path in target.iterdir():
        path.chmod(0o644)
    active = max(target.glob("*.log"))
    for extension in (".index", ".timeindex"):
        active.with_suffix(extension).write_bytes(b"")  # preallocated; recovery builds it anew
    host = data_host()
    files = SegmentFiles(host, str(target), case.config, is_clean=False)
    return KafkaPartition(host, files, case.topic, 0, recovery_point=int(active.stem))


def run_pass(
    partition: KafkaPartition, checkpoint: int, now_ms: int, *, is_fast: bool = False
) -> Compaction:
    """Compact the partition, whatever its ratio."""
    cleanable = find_cleanable(partition, checkpoint, now_ms)
    compaction = Compaction(cleanable, now_ms, CompactionLimits(), is_fast=is_fast)
    compact(compaction)
    return compaction


def contents(folder: Path, bases: Iterable[str]) -> dict[str, bytes]:
    """Return the files of these segments by name."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.suffix in COMPARED and path.stem in bases
    }


@pytest.mark.parametrize("is_fast", [False, True], ids=["plain", "fast"])
def test_the_first_pass_is_the_real_one(case: GoldenCase, tmp_path: Path, is_fast: bool) -> None:
    """Every file of every sealed segment, snapshots too, is what the broker's cleaner left."""
    before = case.folder / "before" / "compacted-0"
    after = case.folder / "pass-1" / "compacted-0"
    now_ms = time_of_pass(before, after, case.config.delete_retention_ms)
    partition = opened(case, before, tmp_path / "compacted-0")
    active = partition.log.active.base_offset

    compaction = run_pass(partition, 0, now_ms, is_fast=is_fast)

    assert compaction.end_offset == active
    sealed = {path.stem for path in after.glob("*.log")} - {f"{active:020d}"}
    found = {path.stem for path in (tmp_path / "compacted-0").glob("*.log")}
    assert found - {f"{active:020d}"} == sealed
    expected = contents(after, sealed)
    assert contents(tmp_path / "compacted-0", sealed) == expected
    active_log = f"{active:020d}.log"
    assert (tmp_path / "compacted-0" / active_log).read_bytes() == (after / active_log).read_bytes()


def test_later_passes_are_the_real_ones(case: GoldenCase, tmp_path: Path) -> None:
    """
    What the first pass left is merged, thinned out and marked as the broker's cleaner did it.

    A marker without data gets its horizon in the second pass, and goes in the third.

    Of what was written in between only the survivors are known, but those decide which of the
    older records are superseded.
    """
    earlier = case.folder / "pass-1" / "compacted-0"
    later = case.partition_folders[0]
    target = tmp_path / "joined"
    shutil.copytree(later, target)
    old = sorted(path.stem for path in earlier.glob("*.log"))
    first_dirty = old[-1]
    for path in target.iterdir():
        path.chmod(0o644)
        if path.stem < first_dirty and path.suffix in COMPARED:
            path.unlink()
    for path in earlier.iterdir():
        if path.stem in old[:-1] and path.suffix in COMPARED:
            shutil.copy(path, target / path.name)
            (target / path.name).chmod(0o644)
    now_ms = time_of_second_pass(earlier, later)
    host = data_host()
    partition = KafkaPartition(host, SegmentFiles(host, str(target), case.config), "compacted", 0)
    partition.reconfigure(attrs.evolve(case.config, delete_retention_ms=0))
    for number in range(LATER_PASSES[case.set_name]):
        run_pass(partition, int(first_dirty), now_ms + number)

    bound = int(first_dirty)
    kept = [bytes(batch.data) for batch in batches_of(target) if batch.base_offset < bound]
    assert kept == [bytes(b.data) for b in batches_of(later) if b.base_offset < bound]
    bases = [f"{base:020d}" for base in partition.log.segments if base < bound]
    assert len(bases) < len(old) - 1, "the pass has merged segments"
    if LATER_PASSES[case.set_name] == 1:  # more passes merge more: what came later was larger then
        assert contents(target, bases) == contents(later, bases)


def test_a_consumer_finds_what_it_found_then(case: GoldenCase, tmp_path: Path) -> None:
    """The records that the real broker served after its passes survive another one of ours."""
    target = tmp_path / "compacted-0"
    shutil.copytree(case.partition_folders[0], target)
    for path in target.iterdir():
        path.chmod(0o644)
    host = data_host()
    partition = KafkaPartition(host, SegmentFiles(host, str(target), case.config), "compacted", 0)
    run_pass(partition, 0, 0)
    offsets = [
        record.offset
        for batch in partition.committed_batches()
        if not batch.is_control
        for record in decode_records(batch.data)
    ]
    expected = [record["offset"] for record in case.expected if record["read_committed"]]
    assert offsets == expected
    described = json.loads((case.folder / "case.json").read_text())
    assert re.fullmatch(r"[34]\.\d\.\d", described["kafka_version"])
