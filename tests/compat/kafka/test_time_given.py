"""Requests that give the controller no time: told 7, and nothing is done."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.emulation.release import Emulation
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
    for topics in ([moved], []):
        answer = ask(
            conversation, "AlterPartitionReassignments", 1, topics=topics,
            allow_replication_factor_change=False,
        )  # fmt: skip
        assert answer["allow_replication_factor_change"]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_with_zookeeper_all_is_done_and_not_waited_for(timeout_ms: int) -> None:
    """What a 2.8.2 said: 7 of what it did, the flaw of what it did not, 0 of what it only tried."""
    conversation = Conversation()
    conversation.broker.emulation = Emulation.of("2.8")
    topics = conversation.broker.topics

    def made(*names: str, validate_only: bool = False) -> list[tuple[int, str | None]]:
        answer = conversation.ask(
            "CreateTopics",
            4,
            timeout_ms=timeout_ms,
            topics=[wanted(name) for name in names],
            validate_only=validate_only,
        )
        return [(topic["error_code"], topic["error_message"]) for topic in answer["topics"]]

    assert made("a", validate_only=True) == [(0, None)]
    assert made("a") == [(TIMED_OUT, None)]
    assert made("a") == [(36, "Topic 'a' already exists.")]
    grown = [{"name": "a", "count": 4, "assignments": None}]
    answer = conversation.ask("CreatePartitions", 1, timeout_ms=timeout_ms, topics=grown)
    assert codes(answer["results"]) == [TIMED_OUT]
    assert len(topics["a"].partitions) == 4
    elected = [{"topic": "a", "partitions": [0]}]
    answer = conversation.ask(
        "ElectLeaders", 1, timeout_ms=timeout_ms, election_type=0, topic_partitions=elected
    )
    assert codes(answer["replica_election_results"][0]["partition_result"]) == [84]
    answer = conversation.ask("DeleteTopics", 3, timeout_ms=timeout_ms, topic_names=["a", "b"])
    assert codes(answer["responses"]) == [TIMED_OUT, 3]
    assert not topics
