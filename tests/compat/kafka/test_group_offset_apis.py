"""OffsetCommit, OffsetFetch and OffsetDelete, every version; what outlives topics and brokers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from tests.compat.kafka.conversation import (
    Conversation,
)
from tests.compat.kafka.test_group_apis import (
    AT_ONCE,
    GROUP,
    TOPIC,
    commit,
    join_fields,
    offsets,
    stable,
    started,
    sync,
    uuid_of,
    versions,
)


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
@pytest.mark.parametrize("text", ["", "n", "n" * 200, None])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_wide_commit_is_kept_as_each_of_its_offsets(
    version: int, at: int, text: str | None
) -> None:
    """Whether none of its partitions has a text, or any of them, or one that is not there."""
    conversation = Conversation(AT_ONCE)
    conversation.create(TOPIC, 3)
    wide: list[dict[str, Any]] = [
        {"partition_index": index, "committed_offset": 2**40 + index,
         "committed_leader_epoch": index - 1, "committed_metadata": ""}
        for index in (2, 0, 9, 1)
    ]  # fmt: skip
    wide[at]["committed_metadata"] = text
    (topic,) = commit(conversation, version, [{"name": TOPIC, "partitions": wide}])["topics"]
    # What is refused at once is told first.
    assert [tuple(one.values()) for one in topic["partitions"]] == [(9, 3), (2, 0), (0, 0), (1, 0)]
    found = {one["partition_index"]: one for one in fetch(conversation, 7, 0, 1, 2)}
    for one in wide[:2] + wide[3:]:
        kept = found[one["partition_index"]]
        assert kept["committed_offset"] == one["committed_offset"]
        assert kept["metadata"] == (one["committed_metadata"] or "")
        epoch = one["committed_leader_epoch"] if version >= 6 else -1
        assert kept["committed_leader_epoch"] == epoch


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
