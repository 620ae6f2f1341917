"""The APIs of the share coordinator as bytes, and its topic."""

from __future__ import annotations

import uuid

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.messages import StateToBegin
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.compat.kafka.share_state.topic import ShareStateTopic, coordinator_key
from tests.compat.kafka.groups.share.share_conversation import ShareConversation

ONE = {"share.coordinator.state.topic.num.partitions": "1"}


def begin(conversation: ShareConversation, topic: uuid.UUID, *partitions: int) -> list[int]:
    """Begin states at offset 0, and return the codes."""
    states = [StateToBegin(partition=it, state_epoch=1, start_offset=0) for it in partitions]
    (result,) = conversation.begin_state("g", topic, *states).results
    assert result.topic_id == topic
    return [one.error_code for one in result.partitions]


def test_a_state_over_the_wire() -> None:
    """It begins, is written, read, summarised and deleted."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    assert begin(conversation, topic, 0, 1) == [0, 0]
    changed = conversation.write_state("g", topic, 0, (0, 4, 2, 1), epochs=(1, 0), done=5)
    (written,) = changed.results
    assert [one.error_code for one in written.partitions] == [0]
    ((read,),) = (one.partitions for one in conversation.read_state("g", topic, 0, 7).results)
    assert (read.error_code, read.state_epoch, read.start_offset) == (0, 1, 0)
    (batch,) = read.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count) == (
        0, 4, 2, 1,
    )  # fmt: skip
    ((first, second),) = (
        one.partitions for one in conversation.summarise_state("g", topic, 0, 1).results
    )
    assert (first.leader_epoch, first.delivery_complete_count) == (7, 5)
    assert (second.leader_epoch, second.delivery_complete_count) == (0, 0)
    (deleted,) = conversation.delete_state("g", topic, 0).results
    assert [one.error_code for one in deleted.partitions] == [0]
    ((gone,),) = (one.partitions for one in conversation.read_state("g", topic, 0, 7).results)
    assert (gone.error_code, gone.start_offset) == (ErrorCode.INVALID_REQUEST, 0)


def test_answers_come_in_the_order_of_javas_maps() -> None:
    """A partition that is named twice is answered once; the others by their hash."""
    conversation = ShareConversation()
    topic = conversation.made("t", 20)
    states = [StateToBegin(partition=it, state_epoch=1, start_offset=0) for it in (17, 3, 3, 0)]
    (result,) = conversation.begin_state("g", topic, *states).results
    assert [one.partition for one in result.partitions] == [0, 17, 3]


def test_what_contradicts_itself_is_answered_with_nothing() -> None:
    """So are requests without a group, or with a topic without partitions."""
    conversation = ShareConversation()
    topic = conversation.made("t", 1)
    assert conversation.begin_state("g", topic).results == ()
    assert conversation.read_state("", topic, 0, 0).results == ()
    assert "__share_group_state" not in conversation.broker.topics


def test_a_topic_without_partitions_is_passed_over_where_states_begin() -> None:
    """The others begin; in other requests it has nothing told at all."""
    conversation = ShareConversation()
    topic, other = conversation.made("t", 1), conversation.made("other", 1)
    state = StateToBegin(partition=0, state_epoch=1, start_offset=0)
    (result,) = conversation.begin_states("g", {topic: (state,), other: ()}).results
    assert (result.topic_id, len(result.partitions)) == (topic, 1)


def test_the_partition_of_a_state() -> None:
    """Its records stand where the hash of the key's text says."""
    key = SharePartitionKey("g:h", bytes(16), 3)
    assert coordinator_key(key) == "g:h:AAAAAAAAAAAAAAAAAAAAAA:3"
    conversation = ShareConversation()
    topic = conversation.made("t", 8)
    begin(conversation, topic, *range(8))
    replayed = ShareStateTopic(conversation.broker).replay()
    assert len({entry.position.partition for entry in replayed}) > 1


def test_states_outlive_a_restart_and_what_was_deleted_in_front_does_not() -> None:
    """What stands before the log's start is not read again."""
    conversation = ShareConversation(ONE)
    topic = conversation.made("t", 1)
    for _ in range(3):
        begin(conversation, topic, 0)
    conversation.pause(300_000)
    assert conversation.broker.topics["__share_group_state"].partitions[0].start_offset == 3
    assert conversation.state_record_count() == 1
    before = conversation.read_state("g", topic, 0, -1)
    conversation.restart(ONE)
    assert conversation.read_state("g", topic, 0, -1) == before


def test_without_its_topic_the_coordinator_knows_nothing() -> None:
    """Who deletes the topic deletes the states; a new one begins empty."""
    conversation = ShareConversation(ONE)
    topic = conversation.made("t", 1)
    begin(conversation, topic, 0)
    conversation.broker.delete_topic(conversation.broker.topics["__share_group_state"])
    ((gone,),) = (one.partitions for one in conversation.read_state("g", topic, 0, 0).results)
    assert gone.error_code == ErrorCode.INVALID_REQUEST
    assert begin(conversation, topic, 0) == [0]
    assert conversation.state_record_count() == 1


def test_a_partition_of_the_log_that_is_quiet_stays_as_it_is() -> None:
    """States are written again only where something was written: elsewhere nothing can go."""
    conversation = ShareConversation({"share.coordinator.state.topic.num.partitions": "2"})
    topic = conversation.made("t", 8)
    begin(conversation, topic, *range(8))
    conversation.pause(300_000)
    partitions = conversation.broker.topics["__share_group_state"].partitions
    before = {index: partition.end_offset for index, partition in partitions.items()}
    begin(conversation, topic, 0)
    (busy,) = (one for one in (0, 1) if partitions[one].end_offset > before[one])
    conversation.pause(300_000)
    assert partitions[1 - busy].end_offset == before[1 - busy]
    assert partitions[busy].end_offset == before[busy] + 1 + before[busy] // 2
