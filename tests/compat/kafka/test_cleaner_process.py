"""The cleaner in a process of its own: what it leaves, and what its death leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from logstore.compat.kafka.cleaner_process import (
    InChildProcess,
    UncleanableLogError,
    place_for,
)
from logstore.errors import StorageError
from logstore.os_host import system_host
from logstore.segments.kafka.compaction import (
    Cleaner,
    Compaction,
    CompactionLimits,
    InterruptedPassError,
    InThisProcess,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.compaction.compaction_plan import CompactionPlan
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost
from tests.segments.kafka.compaction.compacted_log import START_MS, Filler, stored_bytes

LIMITS = CompactionLimits()
CONFIG = LogConfig(
    cleanup_policy=("compact",), segment_bytes=60_000, index_interval_bytes=500,
    min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000, file_delete_delay_ms=0,
)  # fmt: skip
NOW_MS = START_MS + 10_000_000


def opened(directory: Path) -> KafkaPartition:
    """Open or create a partition on the real disk."""
    directory.mkdir(exist_ok=True)
    files = SegmentFiles(system_host(), str(directory), CONFIG, is_clean=True)
    return KafkaPartition(files.host, files, "c", 0)


def filled(directory: Path) -> KafkaPartition:
    """Return a dirty log of several segments, with transactions, tombstones and all codecs."""
    partition = opened(directory)
    Filler(partition, random.Random(5), key_count=60).write(2500)
    partition.log.roll()
    return partition


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[KafkaPartition]:
    """A dirty log."""
    partition = filled(tmp_path / "c-0")
    yield partition
    partition.log.close()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[InChildProcess]:
    """A place that starts a child for however little."""
    monkeypatch.setattr("logstore.compat.kafka.cleaner_process.SMALL_BYTES_MAX", 0)
    place = InChildProcess()
    yield place
    place.rest()


@attrs.define
class Turns:
    """Does a cleaner's work at once, and counts the turns; `before` is told of each one."""

    before: Callable[[int], None] = lambda _: None
    count: int = 0

    def offload(
        self, work: Callable[[], None], done: Callable[[BaseException | None], None]
    ) -> None:
        """Do the work, then tell what became of it."""
        self.before(self.count)
        self.count += 1
        error: BaseException | None = None
        try:
            work()
        except Exception as failure:  # noqa: BLE001 - handed on, as a server does
            error = failure
        done(error)


def cleaner_of(partition: KafkaPartition, place: InChildProcess, turns: Turns) -> Cleaner:
    """Return a cleaner of one partition."""
    directory = str(Path(partition.files.directory).parent)
    return Cleaner(
        partition.host, directory, lambda: [partition], lambda: turns.offload, LIMITS, place
    )


def file_contents(directory: str) -> dict[str, bytes]:
    """Return the files of the log: those that were replaced are on their way out."""
    return {
        path.name: path.read_bytes()
        for path in Path(directory).iterdir()
        if not path.name.endswith(".deleted")
    }


def leftovers(partition: KafkaPartition) -> list[str]:
    """Return the names of files that should not be there."""
    names = os.listdir(partition.files.directory)
    return [name for name in names if name.endswith((".cleaned", ".swap"))]


def test_a_child_leaves_what_this_process_would(
    partition: KafkaPartition, place: InChildProcess, tmp_path: Path
) -> None:
    """Every file is the same to the byte, and so is the tally."""
    twin = filled(tmp_path / "twin-0")
    here = Compaction(find_cleanable(twin, None, NOW_MS), NOW_MS, LIMITS)
    compact(here)
    there = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    replaced = 0
    for step in there.steps():
        if step is not None:
            step.apply()
            replaced += 1
    assert replaced > 1
    assert there.tally == here.tally
    assert there.end_offset == here.end_offset
    assert 0 < there.tally.records_kept < there.tally.records_read
    assert stored_bytes(partition) == stored_bytes(twin)
    for one in (partition, twin):
        one.flush()
    assert file_contents(partition.files.directory) == file_contents(twin.files.directory)
    twin.log.close()


def test_a_cleaner_has_its_work_done_by_one_child_and_ends_it(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """The log is read from the copies at once, the checkpoint is written, nobody is left over."""
    pids: set[int] = set()

    def before(_: int) -> None:
        if place.process is not None:
            pids.add(place.process.pid)

    before_bytes = partition.log.size_bytes
    cleaner_of(partition, place, Turns(before)).clean()
    assert len(pids) == 1
    assert place.process is None
    assert partition.log.size_bytes < before_bytes / 2
    assert leftovers(partition) == []
    after = stored_bytes(partition)
    partition.close()
    again = opened(Path(partition.files.directory))
    assert stored_bytes(again) == after
    again.log.close()


def test_a_killed_child_is_followed_by_another(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """What is half done goes, the log stays as it is, and the next call begins anew."""
    before = stored_bytes(partition)

    def kill(turn: int) -> None:
        assert place.process is not None
        if turn == 0:
            os.kill(place.process.pid, signal.SIGKILL)

    turns = Turns(kill)
    cleaner = cleaner_of(partition, place, turns)
    cleaner.clean()
    assert not cleaner.is_busy
    assert partition not in cleaner.uncleanable
    assert stored_bytes(partition) == before
    assert leftovers(partition) == []
    cleaner.clean()
    assert len(stored_bytes(partition)) < len(before) / 2


def test_after_three_lost_children_the_work_is_done_here(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """Something on this machine does not let children live; logs are compacted all the same."""
    for _ in range(3):
        found = find_cleanable(partition, None, NOW_MS)
        compaction = place.begin(found, NOW_MS, LIMITS)
        assert place.process is not None
        os.kill(place.process.pid, signal.SIGKILL)
        with pytest.raises(InterruptedPassError, match="process that compacts"):
            list(compaction.steps())
        compaction.abandon()
    compaction = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    assert isinstance(compaction, Compaction)


def test_damage_that_a_child_meets_is_told_with_file_and_position(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """The log is left alone from then on, as when the broker itself meets it."""
    path = Path(partition.log.segments.values()[0].path)
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)
    compaction = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    with pytest.raises(UncleanableLogError, match=rf"{path.name}.*position 0.*CRC"):
        list(compaction.steps())
    assert leftovers(partition) == []
    cleaner = cleaner_of(partition, place, Turns())
    cleaner.clean()
    assert cleaner.uncleanable == {partition}


def test_a_segment_that_went_meanwhile_ends_the_pass_for_now(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """Retention may be quicker than the child; the log is tried again later."""
    compaction = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    partition.delete_records(partition.log.segments.keys()[2])
    partition.reconfigure(attrs.evolve(CONFIG, cleanup_policy=("compact", "delete")))
    assert partition.retain()
    with pytest.raises(FileNotFoundError):
        list(compaction.steps())
    compaction.abandon()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_child_without_a_broker_ends_by_itself(
    partition: KafkaPartition, is_killed: bool
) -> None:
    """It takes its copy along; what it leaves if it is killed too a start removes."""
    plan = CompactionPlan.of(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "logstore.compat.kafka.cleaner_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps({"plan": plan.content()}).encode() + b"\n")
    child.stdin.flush()
    while b'"copy"' not in child.stdout.readline():
        assert child.poll() is None
    if is_killed:
        child.kill()
    child.stdin.close()
    child.stdout.close()
    child.wait()
    assert (leftovers(partition) != []) is is_killed
    before = stored_bytes(partition)
    partition.flush()
    again = opened(Path(partition.files.directory))
    assert leftovers(again) == []
    assert stored_bytes(again) == before
    again.log.close()


def test_closing_a_cleaner_kills_its_child(
    partition: KafkaPartition, place: InChildProcess
) -> None:
    """A broker that stops in the middle of a pass leaves neither process nor copies."""
    pending: list[Callable[[], None]] = []
    cleaner = Cleaner(
        partition.host,
        str(Path(partition.files.directory).parent),
        lambda: [partition],
        lambda: lambda work, _: pending.append(work),
        LIMITS,
        place,
    )
    cleaner.clean()
    assert place.process is not None
    pid = place.process.pid
    pending.pop()()
    cleaner.close()
    assert place.process is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert leftovers(partition) == []


def test_a_small_log_is_compacted_here(partition: KafkaPartition) -> None:
    """It is done before a child had started."""
    place = InChildProcess()
    compaction = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    assert isinstance(compaction, Compaction)
    assert place.process is None


def test_without_an_interpreter_the_work_is_done_here(
    partition: KafkaPartition, place: InChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded Python does not know its own program."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    compaction = place.begin(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    assert isinstance(compaction, Compaction)


def test_a_simulated_world_has_no_processes() -> None:
    """Its files are nowhere else."""
    assert isinstance(place_for(SimulatedHost()), InThisProcess)
    assert isinstance(place_for(system_host()), InChildProcess)


def test_a_plan_survives_the_way_to_another_process(partition: KafkaPartition) -> None:
    """All of it, the topic's settings and the transactions included."""
    plan = CompactionPlan.of(find_cleanable(partition, None, NOW_MS), NOW_MS, LIMITS)
    assert plan.aborted
    assert plan.last_records
    assert CompactionPlan.from_content(json.loads(json.dumps(plan.content()))) == plan


def test_a_broken_off_pass_is_the_stores_kind_of_error() -> None:
    """Whoever catches what storage does catches it."""
    assert issubclass(InterruptedPassError, StorageError)
