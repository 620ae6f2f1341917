"""Topics, partitions and assignments that cannot be: the same codes and words at both brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from logstore.tools.dev.kafka_peer import KafkaPeer
from tests.compat.kafka.groups.questioner import Line
from tests.interop.our_broker import OurBroker

pytestmark = pytest.mark.interop

STRANGER = 4711


@pytest.fixture
def lines(real: KafkaPeer, ours: OurBroker, topic_name: str) -> Iterator[list[Line]]:
    """Return a connection to each broker, which has a topic of two partitions."""
    found = [Line(real.bootstrap), Line(ours.bootstrap)]
    for line in found:
        line.ask("CreateTopics", 7, topics=[topic(topic_name, 2)], timeout_ms=9000)
    yield found
    for line in found:
        line.ask("DeleteTopics", 5, topic_names=[topic_name], timeout_ms=9000)
        line.close()


def topic(name: str, count: int = -1, factor: int = -1, **fields: Any) -> dict[str, Any]:
    """Return a topic that is wanted."""
    wanted = {"name": name, "num_partitions": count, "replication_factor": factor}
    return {**wanted, "assignments": [], "configs": [], **fields}


def assigned(*rows: tuple[int, list[int]]) -> list[dict[str, Any]]:
    """Return which brokers are to hold which partitions."""
    return [{"partition_index": index, "broker_ids": brokers} for index, brokers in rows]


def told(answer: dict[str, Any]) -> list[Any]:
    """Return name, code and words of every result, in an order of their own."""
    results = answer.get("topics", answer.get("results")) or []
    return sorted((one["name"], one["error_code"], one["error_message"] or "") for one in results)


NEW = "refusals-new"
WRONG = {
    "metadata": [topic("__cluster_metadata", 1, 1)],
    "twice": [topic(NEW, 1, 1), topic("refusals-other", 0, 1), topic(NEW, 2, 1)],
    "null": [topic(NEW, configs=[{"name": n, "value": None} for n in ("segment.ms", "b")])],
    "count": [topic(NEW, 1, assignments=assigned((0, [1])))],
    "factor": [topic(NEW, -1, 1, assignments=assigned((0, [1])))],
    "stranger": [topic(NEW, assignments=assigned((0, [1]), (1, [STRANGER, -3])))],
    "repeated": [topic(NEW, assignments=assigned((0, [1, 1])))],
    "empty": [topic(NEW, assignments=assigned((0, [])))],
    "gap": [topic(NEW, assignments=assigned((1, [1])))],
    "same partition": [topic(NEW, assignments=assigned((0, [1]), (0, [1])))],
    "too many": [topic(NEW, 9_999, 1), topic("refusals-other", 2, 1)],
    "too many of one": [topic(NEW, assignments=assigned(*((n, [1]) for n in range(10_001))))],
    "too many but twice": [topic(NEW, 9_999, 1), topic(NEW, 2, 1)],
}


@pytest.mark.parametrize("wanted", WRONG.values(), ids=WRONG.keys())
def test_topics_that_cannot_be(lines: list[Line], wanted: list[dict[str, Any]]) -> None:
    """Nothing is made of them."""
    real, ours = (line.ask("CreateTopics", 7, topics=wanted, timeout_ms=9000) for line in lines)
    assert told(ours) == told(real)
    assert all(code for _, code, _ in told(real))


@pytest.mark.parametrize(
    ("count", "brokers"),
    [
        (3, [[STRANGER]]), (3, [[1, 1]]), (3, [[]]), (4, [[1], []]), (3, [[1], [1]]), (4, [[1]]),
        (2, None), (1, None), (0, [[1]]),
    ],
)  # fmt: skip
def test_partitions_that_cannot_be(
    lines: list[Line], topic_name: str, count: int, brokers: list[list[int]] | None
) -> None:
    """The topic stays as it is."""
    assignments = None if brokers is None else [{"broker_ids": one} for one in brokers]
    wanted = [{"name": topic_name, "count": count, "assignments": assignments}]
    ask = {"topics": wanted, "timeout_ms": 9000, "validate_only": False}
    real, ours = (line.ask("CreatePartitions", 3, **ask) for line in lines)
    assert told(ours) == told(real)
    assert all(code for _, code, _ in told(real))


def test_partitions_of_a_topic_that_is_named_twice(lines: list[Line], topic_name: str) -> None:
    """Neither is done."""
    wanted = [{"name": topic_name, "count": count, "assignments": None} for count in (3, 4)]
    ask = {"topics": wanted, "timeout_ms": 9000, "validate_only": False}
    real, ours = (line.ask("CreatePartitions", 3, **ask) for line in lines)
    assert told(ours) == told(real) == [(topic_name, 42, "Duplicate topic name.")]


@pytest.mark.parametrize(
    ("name", "index", "replicas"),
    [
        (None, 0, [STRANGER]), (None, 0, [1, 1]), (None, 0, []), (None, 9, [1]), (None, 0, None),
        ("refusals-nowhere", 0, [1]), ("refusals-nowhere", 0, None),
    ],
)  # fmt: skip
def test_reassignments_that_cannot_be(
    lines: list[Line], topic_name: str, name: str | None, index: int, replicas: list[int] | None
) -> None:
    """Each is told why."""
    partitions = [{"partition_index": index, "replicas": replicas}]
    moved = {"name": name or topic_name, "partitions": partitions}
    real, ours = (
        line.ask("AlterPartitionReassignments", 0, topics=[moved], timeout_ms=9000)["responses"]
        for line in lines
    )
    assert ours == real


NO_TIME = {
    "made": ("CreateTopics", 7, {"topics": [topic(NEW, 1, 1), topic("b", 1), topic("b", 2)]}),
    "made wrongly": ("CreateTopics", 7, {"topics": [topic("b", 1), topic("b", 2)]}),
    "deleted": ("DeleteTopics", 5, {"topic_names": [NEW, "b", "b"]}),
    "deleted wrongly": ("DeleteTopics", 5, {"topic_names": ["b", "b"]}),
    "grown": ("CreatePartitions", 3, {"topics": [{"name": NEW, "count": 4, "assignments": None}]}),
    "elected": ("ElectLeaders", 2, {"topic_partitions": [{"topic": NEW, "partitions": [0]}]}),
    "elected everywhere": ("ElectLeaders", 2, {"topic_partitions": None}),
    "elected nowhere": ("ElectLeaders", 2, {"topic_partitions": []}),
    "moved": (
        "AlterPartitionReassignments",
        0,
        {"topics": [{"name": NEW, "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
    ),
    "moved nowhere": ("AlterPartitionReassignments", 0, {"topics": []}),
}


@pytest.mark.parametrize(("api", "version", "ask"), NO_TIME.values(), ids=NO_TIME.keys())
@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_is_too_little(
    lines: list[Line], api: str, version: int, ask: dict[str, Any], timeout_ms: int
) -> None:
    """What the controller is given no time for is not done: the same answers."""
    real, ours = (line.ask(api, version, timeout_ms=timeout_ms, **ask) for line in lines)
    assert ours == real
