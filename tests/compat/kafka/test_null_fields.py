"""Nulls in requests: read where the schema allows them, refused everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from logstore.compat.kafka.null_fields import find_null
from tests.compat.kafka.conversation import Conversation, build, message_class

A_PARTITION = {"partition_index": 0, "committed_offset": 1}


def request(api: str, version: int, fields: Mapping[str, Any]) -> Any:
    """Return a request as the library reads it from the wire."""
    message: Any = build(message_class(f"{api}Request"), version, fields)
    found: Any = message_class(f"{api}Request").decode(
        message.encode(version=version), version=version
    )
    return found


@pytest.mark.parametrize(
    ("api", "version", "fields", "found"),
    [
        ("OffsetCommit", 8, {"group_id": "g", "topics": None}, "topics"),
        ("OffsetCommit", 8, {"group_id": None, "topics": []}, "group_id"),
        (
            "OffsetCommit",
            8,
            {"group_id": "g", "topics": [{"name": None, "partitions": [A_PARTITION]}]},
            "topics.name",
        ),
        (
            "OffsetCommit",
            8,
            {"group_id": "g", "topics": [{"name": "t", "partitions": None}]},
            "topics.partitions",
        ),
        (
            "ListGroups",
            5,
            {"states_filter": ["Empty", None], "types_filter": []},
            "states_filter[1]",
        ),
        ("DescribeTopicPartitions", 0, {"topics": [], "cursor": None}, None),
        ("OffsetCommit", 8, {"group_id": "g", "topics": []}, None),
        ("Metadata", 9, {"topics": None}, None),
        # A topic asked for by name has the uuid of zeros, which the library reads as None.
        ("DeleteTopics", 6, {"topics": [{"name": "t"}]}, None),
    ],
)
def test_the_schema_says_what_may_be_null(
    api: str, version: int, fields: dict[str, Any], found: str | None
) -> None:
    """The name of the first null that must not be, with the way to it."""
    assert find_null(request(api, version, fields), version) == found


@pytest.mark.parametrize(
    ("api", "version", "fields"),
    [
        ("OffsetCommit", 8, {"group_id": "g", "topics": None}),
        ("DescribeGroups", 4, {"groups": None}),
        ("DescribeGroups", 5, {"groups": ["g", None]}),
        ("ListGroups", 4, {"states_filter": None}),
        ("ListGroups", 5, {"states_filter": [], "types_filter": ["classic", None]}),
        ("DescribeTopicPartitions", 0, {"topics": None}),
        ("DescribeTopicPartitions", 0, {"topics": [{"name": None}]}),
        (
            "DescribeTopicPartitions",
            0,
            {"topics": [], "cursor": {"topic_name": None, "partition_index": 0}},
        ),
    ],
)
def test_a_null_that_must_not_be_closes_the_connection(
    api: str, version: int, fields: dict[str, Any]
) -> None:
    """As with Kafka: the request cannot be understood, so it has no answer."""
    conversation = Conversation()
    message = build(message_class(f"{api}Request"), version, fields)
    message.with_header(correlation_id=1, client_id="test")
    frame = message.encode(version=version, header=True, framed=True)
    assert conversation.connection.feed(frame) == []
    assert conversation.connection.is_closing
