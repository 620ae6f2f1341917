"""Clients say which lite topics they read."""

from __future__ import annotations

from typing import NoReturn

import orjson
import pytest

from logstore.compat.rocketmq.found_routes import Cluster, FoundRoute
from logstore.compat.rocketmq.lite.shards import bucket_of
from logstore.compat.rocketmq.name_server.routes import QueueData
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.lite.lite_stage import CHAT, CLIENT, GROUP, PARENT, LiteStage, fields_of


def queues_of(stage: LiteStage, client: str = CLIENT) -> set[str]:
    """Return the lite topics that a client reads."""
    found = stage.client_info(client).get("liteTopicSet", [])
    return {queue.rpartition("$")[2] for queue in found}


def test_one_by_one_and_all_at_once() -> None:
    """A client adds and removes lite topics, or says them all; in the end it reads none."""
    stage = LiteStage()
    assert stage.subscribe("a", "b").code == 0
    stage.subscribe("c")
    stage.subscribe("b", action="PARTIAL_REMOVE")
    assert queues_of(stage) == {"a", "c"}
    stage.subscribe("c", "d", action="COMPLETE_ADD")
    assert queues_of(stage) == {"c", "d"}
    assert stage.told(RequestCode.GET_BROKER_LITE_INFO)["liteSubscriptionCount"] == 2
    stage.subscribe(action="COMPLETE_REMOVE")
    assert stage.client_info()["liteTopicCount"] == -1
    assert stage.told(RequestCode.GET_BROKER_LITE_INFO)["liteSubscriptionCount"] == 0


def test_who_reads_a_lite_topic_is_told() -> None:
    """Client by client; who is asked about a client may say how many are enough."""
    stage = LiteStage()
    stage.subscribe("chat", "news")
    stage.subscribe("chat", client="client-2")
    readers = stage.topic_info()["subscriber"]
    assert readers == [{"clientId": name, "group": GROUP} for name in (CLIENT, "client-2")]
    fields = {"parentTopic": PARENT, "group": GROUP, "clientId": CLIENT, "maxCount": 1}
    found = stage.told(RequestCode.GET_LITE_CLIENT_INFO, **fields)
    assert (found["liteTopicCount"], len(found["liteTopicSet"])) == (2, 1)


def test_who_is_silent_is_forgotten() -> None:
    """After three minutes without a word."""
    stage = LiteStage()
    stage.subscribe("chat")
    stage.pass_ms(170_000)
    stage.subscribe("chat", action="COMPLETE_ADD")
    stage.pass_ms(170_000)
    assert queues_of(stage) == {"chat"}
    stage.pass_ms(130_000)
    assert stage.client_info()["liteTopicCount"] == -1


def test_there_may_be_too_many() -> None:
    """The last ones are refused, and those before stay."""
    stage = LiteStage(maxLiteSubscriptionCount="2")
    stage.subscribe("a", "b")
    answer = stage.subscribe("c")
    assert answer.code == ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED
    assert "lite subscription quota exceeded 2" in (answer.remark or "")
    assert queues_of(stage) == {"a", "b"}


@pytest.mark.parametrize(
    ("option", "bodies"),
    [
        ({"type": "POLICY", "value": 0}, [b"c"]),
        ({"type": "POLICY", "value": 1}, [b"a", b"b", b"c"]),
        ({"type": "POLICY", "value": 2}, []),
        ({"type": "OFFSET", "value": 1}, [b"b", b"c"]),
        ({"type": "TAIL_N", "value": 1}, [b"b", b"c"]),
        ({"type": "TIMESTAMP", "value": 1}, [b"c"]),
    ],
)
def test_a_client_begins_where_it_wants(option: dict[str, object], bodies: list[bytes]) -> None:
    """With the first message, behind the last, at an offset, or so many back; else it goes on."""
    stage = LiteStage()
    stage.send("chat", b"a", b"b", b"c")
    stage.broker.store.consumer_offsets.commit(GROUP, CHAT, 0, 2)
    stage.subscribe("chat", offsetOption=option)
    assert stage.lite_bodies() == bodies


def test_an_exclusive_lite_topic_has_one_client() -> None:
    """Who had it before is told, and has it no longer."""
    stage = LiteStage()
    stage.make_group(GROUP, sub_model="Exclusive")
    first = stage.client()
    stage.subscribe("chat", client="e-1", peer=first)
    stage.subscribe("chat", client="e-2")
    notices = first.told(RequestCode.NOTIFY_UNSUBSCRIBE_LITE)
    assert [fields_of(one) for one in notices] == [
        {"clientId": "e-1", "liteTopic": "chat", "consumerGroup": GROUP}
    ]
    stage.send("chat", b"a")
    assert stage.lite_bodies(clientId="e-1") == []
    assert stage.lite_bodies(clientId="e-2") == [b"a"]


def test_a_group_may_begin_anew_with_each_client() -> None:
    """Who takes an exclusive lite topic over, and who comes back, may read all of it."""
    stage = LiteStage()
    stage.make_group(GROUP, sub_model="Exclusive", sub_reset_offset_exclusive="true")
    stage.send("chat", b"a", b"b")
    for client in ("e-1", "e-2"):
        stage.subscribe("chat", client=client)
        popped = stage.pop_lite(clientId=client)
        assert [message.body for message in decoded(popped.body)] == [b"a", b"b"]
        stage.ack_lite(popped, 0)
    stage.make_group("comers", sub_reset_offset_unsubscribe="true")
    for _ in range(2):
        stage.subscribe("chat", client="c", group="comers")
        popped = stage.pop_lite(clientId="c", consumerGroup="comers")
        assert [message.body for message in decoded(popped.body)] == [b"a", b"b"]
        stage.ack_lite(popped, 0, consumerGroup="comers")
        stage.subscribe("chat", client="c", group="comers", action="PARTIAL_REMOVE")


def test_a_wildcard_group_reads_all_lite_topics() -> None:
    """Also those that come later; none by name."""
    stage = LiteStage()
    stage.make_group("wild", sub_wildcard="true")
    refused = stage.subscribe("chat", client="w", group="wild")
    assert refused.code == ResponseCode.ILLEGAL_OPERATION
    stage.send("old", b"before")
    assert stage.subscribe(action="COMPLETE_ADD", client="w", group="wild").code == 0
    stage.send("new", b"after")
    popped = {"clientId": "w", "consumerGroup": "wild"}
    assert stage.lite_bodies(**popped) == [b"after"]
    stage.pass_ms(20_000)  # all there is is looked at now and then
    assert b"before" in stage.lite_bodies(**popped)
    assert stage.topic_info()["subscriber"] == [{"clientId": "*", "group": "wild"}]


def among_two_brokers(stage: LiteStage) -> list[Later[FoundRoute]]:
    """Have a name server tell of two brokers; return its answers to come."""
    asked: list[Later[FoundRoute]] = []

    def find_route(topic: str) -> Later[FoundRoute]:
        assert topic == PARENT
        asked.append(Later())
        return asked[-1]

    def reach(*_: object) -> NoReturn:
        raise AssertionError("nobody asks another broker")

    stage.broker.topics.cluster = Cluster(find_route, reach)
    return asked


TWO_BROKERS = FoundRoute(
    tuple(QueueData(f"broker-{name}", 2, 2, 6, 0) for name in "ab"),
    {"broker-a": {0: "a:1"}, "broker-b": {0: "b:1"}},
)


def test_each_broker_takes_what_belongs_to_it() -> None:
    """Among many each lite topic has one broker; what has messages here is taken, too."""
    stage = LiteStage()
    stage.send("there", b"once it was here")
    asked = among_two_brokers(stage)
    entry = {
        "action": "PARTIAL_ADD", "clientId": CLIENT, "group": GROUP, "topic": PARENT,
        "liteTopicSet": ["chat", "a", "there"], "version": 1,
    }  # fmt: skip
    body = orjson.dumps({"subscriptionSet": [entry]})
    opaque = stage.peer.send(RequestCode.LITE_SUBSCRIPTION_CTL, {}, body)
    assert stage.peer.answer_to(opaque) is None
    (answer,) = asked
    answer.answer(TWO_BROKERS)
    assert stage.peer.answer_to(opaque) is not None
    here = {one for one in ("chat", "a") if bucket_of(one, 4) < 2}
    assert queues_of(stage) == here | {"there"}
    assert here == {"a"}
    for lite_topic in ("chat", "a"):
        assert stage.topic_info(lite_topic)["shardingToBroker"] == (lite_topic in here)
    assert len(asked) == 1  # what is known is believed for a while


def test_a_name_server_that_says_nothing() -> None:
    """Then all there is belongs here."""
    stage = LiteStage()
    asked = among_two_brokers(stage)
    fields = {"parentTopic": PARENT, "liteTopic": "chat"}
    opaque = stage.peer.send(RequestCode.GET_LITE_TOPIC_INFO, fields)
    asked[0].fail(LogStoreError("it is gone"))
    answer = stage.peer.answer_to(opaque)
    assert answer is not None
    assert orjson.loads(answer.body)["shardingToBroker"] is True


def test_what_is_refused() -> None:
    """A body without anything in it, a group that is closed, a lite topic without a name."""
    stage = LiteStage()
    code = RequestCode.LITE_SUBSCRIPTION_CTL
    assert stage.peer.ask(code, {}).code == ResponseCode.ILLEGAL_OPERATION
    assert stage.peer.ask(code, {}, b"{}").remark == "LiteSubscriptionCtlRequestBody is empty."
    wrong = orjson.dumps({"subscriptionSet": [{"action": "SOME_ADD"}]})
    assert stage.peer.ask(code, {}, wrong).code == ResponseCode.SYSTEM_ERROR
    assert stage.subscribe("").code == ResponseCode.SYSTEM_ERROR
    assert stage.subscribe("a", client=" ").code == 0  # and nothing comes of it
    body = orjson.dumps({"groupName": "closed", "consumeEnable": False})
    stage.peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
    answer = stage.subscribe("a", group="closed")
    assert answer.code == ResponseCode.ILLEGAL_OPERATION
    assert "not allowed to consume" in (answer.remark or "")


@pytest.mark.parametrize(
    ("attributes", "remark"),
    [
        ({"sub_model": "Mine"}, "value is not in set: [Shared, Exclusive]"),
        ({"sub_reset_offset_exclusive": "maybe"}, "boolean attribute format is wrong."),
        ({"sub_client_quota": "-2"}, "value is not in range(-1, 9223372036854775807)"),
        ({"sub_client_quota": "many"}, 'For input string: "many"'),
        ({"something": "1"}, "unsupported key: lite.something"),
    ],
)
def test_attributes_of_groups_are_looked_at(attributes: dict[str, str], remark: str) -> None:
    """A group keeps what it had when a change of it is refused."""
    stage = LiteStage()
    answer = stage.make_group(GROUP, **attributes)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert stage.broker.groups.require(GROUP).attributes == {"lite.bind.topic": PARENT}


def test_attributes_of_groups_change_one_by_one() -> None:
    """Those that are not named stay; only what is there can be taken away."""
    stage = LiteStage()
    stage.make_group(GROUP, sub_client_quota="10")
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    body = orjson.dumps({"groupName": GROUP, "attributes": {"-lite.sub.client.quota": ""}})
    assert stage.peer.ask(code, {}, body).code == 0
    assert stage.broker.groups.require(GROUP).attributes == {"lite.bind.topic": PARENT}
    answer = stage.peer.ask(code, {}, body)
    assert answer.remark == "attempt to delete a nonexistent key: lite.sub.client.quota"
