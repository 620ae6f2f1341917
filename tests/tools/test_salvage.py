"""``logstore salvage`` keeps every good batch around bad ones, in a clean partition."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.inspection.rebuilding.partition_salvage import PartitionSalvage, Salvaged
from tests.segments.kafka.golden_case import GOLDEN, copy_of_data
from tests.tools.command_line import CommandLine

CRASHED = GOLDEN / "crash-4.3/data-before"


def batches(folder: Path) -> list[bytes]:
    """Return the batches of all logs, in order."""
    return [
        bytes(batch.data)
        for path in sorted(folder.glob("*.log"))
        for batch in iterate_entries(memoryview(path.read_bytes()))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a partition that may be damaged: offsets 0 to 178 in 13 segments."""
    return copy_of_data("kafka-4.3", tmp_path) / "plain-0"


def test_only_the_damaged_batches_are_missing(
    folder: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """A wrong byte, a wrong length and a torn end cost their own batches and no others."""
    logs = sorted(folder.glob("*.log"))
    before = [batches_of(log) for log in logs]
    flip(logs[1], before[1], 2, 70)  # a record
    flip(logs[3], before[3], 1, 9)  # a length
    logs[-1].write_bytes(logs[-1].read_bytes()[:-5])
    expected = [
        data
        for number, found in enumerate(before)
        for place, data in enumerate(found)
        if (number, place) not in {(1, 2), (3, 1), (len(before) - 1, len(found) - 1)}
    ]
    target = tmp_path / "rescued/plain-0"
    outcome = logstore("salvage", "--json", folder, "--into", target)
    assert outcome.exit_code == 0, outcome.err
    assert batches(target) == expected
    losses = outcome.json_lines
    assert [line["file"] for line in losses] == [logs[1].name, logs[3].name, logs[-1].name]
    assert losses[0]["position"] == sum(map(len, before[1][:2]))
    assert losses[0]["bytes"] == len(before[1][2])
    offset = int.from_bytes(before[1][2][:8], "big")
    following = int.from_bytes(before[1][3][:8], "big")
    assert (losses[0]["firstOffset"], losses[0]["lastOffset"]) == (offset, following - 1)
    assert losses[2]["lastOffset"] is None
    assert logstore("verify", target).exit_code == 0


def batches_of(log: Path) -> list[bytes]:
    """Return the batches of one log."""
    return [bytes(b.data) for b in iterate_entries(memoryview(log.read_bytes()))]


def flip(log: Path, found: list[bytes], place: int, at: int) -> None:
    """Change one byte of a batch."""
    data = bytearray(log.read_bytes())
    data[sum(map(len, found[:place])) + at] ^= 0x40
    log.write_bytes(data)


def test_a_clean_partition_is_copied_byte_for_byte(
    folder: Path, tmp_path: Path, logstore: CommandLine
) -> None:
    """Logs and all that is beside them are the same; nothing is reported lost."""
    target = tmp_path / "copy"
    outcome = logstore("salvage", folder, "--into", target)
    assert outcome.exit_code == 0
    assert outcome.lines[-1].endswith("offsets 0 to 178; nothing was lost")
    same = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {path.name: path.read_bytes() for path in target.iterdir()} == same


def test_the_crashed_directory_becomes_a_clean_one(tmp_path: Path, logstore: CommandLine) -> None:
    """Of 23 damages each good batch is kept; a lost segment's offsets leave a gap inside of one."""
    target = tmp_path / "rescued"
    outcome = logstore("salvage", "--json", CRASHED, "--into", target)
    assert outcome.exit_code == 0, outcome.err
    verified = logstore("verify", "--json", target)
    assert verified.exit_code == 0
    assert {line["kind"] for line in verified.json_lines} <= {"hole", "hanging-transaction"}
    damages = json.loads((CRASHED.parent / "cases/crash/damage.json").read_text())
    partition = {line["damage"]: f"crash-{line['partition']}" for line in damages}
    (lost,) = [
        line
        for line in outcome.json_lines
        if line["file"].startswith(f"{partition['missing_segment']}/")
    ]
    assert (lost["bytes"], lost["firstOffset"], lost["lastOffset"]) == (0, 10, 14)
    bases = sorted(int(path.stem) for path in (target / partition["missing_segment"]).glob("*.log"))
    assert bases[:2] == [0, 10]
    swapped = batches(target / partition["swap"])
    offsets = [int.from_bytes(data[:8], "big") for data in swapped]
    assert 10 in offsets, "a complete .swap is a segment"


def test_our_store_opens_what_was_rescued(tmp_path: Path, logstore: CommandLine) -> None:
    """The new directory is a data directory: every partition opens and ends where it was said."""
    target = tmp_path / "rescued"
    assert logstore("salvage", CRASHED, "--into", target).exit_code == 0
    listed = logstore("ls", "--json", target)
    assert listed.exit_code == 0, listed.err
    views = {(view["topic"], view["partition"]): view["end"] for view in listed.json["partitions"]}
    store = KafkaStore(system_host(), str(target), StoreOptions())
    try:
        for partition in range(23):
            opened = store.partition("crash", partition)
            assert opened.end_offset == views["crash", partition]
            assert sum(1 for _ in opened.batches()) == len(batches(target / f"crash-{partition}"))
    finally:
        store.close()


def test_a_salvage_that_is_stopped_leaves_nothing(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some partitions are no data directory: after Ctrl-C there is none, and the next run works."""
    source, target = copy_of_data("kafka-4.3", tmp_path), tmp_path / "rescued"
    run, done = PartitionSalvage.run, list[object]()

    def stop(self: PartitionSalvage, note: Callable[[int], None]) -> Salvaged:
        if done:
            raise KeyboardInterrupt
        done.append(self)
        return run(self, note)

    with monkeypatch.context() as patched:
        patched.setattr(PartitionSalvage, "run", stop)
        assert logstore("salvage", source, "--into", target).exit_code == 130
    assert done
    assert not target.exists()
    assert logstore("salvage", source, "--into", target).exit_code == 0
    assert (target / "meta.properties").exists()


def test_targets_are_checked(folder: Path, tmp_path: Path, logstore: CommandLine) -> None:
    """A directory that has something in it, or that is inside of the source, is refused."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes").write_text("mine")
    assert logstore("salvage", folder, "--into", full).exit_code == 2
    assert logstore("salvage", folder, "--into", folder / "x").exit_code == 2
    assert logstore("salvage", folder).exit_code == 2
    assert "logstore salvage data/orders-0 --into rescued/orders-0" in (
        logstore("salvage", "--help").out
    )
