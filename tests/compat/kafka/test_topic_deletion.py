"""DeleteTopics: by name, by id, and what must not be deleted."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.compat.kafka.conversation import DIRECTORY, Conversation

NO_ID = uuid.UUID(int=0)
STRANGER = uuid.UUID(int=7)


def delete(
    conversation: Conversation,
    *topics: str | uuid.UUID | tuple[str | None, uuid.UUID],
    version: int = 6,
) -> list[dict[str, Any]]:
    """Delete topics, given as names, ids or (name, id); return the results."""
    if version < 6:
        answer = conversation.ask("DeleteTopics", version, topic_names=list(topics), timeout_ms=1)
    else:
        states: list[dict[str, Any]] = []
        for topic in topics:
            if isinstance(topic, str):
                states.append({"name": topic, "topic_id": NO_ID})
            elif isinstance(topic, uuid.UUID):
                states.append({"name": None, "topic_id": topic})
            else:
                states.append({"name": topic[0], "topic_id": topic[1]})
        answer = conversation.ask("DeleteTopics", version, topics=states, timeout_ms=1)
    results: list[dict[str, Any]] = answer["responses"]
    return results


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_by_name(version: int) -> None:
    """Every version deletes a topic by its name; v6 answers with its id too."""
    conversation = Conversation()
    topic_id = conversation.create("a", 2)
    conversation.create("b")
    (result,) = delete(conversation, "a", version=version)
    assert (result["name"], result["error_code"]) == ("a", 0)
    if version >= 6:
        assert result["topic_id"] == uuid.UUID(bytes=topic_id)
    assert list(conversation.broker.topics) == ["b"]
    assert (
        conversation.ask("Metadata", 12, topics=[{"name": "a"}], allow_auto_topic_creation=False)[
            "topics"
        ][0]["error_code"]
        == 3
    )


def test_deletes_by_id() -> None:
    """A topic is deleted by its id and answered with its name."""
    conversation = Conversation()
    topic_id = uuid.UUID(bytes=conversation.create("a"))
    (result,) = delete(conversation, topic_id)
    assert (result["name"], result["topic_id"], result["error_code"]) == ("a", topic_id, 0)
    assert conversation.broker.topics == {}


def test_the_name_is_free_again() -> None:
    """After the deletion a topic of the same name is another topic, with an empty log."""
    conversation = Conversation()
    old_id = conversation.create("a")
    delete(conversation, "a")
    assert conversation.create("a") != old_id
    names = [entry.name for entry in conversation.host.fs.list_directory(DIRECTORY)]
    assert "a-0" in names
    assert any(name.startswith("a-0.") and name.endswith("-delete") for name in names)


def test_groups_forget_a_deleted_topic() -> None:
    """What groups have committed for a topic goes with it."""
    conversation = Conversation()
    conversation.create("a")
    groups = conversation.broker.groups
    conversation.ask(
        "OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, member_id="",
        group_instance_id=None, topics=[{"name": "a", "partitions": [
            {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1,
             "committed_metadata": ""}]}],
    )  # fmt: skip
    assert list(groups.fetch_offsets("g", None)[1]) == [("a", 0)]
    delete(conversation, "a")
    assert groups.fetch_offsets("g", None)[1] == {}


def test_what_is_not_there_cannot_be_deleted() -> None:
    """An unknown name is 3, an unknown id 100; the other topics of the request still go."""
    conversation = Conversation()
    conversation.create("a")
    results = delete(conversation, "no such", STRANGER, "a")
    found = {(one["name"], one["error_code"], one["error_message"]) for one in results}
    assert found == {
        ("no such", 3, "This server does not host this topic-partition."),
        (None, 100, "This server does not host this topic ID."),
        ("a", 0, None),
    }
    assert conversation.broker.topics == {}


def test_a_topic_must_be_named_in_one_way() -> None:
    """Neither name nor id, or both at once, is 42, and told as often as it comes."""
    conversation = Conversation()
    topic_id = uuid.UUID(bytes=conversation.create("a"))
    results = delete(conversation, *[("a", topic_id), (None, NO_ID)] * 2)
    told = [(result["error_code"], result["error_message"]) for result in results]
    assert (
        told
        == [
            (42, "You may not specify both topic name and topic id."),
            (42, "Neither topic name nor id were specified."),
        ]
        * 2
    )
    assert list(conversation.broker.topics) == ["a"]


def test_a_topic_that_comes_twice_stays() -> None:
    """A name or id that comes twice, and a name beside its own id, are 42: nothing is deleted."""
    conversation = Conversation()
    a, b = (uuid.UUID(bytes=conversation.create(name)) for name in "ab")
    for topics in (("a", "a"), (b, b), ("a", a), (a, "a")):
        assert [result["error_code"] for result in delete(conversation, *topics)] == [42]
    (result,) = delete(conversation, "a", a)
    assert (result["name"], result["topic_id"]) == ("a", a)  # the name is what is refused
    assert sorted(conversation.broker.topics) == ["a", "b"]


@pytest.mark.parametrize("version", range(1, 7))
def test_deletion_can_be_turned_off(version: int) -> None:
    """With delete.topic.enable off every topic is 73, which before version 3 is 42."""
    conversation = Conversation({"delete.topic.enable": "false"})
    conversation.create("a")
    results = delete(conversation, "a", version=version)
    assert [result["error_code"] for result in results] == [42 if version < 3 else 73]
    assert list(conversation.broker.topics) == ["a"]
