"""Requests as no client writes them: each is answered, and the broker goes on."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.asked import asked_by
from logstore.compat.rocketmq.auth.settings import LOCAL_PROVIDERS
from logstore.compat.rocketmq.auth.signatures import signed_content
from logstore.compat.rocketmq.registry import HANDLERS
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.remoting import decode_command
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.frames import request

#: what may stay without an answer: pulls that wait, ends that leave a transaction open
SILENT = {
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.END_TRANSACTION,
    RequestCode.POP_MESSAGE,
    RequestCode.NOTIFICATION,
}
#: what everybody asks for, and must get whatever others have left
LISTS = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.GET_CONSUMER_CONNECTION_LIST,
)
#: texts of faults that no request may lead to
FAULTS = (
    "TypeError",
    "KeyError",
    "IndexError",
    "AttributeError",
    "AssertionError",
    "RecursionError",
    "UnboundLocalError",
    "NameError",
)

_TEXTS = st.sampled_from(
    [
        "", "0", "1", "-1", "9223372036854775807", "99999999999999999999", "true", "x", "a||b",
        TOPIC, "g", "%RETRY%g", "TBW102", "*", "||", "\u0000", "TAGS\x01a\x02", "\x01\x02\x01",
        "SQL92", "producers", "c1", "7F00000100002A9F0000000000000000",
        "User:g", "User:\ud800", "Topic:*", "0 0 1 0 0 broker-a 0 0", "0 1 1 999 0 broker-a 0 0",
    ]
)  # fmt: skip
_NAMES = st.sampled_from(
    [
        *"abcdefghijklmn", "topic", "group", "consumerGroup", "producerGroup", "queueId",
        "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis",
        "subscription", "subVersion", "expressionType", "offset", "key", "maxNum", "timestamp",
        "beginTimestamp", "endTimestamp", "delayLevel", "clientID", "clientId", "msgId", "perm",
        "groupName", "commitLogOffset", "commitOrRollback", "tranStateTableOffset", "attributes",
        "readQueueNums", "writeQueueNums", "topicFilterType", "order", "index", "count",
        "statsName", "statsKey", "srcGroup", "destGroup", "readable", "properties", "batch",
        "invisibleTime", "pollTime", "bornTime", "initMode", "expType", "exp", "extraInfo",
        "attemptId", "username", "filter", "subject", "policyType", "resource", "subjectFilter",
        "resourceFilter", "AccessKey", "Signature",
    ]
)  # fmt: skip
_JSON = st.sampled_from(
    [
        b"", b"{}", b"[]", b"null", b"1", b'"x"', b"{", b'{"clientID":"c1"}', b"\xff\xfe",
        b'{"clientID":1,"consumerDataSet":{},"producerDataSet":[{}]}',
        b'{"clientID":"c","consumerDataSet":[{"groupName":null,"subscriptionDataSet":[{}]}]}',
        b'{"clientID":"c\\ud800","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[]}]}',
        b'{"clientID":"c\xff","consumerDataSet":[{"groupName":"g\\udfff"}],"producerDataSet":[]}',
        b'{"mqSet":[{"topic":1}],"clientId":"c","consumerGroup":"g"}',
        b'{"groupName":"g","retryQueueNums":-1}', b'{"groupName":"g","attributes":[]}',
        b'{"subscriptionData":[]}',
        b'{"brokerName":"b","acks":[{"c":"g","t":"orders","r":"0","b":"Bw=="}]}',
        b'{"topic":"orders","consumerGroup":"g","clientId":"c","strategyName":"AVG"}',
        b'{"subscriptionData":{"expressionType":1,"subString":2}}',
        b'{"password":"p","userType":1,"userStatus":[]}', b'{"policies":{}}',
        b'{"policies":[{"entries":[{"actions":["Pub"],"resource":"Topic:t","decision":"Allow"}]}]}',
        b'{"subject":"User:g","policies":[{"entries":[{"actions":[1],"sourceIps":{"a":1}}]}]}',
        b'{"topicConfigList":[{}]}', b'{"groupConfigList":[1]}', b"a=b\n=\nmaxMessageSize=x",
    ]
) | st.binary(max_size=40)  # fmt: skip


@pytest.fixture(scope="module")
def peers() -> Iterator[Iterator[Peer]]:
    """Yield clients of one broker that has a few messages and a consumer."""
    settings = {"enablePropertyFilter": "true", "timerWheelEnable": "true", **LOCAL_PROVIDERS}
    broker = a_broker(settings=settings)
    first = Peer(broker)
    for _ in range(3):
        first.produce(properties="TAGS\x01a\x02")
    first.pull()
    yield (Peer(broker, port) for port in itertools.count(41_000))
    broker.abandon()


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    code=st.sampled_from(sorted(HANDLERS)),
    fields=st.dictionaries(_NAMES, _TEXTS, max_size=12),
    body=_JSON,
    serializer=st.sampled_from([0, 1]),
)
def test_any_request_is_answered(  # every part of a request is at random
    peers: Iterator[Peer],
    caplog: pytest.LogCaptureFixture,
    code: int,
    fields: dict[str, str],
    body: bytes,
    serializer: int,
) -> None:
    """Whatever stands in a request, it gets an answer and is no fault of ours."""
    caplog.set_level(logging.CRITICAL)
    peer = next(peers)
    opaque = peer.send(code, fields, body, serializer=serializer)
    answer: Any = peer.answer_to(opaque)
    assert answer is not None or code in SILENT
    assert not peer.connection.is_closing
    if answer is not None:
        assert not any(fault in (answer.remark or "") for fault in FAULTS), answer
    for listing in LISTS:
        listed = peer.ask(listing, {"consumerGroup": "g"})
        assert not any(fault in (listed.remark or "") for fault in FAULTS), listed
    assert peer.produce(topic="alive").code in (0, 13, 16)
    peer.hang_up()


@settings(max_examples=200, deadline=None)
@given(
    code=st.sampled_from(sorted(HANDLERS)),
    fields=st.dictionaries(_NAMES, _TEXTS, max_size=12),
    body=_JSON,
)
def test_any_request_asks_for_something_or_is_refused(
    code: int, fields: dict[str, str], body: bytes
) -> None:
    """Whoever guards a broker can read what is asked for, and whether it was signed."""
    command = decode_command(memoryview(request(code, fields, body))[4:])
    assert isinstance(signed_content(command), bytes)
    try:
        assert all(asked.resource.key for asked in asked_by(command, "c"))
    except AccessError:
        return
