"""What those who describe topics are told that they may do."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.compat.kafka.security.access import GuardedConversation

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
