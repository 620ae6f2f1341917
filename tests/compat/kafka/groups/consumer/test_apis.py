"""ConsumerGroupHeartbeat and ConsumerGroupDescribe as bytes, and what other APIs say of groups."""

from __future__ import annotations

import struct
import uuid
from typing import Any, TypeVar

import attrs
import pytest

from logstore.compat.kafka.emulation.release import Emulation
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.schema import Message
from tests.compat.kafka.conversation import Conversation, joined

MessageT = TypeVar("MessageT", bound=Message)


#: without a pause between two assignments of a group
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}


class GroupConversation(Conversation):
    """A conversation that also knows the messages that the library does not have."""

    def ask_ours(self, key: int, version: int, request: Message, kind: type[MessageT]) -> MessageT:
        """Return the answer to a request."""
        payload = struct.pack(">hhih", key, version, 7, 4) + b"test\0"
        payload += encode_message(request, version)
        frame = joined(self.connection.feed(struct.pack(">i", len(payload)) + payload))
        assert frame[4:9] == b"\0\0\0\7\0", "the answer to something else"
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        return decode_message(kind, frame, version, 9)

    def join(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Let member A of group g join for topic t, with what is given besides."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="A", member_epoch=0, rebalance_timeout_ms=1000,
            subscribed_topic_names=("t",), topic_partitions=(),
        )  # fmt: skip
        request = attrs.evolve(request, **fields)
        return self.ask_ours(68, version, request, ConsumerGroupHeartbeatResponse)

    def describe(self, *groups: str, version: int = 1, **fields: Any) -> tuple[DescribedGroup, ...]:
        """Ask for groups as they stand."""
        fields = {"include_authorized_operations": 0} | fields
        request = ConsumerGroupDescribeRequest(group_ids=groups, **fields)
        return self.ask_ours(69, version, request, ConsumerGroupDescribeResponse).groups


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_is_described(version: int) -> None:
    """Both versions tell epoch, interval and partitions; describing tells the topic's name too."""
    conversation = GroupConversation()
    topic_id = uuid.UUID(bytes=conversation.create("t", 2))
    answer = conversation.join(version)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "A", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert answer.assignment is not None
    (given,) = answer.assignment.topic_partitions
    assert (given.topic_id, given.partitions) == (topic_id, (0, 1))
    (group,) = conversation.describe("g", version=version, include_authorized_operations=1)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ("uniform", 3400)
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert member.member_type == (1 if version else -1)
    (had,) = member.assignment.topic_partitions
    assert (had.topic_id, had.topic_name, had.partitions) == (topic_id, "t", (0, 1))
    assert member.target_assignment == member.assignment


def test_what_a_member_is_to_give_back_is_still_its_own() -> None:
    """A member that has been told to give a partition back has it until it says that it did."""
    conversation = GroupConversation(AT_ONCE)
    conversation.create("t", 2)
    conversation.join()
    conversation.join(member_id="B")
    told = conversation.join(
        member_epoch=2, rebalance_timeout_ms=-1, subscribed_topic_names=None, topic_partitions=None
    )
    assert told.assignment is not None
    assert [one.partitions for one in told.assignment.topic_partitions] == [(0,)]
    (group,) = conversation.describe("g")
    (member,) = (one for one in group.members if one.member_id == "A")
    assert [one.partitions for one in member.assignment.topic_partitions] == [(0, 1)]
    assert [one.partitions for one in member.target_assignment.topic_partitions] == [(0,)]


def test_a_group_that_is_not_there() -> None:
    """Each name has its own answer."""
    conversation = GroupConversation()
    conversation.ask(
        "OffsetCommit", 8, group_id="classic", generation_id_or_member_epoch=-1, member_id="",
        group_instance_id=None,
        topics=[{"name": conversation_topic(conversation), "partitions": [{
            "partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
            "committed_metadata": "",
        }]}],
    )  # fmt: skip
    found = conversation.describe("none", "classic", "")
    assert [(one.error_code, one.error_message) for one in found] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
        (ErrorCode.INVALID_GROUP_ID, None),
    ]
    assert [one.authorized_operations for one in found] == [-(2**31)] * 3


def conversation_topic(conversation: Conversation) -> str:
    """Create a topic and return its name."""
    conversation.create("t")
    return "t"


def test_other_apis_know_the_group() -> None:
    """It is listed with its type, is no classic one, and cannot be deleted while it has members."""
    conversation = GroupConversation()
    conversation.create("t", 1)
    conversation.join()
    listed = conversation.ask("ListGroups", 5, states_filter=["stable"], types_filter=["CONSUMER"])
    assert listed["groups"] == [
        {
            "group_id": "g", "protocol_type": "consumer",
            "group_state": "Stable", "group_type": "consumer",
        }
    ]  # fmt: skip
    none = conversation.ask("ListGroups", 5, states_filter=[], types_filter=["classic"])
    assert none["groups"] == []
    (group,) = conversation.ask("DescribeGroups", 6, groups=["g"])["groups"]
    assert (group["error_code"], group["group_state"]) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert group["error_message"] == "Group g is not a classic group."
    (deleted,) = conversation.ask("DeleteGroups", 2, groups_names=["g"])["results"]
    assert deleted["error_code"] == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"), [("A", 2, 0), ("A", 1, 113), ("B", 2, 25), (None, -1, 0)]
)
def test_offsets_are_fetched_in_the_members_epoch(
    member_id: str | None, epoch: int, code: int
) -> None:
    """From version 9 on a member says who it is."""
    conversation = GroupConversation()
    conversation.create("t", 1)
    conversation.join()
    topics = [{"name": "t", "partition_indexes": [0]}]
    asked = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, "topics": topics}
    answer = conversation.ask("OffsetFetch", 9, groups=[asked], require_stable=False)
    assert answer["groups"][0]["error_code"] == code


@pytest.mark.parametrize(("version", "code"), [(8, 35), (9, 0)])
def test_offsets_are_committed_with_a_version_that_knows_epochs(version: int, code: int) -> None:
    """Older ones are refused where a member of such a group commits."""
    conversation = GroupConversation()
    conversation.create("t", 1)
    conversation.join()
    partition = {
        "partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
        "committed_metadata": "",
    }  # fmt: skip
    answer = conversation.ask(
        "OffsetCommit", version, group_id="g", generation_id_or_member_epoch=2, member_id="A",
        group_instance_id=None, topics=[{"name": "t", "partitions": [partition]}],
    )  # fmt: skip
    assert answer["topics"][0]["partitions"][0]["error_code"] == code


#: a consumer of the classic protocol that wants topic t
CLASSIC: dict[str, Any] = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 1000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"}],
}


def test_where_classic_members_do_not_fit_in() -> None:
    """If nothing migrates, a group with members stays of its kind; an empty one may change."""
    conversation = GroupConversation({"group.consumer.migration.policy": "Disabled"})
    conversation.create("t", 1)
    conversation.join()
    fields = CLASSIC | {"group_instance_id": None}
    refused = conversation.ask("JoinGroup", 5, **fields)
    assert (refused["error_code"], refused["member_id"]) == (23, "")
    conversation.join(member_epoch=-1)
    assert conversation.ask("JoinGroup", 5, **fields)["error_code"] == ErrorCode.MEMBER_ID_REQUIRED
    (group,) = conversation.describe("g")
    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_where_a_classic_group_stays_what_it_is() -> None:
    """Nobody joins it by a heartbeat."""
    settings = {
        "group.initial.rebalance.delay.ms": "0", "group.consumer.migration.policy": "downgrade",
    }  # fmt: skip
    conversation = GroupConversation(settings)
    conversation.create("t", 1)
    conversation.ask("JoinGroup", 3, **CLASSIC)
    answer = conversation.join()
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_both_protocols() -> None:
    """It is described as a consumer group that tells who speaks what, and is no classic one."""
    conversation = GroupConversation({"group.initial.rebalance.delay.ms": "0"})
    conversation.create("t", 1)
    classic = conversation.ask("JoinGroup", 3, **CLASSIC)
    assert conversation.join().error_code == 0
    (group,) = conversation.describe("g")
    assert {one.member_id: one.member_type for one in group.members} == {
        classic["member_id"]: 0, "A": 1,
    }  # fmt: skip
    (listed,) = conversation.ask("ListGroups", 5, states_filter=[], types_filter=[])["groups"]
    assert (listed["group_type"], listed["protocol_type"]) == ("consumer", "consumer")
    (other,) = conversation.ask("DescribeGroups", 6, groups=["g"])["groups"]
    assert (other["error_code"], other["group_state"]) == (69, "Dead")
    conversation.join(member_epoch=-1)
    (listed,) = conversation.ask("ListGroups", 5, states_filter=[], types_filter=[])["groups"]
    assert (listed["group_type"], listed["group_state"]) == ("classic", "PreparingRebalance")
    (other,) = conversation.ask("DescribeGroups", 6, groups=["g"])["groups"]
    assert [one["member_id"] for one in other["members"]] == [classic["member_id"]]


def test_where_such_groups_are_turned_off() -> None:
    """Every question is answered with 35."""
    conversation = GroupConversation({"group.coordinator.rebalance.protocols": "classic"})
    assert conversation.join().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert conversation.describe("g")[0].error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("settings", "code"),
    [({}, 35), ({"group.coordinator.rebalance.protocols": "classic,consumer"}, 0)],
)
def test_a_release_before_4_0_has_such_groups_where_they_are_asked_for(
    settings: dict[str, str], code: int
) -> None:
    """Kafka 3.9 tells of the APIs, and refuses them unless its settings name these groups."""
    conversation = GroupConversation(settings)
    conversation.create("t", 1)
    conversation.broker.emulation = Emulation.of("3.9")
    conversation.connection = conversation.broker.connect("127.0.0.1")
    assert conversation.join(0).error_code == code
    assert conversation.describe("g", version=0)[0].error_code == code


def test_a_topic_that_grows_is_noticed() -> None:
    """The broker's topics are what the group sees, with the next heartbeat."""
    conversation = GroupConversation(AT_ONCE)
    conversation.create("t", 1)
    conversation.join()
    conversation.broker.add_partitions(conversation.broker.topics["t"], 3)
    answer = conversation.join(
        member_epoch=2, rebalance_timeout_ms=-1, subscribed_topic_names=None, topic_partitions=None
    )
    assert answer.member_epoch == 3
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions[0].partitions == (0, 1, 2)


def test_a_group_survives_a_restart_of_the_broker() -> None:
    """It is read from the topic that keeps it."""
    conversation = GroupConversation()
    conversation.create("t", 2)
    conversation.join()
    before = conversation.describe("g")
    conversation.restart()
    assert conversation.describe("g") == before


def test_text_that_is_no_text() -> None:
    """A name that is no UTF-8 could not be told again: the connection is closed."""
    conversation = GroupConversation()
    request = ConsumerGroupHeartbeatRequest(group_id="g\udcff", member_id="A", member_epoch=0)
    payload = struct.pack(">hhih", 68, 1, 7, 4) + b"test\0" + encode_message(request, 1)
    assert conversation.connection.feed(struct.pack(">i", len(payload)) + payload) == []
    assert conversation.connection.is_closing
