"""Clients say that they are there, are asked, told and answered, and lock queues."""

from __future__ import annotations

import json

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.test_pulling import heartbeat


@pytest.fixture
def peer() -> Peer:
    """Return a client of a fresh broker with one topic of four messages."""
    peer = Peer(a_broker())
    for number in range(4):
        peer.produce(b"%d" % number)
    return peer


def test_members_of_a_group_share_the_news(peer: Peer) -> None:
    """Each member is told when another joins, leaves or hangs up, and the list follows."""
    other = Peer(peer.broker, 40002)
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    other.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC, client_id="c2"))
    asked = {"consumerGroup": "g"}
    listed = peer.ask(Code.GET_CONSUMER_LIST_BY_GROUP, asked).content
    assert listed == {"consumerIdList": ["c1", "c2"]}
    assert len(peer.told(Code.NOTIFY_CONSUMER_IDS_CHANGED)) == 2
    other.hang_up()
    assert len(peer.told(Code.NOTIFY_CONSUMER_IDS_CHANGED)) == 1
    left = peer.ask(Code.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "g"})
    assert left.code == 0
    answer = peer.ask(Code.GET_CONSUMER_LIST_BY_GROUP, asked)
    assert (answer.code, answer.remark) == (1, "no consumer for this group, g")


def test_the_news_may_come_in_rounds() -> None:
    """Half a minute after the start and every quarter of one after it, once for all changes."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock), {"realTimeNotifyConsumerChange": "false"})
    broker.start_housekeeping()
    first, second = Peer(broker), Peer(broker, 40002)

    def told_after(seconds: int) -> list[int]:
        for _ in range(seconds * 10):
            clock.advance(100)
            broker.timers.run()
        return [len(peer.told(Code.NOTIFY_CONSUMER_IDS_CHANGED)) for peer in (first, second)]

    first.produce()
    first.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    second.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC, client_id="c2"))
    assert told_after(29) == [0, 0]
    assert told_after(1) == [1, 1]
    assert told_after(15) == [0, 0]
    second.hang_up()
    assert told_after(15) == [1, 0]
    broker.update_settings({"realTimeNotifyConsumerChange": "true"})
    third = Peer(broker, 40003)
    third.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC, client_id="c3"))
    assert len(first.told(Code.NOTIFY_CONSUMER_IDS_CHANGED)) == 1


@pytest.mark.parametrize("client_id", [rb"c\ud800", b"c\xff"])
def test_a_member_without_a_name_does_not_hide_the_others(peer: Peer, client_id: bytes) -> None:
    """Half a character and bytes that are no UTF-8 are replaced: the list can be told to all."""
    other = Peer(peer.broker, 40002)
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    odd = heartbeat(TOPIC, client_id="odd").replace(b"odd", client_id)
    assert other.ask(Code.HEART_BEAT, {}, odd).code == 0
    listed = peer.ask(Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"}).content
    assert listed["consumerIdList"][0] == "c1"
    assert listed["consumerIdList"][1] in ("c?", "c\ufffd")
    connected = peer.ask(Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "g"})
    assert connected.code == 0


def test_silent_clients_are_hung_up_on() -> None:
    """Without a heart beat for two minutes a client is out of its group and its connection over."""
    clock = ManualClock()
    peer = Peer(a_broker(SimulatedHost(clock=clock)))
    peer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    clock.advance(120_001)
    peer.broker.expire_clients()
    assert peer.connection.is_closing
    assert peer.broker.consumers.group("g") is None


def test_a_heart_beat_may_leave_subscriptions_out(peer: Peer) -> None:
    """Version 2 keeps what was subscribed to as long as the fingerprint is the same."""
    first = json.loads(heartbeat(TOPIC)) | {"heartbeatFingerprint": 7}
    answer = peer.ask(Code.HEART_BEAT, {}, json.dumps(first).encode())
    assert (answer.fields or {})["IS_SUB_CHANGE"] == "false"
    short = json.loads(heartbeat()) | {"heartbeatFingerprint": 7, "withoutSub": True}
    answer = peer.ask(Code.HEART_BEAT, {}, json.dumps(short).encode())
    assert (answer.fields or {})["IS_SUB_CHANGE"] == "false"
    group = peer.broker.consumers.group("g")
    assert group is not None
    assert list(group.subscriptions) == [TOPIC]
    other = json.loads(heartbeat(TOPIC)) | {"heartbeatFingerprint": 8}
    answer = peer.ask(Code.HEART_BEAT, {}, json.dumps(other).encode())
    assert (answer.fields or {})["IS_SUB_CHANGE"] == "true"
    # Without a fingerprint nothing can be left out: what is not there is given up.
    plain = json.loads(heartbeat()) | {"withoutSub": True}
    peer.ask(Code.HEART_BEAT, {}, json.dumps(plain).encode())
    assert list(group.subscriptions) == []


def test_a_question_for_a_client_is_handed_on(peer: Peer) -> None:
    """The client is asked what the administrator asks, and its answer is the answer."""
    consumer = Peer(peer.broker, 40002)
    consumer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    asked = {"consumerGroup": "g", "clientId": "c1"}
    opaque = peer.send(Code.GET_CONSUMER_RUNNING_INFO, asked)
    (question,) = consumer.told(Code.GET_CONSUMER_RUNNING_INFO)
    assert question.fields == asked
    consumer.reply(question, b'{"properties":{}}')
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert (answer.code, answer.body) == (0, b'{"properties":{}}')
    gone = peer.ask(Code.GET_CONSUMER_RUNNING_INFO, {**asked, "clientId": "c9"})
    assert gone.remark == "The Consumer <g> <c9> not online"


def test_a_message_is_consumed_directly(peer: Peer) -> None:
    """The client gets the message with the question."""
    consumer = Peer(peer.broker, 40002)
    consumer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    (first, *_) = peer.messages()
    asked = {"consumerGroup": "g", "clientId": "c1", "msgId": first.offset_message_id}
    peer.send(Code.CONSUME_MESSAGE_DIRECTLY, asked)
    (question,) = consumer.told(Code.CONSUME_MESSAGE_DIRECTLY)
    assert (question.fields or {})["brokerName"] == "broker-a"
    assert len(question.body) == first.size_bytes
    answer = peer.ask(
        Code.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "g", "msgId": first.offset_message_id}
    )
    assert (answer.code, answer.remark) == (1, "The Consumer <g> <null> not online")


def test_an_id_of_a_message_may_be_too_long(peer: Peer) -> None:
    """As Java reads it: all but 32 characters are an id with an IPv6 host, and more."""
    peer.produce()
    for code in (Code.CONSUME_MESSAGE_DIRECTLY, Code.RESUME_CHECK_HALF_MESSAGE):
        found = {}
        for count in (32, 33, 55, 56, 57, 80):
            asked = {"consumerGroup": "g", "clientId": "c", "msgId": "0" * count}
            found[count] = peer.ask(code, asked).remark
        assert found[56] == found[57] == found[80] == found[32]
        assert found[33] != found[32]


def test_where_each_client_is(peer: Peer) -> None:
    """The tables of all clients of a group are put together as they are."""
    consumer = Peer(peer.broker, 40002)
    consumer.ask(Code.HEART_BEAT, {}, heartbeat(TOPIC))
    opaque = peer.send(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": TOPIC, "group": "g"})
    (question,) = consumer.told(Code.GET_CONSUMER_STATUS_FROM_CLIENT)
    table = b'{{"brokerName":"broker-a","queueId":0,"topic":"orders"}:3}'
    consumer.reply(question, b'{"messageQueueTable":' + table + b"}")
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.body == b'{"consumerTable":{"c1":' + table + b'},"messageQueueTable":{}}'


def test_a_reply_reaches_whoever_waits_for_it(peer: Peer) -> None:
    """It is pushed to the client that it names, stored, and answered when the client has it."""
    asker = Peer(peer.broker, 40002)
    beat = b'{"clientID":"asker","producerDataSet":[{"groupName":"p"}]}'
    asker.ask(Code.HEART_BEAT, {}, beat)
    fields = {
        "a": "p", "b": "DefaultCluster_REPLY_TOPIC", "c": "TBW102", "d": 4, "e": 0, "f": 1,
        "g": 1, "h": 0, "i": "REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x017\x02", "j": 0,
    }  # fmt: skip
    opaque = peer.send(Code.SEND_REPLY_MESSAGE_V2, fields, b"answer")
    (pushed,) = asker.told(Code.PUSH_REPLY_MESSAGE_TO_CLIENT)
    assert pushed.body == b"answer"
    added = "MSG_REGION\x01DefaultRegion\x02", "TRACE_ON\x01true\x02"
    for text in ("CORRELATION_ID\x017\x02", "PUSH_REPLY_TIME\x01", *added):
        assert text in (pushed.fields or {})["properties"]
    assert peer.answer_to(opaque) is None
    asker.reply(pushed)
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == 0
    (stored,) = peer.messages("DefaultCluster_REPLY_TOPIC")
    assert stored.sys_flag == 0
    for text in ("CORRELATION_ID\x017\x02", *added):
        assert text.encode() in stored.properties_text
    assert b"PUSH_REPLY_TIME" not in stored.properties_text
    empty = peer.ask(Code.SEND_REPLY_MESSAGE_V2, fields)
    assert (empty.code, empty.remark) == (1, "the body of the message is null")
    lost = {**fields, "i": "REPLY_TO_CLIENT\x01nobody\x02"}
    answer = peer.ask(Code.SEND_REPLY_MESSAGE_V2, lost, b"answer")
    assert answer.remark == "push reply message fail, channel of <nobody> not found."


def test_queues_are_locked_over_the_wire(peer: Peer) -> None:
    """One client of a group holds a queue; its retries go to the dead letters at once."""

    def body(client_id: str) -> bytes:
        queue = {"brokerName": "broker-a", "queueId": 0, "topic": TOPIC}
        data = {"clientId": client_id, "consumerGroup": "g", "mqSet": [queue]}
        return json.dumps(data).encode()

    held = peer.ask(Code.LOCK_BATCH_MQ, {}, body("c1")).content["lockOKMQSet"]
    assert [queue["queueId"] for queue in held] == [0]
    assert peer.ask(Code.LOCK_BATCH_MQ, {}, body("c2")).content["lockOKMQSet"] == []
    peer.produce(topic="%RETRY%g", d=1)
    assert len(peer.messages("%DLQ%g")) == 1
    peer.ask(Code.UNLOCK_BATCH_MQ, {}, body("c1"))
    peer.produce(topic="%RETRY%g", d=1)
    assert len(peer.messages("%RETRY%g")) == 1
    # Who wants nothing need not say who it is, and a queue without a number is the first one.
    assert peer.ask(Code.LOCK_BATCH_MQ, {}, b"{}").content["lockOKMQSet"] == []
    first = b'{"consumerGroup":"g","clientId":"c","mqSet":[{"brokerName":true,"topic":"t"}]}'
    assert peer.ask(Code.LOCK_BATCH_MQ, {}, first).content["lockOKMQSet"] == [
        {"brokerName": "true", "queueId": 0, "topic": "t"}
    ]
    for none in (b"null", b'""'):  # of no number, for Java
        again = first.replace(b'"topic"', b'"queueId":%s,"topic"' % none)
        (queue,) = peer.ask(Code.LOCK_BATCH_MQ, {}, again).content["lockOKMQSet"]
        assert queue["queueId"] == 0
        assert peer.ask(Code.LOCK_BATCH_MQ, {}, again.replace(b'"c"', b"null")).code == 1
        assert peer.ask(Code.UNLOCK_BATCH_MQ, {}, again.replace(b'"c"', b"null")).code == 0
    single = first.replace(b"[", b"").replace(b"]", b"")  # a list of one, for fastjson
    assert len(peer.ask(Code.LOCK_BATCH_MQ, {}, single).content["lockOKMQSet"]) == 1
    for odd in (
        b"[]",
        b'{"mqSet":[{"brokerName":"x","topic":"t"}]}',
        b'{"consumerGroup":"g","clientId":"c","mqSet":[{"topic":"t","queueId":"x"}]}',
    ):
        assert peer.ask(Code.LOCK_BATCH_MQ, {}, odd).code == ResponseCode.SYSTEM_ERROR
    nobody = b'{"consumerGroup":"g","mqSet":[{"brokerName":"x","topic":"t"}]}'
    assert peer.ask(Code.LOCK_BATCH_MQ, {}, nobody).code == ResponseCode.SYSTEM_ERROR
    assert peer.ask(Code.UNLOCK_BATCH_MQ, {}, nobody).code == 0
    # What nobody can hold is let go of, and what stands beside it, too.
    nameless = b'{"brokerName":"broker-a","queueId":1},{"queueId":1,"topic":"t"}'
    beside = b'{"brokerName":"true","topic":"t"}'
    given_back = b'{"consumerGroup":"g","clientId":"c","mqSet":[%s,%s]}' % (nameless, beside)
    assert peer.ask(Code.UNLOCK_BATCH_MQ, {}, given_back).code == 0
    other = b'{"consumerGroup":"g","clientId":"other","mqSet":[%s]}' % beside
    assert len(peer.ask(Code.LOCK_BATCH_MQ, {}, other).content["lockOKMQSet"]) == 1
