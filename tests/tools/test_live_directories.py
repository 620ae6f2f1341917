"""What a broker removes, cleans or writes while a tool reads is neither an error nor damage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.os_host import SystemFileSystem, system_host
from logstore.partition import Record
from logstore.segments.kafka.store import KafkaStore, StoreOptions
from logstore.tools.commands import verify as verify_command
from logstore.tools.inspection.stats import store_stats
from logstore.tools.inspection.stats.store_stats import StatsOptions, measure_store
from logstore.tools.inspection.survey import survey_directory
from logstore.tools.inspection.verification.directory_check import DirectoryCheck
from logstore.tools.inspection.verification.finding import Finding, Severity
from logstore.tools.inspection.verification.second_look import LOOKS_MAX, lasting_findings
from tests.segments.kafka.golden_case import copy_of_data
from tests.tools.changing_files import ChangingFiles
from tests.tools.command_line import CommandLine

FIRST_LOG = f"plain-0/{0:020d}.log"
TIME_MS = 1_700_000_000_000


def remove_first_segment(folder: Path) -> None:
    """Do what retention does."""
    for path in folder.glob(f"{0:020d}.*"):
        path.unlink()


def test_ls_passes_over_a_topic_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    """A partition that was listed and is gone when it is looked at is no problem."""
    data = copy_of_data("kafka-4.3", tmp_path)
    last_log = max((data / "plain-0").glob("*.log"))
    fs = ChangingFiles(f"plain-0/{last_log.name}", lambda: shutil.rmtree(data / "plain-0"))
    survey = survey_directory(fs, str(data))
    assert fs.has_happened
    assert not survey.problems
    assert "plain" not in {view.topic for view in survey.partitions}
    assert len(survey.partitions) > 3


def test_verify_looks_again_where_a_segment_goes(tmp_path: Path) -> None:
    """What retention removes between listing and reading ends no verification, and is no gap."""
    data = copy_of_data("kafka-4.3", tmp_path)
    fs = ChangingFiles(FIRST_LOG, lambda: remove_first_segment(data / "plain-0"))
    found = list(DirectoryCheck(fs, str(data)).findings())
    assert fs.has_happened
    kinds = {one.kind for one in found if one.file.startswith("plain-0") and one.is_damage}
    assert kinds <= {"epochs", "snapshot"}, found  # of a checkpoint that nobody moved
    assert "unsettled" not in {one.kind for one in found}


def test_verify_passes_over_a_topic_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    """The rest of the directory is verified."""
    data = copy_of_data("kafka-4.3", tmp_path)
    fs = ChangingFiles(FIRST_LOG, lambda: shutil.rmtree(data / "plain-0"))
    assert not [one for one in DirectoryCheck(fs, str(data)).findings() if one.is_damage]
    assert fs.has_happened


def test_stats_measure_again_what_was_cleaned_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that goes while a store is measured: its partition is measured as it is then."""
    data = copy_of_data("kafka-4.3", tmp_path)
    options = StatsOptions(str(data), topics=("plain",))
    whole = measure_store(options).measured["plain", 0]
    fs = ChangingFiles(FIRST_LOG, lambda: remove_first_segment(data / "plain-0"))

    def file_system_of(path: str, scan_bytes: int) -> ChangingFiles:
        del path, scan_bytes
        return fs

    monkeypatch.setattr(store_stats, "file_system_of", file_system_of)
    measured = measure_store(options)
    assert fs.has_happened
    assert measured.damaged_count == 0
    rest = measured.measured["plain", 0]
    assert (rest.first_offset, rest.last_offset) == (14, whole.last_offset)
    assert rest.record_count == whole.record_count - 14


def test_damage_beside_a_running_broker_must_be_seen_again(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that was half there when it was read is whole at the next look; a bad one is not."""
    directory = tmp_path / "live"
    store = KafkaStore(system_host(), str(directory), StoreOptions())
    partition = store.create_topic("busy", 1).partitions[0]
    for number in range(40):
        partition.append_records([Record(None, b"v" * 50, TIME_MS + number)])
    log = directory / "busy-0" / f"{0:020d}.log"
    sound = log.read_bytes()
    torn = sound[:1000] + bytes(200) + sound[1200:]
    log.write_bytes(torn)
    assert logstore("verify", directory).exit_code == 1

    class Torn(SystemFileSystem):
        def __init__(self) -> None:
            log.write_bytes(torn)

        def list_directory(self, path: str) -> list[object]:  # type: ignore[override]
            if path.endswith("busy-0"):
                self.looks = getattr(self, "looks", 0) + 1
                if self.looks > 2:  # of the first check: one for the files, one for snapshots
                    log.write_bytes(sound)
            return super().list_directory(path)  # type: ignore[return-value]

    monkeypatch.setattr(verify_command, "PassingFileSystem", Torn)
    outcome = logstore("verify", directory)
    assert outcome.exit_code == 0, outcome.out
    store.close()


def test_only_what_every_look_finds_is_damage() -> None:
    """Damage that moves on or goes is none; notes are those of the last look."""
    stays = Finding("crc", "a.log", "5 bytes", 7)
    note = Finding("open", "a.log", "waits", severity=Severity.NOTE)

    def looks(*found: list[Finding] | None) -> list[Finding] | None:
        rest: Iterator[list[Finding] | None] = iter(found[1:])
        return lasting_findings(found[0], lambda: next(rest))

    moved = [Finding("crc", "a.log", "5 bytes", position) for position in range(8, 11)]
    other_words = Finding("crc", "a.log", "9 bytes", 7)
    assert looks([note]) == [note]
    assert looks([stays, moved[0]], [other_words, moved[1]], [stays, moved[2], note]) == [
        stays, note,
    ]  # fmt: skip
    assert looks([stays], [note]) == [note]
    assert looks(None, [note]) == [note]
    assert looks(*[None] * LOOKS_MAX) is None


def test_of_a_few_hundred_keys_never_more_differ_than_there_are(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """The number of different keys is an estimate, but not one that cannot be."""
    store = KafkaStore(system_host(), str(tmp_path / "data"))
    topics = [store.create_topic(f"keys-{count}", 1) for count in range(600, 2_100, 100)]
    for count, topic in zip(range(600, 2_100, 100), topics, strict=True):
        topic.partitions[0].append_records(
            [Record(b"k%d" % number, b"v", TIME_MS) for number in range(count)]
        )
    store.close()
    for topic in logstore("stats", "--json", tmp_path / "data").json["topics"]:
        assert topic["distinctKeys"] <= topic["recordsWithKey"] == topic["records"]
