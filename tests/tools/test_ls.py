"""``logstore ls`` says what is in a directory, whoever wrote it and however it was left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.kafka_uuid import uuid_to_text
from logstore.segments.kafka.segment_files import TRANSACTION_INDEX, offset_file_name
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.tools.inspection.columns import aligned
from logstore.tools.inspection.lock_holder import lock_holder
from tests.segments.kafka.golden_case import GOLDEN, SETS, copy_of_data, open_copy
from tests.segments.kafka.split_directories import split_in_two
from tests.tools.command_line import CommandLine


@pytest.mark.parametrize("set_name", SETS)
def test_partitions_and_segments_are_those_that_the_store_opens(
    set_name: str, logstore: CommandLine
) -> None:
    """Offsets, sizes, index entries and times agree with the store, for every real directory."""
    directory = GOLDEN / set_name / "data"
    outcome = logstore("ls", "--json", "--segments", directory)
    assert outcome.exit_code == 0, outcome.err
    listed = {(view["topic"], view["partition"]): view for view in outcome.json["partitions"]}
    assert listed.pop(("__cluster_metadata", 0))["segmentCount"] == 1  # Raft's, not the store's
    store = open_copy(directory, is_writable=False)
    assert listed.keys() == {(p.topic, p.index) for p in store.partitions()}
    for partition in store.partitions():
        view = listed[partition.topic, partition.index]
        segments = partition.log.segments.values()
        assert (view["start"], view["end"]) == (partition.start_offset, partition.end_offset)
        assert view["bytes"] == partition.log.size_bytes
        assert view["topicId"] == uuid_to_text(store.topics_by_name[partition.topic].topic_id)
        newest_ms = max(segment.max_timestamp_ms for segment in segments)
        assert (view["largestTimestamp"] or -1) == newest_ms
        assert [
            (
                segment["start"], segment["end"], segment["bytes"], segment["indexEntries"],
                segment["timeIndexEntries"], segment["largestTimestamp"] or -1,
            )
            for segment in view["segments"]
        ] == [
            (
                segment.base_offset, segment.next_offset, segment.end_position,
                segment.offset_index.entry_count, segment.time_index.entry_count,
                segment.max_timestamp_ms,
            )
            for segment in segments
        ]  # fmt: skip
        for segment in view["segments"]:
            name = offset_file_name(segment["start"], TRANSACTION_INDEX)
            path = Path(store.directory) / f"{partition.topic}-{partition.index}" / name
            assert segment["hasTransactionIndex"] == path.exists()
    store.close()


def test_people_see_identity_and_columns(logstore: CommandLine) -> None:
    """The first line says whose directory it is and how it was left; then a line a partition."""
    directory = GOLDEN / "kafka-4.3" / "data"
    lines = logstore("ls", directory).lines
    assert lines[0] == (
        f"{directory}: cluster d2d02pMQRdKX_i8LoYQXuQ, node 1, "
        "directory eHwpBKwYCHLonlMREhFidg, closed cleanly"
    )
    assert lines[2].split() == [
        "topic", "partition", "start", "end", "segments", "bytes", "largest", "timestamp",
    ]  # fmt: skip
    rows = [line.split() for line in lines[3:]]
    assert ["plain", "0", "0", "179", "13", "15,031", "2023-11-14T22:16:46.222Z"] in rows
    assert ["delete-records", "0", "81", "160", "5", "6,013", "2023-11-14T22:24:18.236Z"] in rows
    assert len({line.rfind("  ") for line in lines[2:]}) == 1, "columns are aligned"


def test_segments_and_one_topic_are_listed_on_demand(logstore: CommandLine) -> None:
    """With --topic the others are left out; with --segments each segment has a line."""
    directory = GOLDEN / "kafka-4.3" / "data"
    lines = logstore("ls", "--topic", "plain", "--segments", directory).lines
    rows = [line.split() for line in lines]
    assert sum(row[:1] == ["plain"] for row in rows) == 1
    segments = [row for row in rows if row[:1] == ["plain-0"]]
    assert len(segments) == 13
    assert segments[1] == [
        "plain-0", "00000000000000000014", "14", "29", "1,225", "3", "4", "-",
        "2023-11-14T22:14:10.935Z",
    ]  # fmt: skip


def test_a_topic_that_is_not_there_is_said(tmp_path: Path, logstore: CommandLine) -> None:
    """In no directory, or not this partition's: with what is there, and exit code 1."""
    directory = GOLDEN / SETS[0] / "data"
    names = {view["topic"] for view in logstore("ls", "--json", directory).json["partitions"]}
    refused = logstore("ls", "--topic", "nix", directory)
    assert (refused.exit_code, refused.out) == (1, "")
    assert f"{directory}: there is no topic nix; there are {sorted(names)[0]}, " in refused.err
    assert "did you mean plain?" in logstore("ls", "--topic", "plian", directory).err
    other = logstore("ls", "--json", "--topic", "nix", directory / "plain-0")
    assert (other.exit_code, other.out) == (1, "")
    assert "there is no topic nix; there are plain" in other.err
    first, second = split_in_two(directory, tmp_path)
    whole = f"{first},{second}"
    assert logstore("ls", "--topic", "plain", whole).exit_code == 0
    assert logstore("ls", "--topic", "nix", whole).exit_code == 1


def test_one_partition_is_enough(logstore: CommandLine) -> None:
    """A partition's own directory is listed, its log start taken from the checkpoint beside it."""
    directory = GOLDEN / "kafka-4.3" / "data" / "delete-records-0"
    listed = logstore("ls", "--json", directory).json
    assert (listed["state"], listed["clusterId"]) == ("unknown", None)
    (view,) = listed["partitions"]
    assert (view["topic"], view["partition"], view["start"], view["end"]) == (
        "delete-records", 0, 81, 160,
    )  # fmt: skip


def test_a_pile_of_files_is_enough(tmp_path: Path, logstore: CommandLine) -> None:
    """Copied partitions without meta.properties, under any name, indexes or not, are listed."""
    source = GOLDEN / "kafka-4.3" / "data"
    shutil.copytree(source / "plain-0", tmp_path / "pile" / "plain-0")
    shutil.copytree(source / "groups-1", tmp_path / "pile" / "saved")
    for path in (tmp_path / "pile" / "saved").iterdir():
        if path.suffix != ".log":
            path.unlink()
    outcome = logstore("ls", "--json", tmp_path / "pile")
    assert outcome.exit_code == 0, outcome.err
    assert outcome.json["state"] == "unknown"
    assert [
        (view["topic"], view["partition"], view["end"], view["largestTimestamp"])
        for view in outcome.json["partitions"]
    ] == [("plain", 0, 179, 1700000206222), ("saved", None, 12, 1700000456987)]
    assert ["saved", "-", "0", "12", "1", "994"] in [
        line.split()[:6] for line in logstore("ls", tmp_path / "pile").lines
    ]


def test_looking_changes_nothing(tmp_path: Path, logstore: CommandLine) -> None:
    """No byte, no name and no time of change is another afterwards, and no lock file appears."""
    directory = copy_of_data("kafka-4.3", tmp_path)

    def state() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in [directory, *directory.rglob("*")]
        }

    before = state()
    logstore("ls", "--segments", directory)
    logstore("query", directory / "plain-0", "--offset", 60)
    logstore("query", directory / "plain-0", "--time", 1700000100000)
    logstore("dump", *sorted((directory / "plain-0").iterdir()))
    assert state() == before


def test_a_directory_in_use_is_listed_as_it_grows(tmp_path: Path, logstore: CommandLine) -> None:
    """What a broker appended but never flushed, indexes and all, is seen; its lock stays its."""
    directory = str(tmp_path / "live")
    store = KafkaStore(system_host(), directory, StoreOptions())
    topic = store.create_topic("busy", 2, {"index.interval.bytes": "0", "segment.bytes": "1048576"})
    for number in range(40):
        topic.partitions[1].append_records([Record(None, b"v" * 50, 1700000000000 + number)])
    listed = logstore("ls", "--json", directory).json
    assert (listed["state"], listed["process"]) == ("in use", os.getpid())
    views = [view for view in listed["partitions"] if view["topic"] == "busy"]
    assert [(view["partition"], view["end"], view["largestTimestamp"]) for view in views] == [
        (0, 0, None),
        (1, 40, 1700000000039),
    ]
    assert holder_seen_from_outside(f"{directory}/.lock") == os.getpid()
    log = Path(directory) / "busy-1" / f"{0:020d}.log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[:100])  # half a batch, as if written right now
    outcome = logstore("ls", "--json", directory)
    assert outcome.exit_code == 0, outcome.err
    (view,) = [v for v in outcome.json["partitions"] if (v["topic"], v["partition"]) == ("busy", 1)]
    assert view["end"] == 40
    os.truncate(log, log.stat().st_size - 100)
    store.close()
    assert logstore("ls", "--json", directory).json["state"] == "clean"
    assert lock_holder(f"{directory}/.lock") is None


def holder_seen_from_outside(path: str) -> int:
    """Return who has a lock, as another process sees it."""
    probe = "import sys; from logstore.tools.inspection.lock_holder import *; "
    command = [sys.executable, "-c", f"{probe} print(lock_holder(sys.argv[1]) or 0)", path]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_an_unclean_stop_is_told_with_what_it_left(tmp_path: Path, logstore: CommandLine) -> None:
    """Torn tails and shapeless indexes are named with file and place; the exit code says so."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    (directory / ".kafka_cleanshutdown").unlink()
    folder = directory / "plain-0"
    log = folder / f"{170:020d}.log"
    size_bytes = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"\0" * 4096)
    os.truncate(folder / f"{170:020d}.index", 13)
    outcome = logstore("ls", directory)
    assert outcome.exit_code == 1
    assert outcome.lines[0].endswith("not closed cleanly: the next start recovers it")
    errors = outcome.err.splitlines()
    assert errors[0].startswith(f"logstore: {folder}/{170:020d}.index: 13 bytes are no whole")
    assert errors[1] == (
        f"logstore: {log}: position {size_bytes}: zeros: 4096 bytes that nobody wrote"
    )
    listed = logstore("ls", "--json", "--topic", "plain", directory).json
    assert listed["partitions"][0]["end"] == 179
    assert [problem["position"] for problem in listed["problems"]] == [None, size_bytes]


def test_an_index_of_another_log_misleads_nobody(tmp_path: Path, logstore: CommandLine) -> None:
    """Where the last index entry leads nowhere the segment is walked from its start."""
    folder = copy_of_data("kafka-4.3", tmp_path) / "plain-0"
    index = folder / f"{170:020d}.index"
    for entries in (b"\0\0\0\3\0\0\0\x05", b"\0\0\0\3\x7f\0\0\0"):
        index.write_bytes(entries)
        (view,) = logstore("ls", "--json", folder).json["partitions"]
        assert (view["end"], view["largestTimestamp"]) == (179, 1700000206222)


def test_directories_that_wait_for_removal_are_marked(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A deleted topic's renamed directory is listed with what it is there for."""
    directory = copy_of_data("epochs-4.3", tmp_path)
    (directory / "leader-epochs-0").rename(directory / f"leader-epochs-0.{'0' * 32}-delete")
    views = logstore("ls", "--json", directory).json["partitions"]
    assert ("leader-epochs", "delete", 75) in [(v["topic"], v["role"], v["end"]) for v in views]
    assert "leader-epochs (delete)" in logstore("ls", directory).out


def test_what_is_no_data_directory_gets_one_line(tmp_path: Path, logstore: CommandLine) -> None:
    """Missing, a file, foreign: the message names the path and says what to name instead."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"")
    for path, reason in (
        (tmp_path / "nix", "there is no such directory"),
        (tmp_path / "photos" / "a.jpg", "is a file; name a directory, or look into the file"),
        (tmp_path / "photos", "no meta.properties, no partition and no .log file is in it; name"),
    ):
        outcome = logstore("ls", "--json", path)
        assert (outcome.exit_code, outcome.out) == (1, "")
        assert outcome.err.startswith(f"logstore: {path}: {reason}")
        assert len(outcome.err.splitlines()) == 1


def test_a_wrong_meta_properties_is_said_and_the_rest_listed(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """An identity that cannot be read does not hide the partitions."""
    directory = copy_of_data("epochs-4.3", tmp_path)
    (directory / "meta.properties").write_text("version=7\n")
    outcome = logstore("ls", "--json", directory)
    assert outcome.exit_code == 1
    assert outcome.err == f"logstore: {directory}/meta.properties: unknown version 7\n"
    assert len(outcome.json["partitions"]) == 3


def test_help_shows_examples(logstore: CommandLine) -> None:
    """The help page has commands that can be copied."""
    outcome = logstore("ls", "--help")
    assert outcome.exit_code == 0
    assert "logstore ls --topic orders --segments /var/lib/kafka" in outcome.out


def test_directories_of_a_node_are_listed_in_turn(tmp_path: Path, logstore: CommandLine) -> None:
    """Named with commas between, as in ``log.dirs``; damage in any of them is an exit with 1."""
    first, second = split_in_two(GOLDEN / "kafka-4.3/data", tmp_path)
    whole = logstore("ls", "--json", GOLDEN / "kafka-4.3/data").json["partitions"]
    outcome = logstore("ls", "--json", f"{first}, {second}")
    assert outcome.exit_code == 0
    assert [one["directory"] for one in outcome.json_lines] == [str(first), str(second)]
    found = [view for one in outcome.json_lines for view in one["partitions"]]
    assert sorted(found, key=str) == sorted(whole, key=str)
    lines = logstore("ls", f"{first},{second}").lines
    assert [line.partition(":")[0] for line in lines if line.startswith("/")] == [
        str(first),
        str(second),
    ]
    log = next(first.glob("plain-0/*.log"), None) or next(second.glob("plain-0/*.log"))
    log.write_bytes(b"x" * 100)
    assert logstore("ls", f"{first},{second}").exit_code == 1


def test_a_long_name_does_not_make_every_line_as_long() -> None:
    """It stands out of its column alone."""
    long = "a" * 200
    lines = aligned(("topic", "queue"), [("orders", 0), (long, 12), ("b" * 48, 3)])
    assert lines == [
        f"{'topic':<48}  queue",
        f"{'orders':<48}      0",
        f"{long}     12",
        f"{'b' * 48}      3",
    ]


@pytest.mark.parametrize("command", ["ls", "verify", "query"])
def test_a_rocketmq_store_is_not_one_of_several(
    command: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """It has everything; what another one has is another store's."""
    RocketMQStore(system_host(), str(tmp_path / "store")).close()
    asked = ("--topic", "t", "--queue", 0, "--offset", 0) if command == "query" else ()
    outcome = logstore(command, f"{GOLDEN / 'epochs-4.3/data'},{tmp_path / 'store'}", *asked)
    assert outcome.exit_code == 1
    assert f"{tmp_path / 'store'}: is a RocketMQ store, which is read on its own" in outcome.err
