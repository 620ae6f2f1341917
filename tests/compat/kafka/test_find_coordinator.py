"""FindCoordinator: where groups and transactions live, and what looking for it brings about."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from tests.compat.kafka.conversation import HOST, PORT, Conversation
from tests.compat.kafka.test_group_apis import started, versions


@versions(10)
def test_find_coordinator(version: int) -> None:
    """The broker is the coordinator of every group and every transactional id."""
    conversation = started()
    for key_type in (0, 1) if version >= 1 else (0,):
        fields: dict[str, Any] = {"key_type": key_type} if version >= 1 else {}
        fields |= {"coordinator_keys": ["a", "b"]} if version >= 4 else {"key": "a"}
        answer = conversation.ask("FindCoordinator", version, **fields)
        for found in answer["coordinators"] if version >= 4 else [answer]:
            assert (found["error_code"], found["node_id"]) == (0, conversation.broker.node_id)
            assert (found["host"], found["port"]) == (HOST, PORT)


@versions(10, at_least=6)
def test_the_coordinator_of_a_share_partition(version: int) -> None:
    """Its key has a group, in which colons may stand, a topic's id and a partition."""
    topic_id = "AAAAAAAAAAAAAAAAAAAAAA"
    keys = [
        f"g:{topic_id}:0", f"a:b:{topic_id}==:+12", f":{topic_id}:0", f"g:{topic_id}:x", "g:t:0",
        f"g:{topic_id}:2147483648", f"g:{topic_id}=:0",
    ]  # fmt: skip
    conversation = started()
    answer = conversation.ask("FindCoordinator", version, key_type=2, coordinator_keys=keys)
    told = [(one["error_code"], one["node_id"]) for one in answer["coordinators"]]
    node_id = conversation.broker.node_id
    assert told == [(0, node_id)] * 2 + [(ErrorCode.INVALID_REQUEST, -1)] * 5
    topic = conversation.broker.topics["__share_group_state"]
    assert len(topic.partitions) == 50
    assert topic.settings == {
        "cleanup.policy": "delete", "compression.type": "producer", "min.insync.replicas": "2",
        "retention.ms": "-1", "segment.bytes": "104857600",
    }  # fmt: skip


@versions(10, at_least=1)
def test_there_are_no_other_coordinators(version: int) -> None:
    """Unknown key types, and share-partitions (2) that are named wrongly or before v6."""
    for key_type in (2, 9):
        fields = {"coordinator_keys": ["a"]} if version >= 4 else {"key": "a"}
        answer = started().ask("FindCoordinator", version, key_type=key_type, **fields)
        found = answer["coordinators"][0] if version >= 4 else answer
        assert found["error_code"] == ErrorCode.INVALID_REQUEST
        is_told = version in (1, 2, 3) or (version >= 4 and key_type == 9)
        assert (found.get("error_message") == MESSAGES[ErrorCode.INVALID_REQUEST]) is is_told
        assert (found["node_id"], found["host"], found["port"]) == (-1, "", -1)


@pytest.mark.parametrize(
    ("key_type", "topic", "setting"),
    [
        (0, "__consumer_offsets", "offsets.topic.num.partitions"),
        (1, "__transaction_state", "transaction.state.log.num.partitions"),
    ],
)
def test_looking_for_a_coordinator_creates_its_topic(
    key_type: int, topic: str, setting: str
) -> None:
    """It is there with the answer, in the shape that the broker's settings give it."""
    conversation = Conversation({setting: "7"})
    assert topic not in conversation.broker.topics
    conversation.ask("FindCoordinator", 4, key_type=key_type, coordinator_keys=["a"])
    assert len(conversation.broker.topics[topic].partitions) == 7


@versions(10, at_least=1)
def test_a_coordinator_whose_topic_finds_no_room(version: int) -> None:
    """It is not available, which lets clients ask again; then it is."""
    conversation = Conversation()
    keys = {"coordinator_keys": ["a"]} if version >= 4 else {"key": "a"}
    disk = conversation.host.fs
    disk.fill_up(free_bytes=0)
    answer = conversation.ask("FindCoordinator", version, key_type=0, **keys)
    found = answer["coordinators"][0] if version >= 4 else answer
    assert (found["error_code"], found["node_id"]) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert found["error_message"] == "The coordinator is not available."
    disk.fill_up(free_bytes=2**40)
    answer = conversation.ask("FindCoordinator", version, key_type=0, **keys)
    found = answer["coordinators"][0] if version >= 4 else answer
    assert (found["error_code"], found["node_id"]) == (0, conversation.broker.node_id)
