"""What is in the one log directory, how much room it has, and that it is the only one."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from logstore.partition import Record as PlainRecord
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import DIRECTORY, Conversation

NOW_MS = 1_700_000_000_000


def sizes(answer: dict[str, Any]) -> dict[tuple[str, int], int]:
    """Return the sizes of partitions in the only directory of an answer."""
    (directory,) = answer["results"]
    assert (directory["error_code"], directory["log_dir"]) == (0, DIRECTORY)
    return {
        (topic["name"], partition["partition_index"]): partition["partition_size"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
        if partition["offset_lag"] == 0 and not partition["is_future_key"]
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_log_directories_are_measured(version: int) -> None:
    """Every version tells the bytes of each partition's batches, of all or of those asked for."""
    conversation = Conversation()
    conversation.create("a", 2)
    conversation.create("b")
    conversation.broker.topics["a"].partitions[1].append_records([PlainRecord(b"k", b"v", NOW_MS)])
    size_bytes = len(encode_batch([Record(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")]))
    answer = conversation.ask("DescribeLogDirs", version, topics=None)
    assert sizes(answer) == {("a", 0): 0, ("a", 1): size_bytes, ("b", 0): 0}
    if version >= 3:
        assert answer["error_code"] == 0
    some = [{"topic": "a", "partitions": [1, 5]}, {"topic": "no such", "partitions": [0]}]
    answer = conversation.ask("DescribeLogDirs", version, topics=some)
    assert sizes(answer) == {("a", 1): size_bytes}


@pytest.mark.parametrize("version", range(1, 6))
def test_the_volume_is_measured(version: int) -> None:
    """From version 4 on its size and what is free of it, before that nothing of it."""
    conversation = Conversation()
    disk = conversation.host.fs
    disk.fill_up(free_bytes=5000)
    (directory,) = conversation.ask("DescribeLogDirs", version, topics=[])["results"]
    if version >= 4:
        assert directory["total_bytes"] == disk.used_bytes + 5000
        assert directory["usable_bytes"] == 5000
    else:
        assert {"total_bytes", "usable_bytes"} & set(directory) == set()


def test_sizes_beyond_counting_are_cut() -> None:
    """A volume of more than 2^63 - 1 bytes has as many as the field can say."""
    conversation = Conversation()
    conversation.host.fs.faults.capacity_bytes = 1 << 70
    (directory,) = conversation.ask("DescribeLogDirs", 4, topics=[])["results"]
    assert directory["total_bytes"] == directory["usable_bytes"] == (1 << 63) - 1


def test_a_volume_that_cannot_be_measured_is_an_error() -> None:
    """The directory is answered with -1 and without partitions, and is well the next time."""
    conversation = Conversation()
    conversation.create("a")
    conversation.host.fs.faults.fail_next("volume_space", errno.EIO)
    answer = conversation.ask("DescribeLogDirs", 4, topics=None)
    (directory,) = answer["results"]
    assert answer["error_code"] == 0
    assert (directory["error_code"], directory["log_dir"]) == (-1, DIRECTORY)
    assert (directory["topics"], directory["total_bytes"]) == ([], -1)
    assert sizes(conversation.ask("DescribeLogDirs", 4, topics=None)) == {("a", 0): 0}


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_stays_in_the_one_directory(version: int) -> None:
    """To be moved to where it is is fine; elsewhere is 57, an unknown partition 3."""
    conversation = Conversation()
    conversation.create("a")
    topics = [{"name": "a", "partitions": [0, 1]}]
    dirs = [
        {"path": conversation.broker.store.directory, "topics": topics},
        {"path": "/elsewhere", "topics": [{"name": "b", "partitions": [0]}]},
    ]
    answer = conversation.ask("AlterReplicaLogDirs", version, dirs=dirs)
    found = {
        (topic["topic_name"], one["partition_index"]): one["error_code"]
        for topic in answer["results"]
        for one in topic["partitions"]
    }
    assert found == {("a", 0): 0, ("a", 1): 3, ("b", 0): 57}
