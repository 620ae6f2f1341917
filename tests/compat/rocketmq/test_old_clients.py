"""Clients that are too old for what is asked of them; the remarks name their release."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.clients.releases import release_name
from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.test_pulling import heartbeat


def a_consumer(version: int) -> tuple[Peer, Peer]:
    """Return an administrator, and a consumer of that release in group g."""
    peer = Peer(a_broker(settings={"useServerSideResetOffset": "false"}))
    peer.produce()
    consumer = Peer(peer.broker, 40002, version=version)
    consumer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    return peer, consumer


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (0, "V3_0_0_SNAPSHOT"),
        (8, "V3_0_0_BETA6"),
        (15, "V3_0_0_FINAL"),
        (16, "V3_0_1_SNAPSHOT"),
        (27, "V3_0_6"),
        (45, "V3_0_15"),
        (46, "V3_1_0_SNAPSHOT"),
        (61, "V3_1_7"),
        (-1, "-1"),
    ],
)
def test_old_releases_have_names(version: int, name: str) -> None:
    """Those of ``MQVersion``; a number below all of them, which no client sends, has none."""
    assert release_name(version) == name


def test_what_a_client_knows_is_asked_since_3_1_8() -> None:
    """One that is older is not asked."""
    asked = {"consumerGroup": "g", "clientId": "c1"}
    peer, consumer = a_consumer(61)
    answer = peer.ask(Code.GET_CONSUMER_RUNNING_INFO, asked)
    too_low = "too low to finish, please upgrade it to V3_1_8_SNAPSHOT"
    assert (answer.code, answer.remark) == (1, f"The Consumer <c1> Version <V3_1_7> {too_low}")
    assert not consumer.told(Code.GET_CONSUMER_RUNNING_INFO)
    peer, consumer = a_consumer(62)
    peer.send(Code.GET_CONSUMER_RUNNING_INFO, asked)
    assert consumer.told(Code.GET_CONSUMER_RUNNING_INFO)


@pytest.mark.parametrize("wanted", ["", "c1", "somebody"])
def test_where_a_client_is_is_asked_since_3_0_7(wanted: str) -> None:
    """Where one of a group is older nobody is told, whoever is meant."""
    asked = {"topic": TOPIC, "group": "g", "clientAddr": wanted}
    peer, consumer = a_consumer(27)
    answer = peer.ask(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, asked)
    remark = "the client does not support this feature. version=V3_0_6"
    assert (answer.code, answer.remark) == (1, remark)
    peer, consumer = a_consumer(28)
    peer.send(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, asked)
    assert len(consumer.told(Code.GET_CONSUMER_STATUS_FROM_CLIENT)) == (wanted != "somebody")


def test_where_to_go_on_is_told_since_3_0_7() -> None:
    """In the fields of Java's header, in which a queue stands too."""
    asked = {"topic": TOPIC, "group": "g", "timestamp": -1, "isForce": "true"}
    peer, consumer = a_consumer(27)
    for queue_id in range(4):
        peer.broker.store.consumer_offsets.commit("g", TOPIC, queue_id, 0)
    answer = peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked)
    remark = "the client does not support this feature. version=V3_0_6"
    assert (answer.code, answer.remark) == (1, remark)
    peer, consumer = a_consumer(28)
    for queue_id in range(4):
        peer.broker.store.consumer_offsets.commit("g", TOPIC, queue_id, 0)
    assert peer.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, asked).code == 0
    (told,) = consumer.told(Code.RESET_CONSUMER_CLIENT_OFFSET)
    assert told.fields == {
        "topic": TOPIC, "group": "g", "timestamp": "-1", "isForce": "false", "queueId": "-1",
    }  # fmt: skip
