"""Members subscribe to patterns of topic names."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from tests.compat.kafka.groups.consumer.rehearsal import (
    Consumer,
    ConsumerRehearsal,
    topic_id,
)


def by_pattern(stage: ConsumerRehearsal, member_id: str, regex: str, **changes: Any) -> Consumer:
    """Let a member join that subscribes to a pattern and to nothing else."""
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": regex}
    return stage.consumer(member_id, **names | changes)


def sees_all(_: str) -> bool:
    """Let a member see every topic."""
    return True


def sees_none(_: str) -> bool:
    """Hide all topics from a member."""
    return False


def test_a_pattern_means_whole_names() -> None:
    """It must match from the first to the last character."""
    stage = ConsumerRehearsal({"orders": 2, "orders-old": 1, "prices": 1})
    consumer = by_pattern(stage, "A", "orders|pri.*")
    assert consumer.owned == {
        (topic_id("orders"), 0),
        (topic_id("orders"), 1),
        (topic_id("prices"), 0),
    }
    assert stage.consumer_group.is_subscribed_to("prices")
    assert not stage.consumer_group.is_subscribed_to("orders-old")


def test_what_a_pattern_means_is_kept_with_the_offset_of_the_metadata() -> None:
    """It stays that at which it was looked up, while it means the same."""
    stage = ConsumerRehearsal({"a1": 1})
    stage.cluster.offset = 7
    first = by_pattern(stage, "A", "a.")
    assert stage.consumer_group.regexes["a."].version == 7
    stage.cluster.offset = 9
    first.beat()
    assert stage.consumer_group.regexes["a."].version == 7
    stage.make_topic("a2", 1)
    first.beat()
    assert stage.consumer_group.regexes["a."].version == 9


def test_topics_that_come_and_go() -> None:
    """New topics that match are given out, deleted ones taken back."""
    stage = ConsumerRehearsal({"a1": 1})
    first, second = by_pattern(stage, "A", "a."), by_pattern(stage, "B", "a.")
    stage.settle(first, second)
    stage.make_topic("a2", 1)
    stage.settle(first, second)
    assert first.owned | second.owned == {(topic_id("a1"), 0), (topic_id("a2"), 0)}
    del stage.cluster.topics["a1"]
    stage.settle(first, second)
    assert first.owned | second.owned == {(topic_id("a2"), 0)}


def test_a_pattern_without_topics_makes_no_epoch() -> None:
    """Only what a pattern turns out to mean does; and another member with one that is known."""
    stage = ConsumerRehearsal({"b": 1})
    named = stage.consumer("N", subscribed_topic_names=frozenset({"b"}))
    epoch = stage.consumer_group.epoch
    first = by_pattern(stage, "A", "a.")
    stage.settle(named, first)
    assert stage.consumer_group.epoch == epoch
    assert not first.owned
    by_pattern(stage, "B", "a.")
    assert stage.consumer_group.epoch == epoch + 1
    stage.make_topic("a1", 1)
    first.beat()
    assert stage.consumer_group.epoch == epoch + 2
    first.beat(subscribed_topic_regex="c.")
    assert stage.consumer_group.epoch == epoch + 2


def test_what_is_no_pattern() -> None:
    """It is refused with the reason, and the member is not in."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = by_pattern(stage, "A", "a[")
    assert consumer.answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "a[" in (consumer.answer.error_message or "")
    assert stage.groups.consumers.groups == {}


def test_a_pattern_and_names() -> None:
    """A member may ask for both, and gets both."""
    stage = ConsumerRehearsal({"a1": 1, "b": 1})
    consumer = by_pattern(stage, "A", "a.", subscribed_topic_names=frozenset({"b"}))
    assert consumer.owned == {(topic_id("a1"), 0), (topic_id("b"), 0)}


def test_a_pattern_that_nobody_wants_any_more() -> None:
    """It is forgotten with its last member, or when that one wants something else."""
    stage = ConsumerRehearsal({"a1": 1, "b": 1})
    first, second = by_pattern(stage, "A", "a."), by_pattern(stage, "B", "b.*")
    second.leave()
    assert list(stage.consumer_group.regexes) == ["a."]
    first.beat(subscribed_topic_regex="", subscribed_topic_names=frozenset({"b"}))
    stage.settle(first)
    assert stage.consumer_group.regexes == {}
    assert first.owned == {(topic_id("b"), 0)}


@pytest.mark.parametrize("member_count", [1, 2])
def test_patterns_survive_a_restart(member_count: int) -> None:
    """After it nobody notices that there was one."""
    stage = ConsumerRehearsal({"a1": 2})
    consumers = [by_pattern(stage, name, "a.") for name in "AB"[:member_count]]
    stage.settle(*consumers)
    before = [consumer.owned for consumer in consumers], stage.consumer_group.epoch
    stage.restart()
    stage.settle(*consumers)
    assert ([consumer.owned for consumer in consumers], stage.consumer_group.epoch) == before
    assert list(stage.consumer_group.regexes) == ["a."]


def test_a_pattern_means_what_the_member_may_see() -> None:
    """Topics that are not for its eyes are not given out, nor taken away at the next heartbeat."""
    stage = ConsumerRehearsal({"a1": 1, "a2": 1})
    first = by_pattern(stage, "A", "a.", may_see={"a1": True, "a2": False}.__getitem__)
    assert first.owned == {(topic_id("a1"), 0)}
    assert first.beat(may_see=sees_all).assignment is None
    second = by_pattern(stage, "B", "a.", may_see=sees_all)
    stage.settle(first, second)
    assert first.owned | second.owned == {(topic_id("a1"), 0)}


def test_patterns_are_looked_up_again_once_in_a_while() -> None:
    """What a member may see counts with new topics, and when the last look was long ago."""
    stage = ConsumerRehearsal({"a1": 1, "a2": 1})
    may_see = {"a1": False, "a2": True, "a3": True}.__getitem__
    consumer = by_pattern(stage, "A", "a.", may_see=may_see)
    assert consumer.owned == {(topic_id("a2"), 0)}
    stage.make_topic("a3", 1)
    consumer.beat(may_see=may_see)
    assert consumer.owned == {(topic_id("a2"), 0), (topic_id("a3"), 0)}
    stage.cluster.broker_settings["group.consumer.regex.refresh.interval.ms"] = 10_000
    for elapsed_ms, count in ((10_000, 2), (1, 0)):
        stage.wait(elapsed_ms)
        consumer.beat(may_see=sees_none)
        assert len(consumer.owned) == count
