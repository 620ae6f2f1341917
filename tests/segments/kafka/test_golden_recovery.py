"""What a real broker made of damaged directories, and what we make of them: the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import iterate_batches
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import ManualClock
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase

SET = GOLDEN / "crash-4.3"
CASE = GoldenCase("crash-4.3", "crash")
#: the restarted broker led in this epoch: a lone node's rises by two
EPOCH = 2
#: what we keep of what we cut; Kafka keeps nothing
KEPT_ASIDE = ".cut-at-"


@attrs.frozen
class Damage:
    """What was done to one partition."""

    partition: int
    name: str


DAMAGES = [
    Damage(entry["partition"], entry["damage"])
    for entry in json.loads((SET / "cases/crash/damage.json").read_text())
]


def contents_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a partition, but for those that only we write."""
    return {
        path.name: path.read_bytes() for path in directory.iterdir() if KEPT_ASIDE not in path.name
    }


def host_of_then() -> Host:
    """Return a host whose clock stands where the broker's did: the last marker was just written."""
    newest_ms = max(
        record.timestamp_ms
        for path in (SET / "data" / "crash-22").glob("*.log")
        for batch in iterate_batches(memoryview(path.read_bytes()))
        if batch.is_control
        for record in decode_records(batch.data)
    )
    return attrs.evolve(system_host(), clock=ManualClock(wall_ms=newest_ms + 60_000))


def recovered(damage: Damage, folder: Path) -> KafkaPartition:
    """Open a copy of a damaged partition as the broker did, up to where it leads."""
    name = f"crash-{damage.partition}"
    directory = folder / name
    shutil.copytree(SET / "data-before" / name, directory)
    points: Mapping[tuple[str, int], int] = checkpoints.read_offset_checkpoint(
        system_host().fs, str(SET / "data-before" / checkpoints.RECOVERY_POINT)
    )
    host = host_of_then()
    files = SegmentFiles(host, str(directory), CASE.config, is_clean=False)
    partition = KafkaPartition(
        host, files, "crash", damage.partition, recovery_point=points["crash", damage.partition]
    )
    partition.become_leader(EPOCH)
    return partition


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_recovery_leaves_the_bytes_that_the_real_broker_leaves(
    damage: Damage, tmp_path: Path
) -> None:
    """Every file of the partition after the next clean stop: same names, same bytes."""
    recovered(damage, tmp_path).close()
    found = contents_of(tmp_path / f"crash-{damage.partition}")
    expected = contents_of(SET / "data" / f"crash-{damage.partition}")
    differing = {
        name: (len(found.get(name, b"")), len(expected.get(name, b"")))
        for name in found.keys() | expected.keys()
        if found.get(name) != expected.get(name)
    }
    assert differing == {}
