"""A store of which a part stands elsewhere is no empty one: commands say so, and change nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.errors import ForeignDirectoryError, MissingSegmentError
from logstore.os_host import system_host
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.command_line import CommandLine

COMMANDS: dict[str, tuple[str, ...]] = {
    "ls": (),
    "verify": (),
    "stats": (),
    "query": ("--physical-offset", "0"),
    "reindex": (),
    "salvage": ("--into", "saved"),
    "convert": ("made", "--to", "jsonl", "--master", "none"),
}


@pytest.fixture
def case() -> GoldenCase:
    """A store of several files that a real 5.5.0 left."""
    (found,) = golden_cases("plain", version="5.5.0")
    return found


def contents(store: Path) -> dict[Path, bytes]:
    """Return all files of a directory."""
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_takes_it_for_empty(
    command: str,
    case: GoldenCase,
    tmp_path: Path,
    logstore: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the commit log is missing beside its queues, the setting and the way out are named."""
    monkeypatch.chdir(tmp_path)
    store = case.copy_store(tmp_path / "store")
    (store / "commitlog").rename(tmp_path / "disk")
    before = contents(store)
    outcome = logstore(command, store, *COMMANDS[command])
    assert outcome.exit_code == 1
    assert "no commit log in" in outcome.err
    assert "storePathCommitLog" in outcome.err
    assert contents(store) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "store"]


def test_a_log_of_dledger_is_named(case: GoldenCase, tmp_path: Path, logstore: CommandLine) -> None:
    """Linking it would help nobody: its entries have heads of their own."""
    store = case.copy_store(tmp_path / "store")
    (store / "commitlog").rename(store / "dledger-n0")
    outcome = logstore("ls", store)
    assert outcome.exit_code == 1
    assert "the commit log is DLedger's, in dledger-n0" in outcome.err


@pytest.mark.parametrize("is_new", [False, True], ids=["log-of-before", "no-message-yet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_takes_a_store_of_dledger_for_another(
    command: str,
    is_new: bool,
    case: GoldenCase,
    tmp_path: Path,
    logstore: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither where the commit log of before it stands beside it, nor where no queue has a file."""
    monkeypatch.chdir(tmp_path)
    store = case.copy_store(tmp_path / "store")
    (store / "dledger-n0" / "data").mkdir(parents=True)
    if is_new:
        shutil.rmtree(store / "commitlog")
        shutil.rmtree(store / "consumequeue")
    before = contents(store)
    outcome = logstore(command, store, *COMMANDS[command])
    assert outcome.exit_code == 1, outcome
    assert "the commit log is DLedger's, in dledger-n0" in outcome.err
    assert contents(store) == before
    with pytest.raises(MissingSegmentError, match="DLedger"):
        RocketMQStore(system_host(), str(store), StoreOptions())


def test_a_log_of_several_disks_is_linked_together(
    case: GoldenCase, tmp_path: Path, logstore: CommandLine
) -> None:
    """What the error says helps: links to the one directory, or to the files of all of them."""
    store = case.copy_store(tmp_path / "store")
    disk = tmp_path / "disk"
    (store / "commitlog").rename(disk)
    (store / "commitlog").symlink_to(disk)
    assert logstore("verify", store).exit_code == 0
    (store / "commitlog").unlink()
    (store / "commitlog").mkdir()
    (tmp_path / "other").mkdir()
    for number, file in enumerate(sorted(disk.iterdir())):
        place = file if number % 2 else file.rename(tmp_path / "other" / file.name)
        (store / "commitlog" / file.name).symlink_to(place)
    assert logstore("verify", store).exit_code == 0
    assert logstore("reindex", "--dry-run", store).lines == []


def test_a_store_is_not_opened_without_its_log(case: GoldenCase, tmp_path: Path) -> None:
    """Recovery would cut all queues; with the setting it finds the log."""
    store = case.copy_store(tmp_path / "store")
    (store / "commitlog").rename(tmp_path / "disk")
    before = contents(store / "consumequeue")
    for place in (None, tmp_path / "not-mounted"):
        settings = dict(case.settings)
        if place is not None:
            settings["storePathCommitLog"] = str(place)
        with pytest.raises(MissingSegmentError, match="no commit log in"):
            RocketMQStore(system_host(), str(store), StoreOptions(settings=settings))
        assert contents(store / "consumequeue") == before
    settings = {**case.settings, "storePathCommitLog": str(tmp_path / "disk")}
    opened = RocketMQStore(system_host(), str(store), StoreOptions(settings=settings))
    assert opened.commit_log.max_physical_offset > 0
    opened.close()


def queues_in_rocksdb(store: Path) -> None:
    """Leave what a broker with RocksDB has instead of files of queues."""
    shutil.rmtree(store / "consumequeue")
    (store / "consumequeue").mkdir()
    (store / "consumequeue" / "CURRENT").write_text("MANIFEST-000005\n")


def tables_in_rocksdb(store: Path) -> None:
    """Leave what it has instead of ``topics.json``."""
    for file in (store / "config").glob("topics.json*"):
        file.unlink()
    (store / "config" / "topics").mkdir()
    (store / "config" / "topics" / "CURRENT").write_text("MANIFEST-000005\n")


def test_queues_in_rocksdb_are_said(
    case: GoldenCase, tmp_path: Path, logstore: CommandLine
) -> None:
    """No queue is missing; messages are found by key and place, and counted."""
    store = case.copy_store(tmp_path / "store")
    message = case.expected[0]
    queues_in_rocksdb(store)
    listed = logstore("ls", store)
    assert "queues: in consumequeue as RocksDB, which is not read here" in listed.out
    assert logstore("ls", "--json", store).json["rocksdb"] == "consumequeue"
    verified = logstore("verify", "--json", store)
    assert verified.exit_code == 0
    assert "rocksdb" in {line["kind"] for line in verified.json_lines}
    asked = ("--topic", message["topic"], "--queue", message["queueId"], "--offset", 0)
    assert "stand in RocksDB" in logstore("query", store, *asked).err
    place = logstore("query", store, "--physical-offset", message["commitLogOffset"])
    assert place.exit_code == 0
    counted = {topic["topic"]: topic for topic in logstore("stats", "--json", store).json["topics"]}
    assert counted[message["topic"]]["records"] > 0


@pytest.mark.parametrize("command", ["stats", "convert"])
def test_what_a_reader_does_not_know_of_rocksdb_is_said(
    command: str,
    case: GoldenCase,
    tmp_path: Path,
    logstore: CommandLine,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Records are read, and who converts hears that groups and settings are not among them."""
    store = case.copy_store(tmp_path / "store")
    rest = () if command == "stats" else (tmp_path / "new", "--to", "kafka", "--master", "none")
    tables_in_rocksdb(store)
    queues_in_rocksdb(store)
    assert logstore(command, store, *rest).exit_code == 0
    assert "topics and groups stand in config/topics as RocksDB" in caplog.text
    assert "the queues stand in consumequeue as RocksDB" in caplog.text


@pytest.mark.parametrize("move", [queues_in_rocksdb, tables_in_rocksdb])
def test_no_broker_begins_anew_beside_rocksdb(
    move: Callable[[Path], None], case: GoldenCase, tmp_path: Path
) -> None:
    """What stands in RocksDB would be forgotten, so the store is not opened for writing."""
    store = case.copy_store(tmp_path / "store")
    move(store)
    before = contents(store)
    with pytest.raises(ForeignDirectoryError, match="is RocksDB"):
        RocketMQStore(system_host(), str(store), StoreOptions(settings=case.settings))
    assert contents(store).keys() - {store / "lock"} == before.keys() - {store / "lock"}
    options = StoreOptions(is_writable=False, settings=case.settings)
    RocketMQStore(system_host(), str(store), options).close()
