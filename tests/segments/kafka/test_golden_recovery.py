"""What a real broker made of damaged directories, and what we make of them: the same bytes."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from logstore.errors import CorruptEntryError
from logstore.host import Host
from logstore.os_host import system_host
from logstore.segments.kafka import checkpoints
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch, iterate_batches
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
        host,
        files,
        "crash",
        damage.partition,
        recovery_point=points.get(("crash", damage.partition), 0),
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


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_what_was_recovered_reads_as_the_real_consumer_read_it(
    damage: Damage, tmp_path: Path
) -> None:
    """Every record that is left, committed or not; where Kafka's consumer failed, ours does too."""
    partition = recovered(damage, tmp_path)
    told = UNREADABLE.get(str(damage.partition), "")
    if told.startswith(ENDLESS):
        return
    start, stable = CASE.watermarks[damage.partition]
    assert (partition.start_offset, partition.last_stable_offset) == (start, stable)
    if told:
        with pytest.raises(CorruptEntryError, match=r"00000000000000000000\.log: position 0: CRC"):
            list(partition.batches())
        return
    expected = [r for r in CASE.expected if r["partition"] == damage.partition]
    everything = by_place(decoded(partition.batches()))
    committed = by_place(decoded(partition.committed_batches()))
    assert everything == by_place((r["offset"], r["timestamp"], r["key"]) for r in expected)
    assert committed == by_place(
        (r["offset"], r["timestamp"], r["key"]) for r in expected if r["read_committed"]
    )


Place = tuple[int, int, str | None]
UNREADABLE: dict[str, str] = CASE.content["expect"].get("unreadable", {})
#: Kafka may take a base offset that cannot be right for its high watermark: its consumer waits for
#: what never comes, and there is nothing to compare with
ENDLESS = "no end of"


def decoded(batches: Iterable[RecordBatch]) -> Iterator[Place]:
    """Yield what tells a record of this set from all others."""
    for batch in batches:
        if not batch.is_control:
            for record in decode_records(batch.data):
                key = None if record.key is None else base64.b64encode(record.key).decode()
                yield record.offset, record.timestamp_ms, key


def by_place(records: Iterable[Place]) -> list[Place]:
    """Sort by offset: where one is wrong they do not stand in order."""
    return sorted(records, key=lambda record: record[0])


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_what_was_cut_is_told_and_kept(damage: Damage, tmp_path: Path) -> None:
    """Kafka logs a cut and forgets the bytes; here they stand in a file beside, byte for byte."""
    name = f"crash-{damage.partition}"
    outcome = recovered(damage, tmp_path).recovery
    assert outcome is not None
    before, after = contents_of(SET / "data-before" / name), contents_of(SET / "data" / name)
    logs = sorted(file for file in before if file.endswith(".log"))
    cut = b"".join(before[file][len(after.get(file, b"")) :] for file in logs)
    assert outcome.dropped_bytes == len(cut)
    kept = b"".join(Path(path).read_bytes() for path in outcome.kept_aside)
    assert kept == (cut if any(cut) else b"")
    assert bool(outcome.reason) == bool(cut)


def test_an_offset_that_cannot_be_right_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka takes it in silence; here the log says in which file and where it stands."""
    damage = next(damage for damage in DAMAGES if damage.name == "flip_active_offset")
    active = max((SET / "data-before" / f"crash-{damage.partition}").glob("*.log"))
    recovered(damage, tmp_path)
    (warning,) = [
        r.getMessage() for r in caplog.records if "base offset is wrong" in r.getMessage()
    ]
    assert f"{active.name}: the batch before position" in warning
