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


# OffsetCommit, OffsetFetch, OffsetDelete


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


def fetch(conversation: Conversation, version: int, *indexes: int, name: str = TOPIC) -> Any:
    """Fetch in any version; return the partitions of the one topic in the answer."""
    answer = fetch_answer(conversation, version, [(name, list(indexes))])
    (topic,) = (answer["groups"][0] if version >= 8 else answer)["topics"]
    return topic["partitions"]


def fetch_answer(
    conversation: Conversation, version: int, topics: list[tuple[str, list[int]]] | None
) -> dict[str, Any]:
    """Return the whole answer to a fetch of these partitions, or of everything for None."""
    ids = {name: topic.topic_id for name, topic in conversation.broker.topics.items()}
    asked = (
        None
        if topics is None
        else [
            ({"topic_id": uuid_of(ids.get(name))} if version >= 10 else {"name": name})
            | {"partition_indexes": indexes}
            for name, indexes in topics
        ]
    )
    if version >= 8:
        return conversation.ask(
            "OffsetFetch", version, groups=[{"group_id": GROUP, "topics": asked}]
        )
    return conversation.ask("OffsetFetch", version, group_id=GROUP, topics=asked)


@versions(8)
def test_offset_commit_is_seen_by_every_fetch(version: int) -> None:
    """What is committed in one version is fetched in all, with what both can carry."""
    conversation = started()
    answer = commit(
        conversation, version, offsets(0, committed_metadata="n", committed_leader_epoch=2)
    )
    (topic,) = answer["topics"]
    assert topic["partitions"] == [{"partition_index": 0, "error_code": 0}]
    for fetch_version in range(1, 11):
        found, missing = fetch(conversation, fetch_version, 0, 1)
        assert (found["committed_offset"], found["metadata"], found["error_code"]) == (5, "n", 0)
        assert (missing["committed_offset"], missing["metadata"]) == (-1, "")
        if fetch_version >= 5:
            assert found["committed_leader_epoch"] == (2 if version >= 6 else -1)


@versions(8)
def test_commits_to_what_does_not_exist(version: int) -> None:
    """Unknown topics and partitions are refused one by one; the rest of the commit is kept."""
    conversation = started()
    topics = offsets(0, 7) + offsets(0, name="nowhere")
    known, unknown = commit(conversation, version, topics)["topics"]
    unknown_partition = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # What is refused at once comes first.
    assert [(one["partition_index"], one["error_code"]) for one in known["partitions"]] == [
        (7, unknown_partition),
        (0, 0),
    ]
    expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else unknown_partition
    assert [one["error_code"] for one in unknown["partitions"]] == [expected]
    assert fetch(conversation, 8, 0)[0]["committed_offset"] == 5


@versions(8)
def test_commits_of_a_generation_of_an_unknown_group(version: int) -> None:
    """Since version 9 the group is named as what is missing, before it was the generation."""
    answer = commit(started(), version, offsets(0), generation_id_or_member_epoch=3, member_id="m")
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert answer["topics"][0]["partitions"][0]["error_code"] == expected


def test_a_commit_of_nothing_known_makes_no_group() -> None:
    """If no partition exists the coordinator is not asked, and no group comes to be."""
    conversation = started()
    commit(conversation, 8, offsets(0, name="nowhere"))
    assert conversation.broker.groups.groups == {}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_old_commits_may_choose_their_retention(version: int) -> None:
    """Versions 2 to 4 carry a retention time, which counts from the commit."""
    conversation = started()
    commit(conversation, version, offsets(0), retention_time_ms=1000)
    conversation.host.clock.advance(600_000)
    conversation.broker.timers.run()
    assert fetch(conversation, 8, 0)[0]["committed_offset"] == -1


@versions(9, at_least=2)
def test_everything_can_be_fetched_at_once(version: int) -> None:
    """Since version 2 a null list of topics stands for all that the group has."""
    conversation = started()
    conversation.create("u")
    commit(conversation, 8, offsets(1, 0) + offsets(0, name="u"))
    answer = fetch_answer(conversation, version, None)
    topics = (answer["groups"][0] if version >= 8 else answer)["topics"]
    found = [(len(one["partitions"]), one.get("name")) for one in topics]
    if version >= 10:
        ids = [conversation.broker.topics[name].topic_id for name in (TOPIC, "u")]
        assert [one["topic_id"].bytes for one in topics] == ids
        assert [count for count, _ in found] == [2, 1]
    else:
        assert found == [(2, TOPIC), (1, "u")]


def test_a_topic_id_that_nobody_has() -> None:
    """Version 10 says which topics it does not know, behind those that it knows."""
    conversation = started()
    commit(conversation, 8, offsets(0))
    answer = fetch_answer(conversation, 10, [("nowhere", [0]), (TOPIC, [0])])
    known, unknown = answer["groups"][0]["topics"]
    assert unknown["partitions"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID
    assert known["partitions"][0]["committed_offset"] == 5


def test_several_groups_are_answered_in_order() -> None:
    """Since version 8 one request asks for several groups, known or not."""
    conversation = started()
    commit(conversation, 8, offsets(0))
    topics = [{"name": TOPIC, "partition_indexes": [0]}]
    asked = [{"group_id": group, "topics": topics} for group in ("strangers", GROUP)]
    groups = conversation.ask("OffsetFetch", 8, groups=asked)["groups"]
    assert [one["group_id"] for one in groups] == ["strangers", GROUP]
    found = [one["topics"][0]["partitions"][0]["committed_offset"] for one in groups]
    assert found == [-1, 5]


@versions(9)
def test_a_loading_coordinator_says_so_where_the_version_can(version: int) -> None:
    """The error is each partition's in version 1, then the answer's, then the group's."""
    conversation = started()
    loading = conversation.broker.groups.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    answer = fetch_answer(conversation, version, [(TOPIC, [0])])
    if version >= 8:
        assert [one["error_code"] for one in answer["groups"]] == [loading]
    elif version >= 2:
        assert (answer["error_code"], answer["topics"]) == (loading, [])
    else:
        assert answer["topics"][0]["partitions"][0]["error_code"] == loading


def test_offset_delete() -> None:
    """Offsets go unless a member reads the topic; what does not exist is told."""
    conversation = started()
    conversation.create("old")
    commit(conversation, 8, offsets(0) + offsets(0, name="old"))
    stable(conversation)
    topics = [
        {"name": name, "partitions": [{"partition_index": index}]}
        for name, index in ((TOPIC, 0), ("old", 0), ("old", 9))
    ]
    answer = conversation.ask("OffsetDelete", 0, group_id=GROUP, topics=topics)
    assert answer["error_code"] == 0
    # A topic named twice is told once, what is refused at once first.
    told = [
        (one["name"], [(each["partition_index"], each["error_code"]) for each in one["partitions"]])
        for one in answer["topics"]
    ]
    assert told == [
        ("old", [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, ErrorCode.NONE)]),
        (TOPIC, [(0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)]),
    ]
    assert fetch(conversation, 8, 0, name="old")[0]["committed_offset"] == -1
    answer = conversation.ask("OffsetDelete", 0, group_id="strangers", topics=topics)
    assert (answer["error_code"], answer["topics"]) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


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
        groups = conversation.ask("ListGroups", version, states_filter=["Empty"])["groups"]
        assert [(one["group_id"], one["group_state"]) for one in groups] == [("simple", "Empty")]
    if version >= 5:
        groups = conversation.ask("ListGroups", version, types_filter=["classic"])["groups"]
        assert [one["group_type"] for one in groups] == ["classic", "classic"]
        assert conversation.ask("ListGroups", version, types_filter=["share"])["groups"] == []


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


# over the real log


def test_offsets_in_a_deleted_topic_are_forgotten() -> None:
    """With a topic its offsets go, so that a new topic of that name starts afresh."""
    conversation = started()
    conversation.create("kept")
    commit(conversation, 8, offsets(0, 1) + offsets(0, name="kept"))
    conversation.broker.delete_topic(conversation.broker.topics[TOPIC])
    for _ in range(2):
        answer = fetch_answer(conversation, 8, None)
        assert [one["name"] for one in answer["groups"][0]["topics"]] == ["kept"]
        conversation.restart(AT_ONCE)


def test_groups_survive_a_restart_of_the_broker() -> None:
    """Members, shares and offsets are read back from ``__consumer_offsets``."""
    conversation = started()
    member = stable(conversation)
    fields = {"generation_id_or_member_epoch": 1, "member_id": member["member_id"]}
    commit(conversation, 8, offsets(1), **fields)
    conversation.restart(AT_ONCE)
    beat = {"group_id": GROUP, "generation_id": 1, "member_id": member["member_id"]}
    assert conversation.ask("Heartbeat", 4, **beat)["error_code"] == 0
    assert sync(conversation, member)["assignment"] == member["member_id"].encode()
    assert fetch(conversation, 8, 1)[0]["committed_offset"] == 5


def test_the_brokers_settings_are_obeyed() -> None:
    """Limits of the server's properties reach the coordinator."""
    conversation = started(
        **{
            "group.max.size": "1",
            "group.min.session.timeout.ms": "9999",
            "offset.metadata.max.bytes": "3",
        }
    )
    fields = join_fields() | {"session_timeout_ms": 9998}
    answer = conversation.ask("JoinGroup", 3, **fields)
    assert answer["error_code"] == ErrorCode.INVALID_SESSION_TIMEOUT
    assert stable(conversation)["error_code"] == 0
    answer = conversation.ask("JoinGroup", 3, **join_fields())
    assert answer["error_code"] == ErrorCode.GROUP_MAX_SIZE_REACHED
    answer = commit(conversation, 8, offsets(0, committed_metadata="long"), group_id="simple")
    code = answer["topics"][0]["partitions"][0]["error_code"]
    assert code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_an_id_of_zeros_is_that_of_no_topic() -> None:
    """Commits to it are refused with 100, and so are questions about it."""
    conversation = Conversation()
    nothing = uuid.UUID(int=0)
    committed = conversation.ask(
        "OffsetCommit",
        10,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            {
                "topic_id": nothing,
                "partitions": [{"partition_index": 0, "committed_offset": 1}],
            }
        ],
    )
    asked = {"group_id": "g", "topics": [{"topic_id": nothing, "partition_indexes": [0]}]}
    fetched = conversation.ask("OffsetFetch", 10, groups=[asked])
    for (topic,) in (committed["topics"], fetched["groups"][0]["topics"]):
        assert [one["error_code"] for one in topic["partitions"]] == [100]
