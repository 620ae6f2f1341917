"""Names of lite topics, and where they belong among many brokers."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.found_routes import FoundRoute
from logstore.compat.rocketmq.lite.lite_names import (
    lite_topic_of,
    parent_of,
    queue_name,
    with_light_queue,
)
from logstore.compat.rocketmq.lite.shards import bucket_of, writable
from logstore.compat.rocketmq.name_server.routes import QueueData


def test_a_name_has_two_parts() -> None:
    """Parent and lite topic can be told apart again."""
    assert queue_name("p", "chat") == "%LMQ%$p$chat"
    assert (parent_of("%LMQ%$p$chat"), lite_topic_of("%LMQ%$p$chat")) == ("p", "chat")


@pytest.mark.parametrize("queue", ["%LMQ%chat", "%LMQ%$p", "%LMQ%$p$", "%LMQ%$$c", "%LMQ%$p$a$b"])
def test_other_light_queues_are_of_no_parent(queue: str) -> None:
    """Neither are those with a part too few, too many or without a letter."""
    assert parent_of(queue) is None


def test_the_queue_of_a_lite_topic_is_said_last() -> None:
    """So it counts, whatever queue the sender names; without a lite topic nothing is added."""
    text = "INNER_MULTI_DISPATCH\x01mine\x02__LITE_TOPIC\x01chat"
    assert with_light_queue("p", text) == f"{text}\x02INNER_MULTI_DISPATCH\x01%LMQ%$p$chat\x02"
    for other in ("TAGS\x01__LITE_TOPIC\x02", "__LITE_TOPIC\x01\x02", ""):
        assert with_light_queue("p", other) == other


@pytest.mark.parametrize(
    ("lite_topic", "count", "bucket"),
    # as Guava 31 says
    [
        ("chat", 8, 3),
        ("chat", 31, 23),
        ("news", 8, 3),
        ("news", 31, 17),
        ("a", 8, 0),
        ("a", 31, 29),
        ("", 8, 0),
        ("", 31, 0),
        ("t-17", 8, 0),
        ("t-17", 31, 0),
        ("Überraschung", 8, 0),
        ("Überraschung", 31, 8),
        ("polygenelubricants", 8, 2),
        ("polygenelubricants", 31, 2),
        ("zzzzzzzzzzzzzzzz", 8, 3),
        ("zzzzzzzzzzzzzzzz", 31, 10),
    ],
)
def test_a_lite_topic_belongs_to_one_queue(lite_topic: str, count: int, bucket: int) -> None:
    """The one that Java's clients, proxies and brokers find, too."""
    assert bucket_of(lite_topic, count) == bucket


def test_queues_that_nobody_can_write_to_do_not_count() -> None:
    """Nor do those of brokers without a master."""
    route = FoundRoute(
        (QueueData("b", 2, 2, 6, 0), QueueData("a", 1, 1, 6, 0), QueueData("c", 4, 4, 4, 0),
         QueueData("d", 4, 4, 6, 0)),
        {"a": {0: "a:1"}, "b": {0: "b:1"}, "c": {0: "c:1"}, "d": {1: "d:1"}},
    )  # fmt: skip
    assert writable(route) == ["a", "b", "b"]
