"""Real clients and a real broker, recorded: the same request gets the same answer from ours."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.messages.message import Message
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.broker_transcript import BrokerTranscript, Exchange
from tests.compat.rocketmq.frames import Answer
from tests.segments.rocketmq.golden_case import golden_cases

#: places, times and ids: they depend on when a broker looks for delayed and half messages
OTHERWISE = {
    RequestCode.SEND_MESSAGE: {"msgId"},
    RequestCode.SEND_MESSAGE_V2: {"msgId"},
    RequestCode.SEND_BATCH_MESSAGE: {"msgId"},
    RequestCode.QUERY_MESSAGE: {"indexLastUpdatePhyoffset", "indexLastUpdateTimestamp"},
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: {"offset"},
    RequestCode.GET_BROKER_CONFIG: {"version"},
}
#: a real 5.5.0 without time wheel deletes the topic and then fails (a NullPointerException)
FAILS_THERE = RequestCode.DELETE_TOPIC_IN_BROKER
#: what half messages change that are checked at other times
MOVED_BY_CHECKS = {
    RequestCode.PULL_MESSAGE,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
}
#: headers that 5.x has and 4.9.8 has not
SINCE_5 = {
    "transactionId",
    "IS_SUPPORT_HEART_BEAT_V2",
    "IS_SUB_CHANGE",
    "topicSysFlag",
    "groupSysFlag",
}


@cache
def _held(name: str, version: str) -> BrokerTranscript:
    (case,) = golden_cases(name, version=version)
    transcript = BrokerTranscript(case)
    transcript.hold()
    return transcript


def _fields(exchange: Exchange, answer: Answer) -> dict[str, str]:
    """Return the fields of an answer that must be the same."""
    masked = set(OTHERWISE.get(RequestCode(exchange.code), ()))
    properties = exchange.fields.get("i") or exchange.fields.get("properties") or ""
    if "UNIQ_KEY" not in properties:
        masked.add("transactionId")  # the client gave the message no key, so the broker made one
    return {name: "" if name in masked else text for name, text in (answer.fields or {}).items()}


def _contents(body: bytes) -> list[tuple[Any, ...]]:
    """Return what must be the same of each message."""

    def content(message: Message) -> tuple[Any, ...]:
        properties = dict(message.properties)
        for name in ("ORIGIN_MESSAGE_ID", "UNIQ_KEY"):
            if name in properties:
                properties[name] = ""
        return (
            message.topic, message.queue_id, message.queue_offset, message.body, message.flag,
            message.sys_flag, message.reconsume_times, message.born_timestamp_ms, properties,
        )  # fmt: skip

    return [content(message) for message in decoded(body)]


@pytest.mark.parametrize(("name", "count_min"), [("wire", 160), ("wire-cpp", 30)])
def test_the_same_answers_as_release_5(name: str, count_min: int) -> None:
    """Code, remark and fields are those of 5.5.0, and the header is the same byte for byte."""
    exchanges = _held(name, "5.5.0").exchanges
    assert len(exchanges) >= count_min
    for exchange in exchanges:
        ours, recorded = exchange.ours, exchange.recorded
        assert ours is not None, f"{exchange} is not answered"
        if exchange.code == FAILS_THERE:
            assert (ours.code, ours.remark) == (0, None)
            continue
        assert ours.code == recorded.code, exchange
        assert (ours.remark or None) == (recorded.remark or None), exchange
        assert _fields(exchange, ours) == _fields(exchange, recorded), exchange
        if ours.serializer == 0 and ours.fields == recorded.fields:
            assert ours.header == recorded.header, exchange


@pytest.mark.parametrize("name", ["wire", "wire-cpp"])
def test_the_same_messages_as_release_5(name: str) -> None:
    """Pulls and queries hand out the same messages, in the same order, as 5.5.0 did."""
    count = 0
    for exchange in _held(name, "5.5.0").exchanges:
        if exchange.code in (RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE):
            assert exchange.ours is not None
            assert _contents(exchange.ours.body) == _contents(exchange.recorded.body), exchange
            count += len(_contents(exchange.recorded.body))
    assert count > 10


def test_the_same_bodies_as_release_5() -> None:
    """Lists, locks and settings are the same text as those of 5.5.0."""
    codes = {
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        RequestCode.GET_TOPIC_CONFIG,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    }
    found = [one for one in _held("wire", "5.5.0").exchanges if one.code in codes]
    assert {one.code for one in found} == codes
    for exchange in found:
        assert exchange.ours is not None
        assert exchange.ours.body == exchange.recorded.body, exchange


@pytest.mark.parametrize("name", ["wire", "wire-cpp"])
def test_consumers_are_told_of_each_other(name: str) -> None:
    """The broker says unasked what the real one says: who joined or left, what to check."""
    told = _held(name, "5.5.0").told
    assert sum(len(recorded) for recorded, _ in told.values())
    for client, (recorded, ours) in told.items():
        # How often a half message is asked about depends on when the check runs.
        assert set(ours) == set(recorded), client
        joins = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        assert ours.count(joins) == recorded.count(joins), client


@pytest.mark.parametrize("name", ["wire", "wire-cpp"])
def test_clients_of_release_4_are_answered(name: str) -> None:
    """What 4.9.8 answered with success ours does, too; fields that it has have the same values."""
    exchanges = _held(name, "4.9.8").exchanges
    overtaken: list[Exchange] = []
    for exchange in exchanges:
        ours, recorded = exchange.ours, exchange.recorded
        assert ours is not None, exchange
        if exchange.code == RequestCode.QUERY_CONSUMER_OFFSET and ours.code != recorded.code:
            # A queue in which nothing was ever stored: 4.x answers 0, 5.x that there is nothing.
            assert (recorded.fields, ours.code) == ({"offset": "0"}, 22)
            continue
        if exchange.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            continue  # it names a place in the real broker's log, whose records are shorter
        if ours.code == ResponseCode.SUBSCRIPTION_NOT_LATEST != recorded.code:
            overtaken.append(exchange)  # a heart beat overtook this pull within the real broker
            continue
        assert ours.code == recorded.code, exchange
        mine, theirs = _fields(exchange, ours), _fields(exchange, recorded)
        assert mine.keys() - SINCE_5 == theirs.keys() - SINCE_5, exchange
        if exchange.code not in MOVED_BY_CHECKS:
            assert {key: mine[key] for key in theirs} == theirs, exchange
    assert len(overtaken) <= 1
