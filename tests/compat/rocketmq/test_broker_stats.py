"""Counters by topic and group: what is left of them when those are deleted, and over long times."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker

_CLUSTER = "DefaultCluster"


def counted(peer: Peer, name: str, key: str, span: str = "statsMinute") -> Any:
    """Return a counter's sum, None where there is none of that name."""
    answer = peer.ask(Code.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key})
    return None if answer.code else answer.content[span]["sum"]


def busy(**settings: str) -> Peer:
    """Return a peer that has sent five messages, and pulled them for group g."""
    peer = Peer(a_broker(settings=settings))
    for _ in range(5):
        assert peer.produce().code == 0
    assert peer.pull().code == 0
    peer.broker.stats.sample()
    assert counted(peer, "TOPIC_PUT_NUMS", TOPIC) == 5
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@g") == 5
    return peer


def test_a_topic_of_the_same_name_begins_anew() -> None:
    """Nothing is said of a topic that is gone; what its broker did stays counted."""
    peer = busy()
    assert peer.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    peer.broker.stats.sample()
    assert counted(peer, "TOPIC_PUT_NUMS", TOPIC) is None
    assert counted(peer, "TOPIC_PUT_SIZE", TOPIC) is None
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@g") is None
    assert peer.produce().code == 0
    peer.broker.stats.sample()
    assert counted(peer, "TOPIC_PUT_NUMS", TOPIC) == 1
    assert counted(peer, "BROKER_PUT_NUMS", _CLUSTER) == 6
    assert counted(peer, "BROKER_GET_NUMS", _CLUSTER) == 5
    assert peer.broker.store.stats.put_times_total == 6
    daily = peer.broker.stats.daily()
    assert (daily["msgPutTotalTodayNow"], daily["msgGetTotalTodayNow"]) == ("6", "5")


def test_a_group_of_the_same_name_begins_anew() -> None:
    """What others did with the topic stays."""
    peer = busy()
    assert peer.pull(group="other").code == 0
    assert peer.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"}).code == 0
    peer.broker.stats.sample()
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@g") is None
    assert counted(peer, "GROUP_GET_SIZE", f"{TOPIC}@g") is None
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@other") == 5
    assert counted(peer, "TOPIC_PUT_NUMS", TOPIC) == 5
    assert peer.broker.stats.daily()["msgGetTotalTodayNow"] == "10"


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (Code.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}),
        (Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"}),
    ],
)
def test_counters_of_what_is_gone_may_be_kept(code: Code, fields: dict[str, str]) -> None:
    """With ``autoDeleteUnusedStats=false``."""
    peer = busy(autoDeleteUnusedStats="false")
    assert peer.ask(code, fields).code == 0
    assert counted(peer, "TOPIC_PUT_NUMS", TOPIC) == 5
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@g") == 5


def test_an_hour_and_a_day_are_told_from_few_notes() -> None:
    """One message every ten seconds for two days."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    stats = peer.broker.stats
    for _ in range(2 * 24 * 360):
        stats.count_pulled("g", TOPIC, 1, 100)
        stats.sample()
        clock.advance(10_000)
    key = f"{TOPIC}@g"
    assert counted(peer, "GROUP_GET_NUMS", key) == 6
    assert 300 <= counted(peer, "GROUP_GET_NUMS", key, "statsHour") <= 360
    assert 23 * 360 <= counted(peer, "GROUP_GET_NUMS", key, "statsDay") <= 24 * 360
    found = stats.item("GROUP_GET_NUMS", key)
    assert found is not None
    assert [one.tps for one in found] == [0.1, 0.1, 0.1]
