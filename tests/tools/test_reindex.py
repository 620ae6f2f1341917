"""``logstore reindex`` makes what stands beside the logs anew, as the broker had written it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.inspection.rebuilding import sparse_copy
from logstore.tools.inspection.rebuilding.sparse_copy import copy_sparsely
from tests.segments.kafka.golden_case import GOLDEN, copy_of_data
from tests.tools.command_line import CommandLine

DERIVED = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint")
SETS = ("kafka-4.3", "kafka-3.9", "transactions-4.3", "legacy-3.9")
#: what no log tells any more: producers whose batches retention or the cleaner took, epochs of
#: leaders that wrote nothing
UNKNOWN = {
    "kafka-4.3": {
        "compacted-0/00000000000000000145.snapshot",
        "delete-records-0/00000000000000000080.snapshot",
        "retention-bytes-0/00000000000000000063.snapshot",
        "retention-ms-0/00000000000000000067.snapshot",
    },
    "transactions-4.3": {
        "__consumer_offsets-0/leader-epoch-checkpoint",
        *(f"compacted-0/{offset:020d}.snapshot" for offset in (154, 169, 183, 198, 207)),
    },
    "legacy-3.9": {"__consumer_offsets-0/leader-epoch-checkpoint"},
}
#: of these no metadata tells the interval: the topics had 200 bytes, these the default
DEFAULT_INTERVAL = {"magic0-log-append-time-0", "magic1-log-append-time-0"}


def content(directory: Path) -> dict[str, bytes]:
    """Return all files below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def differences(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """Return the files that are not the same."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.mark.parametrize("set_name", SETS)
def test_all_derived_files_come_back_byte_for_byte(
    set_name: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """From the logs alone: every index, snapshot and epoch, with the intervals of the metadata."""
    directory = copy_of_data(set_name, tmp_path)
    before = content(directory)
    for pattern in DERIVED:
        for path in directory.glob(f"*-*/{pattern}"):
            path.unlink()
    options = ("--index-interval-bytes", 200) if set_name == "legacy-3.9" else ()
    outcome = logstore("reindex", *options, directory)
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert all(": made: was missing, now " in line for line in outcome.lines)
    different = differences(before, content(directory))
    if set_name == "legacy-3.9":
        different = {name for name in different if name.split("/")[0] not in DEFAULT_INTERVAL}
    assert different == UNKNOWN.get(set_name, set())


@pytest.mark.parametrize("set_name", SETS)
def test_what_is_right_stays(set_name: str, tmp_path: Path, logstore: CommandLine) -> None:
    """Nothing of a clean directory is written to; --json names every file all the same."""
    directory = copy_of_data(set_name, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    outcome = logstore("reindex", "--json", directory)
    assert outcome.exit_code == 0
    assert {line["outcome"] for line in outcome.json_lines} == {"unchanged"}
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a partition with transactions that may be damaged."""
    return copy_of_data("kafka-4.3", tmp_path) / "transactions-0"


def test_wrong_files_are_replaced(folder: Path, logstore: CommandLine) -> None:
    """Garbage in one file of each kind; the same bytes as before afterwards, and the logs stay."""
    before = content(folder)
    wrong = [max(folder.glob(pattern)) for pattern in DERIVED]
    for path in wrong:
        path.write_bytes(b"\xffgarbage" * 3)
    told = logstore("reindex", "--dry-run", folder)
    assert sum("would be replaced" in line for line in told.lines) == len(wrong)
    assert all(path.read_bytes().startswith(b"\xff") for path in wrong)
    outcome = logstore("reindex", folder)
    assert outcome.exit_code == 0
    assert len(outcome.lines) == len(wrong)
    assert differences(before, content(folder)) == set()


def test_the_interval_follows_from_what_is_left(tmp_path: Path, logstore: CommandLine) -> None:
    """A partition alone has no metadata: the entries that are there tell where others belong."""
    source = copy_of_data("kafka-4.3", tmp_path) / "plain-0"
    folder = source.rename(tmp_path / "plain-0")
    before = content(folder)
    (folder / f"{14:020d}.index").unlink()
    (folder / f"{29:020d}.timeindex").write_bytes(b"")
    assert logstore("reindex", folder).exit_code == 0
    assert differences(before, content(folder)) == set()


def test_a_copy_may_be_worked_on(folder: Path, tmp_path: Path, logstore: CommandLine) -> None:
    """With --into the original stays as it is, wrong files and all."""
    before = content(folder)
    index = max(folder.glob("*.index"))
    index.write_bytes(b"\xff" * 8)
    copy = tmp_path / "copy"
    assert logstore("reindex", "--into", copy, folder).exit_code == 0
    assert differences(before, content(copy)) == set()
    assert index.read_bytes() == b"\xff" * 8
    assert logstore("reindex", "--into", copy, folder).exit_code == 2
    assert logstore("reindex", "--into", folder / "inside", folder).exit_code == 2


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(OSError(errno.ENOSPC, "No space left on device", "x.log"), 1), (KeyboardInterrupt(), 130)],
)
def test_half_a_copy_does_not_stay(
    error: BaseException,
    exit_code: int,
    folder: Path,
    tmp_path: Path,
    logstore: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full disk is told once, and not for every file; what was copied goes."""
    copied = list[str]()

    def copy(source: str, target: str) -> str:
        copied.append(source)
        if len(copied) > 3:
            raise error
        return copy_sparsely(source, target)

    monkeypatch.setattr(sparse_copy, "copy_sparsely", copy)
    outcome = logstore("reindex", "--into", tmp_path / "copy", folder)
    assert outcome.exit_code == exit_code
    assert len(copied) == 4
    assert not (tmp_path / "copy").exists()
    if exit_code == 1:
        why = "x.log: No space left on device; make room on that disk"
        told = f"logstore: {folder}: cannot be copied to {tmp_path / 'copy'}: {why}\n"
        assert outcome.err == told


def test_a_damaged_log_is_left_alone(folder: Path, logstore: CommandLine) -> None:
    """What is behind a damage is not known: nothing of the partition is written."""
    log = sorted(folder.glob("*.log"))[2]
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    index = log.with_suffix(".index")
    index.unlink()
    outcome = logstore("reindex", folder)
    assert outcome.exit_code == 1
    assert f"{log}: position 0: the CRC is" in outcome.err
    assert not index.exists()


def test_a_directory_in_use_is_refused(tmp_path: Path, logstore: CommandLine) -> None:
    """While a broker has the lock nothing is written."""
    directory = tmp_path / "live"
    store = KafkaStore(system_host(), str(directory), StoreOptions())
    store.create_topic("busy", 1, {})
    try:
        outcome = logstore("reindex", directory)
        assert outcome.exit_code == 1
        assert "in use by process" in outcome.err
    finally:
        store.close()
    assert logstore("reindex", directory).exit_code == 0


def test_the_set_with_restarts_keeps_what_the_logs_do_not_tell(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Epochs without a record, forgotten producers, entries that a restart put elsewhere: all."""
    directory = copy_of_data("epochs-4.3", tmp_path)
    assert logstore("reindex", directory).exit_code == 0
    before, after = content(GOLDEN / "epochs-4.3/data"), content(directory)
    assert differences(before, after) == set()
    assert logstore("verify", directory).exit_code == 0


def test_long_steps_of_the_cleaner_stay(tmp_path: Path, logstore: CommandLine) -> None:
    """Where it was, an index with right entries is right, however few they are; else not."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    for topic, outcome in (("compacted", "unchanged"), ("plain", "replaced")):
        folder = directory / f"{topic}-0"
        index = max(folder.glob("*.index"), key=lambda path: path.stat().st_size)
        entries = [index.read_bytes()[at : at + 8] for at in range(0, index.stat().st_size, 8)]
        assert len(entries) > 1
        index.write_bytes(b"".join(entries[1:]))
        told = logstore("reindex", "--json", "--dry-run", directory).json_lines
        (line,) = [one for one in told if one["file"] == f"{folder.name}/{index.name}"]
        assert line["outcome"] == outcome


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, logstore: CommandLine) -> None:
    """What cannot be read of the source is named, and what was copied until then goes."""
    data = copy_of_data("epochs-4.3", tmp_path)
    broken = data / "gone.log"
    broken.symlink_to(tmp_path / "nowhere")
    outcome = logstore("reindex", "--into", tmp_path / "copy", data)
    assert outcome.exit_code == 1
    assert "cannot be copied to" in outcome.err
    assert str(broken) in outcome.err
    assert not (tmp_path / "copy").exists()
