"""StreamsGroupHeartbeat and StreamsGroupDescribe as bytes, and what other APIs say of groups."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.streams.exchange import StreamsHeartbeat
from logstore.compat.kafka.groups.streams.internal_topics import with_topics_made
from logstore.compat.kafka.groups.streams.messages import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskOffset,
    Topology,
)
from logstore.segments.kafka.internal_topics.streams_group import (
    Endpoint,
    KeyValue,
    StreamsTopic,
    Subtopology,
    TaskIds,
)
from tests.compat.kafka.groups.consumer.test_apis import GroupConversation
from tests.compat.kafka.groups.streams.rehearsal import internal, subtopology, topology

AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
MISSING_INTERNAL_TOPICS = 3


class StreamsConversation(GroupConversation):
    """A conversation in which members of streams groups speak."""

    def __init__(self, **settings: str) -> None:
        super().__init__(AT_ONCE | {key.replace("_", "."): it for key, it in settings.items()})

    def live(self, member_id: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat of group g; what is not told is null."""
        request = StreamsGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch
        )
        request = attrs.evolve(request, **fields)
        return self.ask_ours(88, 0, request, StreamsGroupHeartbeatResponse)

    def joins(
        self, member_id: str, *subtopologies: Subtopology, **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """Let a member say what it says first."""
        full: dict[str, Any] = {
            "rebalance_timeout_ms": 1000,
            "topology": Topology(epoch=0, subtopologies=subtopologies),
            "process_id": "p",
            "active_tasks": (),
            "standby_tasks": (),
            "warmup_tasks": (),
        }
        return self.live(member_id, 0, **full | fields)

    def describe_streams(self, *groups: str, is_asked: int = 0) -> tuple[DescribedGroup, ...]:
        """Ask for groups as they stand."""
        request = StreamsGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=is_asked
        )
        return self.ask_ours(89, 0, request, StreamsGroupDescribeResponse).groups

    def settings_of(self, topic: str) -> dict[str, str]:
        """Return the settings that a topic was made with."""
        return dict(self.broker.topics[topic].settings)


def details_of(answer: StreamsGroupHeartbeatResponse) -> list[str]:
    """Return what a member is told of its group."""
    return [status.status_detail for status in answer.status or ()]


def configured_topic(name: str, **settings: str) -> StreamsTopic:
    """Return an internal topic; its settings have underscores for dots."""
    pairs = tuple(
        KeyValue(key=key.replace("_", "."), value=value) for key, value in settings.items()
    )
    return attrs.evolve(internal(name), topic_configs=pairs)


def test_a_member_joins_and_is_described() -> None:
    """It is told epoch, interval and tasks; describing tells the topology and the member too."""
    conversation = StreamsConversation()
    conversation.create("t", 2)
    tags = (KeyValue(key="zone", value="z"),)
    here = Endpoint(host="here", port=40_000)
    answer = conversation.joins(
        "A", subtopology("0", "t"), client_tags=tags, user_endpoint=here, rack_id="r",
        endpoint_information_epoch=-1,
    )  # fmt: skip
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "A", 2)
    assert (answer.heartbeat_interval_ms, answer.status) == (5000, ())
    mine = (TaskIds(subtopology_id="0", partitions=(0, 1)),)
    assert (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks) == (mine, (), ())
    assert answer.partitions_by_user_endpoint is not None
    (told,) = answer.partitions_by_user_endpoint
    assert (told.user_endpoint, told.active_partitions[0].topic) == (here, "t")
    (group,) = conversation.describe_streams("g", is_asked=1)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.authorized_operations == 3400
    (member,) = group.members
    assert (member.client_id, member.client_host, member.rack_id) == ("test", "/127.0.0.1", "r")
    assert (member.process_id, member.topology_epoch, member.user_endpoint) == ("p", 0, here)
    assert (member.client_tags, member.is_classic) == (tags, 0)
    assert member.assignment.active_tasks == member.target_assignment.active_tasks == mine


def test_internal_topics_are_made() -> None:
    """With the settings that the application wants, and as wide as its input."""
    conversation = StreamsConversation()
    conversation.create("t", 3)
    log = configured_topic("log", cleanup_policy="compact", min_cleanable_dirty_ratio="0.1")
    told = subtopology("0", "t", state_changelog_topics=(log,))
    answer = conversation.joins("A", told)
    assert [one.status_code for one in answer.status or ()] == [MISSING_INTERNAL_TOPICS]
    assert (answer.active_tasks, answer.member_epoch) == ((), 2)
    assert len(conversation.broker.topics["log"].partitions) == 3
    assert conversation.settings_of("log") == {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1",
    }  # fmt: skip
    (group,) = conversation.describe_streams("g")
    assert (group.group_state, group.topology is not None) == ("NotReady", True)
    answer = conversation.live("A", 2)
    assert answer.status == ()
    assert answer.active_tasks == (TaskIds(subtopology_id="0", partitions=(0, 1, 2)),)
    (group,) = conversation.describe_streams("g")
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    (topic,) = group.topology.subtopologies[0].state_changelog_topics
    assert (topic.name, topic.partitions, topic.replication_factor) == ("log", 3, 0)


def test_what_keeps_a_topic_from_being_made_is_told() -> None:
    """With the next heartbeat, and it is tried again after two intervals; others are made."""
    conversation = StreamsConversation()
    conversation.create("t", 1)
    bad = attrs.evolve(internal("bad"), replication_factor=3)
    told = subtopology("0", "t", state_changelog_topics=(bad, internal("good")))
    answer = conversation.joins("A", told)
    assert "Creation failed" not in details_of(answer)[0]
    assert set(conversation.broker.topics) >= {"good"}
    (detail,) = details_of(conversation.live("A", 2))
    assert detail.startswith(
        "Internal topics are missing: bad; Creation failed: bad (Unable to replicate the partition "
        "3 time(s): "
    )
    conversation.broker.create_topic("bad", 1)
    assert conversation.live("A", 3).status == ()


def test_many_errors_are_told_in_few_words() -> None:
    """Three of them, and how many more there are."""
    conversation = StreamsConversation()
    conversation.create("t", 1)
    topics = tuple(
        attrs.evolve(internal(f"bad-{number}"), replication_factor=2) for number in range(5)
    )
    conversation.joins("A", subtopology("0", "t", state_changelog_topics=topics))
    (detail,) = details_of(conversation.live("A", 2))
    assert detail.endswith(" and 2 more.")
    assert "and 2 additional topics; Creation failed: " in detail


def test_who_may_not_create_a_topic_makes_none() -> None:
    """And is told which ones it may not create."""
    conversation = StreamsConversation()
    conversation.create("t", 1)
    topics = (internal("public"), internal("secret"))
    told = topology(subtopology("0", "t", state_changelog_topics=topics))
    beat = StreamsHeartbeat(
        "g", "A", 0, "test", "/127.0.0.1", rebalance_timeout_ms=1, topology=told,
        active={}, standby={}, warmup={},
    )  # fmt: skip
    answer = conversation.broker.groups.streams.heartbeat(beat)
    answer = with_topics_made(conversation.broker, "g", answer, lambda topic: topic != "secret")
    (status,) = answer.statuses
    assert status.detail.endswith("; Unauthorized to CREATE on topics secret.")
    assert set(conversation.broker.topics) & {"public", "secret"} == set()


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        (("__consumer_offsets",), "Kafka internal topics __consumer_offsets in"),
        (("a b", "t", ""), "Topic names a b, are not valid"),
    ],
)
def test_topics_that_cannot_be(topics: tuple[str, ...], words: str) -> None:
    """No group comes to be for them."""
    conversation = StreamsConversation()
    answer = conversation.joins("A", subtopology("0", *topics))
    assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert words in (answer.error_message or "")
    (group,) = conversation.describe_streams("g")
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "fields",
    [
        {"instance_id": "i"},
        {"rack_id": ""},
        {"group_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topology": None},
        {"standby_tasks": None},
        {"active_tasks": (TaskIds(subtopology_id="0", partitions=(0,)),)},
        {"warmup_tasks": (TaskIds(subtopology_id="0", partitions=(0,)),)},
        {"task_offsets": (TaskOffset(subtopology_id="0", partition=0, offset=1),)},
        {"task_end_offsets": ()},
        {"topology": Topology(epoch=0, subtopologies=(
            subtopology("0", "t", source_topic_regex=("t.*",)),))},
    ],
)  # fmt: skip
def test_what_a_first_heartbeat_must_not_say(fields: dict[str, Any]) -> None:
    """It contradicts itself, or asks for what release 4.3 does not have yet."""
    conversation = StreamsConversation()
    conversation.create("t", 1)
    answer = conversation.joins("A", subtopology("0", "t"), **fields)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message


@pytest.mark.parametrize("feature", ["protocols", "release"])
def test_groups_that_are_turned_off(feature: str) -> None:
    """35 where the cluster or this broker has no such groups."""
    settings = {"group_coordinator_rebalance_protocols": "classic,consumer"}
    conversation = StreamsConversation(**settings if feature == "protocols" else {})
    if feature == "release":
        conversation.broker.store.metadata.image.features.pop("streams.version")
    answer = conversation.joins("A", subtopology("0", "t"))
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
    (group,) = conversation.describe_streams("g")
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_groups_that_are_not_there() -> None:
    """Each name has its own answer."""
    conversation = StreamsConversation()
    conversation.create("t", 1)
    conversation.join(group_id="c848")
    found = conversation.describe_streams("none", "c848", "")
    assert [(one.error_code, one.error_message) for one in found] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group c848 is not a streams group."),
        (ErrorCode.INVALID_GROUP_ID, None),
    ]


def test_other_apis_know_the_group() -> None:
    """It is listed with its type, is no classic one, and cannot be deleted while it has members."""
    conversation = StreamsConversation()
    conversation.joins("A", subtopology("0", "t"))
    line = {
        "group_id": "g", "protocol_type": "streams",
        "group_state": "NotReady", "group_type": "streams",
    }  # fmt: skip
    for states, types, found in (
        ([], ["Streams"], [line]),
        (["NOT_READY"], [], [line]),
        (["NotReady"], [], []),  # as in Kafka
        ([], ["consumer"], []),
    ):
        listed = conversation.ask("ListGroups", 5, states_filter=states, types_filter=types)
        assert listed["groups"] == found
    (group,) = conversation.ask("DescribeGroups", 6, groups=["g"])["groups"]
    assert (group["error_code"], group["group_state"]) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert group["error_message"] == "Group g is not a classic group."
    (deleted,) = conversation.ask("DeleteGroups", 2, groups_names=["g"])["results"]
    assert deleted["error_code"] == ErrorCode.NON_EMPTY_GROUP
    conversation.live("A", -1)
    (deleted,) = conversation.ask("DeleteGroups", 2, groups_names=["g"])["results"]
    assert deleted["error_code"] == ErrorCode.NONE
