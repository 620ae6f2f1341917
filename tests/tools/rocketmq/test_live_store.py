"""What a broker writes while ``logstore verify`` reads its store is no damage."""

from __future__ import annotations

import shutil
from pathlib import Path

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.tools.command_line import CommandLine

TIME_MS = 1_700_000_000_000


def test_a_checkpoint_may_be_ahead_of_what_was_read_of_a_log_that_grows(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """It is read last, and tells of what came since; in a store that lies still it is damage."""
    live, still = tmp_path / "live", tmp_path / "still"
    options = StoreOptions(settings={"mappedFileSizeCommitLog": "65536"})
    store = RocketMQStore(system_host(), str(live), options)
    store.queue("TopicTest", 0).append_records([Record(b"k", b"v", TIME_MS)])
    checkpoint = (2**42).to_bytes(8) * 3
    (live / "checkpoint").write_bytes(checkpoint.ljust(4096, b"\0"))
    outcome = logstore("verify", live)
    assert outcome.exit_code == 0, outcome.out
    shutil.copytree(live, still)
    store.close()
    outcome = logstore("verify", still)
    assert outcome.exit_code == 1
    assert "checkpoint: position 0: says that the commit log is on disk up to" in outcome.out


def test_damage_in_a_store_in_use_is_told_when_it_stays(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A record that is wrong at every look is damage, a running broker or not."""
    options = StoreOptions(settings={"mappedFileSizeCommitLog": "65536"})
    store = RocketMQStore(system_host(), str(tmp_path), options)
    queue = store.queue("TopicTest", 0)
    for _ in range(3):
        queue.append_records([Record(b"k", b"v" * 100, TIME_MS)])
    (log,) = sorted((tmp_path / "commitlog").iterdir())[:1]
    data = bytearray(log.read_bytes())
    at = data.index(b"v" * 100)
    data[at] ^= 1
    log.write_bytes(data)
    outcome = logstore("verify", tmp_path)
    assert outcome.exit_code == 1
    assert len([line for line in outcome.lines if line.startswith("commitlog/")]) == 1
    store.close()
