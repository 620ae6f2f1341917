"""What those who describe topics are told that they may do."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.security.acl import Operation, ResourceType
from tests.compat.kafka.security.access import GuardedConversation, creation
from tests.compat.kafka.test_topic_creation import codes, wanted

#: nothing is said of that
_UNKNOWN = -(2**31)
_WRONG = [{"name": None, "topic_id": uuid.UUID(int=7)}]


@pytest.mark.parametrize("version", [10, 11])
def test_a_metadata_request_that_is_refused_tells_of_no_operations(version: int) -> None:
    """Neither of topics nor of the cluster: nobody has looked."""
    asked: dict[str, Any] = {
        "allow_auto_topic_creation": False, "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True, "topics": _WRONG,
    }  # fmt: skip
    answer = GuardedConversation().as_user("admin", "Metadata", version, **asked)
    (topic,) = answer["topics"]
    assert topic["error_code"] == 42
    assert not topic["authorized_operations"]
    assert not answer.get("authorized_operations")


def test_an_empty_name_is_refused_for_all_topics() -> None:
    """Each is told as often as it was asked for, and no operations with it."""
    talk = GuardedConversation()
    asked = [{"name": name} for name in ("", "a", "a")]
    answer = talk.as_user(
        "admin", "DescribeTopicPartitions", 0,
        topics=asked, response_partition_limit=9, cursor=None,
    )  # fmt: skip
    assert [(one["name"], one["error_code"]) for one in answer["topics"]] == [
        ("", -1), ("a", -1), ("a", -1),
    ]  # fmt: skip
    assert {one["topic_authorized_operations"] for one in answer["topics"]} == {_UNKNOWN}


def test_without_time_nobody_is_told_what_he_may_not_do() -> None:
    """All of a request fails together, if there is one topic that may be made or may grow."""
    talk = GuardedConversation()
    talk.create("mine")
    talk.create("hers")
    operations = Operation.CREATE, Operation.ALTER
    assert talk.allow(*(creation(ResourceType.TOPIC, "mine", one) for one in operations)) == [0, 0]

    def made(*names: str) -> list[int]:
        topics = [wanted(name) for name in names]
        answer = talk.as_user("alice", "CreateTopics", 7, topics=topics, timeout_ms=0)
        return codes(answer["topics"])

    def grown(*names: str) -> list[int]:
        topics = [{"name": name, "count": 2, "assignments": None} for name in names]
        answer = talk.as_user("alice", "CreatePartitions", 3, topics=topics, timeout_ms=0)
        return codes(answer["results"])

    assert (made("mine", "hers"), grown("mine", "hers")) == ([7, 7], [7, 7])
    assert (made("hers"), grown("hers")) == ([29], [29])
    assert (sorted(made("hers", "a", "a")), grown("hers", "a", "a")) == ([29, 42], [42, 29])
    names = ["mine", "hers"]
    answer = talk.as_user("alice", "DeleteTopics", 5, topic_names=names, timeout_ms=0)
    assert codes(answer["responses"]) == [7, 7]
