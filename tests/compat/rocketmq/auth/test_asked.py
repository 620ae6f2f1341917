"""What requests ask for."""

from __future__ import annotations

import json

import pytest

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.asked import asked_by
from logstore.compat.rocketmq.auth.wants import ACTIONS, WANTS
from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.remoting import decode_command
from tests.compat.rocketmq.frames import request

_C = RequestCode
#: served to everybody who is who he says: their headers are not marked in 5.5.0
FREE = {
    _C.UPDATE_AND_CREATE_TOPIC_LIST, _C.GET_ALL_TOPIC_CONFIG, _C.UPDATE_BROKER_CONFIG,
    _C.GET_BROKER_CONFIG, _C.GET_BROKER_RUNTIME_INFO, _C.GET_ALL_CONSUMER_OFFSET,
    _C.GET_ALL_DELAY_OFFSET, _C.CHECK_CLIENT_CONFIG, _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    _C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    _C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, _C.CLEAN_EXPIRED_CONSUMEQUEUE, _C.CLEAN_UNUSED_TOPIC,
    _C.SEND_REPLY_MESSAGE, _C.SEND_REPLY_MESSAGE_V2, _C.DELETE_EXPIRED_COMMITLOG,
    _C.LITE_PULL_MESSAGE, _C.GET_BROKER_HA_STATUS, _C.QUERY_ASSIGNMENT,
    _C.SET_MESSAGE_REQUEST_MODE, _C.GET_ALL_MESSAGE_REQUEST_MODE, _C.BATCH_ACK_MESSAGE,
    _C.GET_BROKER_EPOCH_CACHE, _C.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    _C.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, _C.GET_COLD_DATA_FLOW_CTR_INFO,
    _C.SET_COMMITLOG_READ_MODE, _C.SWITCH_TIMER_ENGINE, _C.POP_ROLLBACK,
    _C.GET_TIMER_CHECK_POINT, _C.GET_TIMER_METRICS,
    _C.UPDATE_AND_CREATE_STATIC_TOPIC, _C.POP_LITE_MESSAGE, _C.LITE_SUBSCRIPTION_CTL,
    _C.GET_BROKER_LITE_INFO, _C.GET_PARENT_TOPIC_INFO, _C.GET_LITE_TOPIC_INFO,
    _C.GET_LITE_CLIENT_INFO, _C.GET_LITE_GROUP_INFO, _C.TRIGGER_LITE_DISPATCH,
}  # fmt: skip
#: every field that names something, and a body with a heart beat and a lock in it
FIELDS = {
    "topic": "t", "b": "t", "topicList": "t", "group": "g", "consumerGroup": "g",
    "groupName": "g", "filterGroups": "g", "compareGroup": "g", "destGroup": "g",
    "topicFilterType": "SINGLE_TAG",
}  # fmt: skip
BODY = {
    "clientID": "c", "clientId": "c", "consumerGroup": "g",
    "consumerDataSet": [
        {"groupName": "g", "subscriptionDataSet": [{"topic": "t"}, {"topic": "%RETRY%g"}]},
    ],
    "mqSet": [
        {"topic": topic, "brokerName": "b", "queueId": 0} for topic in ("t", "%RETRY%g", "u")
    ],
}  # fmt: skip


def asked(code: int, fields: dict[str, object], body: bytes = b"") -> list[str]:
    """Return what a request asks for, as ``Topic:t Pub,Sub``."""
    command = decode_command(memoryview(request(code, fields, body))[4:])
    found = asked_by(command, "DefaultCluster")
    return [f"{one.resource.key} {','.join(one.actions)}" for one in found]


def test_what_every_code_asks_for() -> None:
    """Each asks for something, but for those that Java has forgotten."""
    body = json.dumps(BODY).encode()
    free = {code for code in HANDLERS if not asked(code, dict(FIELDS), body)}
    assert free == FREE
    assert {want.action for want in WANTS.values()} <= set(ACTIONS)


@pytest.mark.parametrize(
    ("code", "fields", "expected"),
    [
        (_C.SEND_MESSAGE, {"topic": "t"}, ["Topic:t Pub"]),
        (_C.SEND_MESSAGE, {"topic": "%RETRY%g"}, ["Group:g Sub"]),
        (_C.SEND_MESSAGE_V2, {"b": "t", "a": "p"}, ["Topic:t Pub"]),
        (_C.SEND_BATCH_MESSAGE, {"b": "%RETRY%g"}, ["Group:g Sub"]),
        (_C.SEND_MESSAGE_V2, {"a": "p"}, ["Topic:null Pub"]),
        (_C.GET_ROUTEINFO_BY_TOPIC, {"topic": "t"}, ["Topic:t Pub,Sub,Get"]),
        (_C.GET_ROUTEINFO_BY_TOPIC, {"topic": "%RETRY%g"}, ["Group:g Sub,Get"]),
        (_C.PULL_MESSAGE, {"topic": "t", "consumerGroup": "g"}, ["Topic:t Sub", "Group:g Sub"]),
        (_C.PULL_MESSAGE, {"topic": "%RETRY%g", "consumerGroup": "g"}, ["Group:g Sub"]),
        (_C.QUERY_CONSUMER_OFFSET, {"topic": "t", "consumerGroup": "g"},
         ["Topic:t Sub,Get", "Group:g Sub,Get"]),
        (_C.UPDATE_CONSUMER_OFFSET, {"topic": "t", "consumerGroup": "g"},
         ["Topic:t Sub,Update", "Group:g Sub,Update"]),
        (_C.QUERY_MESSAGE, {"topic": "t"}, ["Topic:t Sub,Get"]),
        (_C.END_TRANSACTION, {"topic": "t"}, ["Topic:t Pub"]),
        (_C.END_TRANSACTION, {"topic": " "}, []),
        (_C.RECALL_MESSAGE, {"topic": "t"}, ["Topic:t Pub"]),
        (_C.CONSUMER_SEND_MSG_BACK, {"group": "g", "originTopic": "t"}, ["Group:g Sub"]),
        (_C.UNREGISTER_CLIENT, {"producerGroup": "p"}, []),
        (_C.UNREGISTER_CLIENT, {"consumerGroup": "g"}, ["Group:g Sub"]),
        (_C.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "g"}, ["Group:g Sub,Get"]),
        (_C.GET_CONSUME_STATS, {"consumerGroup": "g", "topicList": "t;;%RETRY%h"},
         ["Group:g Get", "Topic:t Get", "Group:h Get"]),
        (_C.QUERY_CORRECTION_OFFSET, {"filterGroups": "a,b", "compareGroup": "c", "topic": "t"},
         ["Group:a Get", "Group:b Get", "Group:c Get", "Topic:t Get"]),
        (_C.GET_MAX_OFFSET, {"topic": "%RETRY%g"}, ["Group:g Get"]),
        (_C.QUERY_TOPICS_BY_CONSUMER, {"group": "%RETRY%g"}, ["Group:%RETRY%g Get"]),
        (_C.REGISTER_BROKER, {"clusterName": "c"}, ["Cluster:c Update"]),
        (_C.REGISTER_BROKER, {"x": "y"}, ["Cluster:DefaultCluster Update"]),
        (_C.GET_BROKER_MEMBER_GROUP, {"x": "y"}, []),
        (_C.AUTH_LIST_ACL, {"x": "y"}, ["Cluster:DefaultCluster Get"]),
        (_C.AUTH_LIST_ACL, {}, []),
        (_C.VIEW_MESSAGE_BY_ID, {"offset": 0}, []),
        (9999, {"topic": "t"}, []),
    ],
)  # fmt: skip
def test_fields(code: int, fields: dict[str, object], expected: list[str]) -> None:
    """Resources in Java's order, with the actions of which one is enough."""
    assert asked(code, fields) == expected


def test_bodies() -> None:
    """Heart beats and locks name groups and topics there; retry topics are passed over."""
    body = json.dumps(BODY).encode()
    for code in (_C.HEART_BEAT, _C.LOCK_BATCH_MQ, _C.UNLOCK_BATCH_MQ):
        found = asked(code, {"x": "y"}, body)
        assert found[:2] == ["Group:g Sub", "Topic:t Sub"]
    assert found[2:] == ["Topic:u Sub"]


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (_C.HEART_BEAT, {"x": "y"}, b"no json"),
        (_C.HEART_BEAT, {"x": "y"}, b""),
        (_C.LOCK_BATCH_MQ, {"x": "y"}, b"{}"),
        (_C.UPDATE_AND_CREATE_TOPIC, {"topic": "t", "topicFilterType": "STRANGE"}, b""),
        (_C.UPDATE_AND_CREATE_TOPIC, {"topic": "t"}, b""),
    ],
)
def test_what_cannot_be_read(code: int, fields: dict[str, object], body: bytes) -> None:
    """It is refused."""
    with pytest.raises(AccessError, match="parse authorization context error"):
        asked(code, fields, body)
