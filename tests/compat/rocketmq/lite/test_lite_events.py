"""Which client is to look at which lite topic."""

from __future__ import annotations

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.lite.lite_stage import GROUP, PARENT, LiteStage


def test_two_clients_share_a_lite_topic() -> None:
    """Each message goes to one of them."""
    stage = LiteStage()
    for client in ("c-1", "c-2"):
        stage.subscribe("chat", client=client)
    stage.send("chat", b"a")
    popped = [stage.lite_bodies(clientId=client) for client in ("c-1", "c-2")]
    assert sorted(popped) == [[], [b"a"]]


def test_who_asks_no_more_leaves_it_to_others() -> None:
    """Ten seconds later another client of the group looks; at once if the first one ends."""
    stage = LiteStage()
    stage.subscribe("chat", client="c-1")
    stage.send("chat", b"a")
    stage.subscribe("chat", client="c-2")
    assert stage.lite_bodies(clientId="c-2") == []
    stage.pass_ms(21_000)
    assert stage.lite_bodies(clientId="c-2") == [b"a"]
    stage.subscribe("news", client="c-1")
    stage.send("news", b"b")
    stage.subscribe("news", client="c-2")
    stage.subscribe(client="c-1", action="COMPLETE_REMOVE")
    assert stage.lite_bodies(clientId="c-2") == [b"b"]


def test_a_client_is_told_of_so_many_at_a_time() -> None:
    """What it has no room for is looked at later."""
    stage = LiteStage(maxClientEventCount="2", liteEventFullDispatchDelayTime="1000")
    lite_topics = [f"t{number}" for number in range(3)]
    stage.subscribe(*lite_topics)
    for lite_topic in lite_topics:
        stage.send(lite_topic, lite_topic.encode())
    popped = stage.pop_lite()
    assert [message.body for message in decoded(popped.body)] == [b"t0", b"t1"]
    for lite_topic in ("t0", "t1"):
        stage.ack_lite(popped, 0, liteTopic=lite_topic)
    assert stage.lite_bodies() == []
    stage.pass_ms(20_000)
    assert stage.lite_bodies() == [b"t2"]


def test_events_are_looked_for_when_an_administrator_says_so() -> None:
    """For one client, or for a whole group."""
    stage = LiteStage()
    stage.send("chat", b"a")
    stage.subscribe("chat")
    stage.pop_lite(invisibleTime=60_000)
    code = RequestCode.TRIGGER_LITE_DISPATCH
    stage.broker.lite.orders.forget("%LMQ%$parent$chat", GROUP)
    assert stage.lite_bodies() == []
    assert stage.peer.ask(code, {"group": GROUP, "clientId": "client-1"}).code == 0
    assert stage.lite_bodies(invisibleTime=60_000) == [b"a"]
    stage.broker.lite.orders.forget("%LMQ%$parent$chat", GROUP)
    assert stage.peer.ask(code, {"group": GROUP}).code == 0
    assert stage.lite_bodies() == [b"a"]
    assert stage.peer.ask(code, {"group": "others"}).code == ResponseCode.INVALID_PARAMETER


def test_how_far_a_group_is_behind() -> None:
    """In one lite topic, in those where it is most, and since when as far as pops know."""
    stage = LiteStage(liteLagLatencyCollectEnable="true")
    stage.subscribe("chat", "news")
    stage.send("chat", b"a", b"b", b"c")
    stage.send("news", b"d", b"e")
    stage.pop_lite(maxMsgNum=4)
    code = RequestCode.GET_LITE_GROUP_INFO
    info = stage.told(code, group=GROUP, topK=1)
    assert (info["totalLagCount"], info["parentTopic"]) == (5, PARENT)
    stored_ms = stage.clock.wall_ms()
    most = {"liteTopic": "chat", "lagCount": 3, "earliestUnconsumedTimestamp": stored_ms}
    assert info["lagCountTopK"] == [most]
    assert [one["liteTopic"] for one in info["lagTimestampTopK"]] == ["news"]
    one = stage.told(code, group=GROUP, liteTopic="news")
    assert one["totalLagCount"] == 2
    assert one["liteTopicOffsetWrapper"]["brokerOffset"] == 2
    never = stage.told(code, group=GROUP, liteTopic="none")
    assert (never["totalLagCount"], never["earliestUnconsumedTimestamp"]) == (-1, -1)
    answer = stage.peer.ask(code, {"group": GROUP, "topK": 0})
    assert answer.code == ResponseCode.SYSTEM_ERROR
