"""``logstore dump`` says what Kafka's DumpLogSegments says, and more where bytes are wrong."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logstore.tools.inspection.java_text import java_text
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data, golden_cases
from tests.tools.command_line import CommandLine

DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def files_of(case: GoldenCase) -> list[str]:
    """Return the files of a case in the order in which they were dumped."""
    return [
        f"{folder.name}/{path.name}"
        for _, folder in sorted(case.partition_folders.items())
        for suffix in DUMPED
        for path in sorted(folder.glob(f"*{suffix}"))
    ]


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_json_has_the_same_facts(
    case: GoldenCase, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line is one JSON object; batches, records and entries are those of the text."""
    monkeypatch.chdir(GOLDEN / case.set_name / "data")
    text = logstore("dump", "--records", *files_of(case))
    lines = logstore("dump", "--records", "--json", *files_of(case)).json_lines
    batches = [line for line in lines if line["kind"] == "batch"]
    assert sum(line["count"] for line in batches) == sum(1 for _ in records_of(lines))
    assert all(line["isvalid"] for line in batches)
    assert text.exit_code == 0
    assert text.err == ""
    by_offset = {
        (r["partition"], r["offset"]): (r["timestamp"], len(r["headers"])) for r in case.expected
    }
    found = {
        (int(line["file"].split("/")[0].rpartition("-")[2]), line["offset"]): (
            line["timestamp"],
            len(line["headers"]),
        )
        for line in records_of(lines)
    }
    assert {place: found.get(place) for place in by_offset} == by_offset


def records_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines that are records."""
    return [line for line in lines if line["kind"] == "record"]


def test_java_replaces_other_bytes_than_python() -> None:
    """What is no UTF-8 shows as in Java's String: checked against a JVM on 60,000 samples."""
    mark = "\N{REPLACEMENT CHARACTER}"
    assert java_text(b"\xee\xed\xb1\x1c0w") == f"{mark}{mark}\x1c0w"
    assert java_text(b"\xed\xa0\x80!") == f"{mark}!"
    assert java_text(b"\xe0\x80\x80!") == f"{mark * 3}!"
    assert java_text(b"\xf0\x80\x80\x80!") == f"{mark * 4}!"
    assert java_text(b"\xf1\x80\x80!") == f"{mark}!"
    assert java_text(b"\xf4\x90\x80\x80") == mark * 4
    assert java_text(b"a\xe2\x82") == f"a{mark}"
    assert java_text("häder ✓ 𝄞".encode()) == "häder ✓ 𝄞"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a partition that may be damaged: offsets 0 to 178 in 13 segments."""
    return copy_of_data("kafka-4.3", tmp_path) / "plain-0"


def log_of(folder: Path, base_offset: int, suffix: str = ".log") -> Path:
    """Return the path of a segment's file."""
    return folder / f"{base_offset:020d}{suffix}"


def test_offsets_choose_batches_and_records(folder: Path, logstore: CommandLine) -> None:
    """Of a range of offsets the batches that touch it are printed, and only its own records."""
    outcome = logstore("dump", "--json", "--records", "--offsets", "2:4", log_of(folder, 0))
    lines = outcome.json_lines
    batches = [(line["baseOffset"], line["lastOffset"]) for line in lines if "baseOffset" in line]
    assert batches == [(1, 2), (3, 5)]
    assert [line["offset"] for line in records_of(lines)] == [2, 3]
    open_end = logstore("dump", "--json", "--offsets", "10:", log_of(folder, 0)).json_lines
    assert [line["baseOffset"] for line in open_end if "baseOffset" in line] == [10]
    refused = logstore("dump", "--offsets", "2-4", log_of(folder, 0))
    assert refused.exit_code == 2
    assert "'2-4' is no offset and no range FROM:TO" in refused.err
    backward = logstore("dump", "--offsets", "4:2", log_of(folder, 0))
    assert (backward.exit_code, backward.out) == (2, "")
    assert "'4:2' ends before it begins" in backward.err


def test_a_wrong_crc_is_said_and_passed(folder: Path, logstore: CommandLine) -> None:
    """A batch with a flipped byte is printed as not valid and named; the rest follows."""
    path = log_of(folder, 0)
    data = bytearray(path.read_bytes())
    data[120 + 70] ^= 0x01  # in the second batch, which starts at 120
    path.write_bytes(data)
    outcome = logstore("dump", path)
    assert outcome.exit_code == 1
    verdicts = [line.rpartition("isvalid: ")[2] for line in outcome.lines if "isvalid" in line]
    assert verdicts == ["true", "false", "true", "true", "true"]
    assert outcome.err.startswith(f"logstore: {path}: position 120: CRC is 0x")


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\0" * 4096, "zeros: 4096 bytes that nobody wrote"),
        (b"\x01" * 10, "10 bytes are less than a batch header"),
        (struct.pack(">qiib", 14, 2**30, 0, 2) + bytes(60), "is cut short after 77"),
        (struct.pack(">qiib", 14, -5, 0, 2) + bytes(60), "batch length -5 is too small"),
        (struct.pack(">qiib", 14, 80, 0, 1) + bytes(60), "a message of 92 bytes is cut short"),
        (struct.pack(">qiib", 14, 65, 0, 7) + bytes(60), "magic 7, expected 2"),
    ],
    ids=["zeros", "torn header", "torn body", "negative length", "old magic", "unknown magic"],
)
def test_a_damaged_tail_is_said_with_its_place(
    folder: Path, logstore: CommandLine, tail: bytes, reason: str
) -> None:
    """All good batches are printed; then how much is not valid, where it starts and why."""
    path = log_of(folder, 0)
    good_bytes = path.stat().st_size
    with path.open("ab") as file:
        file.write(tail)
    outcome = logstore("dump", path, log_of(folder, 14))
    assert outcome.exit_code == 1
    assert f"Found {len(tail)} invalid bytes at the end of {path.name}" in outcome.lines
    assert outcome.err.startswith(f"logstore: {path}: position {good_bytes}: ")
    assert reason in outcome.err
    assert any(line.startswith("baseOffset: 14 ") for line in outcome.lines), "the next file"
    problems = [
        line for line in logstore("dump", "--json", path).json_lines if line["kind"] == "problem"
    ]
    assert [(line["file"], line["position"]) for line in problems] == [(str(path), good_bytes)]


def test_records_that_cannot_be_read_are_said(folder: Path, logstore: CommandLine) -> None:
    """A batch whose records make no sense is named; a batch behind it is still taken apart."""
    path = log_of(folder, 0)
    data = bytearray(path.read_bytes())
    data[120 + 61] = 0x7F  # the length of its first record becomes -64
    path.write_bytes(data)
    outcome = logstore("dump", "--records", path)
    assert outcome.exit_code == 1
    assert f"{path}: position 120: the records cannot be read: a record of -64 bytes" in outcome.err
    assert any(line.startswith("| offset: 13 ") for line in outcome.lines)


def test_indexes_are_held_against_their_log(folder: Path, logstore: CommandLine) -> None:
    """An entry whose batch ends elsewhere, whose time is another, or that goes back, is named."""
    index, times = log_of(folder, 0, ".index"), log_of(folder, 0, ".timeindex")
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    wrong = [(entries[0][0] + 5, entries[0][1]), entries[1], (entries[2][0], entries[2][1] + 1)]
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in wrong))
    stamps = bytearray(times.read_bytes())
    stamps[7] ^= 0x01  # the first timestamp, by a millisecond
    times.write_bytes(stamps)
    outcome = logstore("dump", index, times)
    assert outcome.exit_code == 1
    errors = outcome.err.splitlines()
    assert f"{index}: position 0: offset {wrong[0][0]} points at position" in errors[0]
    assert f"{index}: position 8: offset {wrong[1][0]} does not come after" in errors[1]
    assert f"{index}: position 16: no batch starts at position {wrong[2][1]}" in errors[2]
    assert f"{times}: position 0: timestamp" in errors[3]
    assert len(errors) == 4
    assert sum(line.startswith("offset: ") for line in outcome.lines) == 3


def test_an_index_that_a_crash_left_at_full_size_ends_at_its_zeros(
    folder: Path, logstore: CommandLine
) -> None:
    """The zeros behind the last entry of a preallocated index are not entries."""
    index, times = log_of(folder, 170, ".index"), log_of(folder, 170, ".timeindex")
    before = logstore("dump", index, times)
    for path in (index, times):
        os.truncate(path, path.stat().st_size + 1200)
    assert logstore("dump", index, times) == before
    assert before.exit_code == 0


def test_garbage_in_small_files_is_named(folder: Path, logstore: CommandLine) -> None:
    """Snapshots, checkpoints and identities that make no sense are problems of the whole file."""
    snapshot = log_of(folder, 14, ".snapshot")
    snapshot.write_bytes(b"\xff" * 30)
    epochs = folder / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n")
    points = folder.parent / "recovery-point-offset-checkpoint"
    points.write_text("0\n1\nplain zero 7\n")
    metadata = folder / "partition.metadata"
    metadata.write_text("version\n")
    marker = folder.parent / ".kafka_cleanshutdown"
    marker.write_text("[1]")
    files = (snapshot, epochs, points, metadata, marker)
    outcome = logstore("dump", *files)
    assert outcome.exit_code == 1
    assert [line.partition(": ")[2].partition(":")[0] for line in outcome.err.splitlines()] == [
        str(path) for path in files
    ]
    assert ", expected 1\n" in outcome.err
    assert "1 entries, expected 2" in outcome.err


def test_a_cut_transaction_index_is_named(
    tmp_path: Path, logstore: CommandLine, golden: Path
) -> None:
    """Whole entries are printed, the torn one is named; so is one of an unknown version."""
    source = golden / "kafka-4.3/data/transactions-0/00000000000000000092.txnindex"
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes()[:-4])
    outcome = logstore("dump", path)
    assert outcome.exit_code == 1
    assert outcome.lines[1:] == [
        "version: 0 producerId: 0 firstOffset: 74 lastOffset: 92 lastStableOffset: 75"
    ]
    assert f"{path}: position 34: 30 bytes are no whole entry" in outcome.err
    path.write_bytes(b"\0\1" + bytes(32))
    assert "position 0: version 1 of an entry, expected 0" in logstore("dump", path).err


def test_small_files_are_printed(golden: Path, logstore: CommandLine) -> None:
    """Checkpoints line by line; identities and the clean marker as their names and values."""
    data = golden / "epochs-4.3/data"
    names = (
        "leader-epochs-0/leader-epoch-checkpoint",
        "recovery-point-offset-checkpoint",
        "meta.properties",
        "leader-epochs-0/partition.metadata",
        ".kafka_cleanshutdown",
        "cleaner-offset-checkpoint",
    )
    outcome = logstore("dump", *(data / name for name in names))
    assert outcome.exit_code == 0, outcome.err
    assert outcome.lines[0] == f"Dumping {data / names[0]}"
    assert outcome.lines[1:7] == [
        f"epoch: {epoch} startOffset: {start}"
        for epoch, start in [(0, 0), (2, 13), (4, 31), (6, 41), (8, 56), (10, 75)]
    ]
    assert "topic: leader-epochs partition: 0 offset: 75" in outcome.lines
    assert any("cluster.id: FsJwiFIFSpG17XLz0vVB9Q" in line for line in outcome.lines)
    assert any(line.startswith("version: 0 topic_id: ") for line in outcome.lines)
    assert any(line.startswith("version: 0 brokerEpoch: ") for line in outcome.lines)
    assert f"{data / names[5]} is empty." in outcome.lines


def test_files_that_are_none_do_not_stop_the_others(folder: Path, logstore: CommandLine) -> None:
    """A missing file, a directory, an unknown kind: one line each; the last file is dumped."""
    stranger = folder / "notes.txt"
    stranger.write_text("")
    missing = log_of(folder, 99999)
    outcome = logstore("dump", missing, folder, stranger, log_of(folder, 14, ".index"))
    assert outcome.exit_code == 1
    errors = outcome.err.splitlines()
    assert errors[0] == f"logstore: {missing}: there is no such file"
    assert errors[1].startswith(f"logstore: {folder}: is a directory; name files in it")
    assert errors[2].startswith(f"logstore: {stranger}: no file of a known kind; there are .log,")
    assert len(errors) == 3
    assert outcome.lines[0] == f"Dumping {log_of(folder, 14, '.index')}"


def test_what_is_no_text_comes_in_base64(tmp_path: Path, logstore: CommandLine) -> None:
    """JSON names bytes that are no UTF-8 keyBase64; people see 0x and digits; null stays null."""
    case = GoldenCase("kafka-4.3", "codec-lz4")
    path = case.partition_folders[0] / "00000000000000000077.log"
    lines = logstore("dump", "--json", "--records", "--offsets", "77", path).json_lines
    (record,) = records_of(list(lines))
    assert record["keyBase64"] == "7u2xHDB31YQ="
    assert "key" not in record
    text = logstore("dump", "--records", "--offsets", "77", path).out
    assert " key: 0xeeedb11c3077d584 payload: " in text
    shapes = GoldenCase("kafka-4.3", "shapes").partition_folders[0] / f"{0:020d}.log"
    lines = logstore("dump", "--json", "--records", "--offsets", "0:2", shapes).json_lines
    nulls, empties = records_of(list(lines))
    assert (nulls["key"], nulls["payload"]) == (None, None)
    assert (empties["key"], empties["payload"]) == ("", "")


def test_renamed_and_kept_files_are_known(folder: Path, logstore: CommandLine) -> None:
    """A condemned, swapped in or cut off file is dumped like the one it was."""
    for suffix in (".deleted", ".cleaned", ".swap"):
        shutil.copy(log_of(folder, 0), log_of(folder, 0, f".log{suffix}"))
    shutil.copy(log_of(folder, 0), log_of(folder, 0, ".log.cut-at-120"))
    copies = sorted(folder.glob("00000000000000000000.log.*"))
    outcome = logstore("dump", "--json", *copies)
    assert outcome.exit_code == 0
    assert sum(line["kind"] == "batch" for line in outcome.json_lines) == 4 * 5


def test_help_shows_examples(logstore: CommandLine) -> None:
    """The help page has commands that can be copied."""
    outcome = logstore("dump", "--help")
    assert outcome.exit_code == 0
    assert "logstore dump --json data/orders-0/*.index | jq .position" in outcome.out


def test_json_lines_survive_a_path_that_is_no_text(
    tmp_path: Path, logstore: CommandLine, golden: Path
) -> None:
    """A file name in bytes that are no UTF-8 is still one JSON line, and one line for people."""
    source = golden / "kafka-4.3/data/plain-0/00000000000000000014.index"
    name = os.fsdecode(b"p\xff-0")
    target = tmp_path / name
    target.mkdir()
    shutil.copy(source, target / source.name)
    outcome = logstore("dump", "--json", target / source.name)
    assert outcome.exit_code == 0
    assert [json.loads(line)["kind"] for line in outcome.lines] == ["file", *["entry"] * 3]
    assert logstore("dump", target / source.name).exit_code == 0


def test_a_reader_that_has_seen_enough_gets_no_complaint(golden: Path) -> None:
    """Piped into ``head`` the command ends without a word about a broken pipe."""
    logs = sorted(str(path) for path in (golden / "kafka-4.3/data").glob("*/*.log"))
    command = [sys.executable, "-m", "logstore.tools.cli", "dump", "--records", *logs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(7) == b"Dumping"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_path_that_cannot_be_is_not_one_that_is_missing(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """The system's own reason is told, as of a folder that must not be looked into."""
    (tmp_path / "file").write_bytes(b"")
    outcome = logstore("dump", tmp_path / "file" / "0.log", tmp_path / "missing.log")
    assert outcome.exit_code == 1
    assert "Not a directory" in outcome.err
    assert f"{tmp_path}/missing.log: there is no such file" in outcome.err
