"""Who leads, and whether that is about to change: it is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.kafka.conversation import Conversation


@pytest.mark.parametrize("topics", [None, [{"name": "a", "partition_indexes": [0]}]])
def test_nothing_is_ever_reassigned(topics: list[dict[str, Any]] | None) -> None:
    """No partition is being moved, whatever is asked."""
    conversation = Conversation()
    conversation.create("a")
    answer = conversation.ask("ListPartitionReassignments", 0, topics=topics)
    assert (answer["error_code"], answer["error_message"], answer["topics"]) == (0, None, [])


@pytest.mark.parametrize("version", range(3))
def test_leaders_need_no_election(version: int) -> None:
    """A partition that is named is 84, one that is not there 3; all at once: topics alone."""
    conversation = Conversation()
    conversation.create("a", 2)
    conversation.create("b1", 1)
    asked = [{"topic": "a", "partitions": [0, 1, 2]}, {"topic": "b", "partitions": [0]}]
    answer = conversation.ask("ElectLeaders", version, topic_partitions=asked)
    found = {
        (topic["topic"], result["partition_id"]): result["error_code"]
        for topic in answer["replica_election_results"]
        for result in topic["partition_result"]
    }
    assert found == {("a", 0): 84, ("a", 1): 84, ("a", 2): 3, ("b", 0): 3}
    answer = conversation.ask("ElectLeaders", version, topic_partitions=None)
    assert [topic["topic"] for topic in answer["replica_election_results"]] == ["b1", "a"]
    assert not any(topic["partition_result"] for topic in answer["replica_election_results"])


def test_an_unknown_kind_of_election_is_invalid() -> None:
    """An election that is neither preferred nor unclean is 42, as a whole and one by one."""
    asked = [{"topic": "a", "partitions": [0, 1]}]
    conversation = Conversation()
    conversation.create("a")
    answer = conversation.ask("ElectLeaders", 2, election_type=5, topic_partitions=None)
    assert (answer["error_code"], answer["replica_election_results"]) == (42, [])
    answer = conversation.ask("ElectLeaders", 2, election_type=5, topic_partitions=asked)
    assert answer["error_code"] == 42
    (topic,) = answer["replica_election_results"]
    found = [(one["error_code"], one["error_message"]) for one in topic["partition_result"]]
    assert found == [(42, "Unknown election type 5")] * 2


def test_why_nobody_is_elected_is_told_in_kafkas_words() -> None:
    """Topics and partitions that are not there, and those that are led as they should be."""
    conversation = Conversation()
    conversation.create("a")
    asked = [{"topic": "a", "partitions": [0, 9]}, {"topic": "b", "partitions": [0]}]
    answer = conversation.ask("ElectLeaders", 2, election_type=0, topic_partitions=asked)
    topics = answer["replica_election_results"]
    found = [
        (one["error_code"], one["error_message"])
        for topic in topics
        for one in topic["partition_result"]
    ]
    assert sorted(found) == [
        (3, "No such partition as a-9"),
        (3, "No such topic as b"),
        (84, "Leader election not needed for topic partition."),
    ]


@pytest.mark.parametrize(("topics", "code"), [([], 0), (None, 42)])
def test_a_kind_of_election_that_there_is_not(topics: list[Any] | None, code: int) -> None:
    """It is refused, unless there is nothing to elect."""
    fields = {"election_type": 2, "topic_partitions": topics, "timeout_ms": 9}
    assert Conversation().ask("ElectLeaders", 2, **fields)["error_code"] == code


def test_where_nothing_is_to_move_nothing_is_said() -> None:
    """An empty text, and none where something was asked, as by a real broker."""
    conversation = Conversation()
    conversation.create("a")
    moved = {"name": "a", "partitions": [{"partition_index": 0, "replicas": None}]}
    for topics, words in (([], ""), ([moved], None)):
        answer = conversation.ask("AlterPartitionReassignments", 0, timeout_ms=9, topics=topics)
        assert (answer["error_code"], answer["error_message"]) == (0, words)
