"""CreateTopics and CreatePartitions: which topics may come into being, and how they grow."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.topics.creation import internal_topic
from logstore.compat.kafka.topics.internal_partitions import internal_partition
from logstore.errors import StorageError
from tests.compat.kafka.conversation import Conversation
from tests.compat.kafka.peer import a_broker

NO_ID = uuid.UUID(int=0)


def wanted(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """Return one topic of a request."""
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [],
        **fields,
    }


def assigned(*brokers_of: list[int]) -> list[dict[str, Any]]:
    """Return assignments of partitions 0, 1, ... to brokers."""
    return [
        {"partition_index": index, "broker_ids": brokers}
        for index, brokers in enumerate(brokers_of)
    ]


def create(
    conversation: Conversation, *topics: dict[str, Any], version: int = 7, **fields: Any
) -> list[dict[str, Any]]:
    """Create topics; return the results."""
    answer = conversation.ask(
        "CreateTopics", version, topics=list(topics), timeout_ms=1000, **fields
    )
    results: list[dict[str, Any]] = answer["topics"]
    return results


def codes(results: list[dict[str, Any]]) -> list[int]:
    """Return the error codes of results."""
    return [result["error_code"] for result in results]


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(version: int) -> None:
    """Every version creates the topic with its partitions; v5 tells of it, v7 its id."""
    conversation = Conversation()
    (result,) = create(conversation, wanted("orders", 3), version=version)
    assert (result["name"], result["error_code"], result["error_message"]) == ("orders", 0, None)
    topic = conversation.broker.topics["orders"]
    assert list(topic.partitions) == [0, 1, 2]
    if version >= 5:
        assert (result["num_partitions"], result["replication_factor"]) == (3, 1)
        assert result["topic_config_error_code"] == 0
    if version >= 7:
        assert result["topic_id"] == uuid.UUID(bytes=topic.topic_id)


def test_minus_one_means_the_brokers_default() -> None:
    """Partitions and replicas of -1 are the broker's defaults."""
    conversation = Conversation({"num.partitions": "5"})
    (result,) = create(conversation, wanted("orders", -1, -1))
    assert (result["num_partitions"], result["replication_factor"]) == (5, 1)


def test_settings_are_kept_and_told() -> None:
    """A new topic's settings hold, survive a restart, and are listed by name with their source."""
    conversation = Conversation({"log.retention.hours": "1"})
    (result,) = create(
        conversation, wanted("orders", configs=[{"name": "segment.ms", "value": "60000"}])
    )
    settings = {entry["name"]: entry for entry in result["configs"]}
    assert list(settings) == sorted(settings)
    own = settings["segment.ms"]
    assert (own["value"], own["config_source"], own["read_only"]) == ("60000", 1, False)
    given = settings["retention.ms"]
    assert (given["value"], given["config_source"]) == ("3600000", 4)
    default = settings["segment.bytes"]
    assert (default["value"], default["config_source"]) == ("1073741824", 5)
    assert "internal.segment.bytes" not in settings
    conversation.restart()
    assert conversation.broker.topics["orders"].partitions[0].config.segment_ms == 60000


def test_each_topic_of_a_request_is_told_its_own_settings() -> None:
    """Also where several have the same ones; the refused one among them is told of none."""
    conversation = Conversation()
    sizes = {"a": "1000", "b": None, "c": "2000", "d": "1000", "e": None, "f": "soon"}
    topics = [
        wanted(name, configs=[{"name": "max.message.bytes", "value": size}] if size else [])
        for name, size in sizes.items()
    ]
    results = {result["name"]: result["configs"] for result in create(conversation, *topics)}
    told = {
        name: {entry["name"]: (entry["value"], entry["config_source"]) for entry in entries}
        for name, entries in results.items()
    }
    default = ("1048588", 5)
    assert {name: entries.pop("max.message.bytes", None) for name, entries in told.items()} == {
        "a": ("1000", 1),
        "b": default,
        "c": ("2000", 1),
        "d": ("1000", 1),
        "e": default,
        "f": None,
    }
    assert told["a"] == told["b"] == told["c"] == told["d"] == told["e"] != {} == told["f"]


def test_a_rehearsal_changes_nothing() -> None:
    """With validate_only the answer is that of a creation, without an id, and nothing is there."""
    conversation = Conversation()
    (result,) = create(conversation, wanted("orders", 2), validate_only=True)
    assert (result["error_code"], result["num_partitions"]) == (0, 2)
    assert result["topic_id"] in (None, NO_ID)
    assert conversation.broker.topics == {}
    assert codes(create(conversation, wanted("a b"), validate_only=True)) == [17]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wanted("a b"), 17),
        (wanted(""), 17),
        (wanted(".."), 17),
        (wanted("x" * 250), 17),
        (wanted("there"), 36),
        (wanted("the.re_"), 17),
        (wanted("__cluster_metadata"), 42),
        (wanted("new", 0), 37),
        (wanted("new", -2), 37),
        (wanted("new", 1, 0), 38),
        (wanted("new", 1, -2), 38),
        (wanted("new", 1, 2), 38),
        (wanted("new", configs=[{"name": "no.such", "value": "1"}]), 40),
        (wanted("new", configs=[{"name": "segment.ms", "value": "soon"}]), 40),
        (wanted("new", configs=[{"name": "segment.ms", "value": "0"}]), 40),
        (wanted("new", configs=[{"name": "segment.ms", "value": None}]), 40),
        (wanted("new", configs=[{"name": "remote.storage.enable", "value": "true"}]), 40),
        (wanted("new", assignments=assigned([1])), 42),
        (wanted("new", -1, 1, assignments=assigned([1])), 42),
        (wanted("new", 1, -1, assignments=assigned([1])), 42),
        (wanted("new", -1, -1, assignments=assigned([2])), 39),
        (wanted("new", -1, -1, assignments=assigned([1, 1])), 39),
        (wanted("new", -1, -1, assignments=assigned([])), 39),
        (wanted("new", -1, -1, assignments=[{"partition_index": 1, "broker_ids": [1]}]), 39),
        (wanted("new", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1]}] * 2), 39),
    ],
)
def test_what_cannot_be_created_is_refused(topic: dict[str, Any], code: int) -> None:
    """A topic that breaks a rule gets that rule's code and a message, and nothing is created."""
    conversation = Conversation()
    conversation.create("there")
    conversation.create("the_re.")
    before = set(conversation.broker.topics)
    (result,) = create(conversation, topic)
    assert result["error_code"] == code
    assert result["error_message"]
    assert (result["num_partitions"], result["replication_factor"]) == (-1, -1)
    assert result["configs"] == []
    assert set(conversation.broker.topics) == before


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        (wanted("there"), "Topic 'there' already exists."),
        (wanted("the.re_"), "Topic 'the.re_' collides with existing topic: the_re_"),
        (wanted(""), "Topic name is invalid: the empty string is not allowed"),
        (wanted(".."), "Topic name is invalid: '..' is not allowed"),
        (
            wanted("x" * 250),
            (
                f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max "
                "allowed length 249"
            ),
        ),
        (
            wanted("a b"),
            (
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
                "alphanumerics, '.', '_' and '-'"
            ),
        ),
        (wanted("new", 0), "Number of partitions was set to an invalid non-positive value."),
        (
            wanted("new", 1, 0),
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            wanted("new", 1, 2),
            (
                "Unable to replicate the partition 2 time(s): The target replication factor of 2 "
                "cannot be reached because only 1 broker(s) are registered or some brokers have "
                "all their log directories cordoned."
            ),
        ),
        (
            wanted("new", configs=[{"name": "no.such", "value": "1"}]),
            "Unknown topic config name: no.such",
        ),
        (
            wanted("new", configs=[{"name": "a", "value": None}, {"name": "a", "value": "1"}]),
            "Null value not supported for topic configs: a",
        ),
    ],
)
def test_programs_look_for_kafkas_words(topic: dict[str, Any], message: str) -> None:
    """What is wrong with a topic is told as by a real broker: tests of others match on it."""
    conversation = Conversation()
    for name in ("there", "the_re_"):
        conversation.create(name)
    answer = conversation.ask("CreateTopics", 7, topics=[topic])
    assert answer["topics"][0]["error_message"] == message


def test_a_topic_that_does_not_grow_says_so_in_kafkas_words() -> None:
    """As many partitions as there are, and fewer, have a sentence each."""
    conversation = Conversation()
    conversation.create("t", 3)
    for count, message in (
        (3, "Topic already has 3 partition(s)."),
        (1, "The topic t currently has 3 partition(s); 1 would not be an increase."),
    ):
        topics = [{"name": "t", "count": count, "assignments": None}]
        answer = conversation.ask("CreatePartitions", 3, topics=topics, timeout_ms=9)
        assert answer["results"][0]["error_message"] == message


def test_an_assignment_to_this_broker_gives_the_partitions() -> None:
    """Assigned partitions are created as they are assigned."""
    conversation = Conversation()
    topic = wanted("new", -1, -1, assignments=assigned([1], [1]))
    assert codes(create(conversation, topic)) == [0]
    assert list(conversation.broker.topics["new"].partitions) == [0, 1]


def test_one_bad_topic_does_not_stop_the_others() -> None:
    """Topics of one request succeed and fail on their own."""
    conversation = Conversation()
    assert codes(create(conversation, wanted("a"), wanted("a b"), wanted("b"))) == [0, 17, 0]
    assert sorted(conversation.broker.topics) == ["a", "b"]


def test_a_name_that_comes_twice_is_refused_once() -> None:
    """A topic named twice is 42, once in the answer, and not created."""
    conversation = Conversation()
    results = create(conversation, wanted("a"), wanted("b"), wanted("a", 2))
    assert {result["name"]: result["error_code"] for result in results} == {"a": 42, "b": 0}
    assert len(results) == 2
    assert list(conversation.broker.topics) == ["b"]


def test_a_request_for_too_many_partitions_is_refused_as_a_whole() -> None:
    """More than 10,000 partitions in one request are 44 for each of its topics."""
    conversation = Conversation()
    assert codes(create(conversation, wanted("a", 10_000), wanted("b"))) == [44, 44]
    assert conversation.broker.topics == {}


def test_names_that_differ_in_dots_clash() -> None:
    """Dots and underscores in the same places clash, in other places they do not."""
    conversation = Conversation()
    conversation.create("a.b")
    assert codes(create(conversation, wanted("a_b"))) == [17]
    assert codes(create(conversation, wanted("ab"), wanted("a-b"), wanted("_ab"))) == [0, 0, 0]


# CreatePartitions


def grow(
    conversation: Conversation, *topics: dict[str, Any], version: int = 3, **fields: Any
) -> list[dict[str, Any]]:
    """Grow topics; return the results."""
    asked = [{"assignments": None, **topic} for topic in topics]
    answer = conversation.ask("CreatePartitions", version, topics=asked, timeout_ms=1000, **fields)
    results: list[dict[str, Any]] = answer["results"]
    return results


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows(version: int) -> None:
    """Every version grows a topic, which keeps what it has; the new partitions can be used."""
    conversation = Conversation()
    conversation.create("a", 2)
    old = conversation.broker.topics["a"].partitions[0]
    (result,) = grow(conversation, {"name": "a", "count": 4}, version=version)
    assert (result["error_code"], result["error_message"]) == (0, None)
    assert list(conversation.broker.topics["a"].partitions) == [0, 1, 2, 3]
    assert conversation.broker.topics["a"].partitions[0] is old
    assert conversation.broker.by_name[b"a"][3].end_offset == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": "a", "count": 2}, 37),
        ({"name": "a", "count": 1}, 37),
        ({"name": "a", "count": -1}, 37),
        ({"name": "no such", "count": 3}, 3),
        ({"name": "a", "count": 20_000}, 44),
        ({"name": "a", "count": 3, "assignments": []}, 39),
        ({"name": "a", "count": 3, "assignments": [{"broker_ids": [2]}]}, 39),
        ({"name": "a", "count": 3, "assignments": [{"broker_ids": [1]}] * 2}, 39),
    ],
)
def test_what_cannot_grow_is_refused(topic: dict[str, Any], code: int) -> None:
    """A growth that breaks a rule gets that rule's code and a reason, and changes nothing."""
    conversation = Conversation()
    conversation.create("a", 2)
    (result,) = grow(conversation, topic)
    assert result["error_code"] == code
    assert bool(result["error_message"]) == (code != 3)  # of which Kafka says no more
    assert list(conversation.broker.topics["a"].partitions) == [0, 1]


def test_topics_grow_in_the_order_of_kafkas_set() -> None:
    """What comes twice is refused first; the others grow by the hashes of their names."""
    conversation = Conversation()
    for name in "fae":
        conversation.create(name, 1)
    asked = [{"name": name, "count": 2} for name in "ebfaf"]
    told = [(one["name"], one["error_code"]) for one in grow(conversation, *asked)]
    assert told == [("f", 42), ("a", 0), ("b", 3), ("e", 0)]


def test_a_growth_can_be_rehearsed_and_assigned() -> None:
    """A rehearsal changes nothing; an assignment to this broker is as good as none."""
    conversation = Conversation()
    conversation.create("a", 1)
    topic = {"name": "a", "count": 2, "assignments": [{"broker_ids": [1]}]}
    assert codes(grow(conversation, topic, validate_only=True)) == [0]
    assert list(conversation.broker.topics["a"].partitions) == [0]
    assert codes(grow(conversation, topic)) == [0]
    assert list(conversation.broker.topics["a"].partitions) == [0, 1]


def test_a_topic_that_is_to_grow_twice_is_refused_once() -> None:
    """A topic that comes twice is 42, once in the answer."""
    conversation = Conversation()
    conversation.create("a", 1)
    results = grow(conversation, {"name": "a", "count": 2}, {"name": "a", "count": 3})
    assert codes(results) == [42]
    assert list(conversation.broker.topics["a"].partitions) == [0]


def test_a_directory_of_a_larger_cluster_may_lack_a_partition_of_an_internal_topic() -> None:
    """A key lives where the whole topic has it; what is not here is told by name."""
    broker = a_broker(offsets_topic_num_partitions=3)
    internal_topic(broker, "__consumer_offsets")
    partitions = broker.topics["__consumer_offsets"].partitions
    by_index = {internal_partition(broker, "__consumer_offsets", key).index: key for key in "abc"}
    assert sorted(by_index) == [0, 1, 2]
    del partitions[1]
    assert internal_partition(broker, "__consumer_offsets", by_index[2]).index == 2
    with pytest.raises(StorageError, match="/data: __consumer_offsets-1 is not there"):
        internal_partition(broker, "__consumer_offsets", by_index[1])
