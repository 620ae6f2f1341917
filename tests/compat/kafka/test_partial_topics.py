"""
A directory that has only some partitions of a topic: one of several ``log.dirs``, or a copy.

Clients count partitions by what they are told, so those that are elsewhere are told, too.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.broker_cluster import BrokerCluster
from logstore.compat.kafka.groups.partitioning import partition_of
from logstore.partition import Record
from logstore.segments.kafka import clean_shutdown
from logstore.segments.kafka.cluster_metadata.metadata_log import DIRECTORY as METADATA
from logstore.segments.kafka.cluster_metadata.snapshot import BOOTSTRAP
from logstore.segments.kafka.meta_properties import FILE_NAME as META_PROPERTIES
from logstore.segments.kafka.meta_properties import MetaProperties
from logstore.segments.kafka.record import decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS
from tests.compat.kafka.conversation import DIRECTORY, Conversation

COUNT = 4


def filled() -> Conversation:
    """Return a broker with a topic of four partitions, a record in each, stopped."""
    conversation = Conversation()
    conversation.create("t", COUNT)
    for partition in conversation.broker.topics["t"].partitions.values():
        partition.append_records([Record(b"k", b"kept", NOW_MS)])
    conversation.broker.close()
    return conversation


def reopened(conversation: Conversation) -> Conversation:
    """Start a broker over what the disk has."""
    conversation.broker = conversation.open()
    conversation.connection = conversation.broker.connect("127.0.0.1")
    return conversation


def remove_partitions(host: SimulatedHost, *indexes: int) -> None:
    """Take directories of partitions away."""
    for index in indexes:
        host.fs.remove_directory(f"{DIRECTORY}/t-{index}")


def without_metadata(*missing: int) -> Conversation:
    """Return a broker over a copy that has neither the cluster's metadata nor some partitions."""
    conversation = filled()
    conversation.host.fs.remove_directory(f"{DIRECTORY}/{METADATA}")
    remove_partitions(conversation.host, *missing)
    return reopened(conversation)


def in_another_directory(*missing: int) -> Conversation:
    """Return a broker over one of several directories, whose metadata know of the others."""
    conversation = filled()
    fs = conversation.host.fs
    meta = MetaProperties.read(fs, DIRECTORY)
    fs.remove(f"{DIRECTORY}/{META_PROPERTIES}")
    meta._replace(directory_id=bytes(range(16))).write(fs, DIRECTORY, 0)
    remove_partitions(conversation.host, *missing)
    return reopened(conversation)


def told(conversation: Conversation, version: int) -> list[tuple[int, int, int]]:
    """Return number, error and leader of every partition that Metadata tells."""
    answer = conversation.ask("Metadata", version, topics=[{"name": "t"}])
    (topic,) = answer["topics"]
    return [
        (one["partition_index"], one["error_code"], one["leader_id"]) for one in topic["partitions"]
    ]


def records_of(conversation: Conversation) -> dict[int, list[bytes | None]]:
    """Return the values in every partition that is there."""
    partitions = conversation.broker.topics["t"].partitions
    return {
        index: [record.value for batch in one.batches() for record in decode_records(batch.data)]
        for index, one in partitions.items()
    }


@pytest.mark.parametrize("version", [1, 9])
def test_what_is_not_here_is_told_without_a_leader(version: int) -> None:
    """A client that counts them finds the others under their numbers."""
    wanted = [(0, 5, -1), (1, 0, 1), (2, 5, -1), (3, 0, 1)]
    assert told(without_metadata(0, 2), version) == wanted
    assert told(in_another_directory(0, 2), version) == wanted


def test_the_metadata_know_the_last_ones() -> None:
    """That the topic goes on elsewhere stands in the cluster's metadata alone."""
    assert told(in_another_directory(2, 3), 9) == [(0, 0, 1), (1, 0, 1), (2, 5, -1), (3, 5, -1)]
    assert told(without_metadata(2, 3), 9) == [(0, 0, 1), (1, 0, 1)]


def test_a_topic_that_is_wholly_elsewhere_keeps_its_name() -> None:
    """A second one of that name in the metadata, and no Kafka would start on them any more."""
    conversation = in_another_directory(*range(COUNT))
    topic_id = conversation.broker.topics["t"].topic_id
    wanted = [(index, 5, -1) for index in range(COUNT)]
    assert told(conversation, 9) == wanted
    asked: dict[str, Any] = {
        "name": "t",
        "num_partitions": 1,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    answer = conversation.ask("CreateTopics", 5, topics=[asked], timeout_ms=1000)
    assert answer["topics"][0]["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS
    conversation.restart()
    assert told(conversation, 9) == wanted
    assert conversation.broker.topics["t"].topic_id == topic_id
    assert not list(conversation.broker.store.partitions())
    more = {"name": "t", "count": COUNT + 1, "assignments": [{"broker_ids": [1]}]}
    grown = conversation.ask("CreatePartitions", 3, topics=[more], timeout_ms=1000)
    assert grown["results"][0]["error_code"] == ErrorCode.NONE
    assert told(conversation, 9) == [*wanted, (COUNT, 0, 1)]
    gone = conversation.ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=1000)
    assert gone["responses"][0]["error_code"] == ErrorCode.NONE
    conversation.restart()
    assert "t" not in conversation.broker.topics


def test_topics_are_described_with_what_is_not_here() -> None:
    """As DescribeTopicPartitions has it: no leader, and no error; pages count them."""
    conversation = without_metadata(0, 2)

    def page(cursor: dict[str, Any] | None, limit: int) -> list[tuple[int, int]]:
        answer = conversation.ask(
            "DescribeTopicPartitions",
            0,
            topics=[{"name": "t"}],
            response_partition_limit=limit,
            cursor=cursor,
        )
        (topic,) = answer["topics"]
        return [(one["partition_index"], one["leader_id"]) for one in topic["partitions"]]

    assert page(None, 100) == [(0, -1), (1, 1), (2, -1), (3, 1)]
    assert page({"topic_name": "t", "partition_index": 2}, 1) == [(2, -1)]


@pytest.mark.parametrize("opened", [without_metadata, in_another_directory])
def test_growing_begins_behind_the_last(opened: Any) -> None:
    """Partitions that are there keep their records; the missing ones are not made."""
    conversation: Conversation = opened(0, 2)

    def grow(count: int) -> int:
        asked = {"name": "t", "count": count, "assignments": None}
        answer = conversation.ask("CreatePartitions", 3, topics=[asked], timeout_ms=1000)
        code: int = answer["results"][0]["error_code"]
        return code

    assert grow(3) == grow(4) == 37
    assert grow(6) == 0
    wanted = {1: [b"kept"], 3: [b"kept"], 4: [], 5: []}
    assert records_of(conversation) == wanted
    conversation.restart()
    assert records_of(conversation) == wanted
    assert [error for _, error, _ in told(conversation, 9)] == [5, 0, 5, 0, 0, 0]


def test_groups_that_are_kept_elsewhere_find_no_coordinator() -> None:
    """As in Kafka, whose disk with that partition is offline; the others go on."""
    conversation = Conversation({"offsets.topic.num.partitions": "2"})
    groups = [f"g{number}" for number in range(8)]

    def found() -> list[int]:
        answers = (conversation.ask("FindCoordinator", 2, key=one, key_type=0) for one in groups)
        return [answer["error_code"] for answer in answers]

    assert set(found()) == {ErrorCode.NONE}
    conversation.broker.close()
    conversation.host.fs.remove_directory(f"{DIRECTORY}/{METADATA}")
    conversation.host.fs.remove_directory(f"{DIRECTORY}/__consumer_offsets-0")
    reopened(conversation)
    wanted = [partition_of(one, 2) for one in groups]
    assert set(wanted) == {0, 1}
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found() == [ErrorCode.NONE if index else unavailable for index in wanted]


def test_consumer_groups_share_out_all() -> None:
    """Groups assign numbers up to the topic's last, not up to how many are here."""
    broker = without_metadata(0, 2).broker
    shape = BrokerCluster(broker.store, broker.dynamic_config).topic_named("t")
    assert shape is not None
    assert shape.partition_count == COUNT


def test_empty_partitions_that_the_metadata_elsewhere_may_know_stay() -> None:
    """After an unclean stop, too: a node's second directory has what a new one starts with."""
    conversation = Conversation()
    conversation.create("t", COUNT)
    conversation.broker.close()
    fs = conversation.host.fs
    fs.remove(f"{DIRECTORY}/{clean_shutdown.FILE_NAME}")
    assert fs.exists(f"{DIRECTORY}/{BOOTSTRAP}")
    fs.remove_directory(f"{DIRECTORY}/{METADATA}")
    remove_partitions(conversation.host, 0, 2)
    assert records_of(reopened(conversation)) == {1: [], 3: []}


def test_a_directory_that_may_be_one_of_several_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A Kafka that has them all refuses to start beside the metadata that are made in it."""
    with caplog.at_level(logging.WARNING):
        in_another_directory(0)
        assert caplog.text == ""
        conversation = without_metadata(0)
        assert f"remove {DIRECTORY}/{METADATA}" in caplog.text
        caplog.clear()
        conversation.restart()
        assert caplog.text == ""
