"""What a topology comes to with the topics that there are."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.cluster import TopicShape
from logstore.compat.kafka.groups.streams.states import StatusCode, StreamsGroupState
from logstore.compat.kafka.groups.streams.topics.configured_topology import (
    ConfiguredTopology,
    configured,
)
from logstore.compat.kafka.groups.streams.topology import StreamsTopology
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import Subtopology
from tests.compat.kafka.groups.consumer.rehearsal import topic_id
from tests.compat.kafka.groups.streams.rehearsal import (
    StreamsRehearsal,
    codes_of,
    internal,
    subtopology,
    together,
    topology,
)


def found(*subtopologies: Subtopology, **counts: int) -> ConfiguredTopology:
    """Return what subtopologies come to with topics of so many partitions."""
    shapes = {name: TopicShape(name, topic_id(name), count) for name, count in counts.items()}
    return configured(StreamsTopology.of(topology(*subtopologies)), shapes)


def missing_in(result: ConfiguredTopology) -> dict[str, int]:
    """Return the topics to be made, with their partitions."""
    return {name: topic.partition_count for name, topic in result.missing.items()}


def sinks(name: str, *sources: str, to: str, **fields: Any) -> Subtopology:
    """Return a subtopology that writes to a repartition topic."""
    return subtopology(name, *sources, repartition_sink_topics=(to,), **fields)


def reads(name: str, *topics: str, partitions: int = 0, **fields: Any) -> Subtopology:
    """Return a subtopology that reads repartition topics."""
    told = tuple(internal(topic, partitions) for topic in topics)
    return subtopology(name, repartition_source_topics=told, **fields)


def test_a_topology_without_internal_topics() -> None:
    """It has as many tasks as its widest topic has partitions."""
    result = found(subtopology("0", "a", "b"), a=2, b=3)
    assert result.is_ready
    assert result.subtopologies is not None
    assert result.subtopologies["0"].task_count == 3
    assert not result.subtopologies["0"].is_stateful


def test_a_repartition_topic_is_as_wide_as_what_is_written_to_it() -> None:
    """As the widest input of the subtopologies that write to it, through others too."""
    result = found(
        reads("2", "second"), sinks("1", to="second",
                                    repartition_source_topics=(internal("first"),)),
        sinks("0", "a", "b", to="first"), a=2, b=5,
    )  # fmt: skip
    assert missing_in(result) == {"first": 5, "second": 5}
    assert result.error is not None
    assert result.error.status is StatusCode.MISSING_INTERNAL_TOPICS
    assert result.error.detail == "Internal topics are missing: first, second"
    assert result.subtopologies is not None
    assert [one.task_count for one in result.subtopologies.values()] == [5, 5, 5]


def test_a_repartition_topic_may_say_its_width() -> None:
    """And its changelog follows."""
    fields = {"state_changelog_topics": (internal("log"),)}
    result = found(sinks("0", "a", to="r"), reads("1", "r", partitions=7, **fields), a=2)
    assert missing_in(result) == {"r": 7, "log": 7}


def test_topics_that_are_joined_get_the_same_width() -> None:
    """That of the topics that are there, or else of the widest of them."""
    joined = {"copartition_groups": (together(0, repartition=(0,)),)}
    result = found(
        sinks("0", "a", to="r"),
        subtopology("1", "b", repartition_source_topics=(internal("r"),), **joined), a=2, b=6,
    )  # fmt: skip
    assert missing_in(result) == {"r": 6}
    both: dict[str, Any] = {"copartition_groups": (together(repartition=(0, 1)),)}
    result = found(sinks("0", "a", to="r"), sinks("1", "b", to="s"),
                   reads("2", "r", "s", **both), a=2, b=6)  # fmt: skip
    assert missing_in(result) == {"r": 6, "s": 6}


@pytest.mark.parametrize(
    ("subtopologies", "counts", "status", "detail"),
    [
        (
            [subtopology("0", "d", "b"), subtopology("1", "c", "a")], {},
            StatusCode.MISSING_SOURCE_TOPICS,
            "Source topics a, b, c and 1 additional topics are missing.",
        ),
        (
            [subtopology("0", "a", "b", copartition_groups=(together(0, 1),))], {"a": 1, "b": 2},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{a=1, b=2}]",
        ),
        (
            [subtopology("0", "a", repartition_source_topics=(internal("r", 3),),
                         copartition_groups=(together(0, repartition=(0,)),))], {"a": 2},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            (
                "Number of partitions [3] of repartition topic [r] doesn't match number of "
                "partitions [2] of the source topic."
            ),
        ),
        (
            [subtopology("0", repartition_source_topics=(internal("r", 3), internal("s", 4)),
                         copartition_groups=(together(repartition=(0, 1)),))], {},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{r=3, s=4}]",
        ),
        (
            [subtopology("0", "a", state_changelog_topics=(internal("log"),))],
            {"a": 2, "log": 3}, StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Existing topic log has different number of partitions: expected 2, found 3",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together(
    subtopologies: list[Subtopology], counts: dict[str, int], status: StatusCode, detail: str
) -> None:
    """Members are told so in Kafka's words."""
    result = found(*subtopologies, **counts)
    assert result.error is not None
    assert (result.error.status, result.error.detail) == (status, detail)
    assert result.subtopologies is None


@pytest.mark.parametrize(
    ("subtopologies", "code"),
    [
        ([subtopology("0")], ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ([reads("0", "never")], ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ([sinks("0", to="r", repartition_source_topics=(internal("r"),))],
         ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ([subtopology("0", "a"), subtopology("0", "a")], ErrorCode.UNKNOWN_SERVER_ERROR),
        ([subtopology("0", "a", copartition_groups=(together(0, 1),))],
         ErrorCode.UNKNOWN_SERVER_ERROR),
        ([subtopology("0", "a", state_changelog_topics=(internal("l"), internal("l")))],
         ErrorCode.UNKNOWN_SERVER_ERROR),
        ([subtopology("0", repartition_source_topics=(internal("r", -1),))],
         ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)  # fmt: skip
def test_what_cannot_be(subtopologies: list[Subtopology], code: ErrorCode) -> None:
    """A topology that contradicts itself is an error, and leaves no group behind."""
    with pytest.raises(RefusedRequestError) as refused:
        found(*subtopologies, a=1)
    assert refused.value.code is code
    stage = StreamsRehearsal({"a": 1})
    assert stage.joins("A", topology(*subtopologies)).error_code is code
    assert stage.groups.streams.groups == {}


def test_topics_are_joined_before_they_are_looked_for() -> None:
    """Who joins a topic that the topology does not have is refused, whatever else is missing."""
    wrong = subtopology("0", "gone", copartition_groups=(together(7),))
    with pytest.raises(RefusedRequestError) as refused:
        found(wrong)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_members_wait_for_their_topics() -> None:
    """The group is not ready; once the topics come everybody gets tasks."""
    told = topology(subtopology("0", "t", state_changelog_topics=(internal("log"),)))
    stage = StreamsRehearsal({})
    member = stage.member("A", told)
    assert codes_of(member.answer) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert stage.streams_group.state.value == "NotReady"
    stage.make_topic("t", 2)
    assert codes_of(member.live()) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert {name: one.partition_count for name, one in member.answer.missing.items()} == {"log": 2}
    assert (member.active, stage.streams_group.validated_topology_epoch) == (set(), -1)
    stage.make_topic("log", 2)
    assert codes_of(member.live()) == []
    assert member.active == {"0_0", "0_1"}
    assert stage.streams_group.state is StreamsGroupState.STABLE


def test_tasks_come_with_partitions() -> None:
    """A topic that has grown means more tasks; one that is gone means none at all."""
    stage = StreamsRehearsal({"t": 1})
    member = stage.member("A")
    stage.make_topic("t", 3)
    member.live()
    assert member.active == {"0_0", "0_1", "0_2"}
    del stage.cluster.topics["t"]
    stage.rest(member)
    assert member.active == set()
    assert codes_of(member.live()) == [StatusCode.MISSING_SOURCE_TOPICS]


def test_tasks_that_do_not_exist_are_refused() -> None:
    """A member cannot have them."""
    stage = StreamsRehearsal({"t": 2})
    stage.member("A")
    for active, words in (({"0": {2}}, "Task 2 for subtopology 0"), ({"9": {0}}, "Subtopology 9")):
        owned = {name: frozenset(parts) for name, parts in active.items()}
        answer = stage.live("A", 2, active=owned, standby={}, warmup={})
        assert answer.error_code is ErrorCode.INVALID_REQUEST
        assert words in (answer.error_message or "")
