"""``logstore ls`` lists what real brokers left in their RocketMQ stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.os_host import system_host
from logstore.partition import Record
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.tools.command_line import CommandLine

ALL = [pytest.param(case, id=case.id) for case in golden_cases()]


@pytest.mark.parametrize("case", ALL)
def test_what_is_listed_is_what_a_store_knows(case: GoldenCase, logstore: CommandLine) -> None:
    """Queues with their queue offsets, the ends of the commit log, release and state."""
    for path in case.stores.values():
        options = StoreOptions(is_writable=False, settings=case.settings)
        store = RocketMQStore(system_host(), str(path), options)
        listed = logstore("ls", "--json", path).json
        assert listed["layout"] == "rocketmq"
        assert listed["release"][0] == case.version[0]
        assert listed["state"] == "clean"
        assert listed["minPhysicalOffset"] == store.commit_log.min_physical_offset
        assert listed["maxPhysicalOffset"] == store.commit_log.max_physical_offset
        assert {
            (line["topic"], line["queueId"]): (line["minOffset"], line["maxOffset"])
            for line in listed["queues"]
        } == {
            key: (queue.min_queue_offset, queue.max_queue_offset)
            for key, queue in store.consume_queues.by_key.items()
        }
        store.close()


def test_a_table_for_people(logstore: CommandLine) -> None:
    """Topics, queues and files with their sizes and offsets; a topic alone if asked for."""
    (case,) = golden_cases("plain", version="4.9.8")
    lines = logstore("ls", "--segments", case.store).lines
    assert "RocketMQ 4.x, closed cleanly" in lines[0]
    assert lines[1].startswith("commit log: 3 files, 393,216 bytes, physical offsets [0, ")
    assert sum("commitlog/0" in line for line in lines) == 3
    topic = case.expected[0]["topic"]
    only = logstore("ls", "--json", "--topic", topic, case.store).json
    assert {line["topic"] for line in only["queues"]} == {topic}


def test_a_crashed_store_says_so(logstore: CommandLine) -> None:
    """The abort file is named, and where the commit log is torn."""
    (case,) = golden_cases("damage", version="4.9.8")
    (pair,) = [pair for pair in case.pairs if pair.name == "torn-tail"]
    outcome = logstore("ls", pair.before)
    assert outcome.exit_code == 1
    assert "not closed cleanly (abort is there)" in outcome.lines[0]
    assert "commitlog/00000000000000131072: position " in outcome.err


def test_a_store_in_use_names_the_process_and_keeps_its_lock(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Beside a broker in this very process the lock is not touched."""
    options = StoreOptions(settings={"mappedFileSizeCommitLog": "65536"}, release=Release.V5)
    store = RocketMQStore(system_host(), str(tmp_path), options)
    store.queue("TopicTest", 0).append_records([Record(b"k", b"v", 1_700_000_000_000)])
    outcome = logstore("ls", tmp_path)
    assert "in use by process" in outcome.lines[0]
    with pytest.raises(BlockingIOError):
        system_host().fs.lock(str(tmp_path / "lock"))
    store.close()


def test_a_topic_that_is_not_there_is_said(logstore: CommandLine) -> None:
    """With the topics that are there, and exit code 1; one without a queue is there."""
    (case,) = golden_cases("plain", version="4.9.8")
    topics = {message["topic"] for message in case.expected}
    refused = logstore("ls", case.store, "--topic", "nix")
    assert (refused.exit_code, refused.out) == (1, "")
    assert "there is no topic nix; there are " in refused.err
    for topic in (*topics, "TBW102"):
        assert logstore("ls", case.store, "--topic", topic).exit_code == 0


def test_wrong_paths_say_what_is_right(tmp_path: Path, logstore: CommandLine) -> None:
    """A part of a store, a conversion that is not finished, its target, a foreign directory."""
    (case,) = golden_cases("plain", version="4.9.8")
    part = logstore("ls", case.store / "consumequeue")
    assert part.exit_code == 1
    assert "is a part of the RocketMQ store" in part.err
    (tmp_path / "new.converting" / "data").mkdir(parents=True)
    for name in ("new.converting", "new"):
        unfinished = logstore("ls", tmp_path / name)
        assert unfinished.exit_code == 1
        assert "not finished" in unfinished.err
    assert "there is no such directory" in logstore("ls", tmp_path / "missing").err
    (tmp_path / "other").mkdir()
    assert logstore("ls", tmp_path / "other").exit_code == 1
