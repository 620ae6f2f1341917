"""How what coordinators write is compressed."""

from __future__ import annotations

import uuid

import pytest

from logstore.compat.kafka.share_state.messages import StateToBegin
from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.groups.share.share_conversation import ShareConversation


def codecs(conversation: Conversation, topic: str) -> set[int]:
    """Return the codecs of all batches of a topic."""
    partitions = conversation.broker.topics[topic].partitions.values()
    return {batch.codec for partition in partitions for batch in partition.batches()}


def commit(conversation: Conversation) -> None:
    """Commit an offset."""
    conversation.ask(
        "OffsetCommit", 9, group_id="g", generation_id_or_member_epoch=-1, member_id="",
        group_instance_id=None,
        topics=[{"name": "t", "partitions": [
            {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1,
             "committed_metadata": ""}]}],
    )  # fmt: skip


def committed(conversation: Conversation) -> int:
    """Return the offset that was committed."""
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = conversation.ask("OffsetFetch", 8, groups=[{"group_id": "g", "topics": topics}])
    offset: int = answer["groups"][0]["topics"][0]["partitions"][0]["committed_offset"]
    return offset


@pytest.mark.parametrize("codec", range(5))
def test_offsets(codec: int) -> None:
    """By ``offsets.topic.compression.codec``, from a start on; all of them are read again."""
    conversation = Conversation()
    conversation.create("t")
    commit(conversation)
    assert codecs(conversation, "__consumer_offsets") == {0}
    conversation.restart({"offsets.topic.compression.codec": str(codec)})
    commit(conversation)
    assert codecs(conversation, "__consumer_offsets") == {0, codec}
    conversation.restart()
    assert committed(conversation) == 7


def test_states_of_share_partitions() -> None:
    """By ``share.coordinator.state.topic.compression.codec``."""
    conversation = ShareConversation({"share.coordinator.state.topic.compression.codec": "3"})
    topic: uuid.UUID = conversation.made("t", 1)
    state = StateToBegin(partition=0, state_epoch=1, start_offset=4)
    conversation.begin_state("g", topic, state)
    assert codecs(conversation, "__share_group_state") == {3}
    conversation.restart()
    ((read,),) = (one.partitions for one in conversation.read_state("g", topic, 0, -1).results)
    assert read.start_offset == 4
