"""Messages to lite topics: in a queue of the parent and in the light queue of the lite topic."""

from __future__ import annotations

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.lite.lite_stage import CHAT, PARENT, LiteStage, fields_of


def test_a_message_is_in_both_queues() -> None:
    """Each lite topic counts for itself; the parent's queue has them all."""
    stage = LiteStage()
    stage.send("chat", b"a")
    stage.send("news", b"b")
    stage.send("chat", b"c")
    assert (stage.end("chat"), stage.end("news"), stage.end("none")) == (2, 1, 0)
    assert [message.body for message in stage.peer.messages(PARENT)] == [b"a", b"b", b"c"]


def test_a_message_without_a_lite_topic_is_in_one() -> None:
    """As in any topic."""
    stage = LiteStage()
    stage.send("", b"a")
    info = stage.told(RequestCode.GET_PARENT_TOPIC_INFO, topic=PARENT)
    assert (info["liteTopicCount"], info["ttl"], info["groups"]) == (0, 30, ["readers"])
    assert len(stage.peer.messages(PARENT)) == 1


def test_many_alike_are_all_dispatched() -> None:
    """Sends that come together are written together, and each has its place in the light queue."""
    stage = LiteStage()
    stage.send("chat", *(b"%d" % number for number in range(20)))
    assert stage.end("chat") == 20


def test_a_lite_topic_is_pulled() -> None:
    """By its name beside the parent's; so is the place of a time found."""
    stage = LiteStage()
    stage.send("news", b"a")
    stage.send("chat", b"b")
    answer = stage.peer.pull(PARENT, 0, 0, liteTopic="chat")
    assert [message.body for message in decoded(answer.body)] == [b"b"]
    assert fields_of(answer)["nextBeginOffset"] == "1"
    fields = {"topic": PARENT, "queueId": 0, "timestamp": stage.clock.wall_ms() + 1}
    for lite_topic, place in (("chat", "1"), ("none", "0"), ("", "2")):
        asked = {**fields, "liteTopic": lite_topic}
        found = stage.peer.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked)
        assert fields_of(found) == {"offset": place}


def test_light_queues_that_are_off_get_nothing() -> None:
    """Without ``enableMultiDispatch`` lite topics stay empty, as with a real broker."""
    stage = LiteStage(enableMultiDispatch="false")
    assert stage.broker.store.queue_offsets.lmq_count == 0
    stage.send("chat", b"a")
    assert stage.end("chat") == 0


def test_a_restart_finds_lite_topics() -> None:
    """Their queues are on the disk; subscriptions and what was popped are not."""
    stage = LiteStage()
    stage.send("chat", b"a", b"b")
    stage.subscribe("chat")
    stage.ack_lite(stage.pop_lite(maxMsgNum=1), 0)
    stage.broker.close()
    stage.open()
    assert (stage.end("chat"), stage.committed(CHAT, 0, "readers")) == (2, 1)
    assert stage.client_info()["liteTopicCount"] == -1
    stage.subscribe("chat")
    assert stage.lite_bodies() == [b"b"]
