"""Groups and members are told of in the order of Kafka's tables, not as they came."""

from __future__ import annotations

from typing import Any

from tests.compat.kafka.groups.rehearsal import GROUP, Rehearsal, answer_to
from tests.compat.kafka.groups.share.share_conversation import ShareConversation


def test_groups_are_listed_as_kafka_walks_them() -> None:
    """Coordinator by coordinator; what a filter takes out moves nobody."""
    conversation = ShareConversation({"offsets.topic.num.partitions": "1"})
    conversation.create("t", 1)
    for number in range(1, 7):
        topics: list[dict[str, Any]] = [
            {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}
        ]
        conversation.ask("OffsetCommit", 8, group_id=f"grp-{number}", topics=topics)
    groups = conversation.ask("ListGroups", 5)["groups"]
    listed = [f"grp-{number}" for number in (2, 4, 1, 6, 3, 5)]
    assert [one["group_id"] for one in groups] == listed
    conversation.join(group_id="modern")
    groups = conversation.ask("ListGroups", 5, types_filter=["classic"])["groups"]
    assert [one["group_id"] for one in groups] == listed


def test_members_of_modern_groups_are_described_as_kafka_walks_them() -> None:
    """Consumer and share groups have tables of one kind."""
    conversation = ShareConversation()
    conversation.create("t", 2)
    for member_id in ("member-1", "member-2"):
        conversation.join(member_id=member_id)
        conversation.share_beat("s", member_id, 0, subscribed_topic_names=("t",))
    for (group,) in (conversation.describe("g"), conversation.describe_share("s")):
        assert [one.member_id for one in group.members] == ["member-2", "member-1"]


def test_members_of_classic_groups_are_told_as_kafka_walks_them() -> None:
    """To the leader, to administrators and in the log; the first one follows a leader that left."""
    stage = Rehearsal()
    leader, *others = stage.stable(4)
    told = [one.member_id for one in leader.members]
    assert told != [one.member_id for one in (leader, *others)], "they came in another order"
    assert [one.member_id for one in stage.groups.describe(GROUP).members] == told
    stage.restart()
    assert [one.member_id for one in stage.groups.describe(GROUP).members] == told
    stage.leave(leader.member_id)
    told.remove(leader.member_id)
    joins = [stage.join(one.member_id) for one in others]
    assert {answer_to(one).leader_id for one in joins} == {told[0]}
