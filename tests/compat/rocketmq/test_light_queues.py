"""Light queues (``%LMQ%...``), read by their names; messages say to which they go beside."""

from __future__ import annotations

import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, decoded
from tests.compat.rocketmq.pop.pop_stage import GROUP, REVIVED_WITHIN_MS, PopStage

LIGHT = "%LMQ%a"
LIGHT_GROUP = "%LMQ%g"
NEVER = "%LMQ%never"


def stage(**settings: str) -> PopStage:
    """Return a broker that puts messages into light queues, with one in two of them."""
    made = PopStage(enableMultiDispatch="true", **settings)
    properties = f"INNER_MULTI_DISPATCH\x01{LIGHT},%LMQ%b\x02"
    assert made.peer.produce(b"light", TOPIC, properties=properties).code == 0
    return made


def test_a_light_queue_is_pulled_from_by_its_name() -> None:
    """No topic of that name was ever made; it has one queue, with messages or without."""
    peer = stage(enableLmq="true").peer
    for name in (LIGHT, "%LMQ%b"):
        assert [message.body for message in decoded(peer.pull(name).body)] == [b"light"]
    assert peer.pull(NEVER).code == ResponseCode.PULL_NOT_FOUND
    refused = peer.pull(LIGHT, queue_id=1)
    assert refused.code == ResponseCode.INVALID_PARAMETER
    told = peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": NEVER})
    assert orjson.loads(told.body)["readQueueNums"] == 1


def test_groups_commit_light_queues() -> None:
    """Those of light queues need not be there, and have one offset a topic."""
    peer = stage(enableLmq="true", autoCreateSubscriptionGroup="false").peer
    assert peer.pull(LIGHT, group=LIGHT_GROUP).code == ResponseCode.SUCCESS
    place = {"consumerGroup": LIGHT_GROUP, "topic": LIGHT, "queueId": 0}
    fields = {**place, "commitOffset": 1}
    assert peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == ResponseCode.SUCCESS
    answer = peer.ask(RequestCode.QUERY_CONSUMER_OFFSET, place)
    assert (answer.fields or {})["offset"] == "1"


def test_nothing_is_kept_of_them() -> None:
    """Who makes or changes one is told that it is done, and it stays what it is."""
    peer = stage(enableLmq="true").peer
    fields = {
        "topic": LIGHT, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields).code == 0
    told = orjson.loads(peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": LIGHT}).body)
    assert told["readQueueNums"] == 1
    group = orjson.dumps({"groupName": LIGHT_GROUP})
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group).code == 0
    topics = orjson.loads(peer.ask(RequestCode.GET_ALL_TOPIC_CONFIG).body)["topicConfigTable"]
    groups = orjson.loads(peer.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
    assert LIGHT not in topics
    assert LIGHT_GROUP not in groups["subscriptionGroupTable"]


def test_without_the_setting_it_is_a_topic_like_any_other() -> None:
    """Which is not there."""
    assert stage().peer.pull(LIGHT).code == ResponseCode.TOPIC_NOT_EXIST


def test_light_queues_are_popped_from() -> None:
    """By their own queue offsets; what is acknowledged there is gone, and all else comes again."""
    made = PopStage(enableMultiDispatch="true", enableLmq="true")
    made.produce(b"of the topic alone")
    for body in (b"a", b"b"):
        assert made.peer.produce(body, properties=f"INNER_MULTI_DISPATCH\x01{LIGHT}\x02").code == 0
    answer = made.pop(topic=LIGHT)
    assert (answer.fields or {})["msgOffsetInfo"] == "0 0 0,1"
    handle = " ".join(
        ["0", (answer.fields or {})["popTime"], "10000", (answer.fields or {})["reviveQid"],
         "0", "broker-a", "0", "1"]
    )  # fmt: skip
    fields = {
        "consumerGroup": GROUP, "topic": LIGHT, "queueId": 0, "extraInfo": handle, "offset": 1,
    }  # fmt: skip
    assert made.peer.ask(RequestCode.ACK_MESSAGE, fields).code == 0
    made.pass_ms(10_000 + REVIVED_WITHIN_MS)
    assert [message.body for message in decoded(made.pop(topic=LIGHT).body)] == [b"a"]
