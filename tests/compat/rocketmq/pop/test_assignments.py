"""Queues shared out by the broker, and what was said about popping them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from logstore.compat.rocketmq.found_queues import queues_in_table
from logstore.compat.rocketmq.name_server.routes import BrokerData, QueueData, RouteTable
from logstore.compat.rocketmq.pop.allocation import (
    AllocationError,
    allocate,
    allocate_for_pop,
)
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError
from tests.compat.rocketmq.broker_peer import TOPIC
from tests.compat.rocketmq.pop.pop_stage import GROUP, PopStage
from tests.compat.rocketmq.test_pulling import heartbeat

MEMBERS = ["c1", "c2", "c3"]


def queues(count: int, broker_name: str = "b") -> list[MessageQueue]:
    """Return the queues of a topic on one broker."""
    return [MessageQueue("t", broker_name, queue_id) for queue_id in range(count)]


def ids(found: list[MessageQueue]) -> list[int]:
    """Return the queue ids."""
    return [queue.queue_id for queue in found]


@pytest.mark.parametrize(
    ("strategy", "count", "expected"),
    [
        ("AVG", 8, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        ("AVG", 3, [[0], [1], [2]]),
        ("AVG", 2, [[0], [1], []]),
        ("AVG_BY_CIRCLE", 8, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        ("AVG_BY_CIRCLE", 1, [[0], [], []]),
    ],
)
def test_shared_out(strategy: str, count: int, expected: list[list[int]]) -> None:
    """Every queue is one member's, as Java's strategies have it."""
    found = [ids(allocate(strategy, member, queues(count), MEMBERS)) for member in MEMBERS]
    assert found == expected


def test_a_stranger_gets_nothing() -> None:
    """Who is no member gets no queue; without queues, or by an unknown rule, there is an error."""
    assert allocate("AVG", "c9", queues(3), MEMBERS) == []
    assert allocate_for_pop("AVG", "c9", queues(2), [*MEMBERS, "c4"], 1) == []
    for strategy, found in (("AVG", []), ("MINE", queues(2))):
        with pytest.raises(AllocationError):
            allocate(strategy, "c1", found, MEMBERS)


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [
        (3, -1, [[-1] * 3] * 3),
        (3, 2, [[-1] * 3] * 3),
        (6, 1, [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 0, 1]]),
        (2, 1, [[0], [1], [0]]),
    ],
)
def test_shared_by_poppers(count: int, share: int, expected: list[list[int]]) -> None:
    """Who pops shares the queues of so many behind it, or all of each broker as queue -1."""
    found = [
        ids(allocate_for_pop("AVG", member, queues(count), MEMBERS, share)) for member in MEMBERS
    ]
    assert found == expected


def query(stage: PopStage, client_id: str = "c1", **changes: Any) -> list[tuple[Any, ...]] | None:
    """Ask for an assignment; None where nothing is said."""
    asked = {
        "topic": TOPIC,
        "consumerGroup": GROUP,
        "clientId": client_id,
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
        **changes,
    }
    answer = stage.peer.ask(RequestCode.QUERY_ASSIGNMENT, {}, json.dumps(asked).encode())
    assert answer.code == 0
    found = json.loads(answer.body).get("messageQueueAssignments")
    if found is None:
        return None
    return [
        (one["messageQueue"]["brokerName"], one["messageQueue"]["queueId"], one["mode"])
        for one in found
    ]


def set_mode(stage: PopStage, **changes: Any) -> int:
    """Say that the group pops."""
    asked = {"topic": TOPIC, "consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0}
    body = json.dumps({**asked, **changes}).encode()
    return stage.peer.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, {}, body).code


def a_stage(**settings: str) -> PopStage:
    """Return a stage with a topic of four queues and two consumers."""
    stage = PopStage(**settings)
    stage.produce(b"a")
    for client_id in ("c1", "c2"):
        stage.client().ask(RequestCode.HEART_BEAT, {}, heartbeat(TOPIC, client_id=client_id))
    return stage


def test_as_the_group_pulls() -> None:
    """Members get their parts; strangers and unknown groups are told nothing of use."""
    stage = a_stage()
    assert query(stage) == [("broker-a", 0, "PULL"), ("broker-a", 1, "PULL")]
    assert query(stage, "c2") == [("broker-a", 2, "PULL"), ("broker-a", 3, "PULL")]
    assert query(stage, "c9") == []
    assert query(stage, consumerGroup="nobody") is None
    assert query(stage, topic="nowhere") is None
    assert query(stage, strategyName="mine") is None
    assert len(query(stage, messageModel="BROADCASTING") or ()) == 4
    assert query(stage, topic="nowhere", messageModel="BROADCASTING") is None


def test_a_light_queue_has_one_reader() -> None:
    """Of a topic that no name server knows: whose name begins so is one queue here."""
    stage = a_stage()
    assert query(stage, topic="%LMQ%mine") == [("broker-a", 0, "PULL")]
    assert query(stage, "c2", topic="%LMQ%mine") == []
    assert query(stage, topic="%LMQ%mine", messageModel="BROADCASTING") is None


@pytest.mark.parametrize("changes", [{"readQueueNums": 0}, {"perm": 2}])
def test_a_topic_that_cannot_be_read(changes: dict[str, int]) -> None:
    """Who gets every queue is told that there are none; nothing can be shared out."""
    stage = a_stage()
    fields = {
        "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    assert stage.peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, {**fields, **changes}).code == 0
    assert query(stage, messageModel="BROADCASTING") == []
    assert query(stage) is None


def test_as_the_group_pops() -> None:
    """Once the group was told to pop each member gets queue -1; that lasts."""
    stage = a_stage()
    assert set_mode(stage) == 0
    assert query(stage) == query(stage, "c2") == [("broker-a", -1, "POP")]
    assert query(stage, strategyName="mine") is None
    assert query(stage, topic=f"%RETRY%{GROUP}") == [("broker-a", 0, "PULL")]
    stage.broker.close()
    stage.open()
    answer = stage.peer.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    assert json.loads(answer.body) == {
        "messageRequestModeMap": {
            TOPIC: {
                GROUP: {
                    "consumerGroup": GROUP,
                    "mode": "POP",
                    "popShareQueueNum": 0,
                    "topic": TOPIC,
                }
            }
        }
    }


def test_modes_that_are_refused() -> None:
    """Retry topics and what is not there have no mode."""
    stage = a_stage()
    assert set_mode(stage, topic="%RETRY%g") == ResponseCode.NO_PERMISSION
    assert set_mode(stage, topic="nowhere") == ResponseCode.TOPIC_NOT_EXIST
    assert set_mode(stage, consumerGroup="a/b") == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert set_mode(stage, mode="PUSH") == ResponseCode.SYSTEM_ERROR
    assert set_mode(stage, popShareQueueNum="many") == ResponseCode.SYSTEM_ERROR


def test_defaults() -> None:
    """The settings say what holds for groups that nobody spoke of."""
    popping = a_stage(defaultMessageRequestMode="POP")
    assert query(popping) == [("broker-a", -1, "POP")]
    whole = a_stage(serverLoadBalancerEnable="false")
    assert len(query(whole) or ()) == 4


def test_queues_of_other_brokers() -> None:
    """What a name server tells of all brokers is shared out; without an answer nothing is."""
    stage = a_stage()

    def find(topic: str) -> Later[list[MessageQueue]]:
        later: Later[list[MessageQueue]] = Later()
        if topic == TOPIC:
            later.answer([*queues(1, "b2"), *queues(1, "b1")])
        else:
            later.fail(LogStoreError("no answer"))
        return later

    stage.broker.topics.find_queues = find
    assert query(stage) == [("b1", 0, "PULL")]
    assert query(stage, "c2") == [("b2", 0, "PULL")]
    assert query(stage, topic="nowhere") is None


def test_what_the_name_server_of_this_process_knows() -> None:
    """A topic that nobody has queues to read of has none; one that is nowhere is not known."""
    stage, routes = a_stage(), RouteTable()
    stage.broker.topics.find_queues = partial(queues_in_table, routes)
    routes.brokers["b1"] = BrokerData("c", "b1", {0: "192.0.2.1:10911"})
    for topic, count, perm in (("read", 2, 6), ("written", 2, 2), ("empty", 0, 6)):
        routes.topics[topic] = {"b1": QueueData("b1", count, 4, perm, 0)}
    told = {
        topic: query(stage, topic=topic, messageModel="BROADCASTING")
        for topic in ("read", "written", "empty", "nowhere")
    }
    both = [("b1", 0, "PULL"), ("b1", 1, "PULL")]
    assert told == {"read": both, "written": [], "empty": [], "nowhere": None}
