"""``logstore compact`` by hand: what it removes, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.store import KafkaStore
from tests.tools.command_line import CommandLine

KEY_COUNT, ROUND_COUNT = 5, 8
SETTINGS = {"cleanup.policy": "compact", "internal.segment.bytes": "500"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A store that was stopped: two partitions of a compacted topic, and a plain one."""
    host = system_host()
    store = KafkaStore(host, str(tmp_path / "data"))
    users = store.create_topic("users", 2, SETTINGS)
    plain = store.create_topic("plain", 1, {"internal.segment.bytes": "500"})
    for partition in (users.partitions[0], plain.partitions[0]):
        for number in range(KEY_COUNT * ROUND_COUNT):
            record = Record(0, host.clock.wall_ms(), b"%d" % (number % KEY_COUNT), b"v" * 50)
            partition.append_produced(memoryview(encode_batch([record])), host.clock.wall_ms())
    store.close()
    return tmp_path / "data"


def offsets(directory: Path, topic: str) -> list[int]:
    """Return the offsets of the records in partition 0."""
    store = KafkaStore(system_host(), str(directory))
    found = [record.offset for record in store.partition(topic, 0).read_records(0, 1000)]
    store.close()
    return found


def test_superseded_records_go(directory: Path, logstore: CommandLine) -> None:
    """Of each key one is left in the sealed segments; other topics stay; it is said."""
    outcome = logstore("compact", str(directory))
    assert outcome.exit_code == 0
    first, second = outcome.out.splitlines()
    assert first.startswith("users-0: ")
    assert "records removed" in first
    assert second == "users-1: nothing to compact (0 bytes)"
    kept = offsets(directory, "users")
    assert kept == sorted(kept)
    assert KEY_COUNT <= len(kept) < 2 * KEY_COUNT
    assert kept[-1] == KEY_COUNT * ROUND_COUNT - 1
    assert len(offsets(directory, "plain")) == KEY_COUNT * ROUND_COUNT
    checkpoint = (directory / "cleaner-offset-checkpoint").read_text()
    assert checkpoint.startswith("0\n1\nusers 0 ")


def test_what_is_clean_is_left_alone(directory: Path, logstore: CommandLine) -> None:
    """The second run reads the checkpoint, and finds nothing dirty."""
    logstore("compact", str(directory))
    kept = offsets(directory, "users")
    outcome = logstore("compact", "--topic", "users", "--partition", "0", str(directory))
    assert "nothing to compact" in outcome.out
    assert offsets(directory, "users") == kept


def test_a_dry_run_says_what_a_real_one_does(directory: Path, logstore: CommandLine) -> None:
    """It changes no file, also while the directory is in use."""
    store = KafkaStore(system_host(), str(directory))
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    dry = logstore("compact", "--dry-run", "--json", "--topic", "users", str(directory))
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    store.close()
    real = logstore("compact", "--json", "--topic", "users", str(directory))
    said, done = (json.loads(o.out.splitlines()[0]) for o in (dry, real))
    assert (said.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert said == done
    assert done["recordsRemoved"] > 0
    assert done["bytes"] < done["bytesBefore"]


def test_a_directory_in_use_is_refused(directory: Path, logstore: CommandLine) -> None:
    """Two cannot change the same files; the message says who has them."""
    store = KafkaStore(system_host(), str(directory))
    outcome = logstore("compact", str(directory))
    store.close()
    assert outcome.exit_code == 1
    assert "lock" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--topic", "plain"), "its cleanup.policy is not compact"),
        (("--topic", "nobody"), "there is no nobody"),
        (("--topic", "users", "--partition", "7"), "there is no users, partition 7"),
    ],
)
def test_what_cannot_be_compacted_is_said(
    directory: Path, logstore: CommandLine, arguments: tuple[str, ...], reason: str
) -> None:
    """In one line, with exit code 1."""
    outcome = logstore("compact", *arguments, str(directory))
    assert outcome.exit_code == 1
    assert reason in outcome.err


def test_a_directory_of_something_else_stays_as_it_is(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """No store is created in it."""
    outcome = logstore("compact", str(tmp_path))
    assert outcome.exit_code == 1
    words = f"logstore: {tmp_path}: is no Kafka data directory; name an entry of Kafka's log.dirs\n"
    assert outcome.err == words
    assert list(tmp_path.iterdir()) == []


def test_a_rocketmq_store_is_told_for_one(tmp_path: Path, logstore: CommandLine) -> None:
    """Its topics are not compacted here; nothing in it is touched."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").touch()
    outcome = logstore("compact", str(tmp_path))
    assert outcome.exit_code == 1
    assert outcome.err.startswith(f"logstore: {tmp_path}: is a RocketMQ store; name ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commitlog"]


def test_damage_is_told(directory: Path, logstore: CommandLine) -> None:
    """The partition stays as it is, the exit code is 1."""
    log = min((directory / "users-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[70] ^= 0xFF
    log.write_bytes(data)
    outcome = logstore("compact", "--topic", "users", str(directory))
    assert outcome.exit_code == 1
    assert "users-0: not compacted: " in outcome.out
    assert log.read_bytes() == data
