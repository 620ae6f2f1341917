"""The APIs of consumer groups, every version of each, from frames to frames."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from logstore.compat.kafka.connection import KafkaConnection
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.registry import APIS
from tests.compat.kafka.conversation import (
    Conversation,
    build,
    joined,
    message_class,
    plain,
)

GROUP = "readers"
TOPIC = "t"
#: a subscription of version 1 to the topic
SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


def versions(key: int, at_least: int = 0) -> Callable[[Any], Any]:
    """Run a test for every version of an API, with the version as its argument."""
    api = APIS[key]
    low = max(api.version_min, at_least)
    return pytest.mark.parametrize("version", range(low, api.version_max + 1))


class Peer:
    """One more connection to the broker of a conversation, whose answers may come late."""

    def __init__(self, conversation: Conversation) -> None:
        self.connection: KafkaConnection = conversation.broker.connect("127.0.0.1")
        self._expected: list[tuple[str, int]] = []
        self.answers: list[dict[str, Any]] = []
        self.connection.on_output = self._read

    def send(self, api: str, version: int, **fields: Any) -> None:
        """Send a request; its answer will be in `answers` when there is one."""
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=len(self.answers), client_id="peer")
        self._expected.append((api, version))
        output = self.connection.feed(request.encode(version=version, header=True, framed=True))
        self.connection.output = output + self.connection.output
        self._read()

    def _read(self) -> None:
        for chunk in self.connection.output:
            api, version = self._expected.pop(0)
            kind = message_class(f"{api}Response")
            message = kind.decode(joined([chunk]), version=version, header=True, framed=True)
            self.answers.append(plain(message))
        self.connection.output = []


def started(**settings: str) -> Conversation:
    """Return a conversation with a broker that has the topic, in two partitions."""
    conversation = Conversation(AT_ONCE | settings)
    conversation.create(TOPIC, 2)
    return conversation


def join_fields(member_id: str = "", instance: str | None = None) -> dict[str, Any]:
    """Return what a member sends to join."""
    return {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "group_instance_id": instance,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }


def join(conversation: Conversation, version: int = 9) -> dict[str, Any]:
    """Join as a new dynamic member, with a second request if the version demands it."""
    answer = conversation.ask("JoinGroup", version, **join_fields())
    if answer["error_code"] == ErrorCode.MEMBER_ID_REQUIRED:
        answer = conversation.ask("JoinGroup", version, **join_fields(answer["member_id"]))
    return answer


def sync(conversation: Conversation, member: dict[str, Any], version: int = 5) -> dict[str, Any]:
    """Share out as the leader, with the member's id as its share."""
    return conversation.ask(
        "SyncGroup",
        version,
        group_id=GROUP,
        generation_id=member["generation_id"],
        member_id=member["member_id"],
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            {"member_id": one["member_id"], "assignment": one["member_id"].encode()}
            for one in member["members"]
        ],
    )


def stable(conversation: Conversation) -> dict[str, Any]:
    """Bring a group of one to stability; return what its member was told."""
    member = join(conversation)
    assert sync(conversation, member)["error_code"] == 0
    return member


def offsets(*indexes: int, name: str = TOPIC, **more: Any) -> list[dict[str, Any]]:
    """Return the topics of a commit of offset 5 in these partitions."""
    partitions = [{"partition_index": index, "committed_offset": 5, **more} for index in indexes]
    return [{"name": name, "partitions": partitions}]


def commit(
    conversation: Conversation, version: int, topics: list[dict[str, Any]], **fields: Any
) -> dict[str, Any]:
    """Commit in any version: since 10 the topic's id takes the place of its name."""
    values = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": ""} | fields
    if version >= 10:
        ids = {name: topic.topic_id for name, topic in conversation.broker.topics.items()}
        topics = [
            {"topic_id": uuid_of(ids.get(one["name"])), "partitions": one["partitions"]}
            for one in topics
        ]
    return conversation.ask("OffsetCommit", version, topics=topics, **values)


def uuid_of(topic_id: bytes | None) -> uuid.UUID:
    """Return a topic id as the library wants it; one that nobody has for None."""
    return uuid.UUID(bytes=topic_id or b"unknown-topic-id")


# JoinGroup and SyncGroup


@versions(11)
def test_join_group(version: int) -> None:
    """In every version a lone member is told generation 1, itself as leader, and itself."""
    answer = join(started(), version)
    assert (answer["error_code"], answer["generation_id"]) == (0, 1)
    assert answer["protocol_name"] == "range"
    assert answer["leader"] == answer["member_id"]
    (member,) = answer["members"]
    assert (member["member_id"], member["metadata"]) == (answer["member_id"], SUBSCRIPTION)
    if version >= 7:
        assert answer["protocol_type"] == "consumer"


@versions(11)
def test_new_members_are_sent_back_since_version_4(version: int) -> None:
    """From version 4 on the first answer is an id and an error, with nothing else in it."""
    answer = started().ask("JoinGroup", version, **join_fields())
    assert answer["member_id"].startswith("test-")
    if version < 4:
        assert answer["error_code"] == 0
    else:
        assert answer["error_code"] == ErrorCode.MEMBER_ID_REQUIRED
        assert (answer["generation_id"], answer["leader"], answer["members"]) == (-1, "", [])
        assert answer["protocol_name"] == (None if version >= 7 else "")


@versions(11, at_least=5)
def test_static_members_are_known_by_their_instance(version: int) -> None:
    """Since version 5 an instance id comes and goes, and names the member."""
    answer = started().ask("JoinGroup", version, **join_fields(instance="rack-7"))
    assert answer["error_code"] == 0
    assert answer["member_id"].startswith("rack-7-")
    assert [one["group_instance_id"] for one in answer["members"]] == ["rack-7"]


def test_version_0_has_one_timeout_for_both() -> None:
    """Without a rebalance timeout of its own, the session timeout stands for it."""
    conversation = started()
    join(conversation, 0)
    (member,) = conversation.broker.groups.groups[GROUP].roster
    assert member.rebalance_timeout_ms == 10_000


def test_a_restarted_static_leader_skips_the_assignment() -> None:
    """Version 9 tells a static leader that comes back to leave the assignment alone."""
    conversation = started()
    member = conversation.ask("JoinGroup", 9, **join_fields(instance="i"))
    sync(conversation, member)
    back = conversation.ask("JoinGroup", 9, **join_fields(instance="i"))
    assert (back["skip_assignment"], back["generation_id"]) == (True, 1)
    assert len(back["members"]) == 1


@versions(14)
def test_sync_group(version: int) -> None:
    """In every version the leader gets the share that it handed in for itself."""
    conversation = started()
    member = join(conversation)
    answer = sync(conversation, member, version)
    assert answer["error_code"] == 0
    assert answer["assignment"] == member["member_id"].encode()
    if version >= 5:
        assert (answer["protocol_type"], answer["protocol_name"]) == ("consumer", "range")


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"),
    [(None, "range"), ("consumer", None), ("connect", "range"), ("consumer", "sticky")],
)
def test_sync_group_5_checks_the_protocol(
    protocol_type: str | None, protocol_name: str | None
) -> None:
    """Since version 5 both protocol fields are required and must be the group's."""
    conversation = started()
    member = join(conversation)
    answer = conversation.ask(
        "SyncGroup",
        5,
        group_id=GROUP,
        generation_id=1,
        member_id=member["member_id"],
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=[],
    )
    assert answer["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_answers_wait_on_their_own_connections() -> None:
    """Joins and syncs of two connections are answered when the last one needed has come."""
    conversation = Conversation({"group.initial.rebalance.delay.ms": "3000"})
    first, second = Peer(conversation), Peer(conversation)
    for peer in (first, second):
        peer.send("JoinGroup", 3, **join_fields())
    assert (first.answers, second.answers) == ([], [])
    for _ in range(2):
        conversation.host.clock.advance(3000)
        conversation.broker.timers.run()
    leader, follower = first.answers[0], second.answers[0]
    assert len(leader["members"]) == 2
    common = {"group_id": GROUP, "generation_id": 1}
    second.send("SyncGroup", 3, member_id=follower["member_id"], assignments=[], **common)
    assert len(second.answers) == 1
    shares = [{"member_id": follower["member_id"], "assignment": b"all"}]
    first.send("SyncGroup", 3, member_id=leader["member_id"], assignments=shares, **common)
    assert first.answers[1]["assignment"] == b""
    assert second.answers[1]["assignment"] == b"all"


# Heartbeat and LeaveGroup


@versions(12)
def test_heartbeat(version: int) -> None:
    """A member of the current generation is fine; others are told what is wrong."""
    conversation = started()
    member = stable(conversation)
    fields = {"group_id": GROUP, "member_id": member["member_id"]}
    for generation, expected in ((1, ErrorCode.NONE), (0, ErrorCode.ILLEGAL_GENERATION)):
        answer = conversation.ask("Heartbeat", version, generation_id=generation, **fields)
        assert answer["error_code"] == expected
    fields["member_id"] = "nobody"
    answer = conversation.ask("Heartbeat", version, generation_id=1, **fields)
    assert answer["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID


@versions(13)
def test_leave_group(version: int) -> None:
    """One member (before version 3) or several leave; errors are where the version has them."""
    conversation = started()
    member = stable(conversation)
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        if version < 3:
            fields: dict[str, Any] = {"member_id": member["member_id"]}
        else:
            fields = {"members": [{"member_id": member["member_id"]}]}
        answer = conversation.ask("LeaveGroup", version, group_id=GROUP, **fields)
        if version < 3:
            assert answer["error_code"] == expected
        else:
            assert answer["error_code"] == 0
            assert [one["error_code"] for one in answer["members"]] == [expected]
            assert [one["member_id"] for one in answer["members"]] == [member["member_id"]]


def test_leaving_an_unknown_group() -> None:
    """Before version 3 the error is the answer's, later each member's."""
    conversation = started()
    answer = conversation.ask("LeaveGroup", 1, group_id="strangers", member_id="m")
    assert answer["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    members = [{"member_id": "m", "group_instance_id": "i"}]
    answer = conversation.ask("LeaveGroup", 4, group_id="strangers", members=members)
    assert answer["error_code"] == 0
    assert answer["members"] == [
        {"member_id": "m", "group_instance_id": "i", "error_code": ErrorCode.UNKNOWN_MEMBER_ID}
    ]


# administration


@versions(15)
def test_describe_groups(version: int) -> None:
    """A stable group is shown in full, an unknown one as dead, since version 6 with an error."""
    conversation = started()
    member = stable(conversation)
    fields: dict[str, Any] = {"groups": [GROUP, "strangers"]}
    if version >= 3:
        fields["include_authorized_operations"] = True
    known, unknown = conversation.ask("DescribeGroups", version, **fields)["groups"]
    assert (known["error_code"], known["group_state"]) == (0, "Stable")
    assert (known["protocol_type"], known["protocol_data"]) == ("consumer", "range")
    (shown,) = known["members"]
    assert (shown["client_id"], shown["client_host"]) == ("test", "/127.0.0.1")
    assert shown["member_metadata"] == SUBSCRIPTION
    assert shown["member_assignment"] == member["member_id"].encode()
    assert unknown["group_state"] == "Dead"
    assert unknown["error_code"] == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    if version >= 3:
        assert known["authorized_operations"] == {3, 6, 8, 10, 11}
    if version >= 6:
        assert "strangers" in unknown["error_message"]


@versions(16)
def test_list_groups(version: int) -> None:
    """All groups are listed with what the version can say of them; filters are obeyed."""
    conversation = started()
    stable(conversation)
    commit(conversation, 8, offsets(0), group_id="simple")
    groups = conversation.ask("ListGroups", version)["groups"]
    assert {(one["group_id"], one["protocol_type"]) for one in groups} == {
        (GROUP, "consumer"),
        ("simple", ""),
    }
    if version >= 4:
        for state in ("Empty", " eMPTY\x01"):
            groups = conversation.ask("ListGroups", version, states_filter=[state])["groups"]
            told = [(one["group_id"], one["group_state"]) for one in groups]
            assert told == [("simple", "Empty")]
        for state in ("\u2003Empty", ""):
            answer = conversation.ask("ListGroups", version, states_filter=[state])
            assert answer["groups"] == []
    if version >= 5:
        groups = conversation.ask("ListGroups", version, types_filter=["classic"])["groups"]
        assert [one["group_type"] for one in groups] == ["classic", "classic"]
        for kind in ("share", " classic"):
            assert conversation.ask("ListGroups", version, types_filter=[kind])["groups"] == []


@versions(42)
def test_delete_groups(version: int) -> None:
    """Empty groups go, groups with members stay, unknown ones are told; each is named once."""
    conversation = started()
    stable(conversation)
    commit(conversation, 8, offsets(0), group_id="simple")
    names = ["simple", GROUP, "strangers", "simple"]
    results = conversation.ask("DeleteGroups", version, groups_names=names)["results"]
    assert {one["group_id"]: one["error_code"] for one in results} == {
        "simple": ErrorCode.NONE,
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "strangers": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 3
