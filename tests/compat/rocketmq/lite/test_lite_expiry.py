"""Lite topics end: when nobody sends to them for long, and with their parent."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.lite.lite_stage import CHAT, GROUP, PARENT, LiteStage

MINUTE_MS = 60_000


def test_a_lite_topic_expires() -> None:
    """With what groups had of it, and who read it; one of the same name begins anew."""
    stage = LiteStage()
    stage.send("chat", b"a")
    stage.subscribe("chat")
    stage.ack_lite(stage.pop_lite(), 0)
    stage.pass_ms(15 * MINUTE_MS)
    stage.send("news", b"b")
    for _ in range(18):
        stage.subscribe(action="PARTIAL_ADD")
        stage.pass_ms(MINUTE_MS)
    assert (stage.end("chat"), stage.end("news")) == (0, 1)
    assert stage.committed(CHAT, 0, GROUP) == -1
    assert stage.client_info()["liteTopicCount"] == 0
    assert stage.peer.messages(PARENT) != []
    stage.send("chat", b"c")
    assert stage.end("chat") == 1


@pytest.mark.parametrize("attribute", ["", ",+lite.topic.expiration=-1"])
def test_some_never_expire(attribute: str) -> None:
    """Those of a parent that says so, or nothing."""
    stage = LiteStage()
    stage.make_topic("forever", f"+message.type=LITE{attribute}")
    stage.send("chat", b"a", parent="forever")
    stage.pass_ms(120 * MINUTE_MS)
    code = RequestCode.GET_PARENT_TOPIC_INFO
    assert stage.told(code, topic="forever")["liteTopicCount"] == 1


def test_a_restarted_broker_waits() -> None:
    """For a quarter of an hour: senders may have been cut off."""
    stage = LiteStage()
    stage.send("chat", b"a")
    stage.broker.close()
    stage.clock.advance(120 * MINUTE_MS)
    stage.open()
    stage.pass_ms(14 * MINUTE_MS)
    assert stage.end("chat") == 1
    stage.pass_ms(4 * MINUTE_MS)
    assert stage.end("chat") == 0


def test_they_go_with_their_parent() -> None:
    """Other parents keep theirs."""
    stage = LiteStage()
    stage.make_topic("parents", "+message.type=LITE")
    for parent in (PARENT, "parents"):
        stage.send("chat", b"a", parent=parent)
    stage.subscribe("chat")
    stage.pop_lite()
    assert stage.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": PARENT}).code == 0
    info = stage.told(RequestCode.GET_BROKER_LITE_INFO)
    assert (info["currentLmqNum"], info["orderInfoCount"]) == (1, 0)
    assert info["topicMeta"] == {"parents": -1}
    code = RequestCode.GET_PARENT_TOPIC_INFO
    assert stage.peer.ask(code, {"topic": PARENT}).code == ResponseCode.TOPIC_NOT_EXIST
    assert stage.peer.ask(code, {"topic": "TBW102"}).code == ResponseCode.INVALID_PARAMETER
