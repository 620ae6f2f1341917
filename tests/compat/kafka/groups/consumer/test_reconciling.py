"""Partitions move from member to member: given back first, given out afterwards."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.modern.member import MemberState
from tests.compat.kafka.groups.consumer.rehearsal import (
    ASSIGNMENT_INTERVAL,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerRehearsal,
    topic_id,
)
from tests.compat.kafka.groups.rehearsal import GROUP


def test_nothing_is_given_out_that_somebody_has() -> None:
    """A newcomer waits in the new epoch until the old owner has let go, which goes on reading."""
    stage = ConsumerRehearsal({"t": 4})
    first = stage.consumer("A", "t")
    second = stage.consumer("B", "t")
    assert (second.epoch, second.has("t")) == (3, set())
    members = stage.consumer_group.members
    assert members["B"].state is MemberState.UNRELEASED_PARTITIONS
    first.beat()
    assert (first.epoch, first.has("t")) == (2, {0, 1})
    assert members["A"].state is MemberState.UNREVOKED_PARTITIONS
    assert stage.consumer_group.listed().state is ConsumerGroupState.RECONCILING
    second.beat()
    assert second.has("t") == set()
    first.beat()
    assert first.epoch == 3
    second.beat()
    assert (second.epoch, second.has("t")) == (3, {2, 3})
    assert stage.consumer_group.state is ConsumerGroupState.STABLE


def test_there_is_a_pause_between_two_assignments() -> None:
    """Who comes in it is in the epoch of the last one, with nothing, and nobody gives any back."""
    stage = ConsumerRehearsal({"t": 4})
    stage.cluster.broker_settings[ASSIGNMENT_INTERVAL] = 1000
    stage.wait(1)  # as 0 is no time
    first = stage.consumer("A", "t")
    assert (first.epoch, first.has("t")) == (2, {0, 1, 2, 3})
    stage.wait(999)
    second = stage.consumer("B", "t")
    first.beat()
    assert (second.epoch, second.has("t")) == (2, set())
    assert (first.epoch, first.has("t")) == (2, {0, 1, 2, 3})
    assert stage.consumer_group.state is ConsumerGroupState.ASSIGNING
    assert (stage.consumer_group.epoch, stage.consumer_group.assignment_epoch) == (3, 2)
    stage.wait(1)
    stage.settle(first, second)
    assert (first.epoch, first.has("t")) == (3, {0, 1})
    assert (second.epoch, second.has("t")) == (3, {2, 3})


def test_the_pause_of_one_group() -> None:
    """A group may have a setting of its own."""
    stage = ConsumerRehearsal({"t": 2})
    stage.cluster.broker_settings[ASSIGNMENT_INTERVAL] = 1000
    stage.wait(1)
    stage.cluster.group_settings[GROUP] = {"consumer.assignment.interval.ms": "0"}
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    stage.settle(first, second)
    assert (first.epoch, second.epoch, second.has("t")) == (3, 3, {1})


def test_who_no_longer_wants_a_topic_gives_it_back_at_once() -> None:
    """Also in the pause: the last target holds, but for what nobody asked for."""
    stage = ConsumerRehearsal({"t": 2, "u": 1})
    stage.cluster.broker_settings[ASSIGNMENT_INTERVAL] = 1000
    stage.wait(1)
    only = stage.consumer("A", "t", "u")
    assert (only.has("t"), only.has("u")) == ({0, 1}, {0})
    answer = stage.beat("A", only.epoch, subscribed_topic_names=frozenset({"u"}))
    assert answer.assignment == {topic_id("u"): frozenset({0})}


def test_a_member_says_nothing_until_it_has_let_go() -> None:
    """Without word of what it has, or with what it must give back, it stays where it is."""
    stage = ConsumerRehearsal({"t": 2})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    everything = first.owned
    first.beat()
    for owned in (None, everything):
        assert stage.beat("A", 2, owned=owned).member_epoch == 2
    second.beat()
    assert second.has("t") == set()


def test_who_does_not_let_go_in_time_is_out() -> None:
    """After the rebalance timeout it is removed although it is alive."""
    stage = ConsumerRehearsal({"t": 2})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    first.beat()
    for _ in range(4):
        stage.wait(REBALANCE_MS / 4 + 1)
        stage.beat("A", 2)
        second.beat()
    assert stage.beat("A", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    stage.settle(second)
    assert second.has("t") == {0, 1}


def test_letting_go_in_time_ends_the_wait() -> None:
    """Who has given back what it must is not removed later."""
    stage = ConsumerRehearsal({"t": 2})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    stage.settle(first, second)
    for _ in range(4):
        stage.wait(SESSION_MS - 1)
        stage.settle(first, second)
    assert sorted(stage.consumer_group.members) == ["A", "B"]


def test_members_who_come_and_go_share_the_work() -> None:
    """Whoever is there has everything together and nothing twice."""
    stage = ConsumerRehearsal({"t": 7, "u": 3})
    consumers = [stage.consumer(name, "t", "u") for name in "ABC"]
    stage.settle(*consumers)
    consumers.pop(1).leave()
    consumers += [stage.consumer(name, "t", "u") for name in "DE"]
    stage.settle(*consumers)
    owned = [one for consumer in consumers for one in consumer.owned]
    assert len(owned) == len(set(owned)) == 10
    assert {len(consumer.owned) for consumer in consumers} == {2, 3}


@pytest.mark.parametrize(("first", "second", "owner"), [
    ("uniform", "range", "B"), ("range", "uniform", "A"),
])  # fmt: skip
def test_of_two_assignors_that_of_the_newcomer_is_asked(
    first: str, second: str, owner: str
) -> None:
    """Range begins with static members, uniform leaves to everybody what they have."""
    stage = ConsumerRehearsal({"t": 1})
    consumers = [
        stage.consumer("A", "t", server_assignor=first),
        stage.consumer("B", "t", server_assignor=second, instance_id="i"),
    ]
    group = stage.consumer_group
    assert [name for name, target in group.targets.items() if target] == [owner]
    assert group.assignor == "uniform"
    stage.settle(*consumers)
    assert [len(one.owned) for one in consumers] == [owner == "A", owner == "B"]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_assignor_is_what_most_ask_for(assignor: str) -> None:
    """Range gives runs of each topic, uniform as many to each."""
    stage = ConsumerRehearsal({"t": 3, "u": 3})
    consumers = [stage.consumer(name, "t", "u", server_assignor=assignor) for name in "AB"]
    stage.settle(*consumers)
    assert stage.groups.consumers.assignor_of(stage.consumer_group) == assignor
    assert (
        sorted(len(one.owned) for one in consumers)
        == {
            "uniform": [3, 3],
            "range": [2, 4],
        }[assignor]
    )


def test_a_topic_that_grows() -> None:
    """New partitions are given out with the next heartbeats."""
    stage = ConsumerRehearsal({"t": 1})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    stage.settle(first, second)
    stage.make_topic("t", 4)
    stage.settle(first, second)
    assert first.has("t") | second.has("t") == {0, 1, 2, 3}
    assert len(first.owned) == len(second.owned) == 2


def test_a_topic_that_comes_later() -> None:
    """Members may wait for a topic that does not exist yet."""
    stage = ConsumerRehearsal({})
    consumer = stage.consumer("A", "t")
    assert (consumer.epoch, consumer.answer.assignment) == (2, {})
    stage.make_topic("t", 2)
    stage.settle(consumer)
    assert (consumer.epoch, consumer.has("t")) == (3, {0, 1})


def test_a_topic_that_goes() -> None:
    """What was of a deleted topic is given back."""
    stage = ConsumerRehearsal({"t": 2, "u": 2})
    consumer = stage.consumer("A", "t", "u")
    del stage.cluster.topics["u"]
    stage.settle(consumer)
    assert consumer.owned == {(topic_id("t"), 0), (topic_id("t"), 1)}


def test_a_member_that_wants_something_else() -> None:
    """It has to give back at once what it no longer wants."""
    stage = ConsumerRehearsal({"t": 2, "u": 2})
    consumer = stage.consumer("A", "t")
    answer = consumer.beat(subscribed_topic_names=frozenset({"u"}))
    assert answer.assignment == {}
    stage.settle(consumer)
    assert consumer.owned == {(topic_id("u"), 0), (topic_id("u"), 1)}


def test_members_who_want_different_things() -> None:
    """Nobody gets what it does not want."""
    stage = ConsumerRehearsal({"t": 4, "u": 4})
    both, one = stage.consumer("A", "t", "u"), stage.consumer("B", "u")
    stage.settle(both, one)
    assert both.has("t") == {0, 1, 2, 3}
    assert one.has("u") == {0, 1, 2, 3}
