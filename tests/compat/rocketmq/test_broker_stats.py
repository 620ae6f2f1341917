"""Counters by topic and group: what is left of them when those are deleted, and over long times."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, sent_fields

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
        clock.advance(10_000)
        stats.sample()
    key = f"{TOPIC}@g"
    assert counted(peer, "GROUP_GET_NUMS", key) == 6
    assert counted(peer, "GROUP_GET_NUMS", key, "statsHour") == 360
    assert counted(peer, "GROUP_GET_NUMS", key, "statsDay") == 24 * 360
    found = stats.item("GROUP_GET_NUMS", key)
    assert found is not None
    assert [one.tps for one in found] == [0.1, 0.1, 0.1]


def test_a_minute_is_sixty_seconds_whenever_notes_are_taken() -> None:
    """Also where they come some milliseconds late: six of them make a minute."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    for _ in range(20):
        peer.broker.stats.count_pulled("g", TOPIC, 1, 100)
        clock.advance(10_003)
        peer.broker.stats.sample()
    assert counted(peer, "GROUP_GET_NUMS", f"{TOPIC}@g") == 6


def test_there_is_nothing_in_an_hour_before_ten_minutes_have_passed() -> None:
    """Nor in a day before an hour has."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    key = f"{TOPIC}@g"
    seen: list[list[int]] = []
    for _ in range(360):
        peer.broker.stats.count_pulled("g", TOPIC, 1, 100)
        clock.advance(10_000)
        peer.broker.stats.sample()
        spans = "statsMinute", "statsHour", "statsDay"
        seen.append([counted(peer, "GROUP_GET_NUMS", key, span) for span in spans])
    assert seen[0] == [1, 0, 0]
    assert seen[58] == [6, 0, 0]
    assert seen[59] == [6, 60, 0]
    assert seen[358] == [6, 300, 0]
    assert seen[359] == [6, 360, 360]


def test_what_clients_put_and_pull_is_counted_apart() -> None:
    """Without what the broker's own topics hold; how often is not counted (an average of 0)."""
    peer = busy()
    for name in ("BROKER_PUT_NUMS", "BROKER_GET_NUMS"):
        assert counted(peer, name, _CLUSTER) == 5
        assert counted(peer, f"{name}_WITHOUT_SYSTEM_TOPIC", _CLUSTER) == 5
        found = peer.broker.stats.item(name, _CLUSTER)
        assert found is not None
        assert found[0].average == 0


def test_a_batch_is_put_once() -> None:
    """Its messages are counted; their average is by request."""
    peer = Peer(a_broker())
    body = encode_batch_body(BatchItem(body, b"") for body in (b"a", b"b", b"c"))
    fields = sent_fields(TOPIC, 0, "") | {"m": "true"}
    assert peer.ask(Code.SEND_BATCH_MESSAGE, fields, body).code == 0
    assert peer.produce().code == 0
    peer.broker.stats.sample()
    found = peer.broker.stats.item("TOPIC_PUT_NUMS", TOPIC)
    assert found is not None
    assert (found[0].sum, found[0].average) == (4, 2)


def test_a_dead_letter_is_counted_by_its_owner() -> None:
    """Of whom nothing is known, mostly."""
    peer = busy()
    fields = {"group": "g", "offset": "0", "delayLevel": "-1", "originTopic": TOPIC}
    assert peer.ask(Code.CONSUMER_SEND_MSG_BACK, fields).code == 0
    assert peer.ask(Code.CONSUMER_SEND_MSG_BACK, fields | {"Owner": "me"}).code == 0
    peer.broker.stats.sample()
    for owner in ("null", "me"):
        assert counted(peer, "SNDBCK2DLQ_TIMES", f"{owner}@{TOPIC}@g@SEND_BACK_TO_DLQ") == 1
    assert counted(peer, "SNDBCK_PUT_NUMS", f"{TOPIC}@g") == 2
