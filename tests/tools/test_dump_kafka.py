"""``logstore dump --format kafka`` prints what Kafka's DumpLogSegments prints, line for line."""

from __future__ import annotations

import os
import re
import shutil
import struct
from pathlib import Path

import attrs
import pytest

from logstore.java_hash import java_hash
from logstore.segments.kafka.record import Record, encode_batch
from logstore.tools.inspection.java_hash_order import java_order
from logstore.tools.inspection.java_json import json_text
from tests.segments.kafka.golden_case import GOLDEN, GoldenCase, copy_of_data
from tests.tools.command_line import CommandLine, Outcome

DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
#: by the name of the case: the option that its dump was made with, if not --print-data-log
OPTIONS = {
    "consumer_offsets": "--offsets-decoder",
    "transaction_state": "--transaction-log-decoder",
    "plain-1mib": "--deep-iteration",
    "large-record": "--deep-iteration",
}


@attrs.frozen
class Dumped:
    """Files that the real tool has dumped: where it stood, and what it printed."""

    id: str
    folder: Path
    partitions: tuple[str, ...]
    option: str
    text: str
    release: str = "auto"

    @property
    def files(self) -> list[str]:
        """The files in the order in which they were dumped."""
        return [
            f"{name}/{path.name}"
            for name in self.partitions
            for suffix in DUMPED
            for path in sorted((self.folder / name).glob(f"*{suffix}"))
        ]

    @property
    def out(self) -> str:
        """What stood on stdout."""
        return self.text.partition("\n--- stderr")[0]

    @property
    def err(self) -> str:
        """What stood on stderr, without Java's stack traces."""
        rest = self.text.partition("\n--- stderr, exit status ")[2].partition("\n")[2]
        return re.sub(r"\n\tat .*", "", rest)

    @property
    def status(self) -> int:
        """How the tool ended."""
        found = re.search(r"\n--- stderr, exit status (\d+)", self.text)
        return int(found[1]) if found is not None else 0


def dumps() -> list[Dumped]:
    """Return every dump of the golden sets."""
    found: list[Dumped] = []
    for path in sorted(GOLDEN.glob("*/cases/*/dump.txt")):
        case = GoldenCase(path.parts[-4], path.parts[-2])
        folders = tuple(folder.name for _, folder in sorted(case.partition_folders.items()))
        option = OPTIONS.get(case.name, "--print-data-log")
        data, text = GOLDEN / case.set_name / "data", path.read_bytes().decode()
        found.append(Dumped(case.id, data, folders, option, text))
        for running in sorted(path.parent.glob("*/dump.txt")):
            # Copies of a running broker's partition: nothing there tells the release.
            release = "3.9" if case.set_name.endswith("3.9") else "4.3"
            name, text = f"{case.id}/{running.parent.name}", running.read_bytes().decode()
            found.append(Dumped(name, running.parent, folders, option, text, release))
    return found


def blocks(text: str) -> list[str]:
    """Split complaints by file and sort them: their order follows the hash of absolute paths."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith((" ", "Indexed")) and found:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return sorted(found)


@pytest.mark.parametrize("dumped", dumps(), ids=lambda dumped: dumped.id)
def test_every_golden_dump_is_printed_again(
    dumped: Dumped, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of a case in one call: stdout, complaints and exit status are the real tool's."""
    monkeypatch.chdir(dumped.folder)
    outcome = logstore(
        "dump", "--format", "kafka", dumped.option, "--release", dumped.release, *dumped.files
    )
    assert outcome.out.split("\n") == dumped.out.split("\n")
    assert blocks(outcome.err.replace(str(dumped.folder), "")) == blocks(dumped.err)
    assert outcome.exit_code == dumped.status


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a partition that may be damaged: offsets 0 to 178 in 13 segments."""
    return copy_of_data("kafka-4.3", tmp_path) / "plain-0"


def kafka(logstore: CommandLine, *arguments: object) -> Outcome:
    """Dump as Kafka does."""
    return logstore("dump", "--format", "kafka", *arguments)


def test_files_may_be_named_as_kafka_wants_them(folder: Path, logstore: CommandLine) -> None:
    """``--files a,b`` is the same as naming a and b; doubled slashes vanish as in Java."""
    first, second = sorted(folder.glob("*.log"))[:2]
    outcome = kafka(logstore, "--files", f"{first},{second}")
    assert outcome == kafka(logstore, first, second)
    assert outcome.lines[0] == f"Dumping {first}"
    doubled = kafka(logstore, f"{folder}//{first.name}")
    assert doubled == kafka(logstore, first)
    assert logstore("dump", "--format", "kafka").exit_code == 2


def test_complaints_stand_at_the_end(folder: Path, logstore: CommandLine) -> None:
    """Wrong index entries are printed like others; afterwards stderr says what is wrong."""
    index = folder / f"{0:020d}.index"
    times = index.with_suffix(".timeindex")
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    index.write_bytes(
        b"".join(struct.pack(">ii", offset + 1, place) for offset, place in entries[:2])
    )
    (first_ms, first), (second_ms, second) = list(struct.iter_unpack(">qi", times.read_bytes()))[:2]
    wrong = ((first_ms, first), (first_ms, second), (second_ms, first + 1))
    times.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in wrong))
    outcome = kafka(logstore, index, times)
    assert outcome.exit_code == 0
    assert outcome.lines[1:3] == [
        f"offset: {offset + 1} position: {place}" for offset, place in entries[:2]
    ]
    expected = [
        f"Mismatches in :{index}",
        *(
            f"  Index offset: {offset + 1}, log offset: {offset}"
            for offset, _ in reversed(entries[:2])
        ),
        f"Found timestamp mismatch in :{times}",
        f"  Index timestamp: {first_ms}, log timestamp: {second_ms}",
        f"Found out of order timestamp in :{times}",
        f"  Index timestamp: {first_ms}, Previously indexed timestamp: {first_ms}",
        f"The following indexed offsets are not found in :{times}",
    ]
    errors = outcome.err.splitlines()
    assert errors[: len(expected)] == expected
    assert errors[len(expected)].startswith(f"Indexed offset: {first + 1}, found log offset: ")
    assert len(errors) == len(expected) + 1


def test_where_the_tool_dies_the_dump_ends(folder: Path, logstore: CommandLine) -> None:
    """Zeros behind the last batch, an unknown offset: the exception's line, status 1, no more."""
    log, other = sorted(folder.glob("*.log"))[:2]
    with log.open("ab") as file:
        file.write(bytes(4096))
    outcome = kafka(logstore, log, other)
    assert outcome.exit_code == 1
    assert f"Dumping {other}" not in outcome.out
    assert outcome.err == (
        'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Found '
        f"record size 0 smaller than minimum record overhead (14) in file {log}.\n"
    )
    missing = kafka(logstore, folder / "00000000000000000999.log", other)
    assert missing.exit_code == 1
    assert missing.err.startswith('Exception in thread "main" java.nio.file.NoSuchFileException: ')


def test_a_torn_tail_is_counted(folder: Path, logstore: CommandLine) -> None:
    """A batch that is cut short makes so many invalid bytes, and the next file follows."""
    log, other = sorted(folder.glob("*.log"))[:2]
    size_bytes = log.stat().st_size
    os.truncate(log, size_bytes - 7)
    outcome = kafka(logstore, log, other)
    assert outcome.exit_code == 0
    (line,) = [line for line in outcome.lines if "invalid bytes" in line]
    assert re.fullmatch(rf"Found \d+ invalid bytes at the end of {log.name}", line)
    assert f"Dumping {other}" in outcome.lines
    limited = kafka(logstore, "--max-bytes", size_bytes - 10, log)
    assert "invalid bytes" not in limited.out


def test_files_of_other_kinds_are_passed_over(folder: Path, logstore: CommandLine) -> None:
    """Checkpoints are none of the tool's business; it says so and goes on."""
    epochs = folder / "leader-epoch-checkpoint"
    outcome = kafka(logstore, epochs, folder / f"{14:020d}.index")
    assert outcome.exit_code == 0
    assert outcome.err == f"Ignoring unknown file {epochs}\n"
    assert outcome.lines[0] == f"Dumping {epochs}"


def test_damaged_snapshots_are_said_at_once(folder: Path, logstore: CommandLine) -> None:
    """An unknown version and a wrong CRC have the tool's own words; the next file follows."""
    first, second = sorted(folder.glob("*.snapshot"))[:2]
    first.write_bytes(b"\xff" * 30)
    second.write_bytes(b"\0\1" + bytes(8))
    outcome = kafka(logstore, first, second)
    assert outcome.exit_code == 0
    version, crc = outcome.err.splitlines()
    assert version == (
        "Snapshot failed schema validation: Snapshot contained an unknown file version -1"
    )
    assert crc.startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: 0. Computed")


def test_indexes_can_be_checked_without_their_entries(folder: Path, logstore: CommandLine) -> None:
    """``--verify-index-only`` prints no entries; ``--index-sanity-check`` what a start checks."""
    index = folder / f"{14:020d}.index"
    assert kafka(logstore, "--verify-index-only", index).lines == [f"Dumping {index}"]
    sane = kafka(logstore, "--index-sanity-check", index)
    assert sane.lines[1:] == [f"{index} passed sanity check."]
    index.write_bytes(index.read_bytes()[:-3])
    torn = kafka(logstore, "--index-sanity-check", index)
    assert torn.exit_code == 1
    assert "21 bytes which is neither positive nor a multiple of 8" in torn.err


def test_records_without_their_metadata(folder: Path, logstore: CommandLine) -> None:
    """``--skip-record-metadata`` leaves key and payload of each record."""
    log = folder / f"{0:020d}.log"
    lines = kafka(logstore, "--skip-record-metadata", "--print-data-log", log).lines
    shown = [line for line in lines if line.startswith("|")]
    assert len(shown) == 14
    assert all(re.match(r"\| key: \S+ payload: \d+ \w+", line) for line in shown)


def test_metadata_logs_say_who_leads(logstore: CommandLine) -> None:
    """Control records of the metadata log show their message as JSON, in 4.x the leader's too."""
    log = GOLDEN / "epochs-4.3/data/__cluster_metadata-0/00000000000000000000.log"
    lines = kafka(logstore, "--deep-iteration", log).lines
    leader = next(line for line in lines if " LeaderChange: " in line)
    assert leader.partition(" LeaderChange: ")[2].startswith('{"version":0,"leaderId":1,"voters":[')
    old = kafka(logstore, "--deep-iteration", "--release", "3.9", log).lines
    assert any(line.endswith(" controlType: LEADER_CHANGE(2)") for line in old)


def test_the_directory_tells_the_release(tmp_path: Path, logstore: CommandLine) -> None:
    """The metadata version, or a ZooKeeper broker's identity, choose the text of 3.9."""
    source = GOLDEN / "kafka-3.9/data/transactions-0"
    copy = tmp_path / "transactions-0"
    shutil.copytree(source, copy)
    name = sorted(path.name for path in source.glob("*.snapshot"))[-1]
    as_before = kafka(logstore, source / name).lines[1:]
    as_now = kafka(logstore, copy / name).lines[1:]
    assert [line.rstrip() for line in as_before] == as_now
    assert kafka(logstore, "--release", "3.9", copy / name).lines[1:] == as_before


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (b"\0\x63", b"v", "key: Unknown record type 99 at offset 0, skipping."),
        (
            b"\0\1\0",
            b"v",
            (
                "key: Error at offset 0, skipping. Could not read record with version 1 from "
                "key's buffer due to: null."
            ),
        ),
        (b"\0\2\0\1g", None, 'key: {"type":"2","data":{"group":"g"}} payload: <DELETE>'),
    ],
)
def test_a_decoder_says_what_it_cannot_read(
    tmp_path: Path, logstore: CommandLine, key: bytes, value: bytes | None, shown: str
) -> None:
    """Unknown types and broken keys are a text in the record's line, and no failure."""
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(encode_batch([Record(0, 1, key, value)], base_offset=0))
    outcome = kafka(logstore, "--offsets-decoder", log)
    assert outcome.exit_code == 0
    assert outcome.lines[-1].partition(" headerKeys: [] ")[2] == shown
    (record,) = [
        line
        for line in logstore("dump", "--offsets-decoder", "--json", log).json_lines
        if line["kind"] == "record"
    ]
    if value is None:
        assert record["key"] == {"type": "2", "data": {"group": "g"}}
        assert record["payload"] == "<DELETE>"


def test_maps_give_their_keys_in_the_order_of_java() -> None:
    """The order in which a JVM's HashMap gave these 14 keys, which have made its table grow."""
    assert java_hash("/h\N{LATIN SMALL LETTER A WITH DIAERESIS}der \u2713 \U0001d11e") == -373649103
    ordered = java_order(f"/data/t-0/{number * number * 7:020d}.log" for number in range(14))
    assert [int(path[-24:-4]) for path in ordered] == [
        1008, 700, 112, 252, 343, 1183, 847, 7, 0, 175, 448, 28, 567, 63,
    ]  # fmt: skip
    first = java_order(f"/data/t-0/{number * number * 7:020d}.log" for number in range(13))
    assert [int(path[-24:-4]) for path in first] == [
        847, 7, 1008, 0, 175, 700, 448, 112, 28, 252, 567, 343, 63,
    ]  # fmt: skip


def test_json_is_escaped_as_jackson_does() -> None:
    """Control characters are upper-case escapes, other letters stand for themselves."""
    assert json_text('a"\\\n\x1f\x7f\N{CHECK MARK}') == '"a\\"\\\\\\n\\u001F\x7f\N{CHECK MARK}"'
