"""Of a queue with too many messages that were popped and not finished no more are popped."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import TOPIC
from tests.compat.rocketmq.pop.pop_stage import GROUP, REVIVED_WITHIN_MS, PopStage

BODIES = [b"%d" % number for number in range(9)]


def a_stage(count: int = 3) -> PopStage:
    """Return a stage on which three messages, one more than is good, are popped of nine."""
    stage = PopStage(enablePopMessageThreshold="true", popInflightMessageThreshold="2")
    stage.produce(*BODIES)
    assert stage.bodies(maxMsgNums=count) == BODIES[:count]
    return stage


def test_no_more_is_popped_until_some_are_done() -> None:
    """As many as is said may be under way when more are popped; other queues and groups go on."""
    stage = PopStage(enablePopMessageThreshold="true", popInflightMessageThreshold="2")
    stage.produce(*BODIES)
    assert stage.bodies(maxMsgNums=2) == BODIES[:2]
    (third,) = stage.popped(maxMsgNums=1)
    answer = stage.pop()
    assert (answer.body, (answer.fields or {})["restNum"]) == (b"", "6")
    stage.produce(b"elsewhere", queue_id=1)
    assert stage.bodies() == [b"elsewhere"]
    assert stage.bodies(consumerGroup="other", maxMsgNums=3) == BODIES[:3]
    stage.ack(third)
    assert stage.bodies(maxMsgNums=1) == BODIES[3:4]
    assert stage.bodies() == []


def test_acknowledged_in_a_batch() -> None:
    """Each message of a batch counts."""
    stage = PopStage(enablePopMessageThreshold="true", popInflightMessageThreshold="2")
    stage.produce(*BODIES)
    popped = stage.popped(maxMsgNums=5)
    assert stage.bodies() == []
    stage.ack_batch(*popped[:2])
    assert stage.bodies() == []
    stage.ack_batch(popped[2])
    assert stage.bodies() == BODIES[5:]


def test_what_comes_again_is_under_way_no_more() -> None:
    """It has left its queue then; put off, it still is."""
    stage = PopStage(enablePopMessageThreshold="true", popInflightMessageThreshold="2")
    stage.produce(*BODIES)
    for popped in stage.popped(maxMsgNums=3):
        stage.change(popped, 20_000)
    stage.pass_ms(10_000 + REVIVED_WITHIN_MS)
    assert stage.bodies() == []
    stage.pass_ms(10_000)
    assert stage.bodies() == sorted(BODIES)


@pytest.mark.parametrize("end", ["setting", "restart", "reset"])
def test_what_begins_anew(end: str) -> None:
    """Settings hold at once, for what was popped before, too; a restart counts from nothing."""
    stage = a_stage()
    assert stage.bodies() == []
    expected = BODIES[3:]
    if end == "setting":
        stage.broker.update_settings({"popInflightMessageThreshold": "3"})
        assert stage.bodies(maxMsgNums=1) == BODIES[3:4]
        assert stage.bodies() == []
        stage.broker.update_settings({"enablePopMessageThreshold": "false"})
        expected = BODIES[4:]
    elif end == "restart":
        stage.broker.close()
        stage.open()
    else:
        fields = {"topic": TOPIC, "group": GROUP, "timestamp": -1, "queueId": 0, "offset": 1}
        assert stage.peer.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields).code == 0
        expected = BODIES[1:]
    assert stage.bodies() == expected


def test_a_topic_and_a_group_that_come_again_begin_anew() -> None:
    """Nothing is left of those that were deleted."""
    stage = a_stage()
    gone = {"groupName": GROUP, "cleanOffset": "true"}
    assert stage.peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, gone).code == 0
    assert stage.bodies() == BODIES
    assert stage.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    stage.produce(b"new")
    assert stage.bodies() == [b"new"]


def test_in_order_only_what_is_popped_now_counts() -> None:
    """A batch may be larger than is said; while it is locked nothing comes, and then it may."""
    stage = PopStage(enablePopMessageThreshold="true", popInflightMessageThreshold="2")
    stage.produce(*BODIES)
    first = stage.popped(order="true", maxMsgNums=3)
    for popped in first:
        stage.ack(popped)
    assert len(stage.popped(order="true", maxMsgNums=2)) == 2
