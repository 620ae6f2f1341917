"""Requests that give the controller no time: told 7, and nothing is done."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.test_topic_creation import codes, wanted

TIMED_OUT = 7
TWICE = [{"name": "a", "count": 9, "assignments": None}] * 2
GROWN = {"name": "orders", "count": 4, "assignments": None}


def ask(conversation: Conversation, api: str, version: int, **fields: Any) -> dict[str, Any]:
    """Ask without any time."""
    return conversation.ask(api, version, timeout_ms=0, **fields)


@pytest.mark.parametrize("version", range(2, 8))
def test_no_topic_is_made(version: int) -> None:
    """All that are asked for are 7, also one that comes twice, unless there are no others."""
    conversation = Conversation()
    topics = [wanted("b"), wanted("a"), wanted("b")]
    answer = ask(conversation, "CreateTopics", version, topics=topics)
    assert [topic["name"] for topic in answer["topics"]] == ["b", "a", "b"]
    assert codes(answer["topics"]) == [TIMED_OUT] * 3
    assert {topic["error_message"] for topic in answer["topics"]} == {None}
    only_wrong = [wanted("b"), wanted("b"), wanted("__cluster_metadata")]
    answer = ask(conversation, "CreateTopics", version, topics=only_wrong)
    assert codes(answer["topics"]) == [42, 42]
    assert not conversation.broker.topics


def test_no_topic_goes() -> None:
    """By name or by id: 7 for all of the request, unless all of it is named wrongly."""
    conversation = Conversation()
    conversation.create("orders")
    answer = ask(conversation, "DeleteTopics", 5, topic_names=["orders", "none", "none"])
    assert codes(answer["responses"]) == [TIMED_OUT] * 3
    topic_id = uuid.UUID(bytes=conversation.broker.topics["orders"].topic_id)
    by_id = {"name": None, "topic_id": topic_id}
    answer = ask(conversation, "DeleteTopics", 6, topics=[by_id])
    assert codes(answer["responses"]) == [TIMED_OUT]
    answer = ask(conversation, "DeleteTopics", 5, topic_names=["none", "none"])
    assert set(codes(answer["responses"])) == {42}
    assert "orders" in conversation.broker.topics


def test_no_topic_grows() -> None:
    """All that are asked for are 7, unless each comes twice."""
    conversation = Conversation()
    conversation.create("orders")
    answer = ask(conversation, "CreatePartitions", 3, topics=[GROWN, *TWICE])
    assert codes(answer["results"]) == [TIMED_OUT] * 3
    answer = ask(conversation, "CreatePartitions", 3, topics=TWICE)
    assert set(codes(answer["results"])) == {42}
    assert len(conversation.broker.topics["orders"].partitions) == 1


def test_nobody_is_elected() -> None:
    """7 of the whole and of each partition; where nothing is asked nothing waits."""
    conversation = Conversation()
    conversation.create("orders")
    asked = [{"topic": "orders", "partitions": [0, 1]}]
    answer = ask(conversation, "ElectLeaders", 2, topic_partitions=asked, election_type=5)
    assert answer["error_code"] == TIMED_OUT
    (result,) = answer["replica_election_results"]
    told = [(one["error_code"], one["error_message"]) for one in result["partition_result"]]
    assert told == [(TIMED_OUT, None)] * 2
    answer = ask(conversation, "ElectLeaders", 2, topic_partitions=None)
    assert (answer["error_code"], answer["replica_election_results"]) == (TIMED_OUT, [])
    answer = ask(conversation, "ElectLeaders", 2, topic_partitions=[])
    assert answer["error_code"] == 0


def test_nothing_is_moved() -> None:
    """7 of the whole and of each partition; where nothing is asked nothing waits."""
    conversation = Conversation()
    conversation.create("orders")
    moved = {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [7]}]}
    answer = ask(conversation, "AlterPartitionReassignments", 0, topics=[moved])
    assert (answer["error_code"], answer["error_message"]) == (TIMED_OUT, None)
    ((partition,),) = (topic["partitions"] for topic in answer["responses"])
    assert (partition["error_code"], partition["error_message"]) == (TIMED_OUT, None)
    answer = ask(conversation, "AlterPartitionReassignments", 0, topics=[])
    assert answer["error_code"] == 0
