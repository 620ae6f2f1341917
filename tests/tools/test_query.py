"""``logstore query`` finds what a read finds, and says how."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.record import Record as KafkaRecord
from logstore.segments.kafka.record import decode_records, encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.inspection.explanation import explain_offset, explain_time
from logstore.tools.inspection.road import Explanation
from logstore.tools.inspection.stored_partition import StoredPartition
from logstore.tools.inspection.survey import log_starts
from logstore.tools.inspection.times import iso_time, parse_time
from tests.segments.kafka.golden_case import (
    GOLDEN,
    GoldenCase,
    copy_of_data,
    golden_cases,
    open_copy,
)
from tests.segments.kafka.split_directories import split_in_two
from tests.tools.command_line import CommandLine

DATA = GOLDEN / "kafka-4.3" / "data"
WAY_TO_65 = """\
offset 65 in plain-0, which holds [0, 179) in 13 segments
  segment    00000000000000000054.log [54, 66), 1111 bytes: of 13 the last one that starts \
at or below 65
  index      slot 1 of 2: offset 65 is in the batch at position 909; the last entry not \
above 65
  walk       1 batch looked at from position 909 on
  batch      position 909: offsets 64 to 65, 2 records, 202 bytes, codec none, CreateTime \
up to 2023-11-14T22:14:53.346Z, leader epoch 0"""


def stored(case: GoldenCase, index: int) -> StoredPartition:
    """Return a golden partition with the log start of its checkpoint."""
    fs, folder = system_host().fs, case.partition_folders[index]
    start = log_starts(fs, str(folder)).get((case.topic, index))
    return StoredPartition(fs, str(folder), log_start_offset=start)


def step(explanation: Explanation, name: str) -> dict[str, Any]:
    """Return what one step found."""
    return next(dict[str, Any](s.fields) for s in explanation.steps if s.name == name)


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_offset_is_explained_as_the_consumer_saw_it(case: GoldenCase) -> None:
    """A record where there is one; a marker, a hole, deleted or not yet written elsewhere."""
    for index, (start, stable) in case.watermarks.items():
        partition = stored(case, index)
        expected = {r["offset"]: r for r in case.expected if r["partition"] == index}
        end = partition.end_offset
        assert end == max([stable, *(offset + 1 for offset in expected)]), "of open transactions"
        for offset in range(end + 2):
            found = explain_offset(partition, offset)
            if offset < start:
                assert found.outcome == "below-start"
            elif offset >= end:
                assert found.outcome == ("at-end" if offset == end else "above-end")
            elif offset in expected:
                record = step(found, "record")
                assert found.outcome == "found", offset
                assert record["offset"] == offset
                assert record["timestamp"] == expected[offset]["timestamp"]
                assert len(record["headers"]) == len(expected[offset]["headers"])
            else:
                assert found.outcome in ("marker", "hole"), offset


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_time_is_explained_as_the_store_answers(case: GoldenCase) -> None:
    """The record named is the one that ListOffsets gets, or none where the store finds none."""
    store = open_copy(GOLDEN / case.set_name / "data", is_writable=False)
    for index in case.partition_folders:
        partition = stored(case, index)
        opened = store.partition(case.topic, index)
        stamps = sorted(
            {r.timestamp_ms for batch in opened.batches() for r in decode_records(batch.data)}
        )
        for asked in [stamps[0] - 1, *stamps[:: max(1, len(stamps) // 40)], stamps[-1] + 1]:
            found = explain_time(partition, asked)
            wanted = opened.find_timestamp(asked)
            if wanted is None:
                assert found.outcome == "too-young"
                continue
            record = step(found, "record" if found.outcome == "found" else "marker")
            assert (record["offset"], record["timestamp"]) == (wanted.offset, wanted.timestamp_ms)
    store.close()


@pytest.mark.parametrize("name", ["plain", "plain-1mib", "compacted"])
def test_the_steps_are_those_of_the_files(name: str) -> None:
    """Segment, index slot, position and number of batches follow from the files themselves."""
    case = GoldenCase("kafka-4.3", name)
    folder = case.partition_folders[0]
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    partition = stored(case, 0)
    for offset in range(partition.start_offset, partition.end_offset, 7):
        found = explain_offset(partition, offset)
        base = max(b for b in bases if b <= offset)
        assert step(found, "segment")["start"] == base
        entries = list(struct.iter_unpack(">ii", (folder / f"{base:020d}.index").read_bytes()))
        below = [entry for entry in entries if base + entry[0] <= offset]
        index = step(found, "index")
        assert index["slot"] == (len(below) - 1 if below else None)
        assert index["position"] == (below[-1][1] if below else 0)
        if found.outcome != "found":
            continue
        batch, walk = step(found, "batch"), step(found, "walk")
        assert (walk["from"], walk["to"]) == (index["position"], batch["position"])
        data = (folder / f"{base:020d}.log").read_bytes()
        position, count = index["position"], 1
        while position < batch["position"]:
            position += 12 + struct.unpack_from(">i", data, position + 8)[0]
            count += 1
        assert (position, count) == (batch["position"], walk["batches"])


def test_people_read_the_way_step_by_step(logstore: CommandLine) -> None:
    """One line a step: segment, index, walk, batch, record, answer."""
    outcome = logstore("query", DATA, "--topic", "plain", "--partition", 0, "--offset", 65)
    assert outcome.exit_code == 0, outcome.err
    *steps, record, answer = outcome.lines
    assert "\n".join(steps) == WAY_TO_65
    assert record.startswith("  record     offset 65, CreateTime 2023-11-14T22:14:53.346Z, key ")
    assert answer == "  answer     offset 65"


def test_a_time_is_asked_in_iso_or_ms(logstore: CommandLine) -> None:
    """Both ways to write a time lead to the same record, through both indexes."""
    place = ("--topic", "plain", "--partition", "0")
    as_iso = logstore("query", DATA, *place, "--time", "2023-11-14T22:15:04Z", "--json")
    as_ms = logstore("query", DATA, *place, "--time", "1700000104000", "--json")
    assert as_iso == as_ms
    answer = as_iso.json
    assert answer["asked"] == {"timestamp": 1700000104000}
    assert answer["timeindex"]["timestamp"] <= 1700000104000
    assert answer["record"]["timestamp"] >= 1700000104000
    assert answer["outcome"] == "found"
    assert [line.partition(":")[0] for line in answer["explanation"]] == [
        "segment", "timeindex", "index", "walk", "batch", "record",
    ]  # fmt: skip


def test_json_is_one_object_and_nothing_else(logstore: CommandLine) -> None:
    """Stdout is one JSON object; what was found stands under the name of its step."""
    outcome = logstore("query", DATA / "transactions-0", "--offset", 3, "--json")
    assert outcome.err == ""
    answer = outcome.json
    assert (answer["outcome"], answer["topic"], answer["partition"]) == (
        "marker",
        "transactions",
        0,
    )
    assert answer["marker"]["endTxnMarker"] == "COMMIT"
    assert answer["batch"]["isControl"] is True
    assert answer["segment"]["file"] == str(DATA / "transactions-0" / f"{3:020d}.log")


@pytest.mark.parametrize(
    ("partition", "asked", "answer"),
    [
        (
            "delete-records-0",
            ["--offset", "80"],
            "the log starts at 81: offset 80 was deleted (Del",
        ),
        ("delete-records-0", ["--offset", "8"], "offset 8 was deleted, its segment is gone"),
        ("plain-0", ["--offset", "179"], "179 is the log end: the next record gets it"),
        ("plain-0", ["--offset", "999"], "the log ends at 179: nobody wrote offset 999 yet"),
        (
            "plain-0",
            ["--time", "2033-01-01"],
            "every record is older than 2033-01-01T00:00:00.000Z",
        ),
    ],
    ids=["below start", "far below start", "at end", "above end", "too young"],
)
def test_what_is_not_there_is_said_with_the_reason(
    logstore: CommandLine, partition: str, asked: list[str], answer: str
) -> None:
    """Below the log start, at or above its end, younger than everything: exit code 1 and why."""
    outcome = logstore("query", DATA / partition, *asked)
    assert outcome.exit_code == 1
    assert answer in outcome.lines[-1]
    assert outcome.err == ""


def test_a_compaction_hole_is_explained(logstore: CommandLine) -> None:
    """A removed batch, a removed record, a removed end of a segment: each says where to go on."""
    for offset, answer in (
        (3, "the batch covers offset 3, but compaction removed its record"),
        (12, "no batch holds offset 12: compaction removed it; a reader goes on with the batch at"),
        (
            20,
            "no batch of the segment reaches offset 20: compaction removed it; a reader goes on in",
        ),
    ):
        outcome = logstore("query", DATA / "compacted-0", "--offset", offset)
        assert outcome.exit_code == 0
        assert outcome.lines[-1].startswith(f"  answer     {answer}")


def test_a_running_brokers_records_are_found_without_its_index(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """What is appended but not flushed has no index on disk yet; the walk finds it all the same."""
    store = KafkaStore(system_host(), str(tmp_path / "live"))
    partition = store.create_topic("t", 1, {"index.interval.bytes": "0"}).partitions[0]
    for number in range(5):
        partition.append_records([Record(None, b"v%d" % number, 1700000000000 + number)])
    outcome = logstore("query", tmp_path / "live" / "t-0", "--time", 1700000000003)
    assert outcome.exit_code == 0
    assert outcome.lines[0].endswith("in t-0, which holds [0, 5) in 1 segment")
    missing = "is not on disk (a broker may still have it in memory)"
    assert [missing in line for line in outcome.lines] == [False, False, True, True, *[False] * 4]
    assert outcome.lines[-1] == "  answer     offset 3"
    store.close()


def test_damage_on_the_way_is_named(tmp_path: Path, logstore: CommandLine) -> None:
    """A wrong CRC, and an index entry that leads into nowhere, are said with file and position."""
    folder = copy_of_data("kafka-4.3", tmp_path) / "plain-0"
    log = folder / f"{54:020d}.log"
    data = bytearray(log.read_bytes())
    data[578 + 70] ^= 0x40
    log.write_bytes(data)
    outcome = logstore("query", folder, "--offset", 60)
    assert outcome.exit_code == 1
    assert outcome.err.startswith(f"logstore: {log}: position 578: CRC is 0x")
    assert logstore("query", folder, "--offset", 59).exit_code == 0
    index = folder / f"{54:020d}.index"
    index.write_bytes(struct.pack(">ii", 5, 123))
    outcome = logstore("query", folder, "--offset", 60, "--json")
    assert (outcome.exit_code, outcome.json["outcome"]) == (1, "damaged")
    assert f"{log}: position 123: " in outcome.err


def test_what_is_no_text_is_told_all_the_same(tmp_path: Path, logstore: CommandLine) -> None:
    """A header's name, or a folder's, of bytes that are no UTF-8 is no reason to say nothing."""
    folder = tmp_path / "odd-\udcff" / "t-0"
    folder.mkdir(parents=True)
    record = KafkaRecord(0, 1000, b"k", b"v", (("h\udcff", b"1"), ("plain", None)))
    (folder / f"{0:020d}.log").write_bytes(encode_batch([record]))
    outcome = logstore("query", folder, "--offset", 0, "--json")
    assert outcome.exit_code == 0, outcome.err
    assert [sorted(header) for header in outcome.json["record"]["headers"]] == [
        ["nameBase64", "value"],
        ["name", "value"],
    ]
    outcome = logstore("query", folder, "--offset", 0)
    assert 'headers 0x68ff="1", plain=null' in outcome.out
    outcome = logstore("ls", folder, "--json")
    assert (outcome.exit_code, "odd-\\udcff" in outcome.out) == (0, True)


def test_wrong_questions_get_an_answer_too(tmp_path: Path, logstore: CommandLine) -> None:
    """No such partition, nothing or too much asked, a time that is none: one line that helps."""
    outcome = logstore("query", DATA, "--topic", "nix", "--partition", 0, "--offset", 1)
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "there is no partition nix-0; there are " in outcome.err
    assert outcome.err.endswith(", ...\n")
    mismatch = logstore("query", DATA / "plain-0", "--partition", 3, "--offset", 1)
    assert "this is partition plain-0, not plain-3" in mismatch.err
    for arguments, reason in (
        (["--topic", "plain", "--partition", "0"], "say either --offset N or --time TIME"),
        (["--offset", "1", "--time", "1"], "say either --offset N or --time TIME"),
        (["--offset", "1"], "say --topic NAME and --partition N, or name a partition's directory"),
        (["--time", "yesterday"], "'yesterday' is neither ISO-8601"),
        (["--offset", "-1"], "-1 is not in the range x>=0"),
    ):
        outcome = logstore("query", DATA, *arguments)
        assert outcome.exit_code == 2
        assert reason in outcome.err
    missing = logstore("query", tmp_path / "nix", "--offset", 1)
    assert missing.err == f"logstore: {tmp_path}/nix: there is no such directory\n"


def test_times_are_read_as_they_are_written() -> None:
    """ISO-8601 with or without a zone (then UTC), a date alone, ms; and back."""
    for text, ms in (
        ("1700000100000", 1700000100000),
        ("2023-11-14T22:15:00Z", 1700000100000),
        ("2023-11-14T22:15:00.250", 1700000100250),
        ("2023-11-14T23:15:00+01:00", 1700000100000),
        ("2023-11-14", 1699920000000),
        ("1969-12-31T23:59:59.999Z", -1),
    ):
        assert parse_time(text) == ms
        assert parse_time(iso_time(ms)) == ms
    assert iso_time(2**62) == str(2**62)
    with pytest.raises(ValueError, match="Invalid isoformat"):
        parse_time("noon")


def test_a_partition_is_looked_for_in_every_directory(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A node's directories are named with commas between; which one has it is not asked."""
    first, second = split_in_two(DATA, tmp_path)
    for directories in (f"{first},{second}", f"{second},{first}"):
        for topic in ("plain", "shapes"):
            way = ("--topic", topic, "--partition", "0", "--offset", "3")
            assert logstore("query", directories, *way).lines == logstore("query", DATA, *way).lines
    missing = logstore(
        "query", f"{first},{second}", "--topic", "x", "--partition", 0, "--offset", 1
    )
    assert missing.exit_code != 0
    assert "there is no partition x-0; there are " in missing.err


def test_of_replicas_the_one_that_could_lead_is_asked(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Not the first that is named, which lags behind, and whose epoch was over."""
    ends: dict[str, int] = {}
    for name, epochs in (("behind", (1, 1)), ("ahead", (1, 1, 1)), ("over", (1, 2))):
        store = KafkaStore(system_host(), str(tmp_path / name))
        partition = store.create_topic("orders", 2).partitions[0]
        for epoch in epochs:
            partition.become_leader(epoch)
            partition.append_records([Record(None, b"v", 1_700_000_000_000)])
        ends[name] = partition.end_offset
        store.close()
    behind, ahead, over = (str(tmp_path / name) for name in ends)
    way = ("--topic", "orders", "--partition", 0, "--offset", 2)
    found = logstore("query", f"{behind},{ahead}", *way)
    assert found.exit_code == 0, found.err
    assert found.lines[0].startswith(f"offset 2 in orders-0 in {ahead}, which holds [0, 3)")
    assert logstore("query", f"{ahead},{behind}", *way).lines == found.lines
    newer = logstore("query", f"{ahead},{over}", "--json", *way)
    assert (newer.exit_code, newer.json["directory"]) == (1, f"{over}/orders-0")
    missing = logstore("query", f"{ahead},{over}", *way[:2], "--partition", 7, "--offset", 0)
    assert f"{ahead},{over}: there is no partition orders-7; orders has 0, 1" in missing.err
