"""Where topics are, in every version of Metadata."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.groups.topic import GroupsTopic
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from tests.compat.kafka.conversation import HOST, PORT, Conversation, message_class

VERSIONS = range(14)
TOPIC_OPERATIONS = {3, 4, 5, 6, 7, 8, 10, 11}
CLUSTER_OPERATIONS = {5, 7, 8, 9, 10, 11, 12}


def named(*names: str) -> list[dict[str, Any]]:
    """Return the topics of a request, by name."""
    return [{"name": name} for name in names]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_the_broker_and_the_topic(version: int) -> None:
    """Every version has the broker's address, the topic and its partitions with their leader."""
    conversation = Conversation({"broker.rack": "shelf-7"})
    topic_id = conversation.create("orders", 2)
    answer = conversation.ask("Metadata", version, topics=named("orders"))
    broker = {"node_id": 1, "host": HOST, "port": PORT}
    assert answer["brokers"] == [broker | ({"rack": "shelf-7"} if version >= 1 else {})]
    if version >= 1:
        assert answer["controller_id"] == 1
    if version >= 2:
        assert answer["cluster_id"] == conversation.broker.cluster_id
    (topic,) = answer["topics"]
    assert (topic["error_code"], topic["name"]) == (0, "orders")
    if version >= 1:
        assert topic["is_internal"] is False
    if version >= 10:
        assert topic["topic_id"] == uuid.UUID(bytes=topic_id)
    partition: dict[str, Any] = {
        "error_code": 0,
        "leader_id": 1,
        "replica_nodes": [1],
        "isr_nodes": [1],
    }
    if version >= 5:
        partition["offline_replicas"] = []
    if version >= 7:
        partition["leader_epoch"] = 0
    assert topic["partitions"] == [partition | {"partition_index": index} for index in (0, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_are_the_librarys(version: int) -> None:
    """What is written by hand is byte for byte what the library writes for the same answer."""
    conversation = Conversation()
    conversation.create("orders", 3)
    asked = named("orders", "no such", "__consumer_offsets")
    written = conversation.ask_bytes("Metadata", version, topics=asked)
    response = message_class("MetadataResponse")
    answer = response.decode(written, version=version, header=True, framed=True)
    header_bytes = 9 if version >= 9 else 8
    assert written[header_bytes:] == response.encode(answer)


def test_null_asks_for_all_topics() -> None:
    """A list that is null asks for all topics, and creates none."""
    conversation = Conversation()
    conversation.create("b")
    conversation.create("a")
    for version in VERSIONS[1:]:
        answer = conversation.ask("Metadata", version, topics=None)
        assert sorted(topic["name"] for topic in answer["topics"]) == ["a", "b"]


def test_an_empty_list_asks_for_none_since_v1() -> None:
    """An empty list asks for all topics in version 0, and for none later."""
    conversation = Conversation()
    conversation.create("a")
    for version in VERSIONS:
        answer = conversation.ask("Metadata", version, topics=[])
        assert [topic["name"] for topic in answer["topics"]] == (["a"] if version == 0 else [])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_created_and_there_when_asked_again(version: int) -> None:
    """What is not there is created with the default partitions: 3 first, then it is told."""
    conversation = Conversation({"num.partitions": "3"})
    answer = conversation.ask("Metadata", version, topics=named("new"))
    (topic,) = answer["topics"]
    assert (topic["error_code"], topic["partitions"]) == (3, [])
    assert list(conversation.broker.topics["new"].partitions) == [0, 1, 2]
    (topic,) = conversation.ask("Metadata", version, topics=named("new"))["topics"]
    assert topic["error_code"] == 0
    assert [partition["partition_index"] for partition in topic["partitions"]] == [0, 1, 2]


def test_topics_that_are_created_stand_last() -> None:
    """What is there comes first, then what no topic can be called, then what is made now."""
    conversation = Conversation()
    conversation.create("b")
    answer = conversation.ask("Metadata", 12, topics=named("new", "no name", "b", "newer"))
    found = [(topic["error_code"], topic["name"]) for topic in answer["topics"]]
    assert found == [(0, "b"), (17, "no name"), (3, "new"), (3, "newer")]
    assert sorted(conversation.broker.topics) == ["b", "new", "newer"]


def test_creation_can_be_declined_by_the_client() -> None:
    """A request that does not allow it creates nothing and is answered with 3."""
    conversation = Conversation()
    for version in VERSIONS[4:]:
        answer = conversation.ask(
            "Metadata", version, topics=named("new"), allow_auto_topic_creation=False
        )
        assert [topic["error_code"] for topic in answer["topics"]] == [3]
    assert conversation.broker.topics == {}


def test_creation_can_be_declined_by_the_broker() -> None:
    """With auto.create.topics.enable off nothing is created."""
    conversation = Conversation({"auto.create.topics.enable": "false"})
    answer = conversation.ask("Metadata", 13, topics=named("new"))
    assert [topic["error_code"] for topic in answer["topics"]] == [3]
    assert conversation.broker.topics == {}


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250])
def test_an_impossible_name_is_17(name: str) -> None:
    """A name that no topic can have is answered with 17, allowed to create or not."""
    conversation = Conversation()
    for may_create in (True, False):
        answer = conversation.ask(
            "Metadata", 12, topics=named(name), allow_auto_topic_creation=may_create
        )
        (topic,) = answer["topics"]
        assert (topic["error_code"], topic["name"]) == (17, name)
    assert conversation.broker.topics == {}


def test_a_clashing_name_does_not_appear() -> None:
    """A name whose metrics would clash with a topic's is not created; the client only sees 3."""
    conversation = Conversation()
    conversation.create("a.b")
    answer = conversation.ask("Metadata", 13, topics=named("a_b"))
    assert [topic["error_code"] for topic in answer["topics"]] == [3]
    assert list(conversation.broker.topics) == ["a.b"]


def test_the_groups_topic_is_created_as_what_it_is() -> None:
    """Asking for __consumer_offsets creates it compacted, internal, with its own partitions."""
    conversation = Conversation({"offsets.topic.num.partitions": "4"})
    (topic,) = conversation.ask("Metadata", 13, topics=named("__consumer_offsets"))["topics"]
    assert (topic["error_code"], topic["is_internal"]) == (3, True)
    (topic,) = conversation.ask("Metadata", 13, topics=named("__consumer_offsets"))["topics"]
    assert topic["is_internal"] is True
    assert len(topic["partitions"]) == 4
    assert conversation.broker.topics["__consumer_offsets"].settings["cleanup.policy"] == "compact"


def test_the_groups_topic_is_the_same_whoever_makes_it() -> None:
    """A client that asks for it and a group's first record make it with one and the same shape."""
    settings = {
        "default.replication.factor": "3",  # that is for the topics of clients
        "offsets.topic.num.partitions": "4",
        "offsets.topic.segment.bytes": "2000000",
    }
    asked, written = Conversation(settings), Conversation(settings)
    asked.ask("Metadata", 13, topics=named(GROUPS_TOPIC))
    GroupsTopic(written.broker).append("group", [(b"key", b"value")])
    topics = [one.broker.topics[GROUPS_TOPIC] for one in (asked, written)]
    assert [len(topic.partitions) for topic in topics] == [4, 4]
    assert topics[0].settings == topics[1].settings
    assert topics[0].settings == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
    }


def test_topics_by_id_since_v12() -> None:
    """Topics are found by id since version 12; an unknown id is 100 and has no name."""
    conversation = Conversation()
    topic_id = uuid.UUID(bytes=conversation.create("orders"))
    stranger = uuid.UUID(int=7)
    for version in (12, 13):
        answer = conversation.ask(
            "Metadata",
            version,
            topics=[{"topic_id": topic_id, "name": None}, {"topic_id": stranger, "name": None}],
        )
        found = [(topic["error_code"], topic["name"], topic["topic_id"])
                 for topic in answer["topics"]]  # fmt: skip
        assert found == [(100, None, stranger), (0, "orders", topic_id)]


def test_ids_before_v12_are_invalid() -> None:
    """Versions 10 and 11 have ids only in answers: a request that uses one is 42."""
    conversation = Conversation()
    topic_id = uuid.UUID(bytes=conversation.create("orders"))
    for version in (10, 11):
        answer = conversation.ask(
            "Metadata", version, topics=[{"topic_id": topic_id, "name": "orders"}]
        )
        assert [topic["error_code"] for topic in answer["topics"]] == [42]
        assert (answer["brokers"], answer["cluster_id"], answer["controller_id"]) == ([], None, -1)


def test_neither_name_nor_id_fails_the_whole_question() -> None:
    """Since version 12 a topic may have no name, but then it must have an id."""
    conversation = Conversation()
    conversation.create("orders")
    asked = [*named("orders"), {"topic_id": None, "name": None}]
    answer = conversation.ask("Metadata", 13, topics=asked)
    assert [(one["error_code"], one["name"]) for one in answer["topics"]] == [
        (-1, "orders"),
        (-1, ""),
    ]
    assert (answer["error_code"], answer["brokers"]) == (-1, [])


def test_what_is_there_comes_before_what_is_not() -> None:
    """Names that are unknown are answered last."""
    conversation = Conversation({"auto.create.topics.enable": "false"})
    conversation.create("a")
    answer = conversation.ask("Metadata", 13, topics=named("x", "a", "y"))
    assert [one["name"] for one in answer["topics"]] == ["a", "x", "y"]


def test_a_topic_named_twice_is_answered_once() -> None:
    """A name that comes twice is answered once."""
    conversation = Conversation()
    conversation.create("a")
    answer = conversation.ask("Metadata", 13, topics=named("a", "a"))
    assert [topic["name"] for topic in answer["topics"]] == ["a"]


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_are_told_who_asks(version: int) -> None:
    """Whoever asks is told all operations, everybody else that they were not asked for."""
    conversation = Conversation()
    conversation.create("a")
    fields: dict[str, Any] = {"topics": named("a"), "include_topic_authorized_operations": True}
    if version <= 10:
        fields["include_cluster_authorized_operations"] = True
    answer = conversation.ask("Metadata", version, **fields)
    assert answer["topics"][0]["authorized_operations"] == TOPIC_OPERATIONS
    if version <= 10:
        assert answer["authorized_operations"] == CLUSTER_OPERATIONS
    answer = conversation.ask("Metadata", version, topics=named("a"))
    assert answer["topics"][0]["authorized_operations"] is None


def test_a_null_name_before_v10_closes_the_connection() -> None:
    """A request that breaks its own schema is not answered; the connection is closed."""
    conversation = Conversation()
    # v1: one topic, of a name of length -1
    frame = bytes.fromhex("0003 0001 00000001 ffff 00000001 ffff")
    assert conversation.connection.feed(len(frame).to_bytes(4, "big") + frame) == []
    assert conversation.connection.is_closing


def test_partitions_come_in_order_after_a_restart() -> None:
    """Partitions are listed by number, also when directories are listed as 0, 1, 10, 2."""
    conversation = Conversation()
    conversation.create("a", 12)
    conversation.restart()
    answer = conversation.ask("Metadata", 9, topics=named("a"))
    indexes = [partition["partition_index"] for partition in answer["topics"][0]["partitions"]]
    assert indexes == list(range(12))
