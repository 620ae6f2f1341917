"""A disk that refuses what a handler takes for granted: the client is told, and goes on."""

from __future__ import annotations

import errno

import pytest

from tests.compat.kafka.conversation import Conversation, build, joined, message_class

COORDINATOR_NOT_AVAILABLE, STORAGE_ERROR = 15, 56


@pytest.mark.parametrize("version", [2, 7, 9])
def test_a_group_whose_topic_cannot_be_made_is_not_available(version: int) -> None:
    """Where the disk refuses the offsets topic the answer is 15, and the connection lives."""
    conversation = Conversation()
    conversation.create("t")
    conversation.host.fs.faults.fail_next("write", errno.EIO, path="*__consumer_offsets*")
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    fields = {
        "group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "",
        "topics": [{"name": "t", "partitions": [partition]}],
    }  # fmt: skip

    def commit() -> int:
        answer = conversation.ask("OffsetCommit", version, **fields)
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code

    assert commit() == COORDINATOR_NOT_AVAILABLE
    assert commit() == 0


def test_a_deletion_that_the_disk_refuses_is_told() -> None:
    """DeleteTopics on a bad disk is no reason to hang up."""
    conversation = Conversation()
    conversation.create("t")
    conversation.host.fs.faults.fail_next("write", errno.ENOSPC, path="*__cluster_metadata*")
    answer = conversation.ask("DeleteTopics", 1, topic_names=["t"], timeout_ms=1)
    assert [one["error_code"] for one in answer["responses"]] == [STORAGE_ERROR]
    assert "t" in conversation.broker.topics
    answer = conversation.ask("DeleteTopics", 1, topic_names=["t"], timeout_ms=1)
    assert [one["error_code"] for one in answer["responses"]] == [0]


def test_what_comes_behind_failures_is_served() -> None:
    """Thousands of requests on a bad disk, sent at once, are all answered, and so is the next."""
    conversation = Conversation()
    conversation.create("t")
    count = 1500  # Python itself gives up at a depth of 1,000
    path = "*__consumer_offsets*"
    conversation.host.fs.faults.fail_next("write", errno.EIO, path=path, count=None)
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [partition]}]
    fields = {
        "group_id": "",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": topics,
    }
    request = build(message_class("OffsetCommitRequest"), 2, fields)
    request.with_header(correlation_id=7, client_id="")
    frame = bytes(request.encode(version=2, header=True, framed=True))
    assert joined(conversation.connection.feed(frame * count)).count(b"\0\0\0\7") == count
    assert not conversation.connection.is_closing
    conversation.host.fs.faults.clear()
    answer = conversation.ask("DeleteTopics", 1, topic_names=["t"], timeout_ms=1)
    assert [one["error_code"] for one in answer["responses"]] == [0]
