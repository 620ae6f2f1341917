"""``logstore verify`` finds every damage that a check can tell, and nothing where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from logstore.compat import TestBroker
from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record as BatchRecord
from logstore.segments.kafka.record import encode_batch
from logstore.segments.kafka.record_batch import batch_size_bytes
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from tests.segments.kafka.golden_case import GOLDEN, copy_of_data
from tests.tools.command_line import CommandLine

CLEAN = ("kafka-4.3", "kafka-3.9", "epochs-4.3", "legacy-3.9", "transactions-4.3")
CRASHED = GOLDEN / "crash-4.3/data-before"
SECOND, ACTIVE = 1, -1
#: damage of a partition -> kind of finding, and which file it is in
FOUND = {
    "torn_body": ("cut", ".log", ACTIVE),
    "torn_header": ("tail", ".log", ACTIVE),
    "zero_tail": ("zeros", ".log", ACTIVE),
    "garbage_tail": ("magic", ".log", ACTIVE),
    "flip_active_middle": ("crc", ".log", ACTIVE),
    "flip_active_offset": ("base-offset", ".log", ACTIVE),
    "flip_active_size": ("length", ".log", ACTIVE),
    "flip_sealed": ("crc", ".log", 0),
    "no_index_sealed": ("index-missing", ".index", SECOND),
    "no_timeindex_sealed": ("index-missing", ".timeindex", SECOND),
    "short_timeindex_sealed": ("index-size", ".timeindex", SECOND),
    "short_index_sealed": ("index-size", ".index", SECOND),
    "garbage_index_sealed": ("index-entry", ".index", SECOND),
    "garbage_index_active": ("index-entry", ".index", ACTIVE),
    "garbage_txnindex": ("transaction-index", ".txnindex", None),
    "no_snapshots": ("snapshot-missing", ".snapshot", ACTIVE),
    "garbage_snapshot": ("snapshot", ".snapshot", None),
    "no_epochs": ("epochs-missing", "leader-epoch-checkpoint", None),
    "leftovers": ("orphan", "00000000000000000001.index", None),
    "swap": ("gap", ".log", SECOND),
    "missing_segment": ("gap", ".log", SECOND),
}


def crash_damages() -> dict[str, int]:
    """Return the partition of each damage."""
    path = CRASHED.parent / "cases/crash/damage.json"
    return {line["damage"]: line["partition"] for line in json.loads(path.read_text())}


@pytest.mark.parametrize("set_name", CLEAN)
def test_nothing_is_wrong_with_what_a_broker_left_cleanly(
    set_name: str, logstore: CommandLine
) -> None:
    """Whole data directories of real brokers have no damage; open transactions are none."""
    outcome = logstore("verify", "--json", GOLDEN / set_name / "data")
    assert outcome.exit_code == 0, outcome.out
    assert outcome.err == ""
    kinds = [line["kind"] for line in outcome.json_lines]
    assert kinds == (["open-transaction"] * 2 if set_name == "transactions-4.3" else [])
    with_records = logstore("verify", "--records", GOLDEN / set_name / "data")
    assert with_records.exit_code == 0
    assert with_records.lines[-1].endswith("no damage found, 2 notes" if kinds else "found")


@pytest.mark.parametrize("damage", FOUND)
def test_each_damage_is_found_in_its_file(damage: str, logstore: CommandLine) -> None:
    """Every damage of the crash set is named, with the file that has it and no other one."""
    name = f"crash-{crash_damages()[damage]}"
    outcome = logstore("verify", "--json", CRASHED / name)
    assert outcome.exit_code == 1
    damages = [line for line in outcome.json_lines if line["severity"] == "damage"]
    kind, suffix, place = FOUND[damage]
    logs = sorted((CRASHED / name).glob("*.log"))
    stem = "" if place is None else logs[place].stem
    found = [line for line in damages if line["kind"] == kind]
    assert [line["file"].endswith(suffix) for line in found] == [True] * len(found) != []
    assert any(line["file"].startswith(stem) for line in found)
    files = {line["file"] for line in damages}
    if damage.startswith("garbage_index"):
        assert files == {f"{stem}.index", f"{stem}.timeindex"}
    else:
        assert len(files) == 1, damages


def test_what_a_kill_leaves_is_no_damage(logstore: CommandLine) -> None:
    """Preallocated indexes and late checkpoints of a killed broker are as they have to be."""
    outcome = logstore("verify", "--json", CRASHED / f"crash-{crash_damages()['untouched']}")
    assert (outcome.exit_code, outcome.out) == (0, "")


@pytest.mark.parametrize("recovery_point", [None, 0, 10**6])
def test_an_index_that_the_next_start_makes_is_no_damage(
    recovery_point: int | None, tmp_path: Path, logstore: CommandLine
) -> None:
    """Of segments that it recovers, which are the newest and those above the recovery point."""
    number = crash_damages()["untouched"]
    data = tmp_path / "data"
    partition = shutil.copytree(CRASHED / f"crash-{number}", data / f"crash-{number}")
    shutil.copy(CRASHED / "meta.properties", data)
    stems = [log.stem for log in sorted(partition.glob("*.log"))]
    for stem in stems[1], stems[-1]:
        (partition / f"{stem}.index").unlink()
    if recovery_point is None:
        (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    else:
        point = f"0\n1\ncrash {number} {recovery_point}\n"
        (data / "recovery-point-offset-checkpoint").write_text(point)
    outcome = logstore("verify", "--json", data)
    lines = [line for line in outcome.json_lines if line["kind"] == "index-missing"]
    damaged = {None: [stems[1], stems[-1]], 0: [], 10**6: [stems[1]]}[recovery_point]
    assert [line["severity"] for line in lines] == [
        "damage" if stem in damaged else "note" for stem in (stems[1], stems[-1])
    ]
    notes = [line["reason"] for line in lines if line["severity"] == "note"]
    assert all("the next start makes it" in text for text in notes)
    if recovery_point == 0:
        assert outcome.exit_code == 0


def test_names_are_relative_to_the_directory(logstore: CommandLine) -> None:
    """Of a data directory a finding names partition and file, of a partition the file alone."""
    number = crash_damages()["flip_sealed"]
    lines = logstore("verify", "--json", CRASHED).json_lines
    whole = [line["file"] for line in lines if line["file"].startswith(f"crash-{number}/")]
    (alone,) = logstore("verify", "--json", CRASHED / f"crash-{number}").json_lines
    assert whole == [f"crash-{number}/{alone['file']}"]
    assert alone["position"] == 0
    assert alone["offset"] == 0
    assert "good batches go on with offset 2" in alone["reason"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a partition that may be damaged: offsets 0 to 178 in 13 segments."""
    return copy_of_data("kafka-4.3", tmp_path) / "plain-0"


def log_of(folder: Path, base_offset: int, suffix: str = ".log") -> Path:
    """Return the path of a segment's file."""
    return folder / f"{base_offset:020d}{suffix}"


def test_it_says_which_records_an_index_misses(folder: Path, logstore: CommandLine) -> None:
    """Indexes that end too early are told with the records that they lead to no more."""
    log_of(folder, 14, ".index").write_bytes(b"")
    times = log_of(folder, 29, ".timeindex")
    times.write_bytes(times.read_bytes()[:-12])
    outcome = logstore("verify", "--json", folder)
    assert outcome.exit_code == 1
    index, time_index = outcome.json_lines
    assert (index["kind"], index["file"]) == ("index-misses", log_of(folder, 14, ".index").name)
    assert "the records 14 to 28 are found only by reading" in index["reason"]
    assert time_index["kind"] == "time-index-misses"
    assert time_index["file"] == times.name
    assert "a search by time passes them over" in time_index["reason"]


def test_a_gap_between_segments_is_damage(folder: Path, logstore: CommandLine) -> None:
    """A segment that is not there is told with its offsets; so is an index without its log."""
    log_of(folder, 14).unlink()
    outcome = logstore("verify", "--json", folder)
    assert outcome.exit_code == 1
    kinds = {(line["kind"], line["file"]) for line in outcome.json_lines}
    assert ("orphan", log_of(folder, 14, ".index").name) in kinds
    assert ("gap", log_of(folder, 29).name) in kinds
    gap = next(line for line in outcome.json_lines if line["kind"] == "gap")
    assert gap["reason"].endswith("the records 14 to 28 are missing")


def test_wrong_checkpoints_are_damage(folder: Path, logstore: CommandLine) -> None:
    """An epoch that no batch has, an offset beyond the end, a table that is none."""
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 90\n")
    data = folder.parent
    points = data / "recovery-point-offset-checkpoint"
    lines = points.read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("plain 0 "))
    lines[place] = "plain 0 4711"
    points.write_text("\n".join(lines) + "\n")
    (data / "cleaner-offset-checkpoint").write_text("7\n")
    outcome = logstore("verify", data)
    assert outcome.exit_code == 1
    assert "cleaner-offset-checkpoint: cannot be read: version 7, expected 0" in outcome.lines
    assert any(
        line.startswith("recovery-point-offset-checkpoint: says of plain-0 that all below offset")
        for line in outcome.lines
    )
    assert any(
        line.startswith("plain-0/leader-epoch-checkpoint: the batch at offset 90 is of epoch 0")
        for line in outcome.lines
    )


def test_what_a_start_took_out_of_a_log_is_named(folder: Path, logstore: CommandLine) -> None:
    """A wrong log start is damage; the segments that were kept aside for it are a note."""
    starts = folder.parent / "log-start-offset-checkpoint"
    starts.write_text("0\n1\nplain 0 4711\n")
    outcome = logstore("verify", folder.parent)
    assert outcome.exit_code == 1
    said = "log-start-offset-checkpoint: says of plain-0 that the log starts at offset 4711, but"
    assert any(line.startswith(said) for line in outcome.lines)
    KafkaStore(system_host(), str(folder.parent)).close()
    outcome = logstore("verify", folder.parent)
    assert outcome.exit_code == 0
    kept = "note: plain-0/00000000000000000000.log.cut-at-0: keeps "
    assert any(line.startswith(kept) for line in outcome.lines)


def test_a_deletion_that_a_crash_forgot_is_no_damage(folder: Path, logstore: CommandLine) -> None:
    """Kafka moves the epochs at once and the log start later; what a kill leaves stays so."""
    checkpoint = folder / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n0 31\n")
    outcome = logstore("verify", folder)
    assert outcome.exit_code == 0
    assert "leader-epoch-checkpoint: says nothing of the offsets before 31" in outcome.out
    assert logstore("reindex", folder).exit_code == 0
    assert checkpoint.read_text() == "0\n1\n0 31\n"


@pytest.mark.parametrize("has_metadata", [True, False])
def test_another_topics_id_is_damage(
    folder: Path, logstore: CommandLine, *, has_metadata: bool
) -> None:
    """Held against the cluster's metadata, and without them against other partitions."""
    data = folder.parent
    if not has_metadata:
        shutil.rmtree(data / "__cluster_metadata-0")
    metadata = data / "groups-1/partition.metadata"
    text = metadata.read_text()
    metadata.chmod(0o644)
    metadata.write_text(f"{text[:-5]}{'B' if text[-5] == 'A' else 'A'}{text[-4:]}")
    outcome = logstore("verify", data)
    assert outcome.exit_code == 1
    (line,) = [line for line in outcome.lines if "says topic id" in line]
    assert line.startswith("groups-")
    assert ("the cluster's metadata" in line) == has_metadata


def test_open_transactions_are_explained(logstore: CommandLine) -> None:
    """Who has it open since when, what waits for it, and what its coordinator will do."""
    outcome = logstore("verify", GOLDEN / "transactions-4.3/data/transactions-0")
    assert outcome.exit_code == 0
    first, second, verdict = outcome.lines
    assert "the last stable offset stays at 146" in first
    assert "wait for 22 offsets behind it" in first
    assert "the coordinator of 'txn-librdkafka' has it as open" in first
    assert "aborts it 900000 ms later" in first
    assert "producer 4 (epoch 6) has a transaction open since offset 160" in second
    assert verdict.endswith("no damage found, 2 notes")


def test_hanging_transactions_are_told_from_open_ones(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A transaction that no coordinator knows of hangs; without their log nobody can tell."""
    data = copy_of_data("transactions-4.3", tmp_path)
    log = next((data / "__transaction_state-0").glob("*.log"))
    log.write_bytes(b"")
    lines = logstore("verify", "--json", data / "transactions-0").json_lines
    assert [line["kind"] for line in lines] == ["hanging-transaction"] * 2
    assert all(line["severity"] == "note" for line in lines)
    assert "kafka-transactions.sh abort --topic transactions --partition 0" in lines[0]["reason"]
    shutil.rmtree(data / "__transaction_state-0")
    lines = logstore("verify", "--json", data / "transactions-0").json_lines
    assert [line["kind"] for line in lines] == ["open-transaction"] * 2
    assert "which is not here" in lines[0]["reason"]


@pytest.mark.parametrize("has_metadata", [True, False])
def test_who_sees_a_part_of_the_coordinators_says_so(
    tmp_path: Path, logstore: CommandLine, *, has_metadata: bool
) -> None:
    """What another of log.dirs may know does not hang: nobody is told to abort it by hand."""
    data = copy_of_data("transactions-4.3", tmp_path)
    if not has_metadata:
        shutil.rmtree(data / "__cluster_metadata-0")
    partition = (data / "__transaction_state-0").rename(data / "__transaction_state-3")
    next(partition.glob("*.log")).write_bytes(b"")
    lines = logstore("verify", "--json", data / "transactions-0").json_lines
    assert [line["kind"] for line in lines] == ["open-transaction"] * 2
    assert all("only a part of __transaction_state is here" in line["reason"] for line in lines)


def test_directories_of_a_node_know_each_others_coordinators(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Named together, what one has tells of transactions that are open in the other."""
    first = copy_of_data("transactions-4.3", tmp_path)
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(first / "meta.properties", second)
    (first / "transactions-0").rename(second / "transactions-0")
    alone = logstore("verify", second).lines
    assert "which is not here" in alone[0]
    outcome = logstore("verify", f"{first},{second}")
    assert outcome.exit_code == 0
    assert outcome.lines[0] == f"{first}: no damage found"
    assert "the coordinator of 'txn-librdkafka' has it as open" in outcome.lines[1]
    assert outcome.lines[-1] == f"{second}: no damage found, 2 notes"
    lines = logstore("verify", "--json", f"{first},{second}").json_lines
    assert [line["directory"] for line in lines] == [str(second)] * 2
    log = next((second / "transactions-0").glob("*.log"))
    log.write_bytes(b"x" * 100 + log.read_bytes())
    assert logstore("verify", f"{second},{first}").exit_code == 1


def test_aborted_transactions_must_be_in_their_index(tmp_path: Path, logstore: CommandLine) -> None:
    """A lost index, a changed first offset and an entry too many are told."""
    folder = copy_of_data("kafka-4.3", tmp_path) / "transactions-0"
    indexes = sorted(path for path in folder.glob("*.txnindex") if path.stat().st_size)
    lost, changed, doubled = indexes[:3]
    lost.unlink()
    data = bytearray(changed.read_bytes())
    data[17] ^= 1  # the lowest byte of the first offset
    changed.write_bytes(data)
    entry = struct.unpack(">hqqqq", doubled.read_bytes()[-34:])
    more = struct.pack(">hqqqq", 0, 99, entry[3] - 1, entry[3] + 1, entry[4])
    doubled.write_bytes(doubled.read_bytes() + more)
    lines = logstore("verify", "--json", folder).json_lines
    assert {line["file"] for line in lines} == {lost.name, changed.name, doubled.name}
    missing = next(line for line in lines if line["file"] == lost.name)
    assert missing["kind"] == "transaction-index-misses"
    assert "consumers that read only what is committed get its records" in missing["reason"]


def test_producers_must_be_those_of_the_log(tmp_path: Path, logstore: CommandLine) -> None:
    """A snapshot of another partition is readable, but tells another story."""
    data = copy_of_data("kafka-4.3", tmp_path)
    target = sorted((data / "transactions-0").glob("*.snapshot"))[3]
    source = max((data / "idempotent-0").glob("*.snapshot"))
    shutil.copy(source, target)
    lines = logstore("verify", "--json", data / "transactions-0").json_lines
    assert {(line["kind"], line["file"]) for line in lines} == {("snapshot", target.name)}


def test_every_flip_in_a_log_is_found_with_its_place(tmp_path: Path, logstore: CommandLine) -> None:
    """A single wrong byte in any batch is told with the batch that has it, or is without effect."""
    data = copy_of_data("kafka-4.3", tmp_path)
    folder = data / "codec-gzip-0"
    log = sorted(folder.glob("*.log"))[0]
    good = log.read_bytes()
    starts: list[int] = []
    while (position := (starts[-1] + batch_size_bytes(good, starts[-1])) if starts else 0) < len(
        good
    ):
        starts.append(position)
    for at in [*range(61), *range(61, len(good), 97)]:
        log.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        outcome = logstore("verify", "--json", folder)
        owner = max(start for start in starts if start <= at)
        inside = at - owner
        damages = [line for line in outcome.json_lines if line["severity"] == "damage"]
        if inside in range(12, 16):  # the leader epoch is outside of the CRC: its checkpoint tells
            assert {line["file"] for line in damages} == {"leader-epoch-checkpoint"}, at
            continue
        assert outcome.exit_code == 1, at
        assert {line["file"] for line in damages} == {log.name}, (at, damages)
        assert owner in [line["position"] for line in damages], (at, damages)


def test_a_directory_in_use_is_not_blamed_for_what_is_under_way(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Beside a running broker half a batch and indexes not written yet are no damage."""
    directory = str(tmp_path / "live")
    store = KafkaStore(system_host(), directory, StoreOptions())
    topic = store.create_topic("busy", 1, {"index.interval.bytes": "0"})
    for number in range(40):
        topic.partitions[0].append_records([Record(None, b"v" * 50, 1700000000000 + number)])
    log = Path(directory) / "busy-0" / f"{0:020d}.log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[:100])
    outcome = logstore("verify", directory)
    assert outcome.exit_code == 0, outcome.out
    os.truncate(log, log.stat().st_size - 100)
    store.close()
    assert logstore("verify", directory).exit_code == 0


def test_wrong_use_is_told(tmp_path: Path, logstore: CommandLine) -> None:
    """A directory without anything of Kafka's, a file and a missing path are one line each."""
    (tmp_path / "notes").mkdir()
    outcome = logstore("verify", tmp_path)
    assert outcome.exit_code == 1
    assert "name a directory of Kafka's log.dirs, or of one partition" in outcome.err
    assert "there is no such directory" in logstore("verify", tmp_path / "x").err
    assert "logstore verify --json /var/lib/kafka" in logstore("verify", "--help").out


def test_a_log_of_many_short_lives_misses_no_entries(tmp_path: Path, logstore: CommandLine) -> None:
    """Each stop gives the time index an entry; that the offset index has none then is no damage."""
    make_producer: Any = KafkaProducer
    for number in range(5):
        with TestBroker(str(tmp_path)) as broker:
            producer = make_producer(bootstrap_servers=broker.bootstrap)
            producer.send("t", b"%d" % number, timestamp_ms=1_700_000_000_000 + number).get(10)
            producer.close()
    times = (tmp_path / "t-0" / f"{0:020d}.timeindex").read_bytes()
    assert len(times) == 5 * 12
    assert (tmp_path / "t-0" / f"{0:020d}.index").read_bytes() == b""
    outcome = logstore("verify", "--json", tmp_path)
    assert (outcome.exit_code, [line for line in outcome.json_lines
                                if line["severity"] == "damage"]) == (0, [])  # fmt: skip


def test_what_a_recovery_cannot_know_is_no_damage(tmp_path: Path, logstore: CommandLine) -> None:
    """Below the log start a recovery does not look: of what began there no index need to tell."""
    host = system_host()
    config = parse_topic_configs({"internal.segment.bytes": "300"})
    directory = tmp_path / "t-0"
    directory.mkdir()

    def partition(recovery_point: int | None, start: int = 0) -> KafkaPartition:
        files = SegmentFiles(host, str(directory), config, is_clean=recovery_point is None)
        return KafkaPartition(
            host, files, "t", 0, recovery_point=recovery_point, log_start_offset=start
        )

    log = partition(None)
    open_batch = encode_batch(
        [BatchRecord(0, 1000, None, bytes(200))], producer_id=7, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip
    log.append_produced(memoryview(open_batch), 1000)
    log.append_marker(7, 0, is_commit=False, coordinator_epoch=0, now_ms=1000)
    log.append_records([Record(None, b"behind", 1000)])
    assert len(log.log.segments) == 2
    log.flush()
    log.log.close()
    again = partition(0, start=2)
    again.close()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    index = directory / f"{1:020d}.txnindex"
    assert index.read_bytes() == b""
    outcome = logstore("verify", "--json", tmp_path)
    assert [line["kind"] for line in outcome.json_lines if line["severity"] == "damage"] == []
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n0\n")
    outcome = logstore("verify", "--json", tmp_path)
    assert "transaction-index-misses" in [line["kind"] for line in outcome.json_lines]
