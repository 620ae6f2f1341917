"""``verify`` cut into tasks for workers: what is found is the same, what comes back is small."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.inspection.verification.directory_check import DirectoryCheck
from logstore.tools.inspection.verification.segment_task import ScannedSegment, SegmentTask
from tests.segments.kafka.golden_case import GOLDEN
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.tools.command_line import CommandLine

SMALL_BYTES = 2_000
ValueT = TypeVar("ValueT")


def travelled(values: list[ValueT]) -> list[ValueT]:
    """Return the values as another process would see them."""
    there: list[ValueT] = pickle.loads(pickle.dumps(values))  # noqa: S301 - our own
    return there


def scan_pickled(
    fs: object, partitions: Sequence[Sequence[SegmentTask]], progress: object
) -> Iterator[list[ScannedSegment | None]]:
    """Scan as Spark does: tasks and outcomes travel as pickles, and later ones are done first."""
    del fs, progress
    from logstore.tools.inspection.verification.spark_scans import scan_here

    done = [travelled(scan_here(travelled(list(tasks)))) for tasks in reversed(partitions)]
    yield from reversed(done)


@pytest.mark.parametrize(
    ("data", "is_damaged"),
    [("crash-4.3/data-before", True), ("kafka-4.3/data", False), ("legacy-3.9/data", False)],
)
def test_findings_are_the_same_wherever_segments_are_scanned(data: str, is_damaged: bool) -> None:
    """Damaged and whole directories of real brokers: every finding, in the same order."""
    directory = GOLDEN / data
    check = DirectoryCheck(system_host().fs, str(directory))

    here = list(check.findings())
    there = list(check.findings(None, scan_pickled))

    assert there == here
    assert any(finding.is_damage for finding in here) == is_damaged


def test_what_a_scan_returns_does_not_grow_with_its_indexes(tmp_path: Path) -> None:
    """A segment with a thousand index entries comes back in a few hundred bytes."""
    store = KafkaStore(system_host(), str(tmp_path / "data"))
    topic = store.create_topic("orders", 1, {"index.interval.bytes": "1"})
    for number in range(1_000):
        batch = encode_batch([Record(0, 1_700_000_000_000 + number, None, b"v")])
        topic.partitions[0].append_produced(memoryview(bytearray(batch)), 1_700_000_000_000)
    store.close()
    check = DirectoryCheck(system_host().fs, str(tmp_path / "data" / "orders-0"))
    sizes: list[int] = []

    def scan_measured(
        fs: object, partitions: Sequence[Sequence[SegmentTask]], progress: object
    ) -> Iterator[list[ScannedSegment | None]]:
        for scanned in scan_pickled(fs, partitions, progress):
            sizes.append(len(pickle.dumps(scanned)))
            (segment,) = scanned
            assert segment is not None
            assert segment.scan.batch_count == 1_000
            yield scanned

    assert list(check.findings(None, scan_measured)) == []
    assert max(sizes) < SMALL_BYTES


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_master_without_spark_is_this_process(layout: str, logstore: CommandLine) -> None:
    """``--master none`` is verify as it is without, for scripts that always name one."""
    is_kafka = layout == "kafka"
    directory = GOLDEN / "kafka-4.3" / "data" if is_kafka else GoldenCase("plain", "5.5.0").store

    plain = logstore("verify", directory, "--json")
    named = logstore("verify", directory, "--json", "--master", "none")

    assert (named.out, named.exit_code) == (plain.out, plain.exit_code)
