"""Producers, consumers and their locks: who is in a group, who leaves, who is silent."""

from __future__ import annotations

from typing import cast

import pytest

from logstore.compat.rocketmq.clients.clients import CLIENT_EXPIRY_MS, Client
from logstore.compat.rocketmq.clients.consumers import PULLED_EXPIRY_MS, ConsumerGroup, Consumers
from logstore.compat.rocketmq.clients.heartbeat import ConsumerData
from logstore.compat.rocketmq.clients.producers import Producers
from logstore.compat.rocketmq.clients.queue_locks import LOCK_LIFE_MS, QueueLocks
from logstore.compat.rocketmq.clients.subscriptions import subscription_to
from logstore.compat.rocketmq.connection import Channel
from logstore.compat.rocketmq.name_server.name_server import NameServer
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import a_broker

Q0, Q1 = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)


def _channel() -> Channel:
    return cast("Channel", object())


def _client(name: str) -> Client:
    return Client(_channel(), name, "JAVA", 513)


def _data(*topics: str, version: int = 1, model: str = "CLUSTERING") -> ConsumerData:
    subscriptions = tuple(subscription_to(topic, "*", None, version) for topic in topics)
    return ConsumerData("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_FIRST_OFFSET", subscriptions)


def test_each_producer_of_a_group_is_asked_in_its_turn() -> None:
    """Channels of a group are handed out one after the other, and nobody's of an unknown group."""
    producers = Producers()
    first, second = _client("1"), _client("2")
    producers.register("g", first, 0)
    producers.register("g", second, 0)
    asked = [producers.any_channel("g") for _ in range(4)]
    assert asked.count(first.channel) == asked.count(second.channel) == 2
    assert producers.any_channel("other") is None


def test_a_producer_that_leaves_is_found_no_more() -> None:
    """Leaving a group, and hanging up, take a producer out of every table."""
    producers = Producers()
    client = _client("1")
    producers.register("g", client, 0)
    producers.register("h", client, 0)
    producers.unregister("g", client.channel, "1")
    assert (producers.members("g"), producers.members("h")) == ([], [client])
    producers.lost(client.channel)
    assert (producers.members("h"), producers.channel_of("1")) == ([], None)


def test_silent_producers_expire() -> None:
    """A producer without a heart beat for 120 s is forgotten, its channel told; others stay."""
    producers = Producers()
    silent, loud = _client("1"), _client("2")
    producers.register("g", silent, 0)
    producers.register("g", loud, 0)
    producers.register("g", loud, 5)
    assert producers.expire(CLIENT_EXPIRY_MS) == []
    assert producers.expire(CLIENT_EXPIRY_MS + 1) == [silent.channel]
    assert producers.members("g") == [loud]


def test_members_are_told_when_a_consumer_comes_or_goes() -> None:
    """A change is told for a new channel and for one that leaves, not for another heart beat."""
    consumers = Consumers()
    told: list[list[str]] = []
    consumers.on_change = lambda group: told.append(group.client_ids())
    first, second = _client("1"), _client("2")
    assert consumers.register(first, _data("t"), 0, notifies=True)
    assert not consumers.register(first, _data("t"), 10, notifies=True)
    consumers.register(second, _data("t"), 0, notifies=True)
    consumers.unregister("g", first.channel, notifies=True)
    consumers.lost(second.channel)
    assert told == [["1"], ["1", "2"], ["2"], []]
    assert consumers.group("g") is None


def test_nobody_is_told_where_every_member_gets_all() -> None:
    """Members of a broadcast group share nothing out, so nobody is told."""
    consumers = Consumers()
    told: list[ConsumerGroup] = []
    consumers.on_change = told.append
    consumers.register(_client("1"), _data("t", model="BROADCASTING"), 0, notifies=True)
    assert told == []


def test_a_newer_subscription_replaces_an_older_one() -> None:
    """Subscriptions change with a larger version only; topics no longer named are dropped."""
    consumers = Consumers()
    client = _client("1")
    consumers.register(client, _data("t", "u", version=2), 0, notifies=True)
    group = consumers.group("g")
    assert group is not None
    assert not group.subscribe((subscription_to("t", "a", None, 2), *_data("u").subscriptions))
    assert group.subscriptions["t"].sub_string == "*"
    assert group.subscribe((subscription_to("t", "a", None, 3),))
    assert (group.subscriptions["t"].sub_string, list(group.subscriptions)) == ("a", ["t"])


def test_the_last_member_ends_the_group() -> None:
    """When the last member has gone silent the group is over, and that is told."""
    consumers = Consumers()
    ended: list[str] = []
    consumers.on_end = ended.append
    client = _client("1")
    consumers.register(client, _data("t"), 0, notifies=True)
    assert consumers.expire(CLIENT_EXPIRY_MS + 1) == [client.channel]
    assert (ended, list(consumers)) == (["g"], [])


def test_a_pull_makes_a_subscription_known() -> None:
    """What a pull brought is found where no heart beat says otherwise, of the time it came at."""
    consumers = Consumers()
    consumers.note_pulled("g", subscription_to("t", "a", None, 3), 1_700_000_000_000)
    found = consumers.subscription("g", "t")
    assert found is not None
    assert (found.sub_string, found.sub_version) == ("a", 1_700_000_000_000)
    consumers.register(_client("1"), _data("t"), 0, notifies=True)
    found = consumers.subscription("g", "t")
    assert found is not None
    assert found.sub_string == "*"


def test_what_a_pull_brought_is_forgotten() -> None:
    """Some time after the last pull, but never in the ten minutes after it."""
    consumers = Consumers()
    consumers.note_pulled("g", subscription_to("t", "a", None, 3), 1_700_000_000_000)
    consumers.expire(PULLED_EXPIRY_MS)
    consumers.expire(2 * PULLED_EXPIRY_MS - 1)
    assert consumers.subscription("g", "t") is not None
    consumers.expire(2 * PULLED_EXPIRY_MS)
    assert consumers.subscription("g", "t") is None


def test_settings_say_how_long_is_waited_for_consumers() -> None:
    """For consumers, and what their pulls brought; of producers Java has it fixed."""
    settings = {"channelExpiredTimeout": "1000", "subscriptionExpiredTimeout": "2000"}
    broker = a_broker(settings={**settings, "notifyConsumerIdsChangedEnable": "false"})
    client = _client("1")
    start_ms = 10_000_000
    broker.consumers.expire(start_ms)
    broker.consumers.register(client, _data("t"), start_ms, notifies=True)
    broker.producers.register("p", client, start_ms)
    broker.consumers.note_pulled("h", subscription_to("t", "*", None, 1), start_ms)
    assert broker.consumers.expire(start_ms + 1000) == []
    assert broker.consumers.expire(start_ms + 1001) == [client.channel]
    assert broker.producers.expire(start_ms + CLIENT_EXPIRY_MS) == []
    broker.consumers.expire(start_ms + 2000)
    assert broker.consumers.subscription("h", "t") is not None
    broker.consumers.expire(start_ms + 4000)
    assert broker.consumers.subscription("h", "t") is None


@pytest.mark.parametrize(("seconds", "expected_ms"), [("7", 7000), ("0", -1), ("-1", -1)])
def test_settings_say_how_long_a_connection_may_be_silent(seconds: str, expected_ms: int) -> None:
    """That of a broker, and of a name server."""
    settings = {"serverChannelMaxIdleTimeSeconds": seconds}
    assert a_broker(settings=settings).idle_ms_max == expected_ms
    host = SimulatedHost(clock=ManualClock())
    assert NameServer(host, "/kv.json", settings).idle_ms_max == expected_ms


def test_a_locked_queue_is_one_clients() -> None:
    """A queue that one client holds is refused to others, until it lets go."""
    locks = QueueLocks(ManualClock().monotonic_ms)
    assert locks.lock("g", "a", [Q0, Q1]) == [Q0, Q1]
    assert locks.lock("g", "b", [Q0, Q1]) == []
    locks.unlock("g", "b", [Q0])
    assert locks.lock("g", "b", [Q0]) == []
    locks.unlock("g", "a", [Q0])
    assert locks.lock("g", "b", [Q0, Q1]) == [Q0]
    assert locks.lock("other", "b", [Q1]) == [Q1]


def test_a_lock_lives_for_a_minute() -> None:
    """A lock that is asked for again in time goes on; one that is not is anybody's after 60 s."""
    clock = ManualClock()
    locks = QueueLocks(clock.monotonic_ms)
    locks.lock("g", "a", [Q0])
    clock.advance(LOCK_LIFE_MS)
    assert locks.is_any_held("g")
    assert locks.lock("g", "a", [Q0]) == [Q0]
    clock.advance(LOCK_LIFE_MS)
    assert locks.lock("g", "b", [Q0]) == []
    clock.advance(1)
    assert not locks.is_any_held("g")
    assert locks.lock("g", "b", [Q0]) == [Q0]
