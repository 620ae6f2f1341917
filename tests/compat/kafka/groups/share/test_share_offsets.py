"""Where share groups start: told with the lag, moved and forgotten; groups deleted and listed."""

from __future__ import annotations

import errno
from typing import Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.state_partitions import StatePartitions
from logstore.compat.kafka.share_state.persister import (
    DeliveryState,
    SharePartitionKey,
    StateBatch,
)
from logstore.segments.kafka.internal_topics.share_group import (
    ShareGroupStatePartitionMetadataValue,
)
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.groups.share.share_conversation import ShareConversation

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_HERE = "This server does not host this topic-partition."
NO_ID = "00000000-0000-0000-0000-000000000000"


def starts(
    conversation: ShareConversation, *question: Any
) -> dict[str, dict[int, tuple[int, int]]]:
    """Return start and lag by topic and partition."""
    found = conversation.starts(*question)
    assert found.error_code == 0, found
    return {
        topic.topic_name: {
            one.partition_index: (one.start_offset, one.lag) for one in topic.partitions
        }
        for topic in found.topics
    }


def test_the_lag_is_what_is_not_done() -> None:
    """What lies behind the start, less what is done behind it; none while nobody has read."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    partition = conversation.broker.topics["t"].partitions[0]
    for _ in range(10):
        partition.append_produced(memoryview(bytearray(batch())), NOW_MS)
    conversation.share_beat("g", "A", 0, subscribed_topic_names=("t",))
    assert starts(conversation, "g") == {"t": {0: (-1, -1), 1: (-1, -1)}}
    key = SharePartitionKey("g", topic.bytes, 0)
    conversation.broker.share_state.write(
        key, state_epoch=2, leader_epoch=0, start_offset=3, delivery_complete_count=2,
        state_batches=[StateBatch(5, 6, DeliveryState.ACKNOWLEDGED, 1)],
    )  # fmt: skip
    assert starts(conversation, "g") == {"t": {0: (3, 5), 1: (-1, -1)}}
    assert starts(conversation, "g", {"t": (0,)}, 0) == {"t": {0: (3, -1)}}, "v0 has no lag"


def test_what_is_not_known_starts_nowhere() -> None:
    """Groups, topics and partitions that are not there are no error; contradictions are."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    assert starts(conversation, "g") == {}
    assert starts(conversation, "g", {}) == {}
    assert starts(conversation, "g", {"t": (0, 7), "none": (3,)}) == {
        "t": {0: (-1, -1), 7: (-1, -1)}, "none": {3: (-1, -1)},
    }  # fmt: skip
    (none,) = conversation.starts("g", {"none": (3,)}).topics
    assert str(none.topic_id) == NO_ID
    for question in (("", {"t": (0,)}), ("g", {"t": ()}), ("g", {"t": (-1,)})):
        assert conversation.starts(*question).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_group_is_moved_and_comes_into_being_by_it() -> None:
    """Each partition starts where it is told, without anything that was read before."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    answer = conversation.alter("g", {"none": {0: 0}, "t": {0: 5, 1: -1, 2: 0}})
    assert (answer.error_code, answer.error_message) == (0, None)
    none, there = answer.responses
    assert (none.topic_name, str(none.topic_id)) == ("none", NO_ID)
    assert (there.topic_name, there.topic_id) == ("t", topic)
    told = [(one.partition_index, one.error_code, one.error_message) for one in there.partitions]
    assert told == [(0, 0, None), (1, 0, None), (2, UNKNOWN, NOT_HERE)]
    assert [(one.error_code, one.error_message) for one in none.partitions] == [(UNKNOWN, NOT_HERE)]
    assert starts(conversation, "g") == {"t": {0: (5, -5), 1: (-1, -1)}}
    (described,) = conversation.describe_share("g")
    assert (described.group_state, described.group_epoch) == ("Empty", 1)
    key = SharePartitionKey("g", topic.bytes, 0)
    assert conversation.broker.share_state.read(key, -1).state_epoch == 1
    conversation.restart()
    assert starts(conversation, "g") == {"t": {0: (5, -5), 1: (-1, -1)}}


def test_a_topic_that_comes_twice_is_moved_twice() -> None:
    """It is told once, with all that was asked; and noted at first is what was asked last."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    answer = conversation.alter_each("g", [("t", [(0, 1), (1, 1), (1, 1)]), ("t", [(0, 3)])])
    (told,) = answer.responses
    assert [(one.partition_index, one.error_code) for one in told.partitions] == [
        (0, 0), (1, 0), (1, 0), (0, 0),
    ]  # fmt: skip
    key = SharePartitionKey("g", topic.bytes, 0)
    assert conversation.broker.share_state.read_summary(key, -1).start_offset == 3
    noted = [
        [*value.initializing_topics, *value.initialized_topics]
        for change in conversation.changes()
        if isinstance(value := change.value, ShareGroupStatePartitionMetadataValue)
    ]
    assert [sorted(*(one.partitions for one in topics)) for topics in noted] == [[0], [0, 1]]


def test_a_topic_without_partitions_stays_noted() -> None:
    """Nothing of it begins, beside others that do; as in Kafka it is kept as beginning."""
    conversation = ShareConversation()
    topic, other = conversation.made("t", 1), conversation.made("other", 1)
    assert conversation.alter("g", {"t": {0: 0}, "other": {}}).error_code == 0
    states = conversation.group().state_partitions
    assert states is not None
    assert (set(states.initialized), set(states.initializing)) == ({topic}, {other})


def test_a_missing_topic_without_partitions_is_not_told() -> None:
    """Of it there is nothing to tell."""
    conversation = ShareConversation()
    assert conversation.alter("g", {"none": {}}).responses == ()


def test_what_is_asked_twice_is_told_once() -> None:
    """Unless it is malformed anywhere: then nothing is told."""
    conversation = ShareConversation()
    conversation.made("t", 2)
    (told,) = conversation.starts_of_each("g", [("t", (0,)), ("t", (0, 1))]).topics
    assert [one.partition_index for one in told.partitions] == [0, 1]
    refused = conversation.starts_of_each("g", [("t", ()), ("t", (0,))])
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_moves_nothing_leaves_nothing_behind() -> None:
    """A request without a topic that is there writes nothing; nor does one that is refused."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    assert conversation.alter("g", {}).error_code == 0
    assert conversation.alter("g", {"none": {0: 0}}).error_code == 0
    answer = conversation.alter("g", {"t": {-1: 0}})
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    answer = conversation.alter("", {"t": {0: 0}})
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_GROUP_ID, "The group id is invalid.",
    )  # fmt: skip
    assert conversation.broker.groups.share_groups == {}


def test_a_group_with_members_is_not_moved_nor_forgotten() -> None:
    """Who administers must wait until the members are gone."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    conversation.share_beat("g", "A", 0, subscribed_topic_names=("t",))
    refused = (ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    for answer in (conversation.alter("g", {"t": {0: 0}}), conversation.forget("g", "t")):
        assert (answer.error_code, answer.error_message) == refused
    deleted = conversation.ask("DeleteGroups", 2, groups_names=["g"])
    assert deleted["results"] == [{"group_id": "g", "error_code": ErrorCode.NON_EMPTY_GROUP}]


def test_a_group_forgets_topics() -> None:
    """What was known of a topic goes; where nothing is known, that is told."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    conversation.made("u", 1)
    conversation.alter("g", {"t": {0: 1, 1: 1}})
    answer = conversation.forget("g", "none", "u", "t")
    told = [(one.topic_name, one.error_code, one.error_message) for one in answer.responses]
    assert told == [
        ("t", 0, None),
        ("none", UNKNOWN, NOT_HERE),
        ("u", UNKNOWN, "There is no offset information to delete."),
    ]
    assert answer.responses[0].topic_id == topic
    assert starts(conversation, "g") == {}
    assert conversation.group().state_partitions == StatePartitions()
    answer = conversation.forget("none", "t")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.",
    )  # fmt: skip
    assert conversation.forget("", "t").error_code == ErrorCode.INVALID_GROUP_ID
    conversation.share_beat("new", "A", 0, subscribed_topic_names=("none",))
    conversation.share_beat("new", "A", -1)
    assert conversation.forget("new", "t").responses == (), "the group has no states at all"


def test_a_deletion_that_fails_is_finished_by_the_next() -> None:
    """Topics whose states could not all be deleted stay noted, and are asked for again."""
    conversation = ShareConversation({"share.coordinator.state.topic.num.partitions": "1"})
    topic = conversation.made("t", 2)
    conversation.alter("g", {"t": {0: 1, 1: 1}})
    conversation.host.fs.faults.fail_next("write", errno.EIO, path="*/__share_group_state-0/*")
    (failed,) = conversation.forget("g", "t").responses
    assert (failed.topic_name, failed.error_code) == ("t", ErrorCode.NOT_COORDINATOR)
    assert conversation.group().state_partitions == StatePartitions(deleting=frozenset({topic}))
    conversation.restart()
    (done,) = conversation.forget("g", "t").responses
    assert (done.topic_name, done.error_code) == ("t", 0)
    assert conversation.group().state_partitions == StatePartitions()
    assert starts(conversation, "g", {"t": (0, 1)}) == {"t": {0: (-1, -1), 1: (-1, -1)}}


def test_a_group_is_deleted_with_its_states() -> None:
    """Its records and its states have tombstones, and nobody knows it any more."""
    conversation = ShareConversation()
    conversation.made("t", 2)
    conversation.alter("g", {"t": {0: 1}})
    deleted = conversation.ask("DeleteGroups", 2, groups_names=["g", "none"])
    assert deleted["results"] == [
        {"group_id": "g", "error_code": 0},
        {"group_id": "none", "error_code": ErrorCode.GROUP_ID_NOT_FOUND},
    ]
    *_, deleting, target, states, epoch = conversation.changes()
    assert deleting.value is not None
    assert [one.record_type for one in (target, states, epoch)] == [
        records.KIND.target_epoch, records.STATE_PARTITIONS, records.KIND.epoch,
    ]  # fmt: skip
    assert conversation.describe_share("g")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert starts(conversation, "g", {"t": (0,)}) == {"t": {0: (-1, -1)}}
    conversation.restart()
    assert conversation.broker.groups.share_groups == {}


def test_a_group_whose_states_cannot_be_deleted_stays() -> None:
    """The group is deleted once its states can be."""
    conversation = ShareConversation({"share.coordinator.state.topic.num.partitions": "1"})
    conversation.made("t", 1)
    conversation.alter("g", {"t": {0: 1}})
    conversation.host.fs.faults.fail_next("write", errno.EIO, path="*/__share_group_state-0/*")
    (result,) = conversation.ask("DeleteGroups", 2, groups_names=["g"])["results"]
    assert result["error_code"] == ErrorCode.NOT_COORDINATOR
    conversation.restart()
    (result,) = conversation.ask("DeleteGroups", 2, groups_names=["g"])["results"]
    assert result["error_code"] == 0
    assert conversation.broker.groups.share_groups == {}


def test_share_groups_are_listed_as_such() -> None:
    """They have a type and a state of their own, by which lists are filtered."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    conversation.alter("empty", {"t": {0: 1}})
    conversation.share_beat("g", "A", 0, subscribed_topic_names=("t",))
    conversation.join(group_id="consumers")

    def listed(**filters: list[str]) -> list[str]:
        asked: dict[str, list[str]] = {"states_filter": [], "types_filter": []}
        asked |= filters
        groups = conversation.ask("ListGroups", 5, **asked)["groups"]
        return sorted(f"{it['group_id']} {it['group_type']} {it['group_state']}" for it in groups)

    assert listed(types_filter=["Share"]) == ["empty share Empty", "g share Stable"]
    assert listed(types_filter=["share"], states_filter=["stable"]) == ["g share Stable"]
    assert len(listed()) == 3


def test_a_share_group_is_no_other_group() -> None:
    """Whoever takes it for one of another kind is told, and the other way round."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    conversation.share_beat("g", "A", 0, subscribed_topic_names=("t",))
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    for answer in (conversation.join(), conversation.join(member_epoch=1, member_id="A")):
        assert (answer.error_code, answer.error_message) == (
            not_found, "Group g is not a consumer group.",
        )  # fmt: skip
    (described,) = conversation.describe("g")
    assert described.error_message == "Group g is not a consumer group."
    (classic,) = conversation.ask("DescribeGroups", 6, groups=["g"])["groups"]
    assert classic["error_message"] == "Group g is not a classic group."
    joined = conversation.ask(
        "JoinGroup", 5, group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=9,
        member_id="", group_instance_id=None, protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )  # fmt: skip
    assert joined["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    conversation.join(group_id="consumers")
    refused = conversation.share_beat("consumers", "B", 0, subscribed_topic_names=("t",))
    assert (refused.error_code, refused.error_message) == (
        not_found, "Group consumers is not a share group.",
    )  # fmt: skip
    assert conversation.alter("consumers", {"t": {0: 0}}).error_code == not_found
