"""Popping in order: one batch of a queue at a time, again in its place where it is not done."""

from __future__ import annotations

import orjson
import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, decoded
from tests.compat.rocketmq.frames import Answer
from tests.compat.rocketmq.pop.pop_stage import GROUP, Popped, PopStage
from tests.compat.rocketmq.pop.test_waiting import ask, bodies, told, wait


def a_stage() -> PopStage:
    """Return a stage with five messages in queue 1."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c", b"d", b"e", queue_id=1)
    return stage


def ordered(stage: PopStage, count: int = 2, **changes: object) -> list[Popped]:
    """Pop in order."""
    return stage.popped(order="true", maxMsgNums=count, invisibleTime=5000, **changes)


def counts(answer: Answer) -> str:
    """Return what an answer says of how often messages were popped."""
    return (answer.fields or {})["orderCountInfo"]


def names(popped: list[Popped]) -> list[bytes]:
    """Return the bodies."""
    return [one.message.body for one in popped]


def test_one_batch_at_a_time() -> None:
    """The next messages come when all before are acknowledged, in whatever order that was."""
    stage = a_stage()
    first, second = ordered(stage)
    assert first.handle.split(" ")[3] == "999"
    assert ordered(stage) == []
    stage.ack(second)
    assert ordered(stage) == []
    assert stage.committed(queue_id=1) == 0
    stage.ack(first)
    assert stage.committed(queue_id=1) == 2
    assert names(ordered(stage)) == [b"c", b"d"]


def test_a_batch_of_which_some_cannot_be() -> None:
    """The others are acknowledged; the answer tells of the last that was refused."""
    stage = a_stage()
    first, second = ordered(stage)
    entry = {
        "c": GROUP, "t": TOPIC, "r": "0", "so": 0, "q": 1, "rq": 999, "it": 5000,
        "pt": int(first.handle.split(" ")[1]), "b": "Dw==",
    }  # fmt: skip
    body = orjson.dumps(
        {"brokerName": "broker-a", "acks": [entry, {**entry, "so": 4, "b": "AQ=="}]}
    )
    answer = stage.peer.ask(RequestCode.BATCH_ACK_MESSAGE, {}, body)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "commit:4, next:-1" in (answer.remark or "")
    assert stage.committed(queue_id=1) == second.queue_offset + 1
    assert names(ordered(stage)) == [b"c", b"d"]


def test_again_in_its_place() -> None:
    """What is not acknowledged in time is popped again, with those behind it, and counted."""
    stage = a_stage()
    ordered(stage)
    stage.pass_ms(5000)
    answer = stage.pop(order="true", maxMsgNums=3, invisibleTime=5000)
    assert [message.body for message in decoded(answer.body)] == [b"a", b"b", b"c"]
    assert counts(answer) == "0 qo1%0 1;0 qo1%1 1;0 1 0"
    stage.pass_ms(5000)
    answer = stage.pop(order="true", maxMsgNums=2, invisibleTime=5000)
    assert counts(answer) == "0 qo1%0 2;0 qo1%1 2;0 1 2"
    stage.pass_ms(20_000)
    assert stage.popped(exp="*", consumerGroup="other")
    assert not [topic for topic in stage.broker.topics.table.topics if "%RETRY%" in topic]


def test_other_queues_go_on() -> None:
    """A queue that is locked does not lock the others."""
    stage = a_stage()
    ordered(stage)
    stage.produce(b"x", queue_id=2)
    assert names(ordered(stage)) == [b"x"]


def test_the_same_attempt() -> None:
    """A client that did not get the answer may try again, and gets the same."""
    stage = a_stage()
    assert names(ordered(stage, attemptId="one")) == [b"a", b"b"]
    assert ordered(stage, attemptId="two") == []
    assert names(ordered(stage, attemptId="one")) == [b"a", b"b"]


def test_another_time() -> None:
    """A changed time locks the queue until then."""
    stage = a_stage()
    first, second = ordered(stage)
    stage.ack(second)
    stage.pass_ms(1000)
    answer = stage.change(first, 10_000)
    assert (answer.fields or {})["invisibleTime"] == "11000"
    stage.pass_ms(9000)
    assert ordered(stage) == []
    stage.pass_ms(1001)
    assert names(ordered(stage)) == [b"a", b"b"]


def test_acknowledged_by_an_old_handle() -> None:
    """An acknowledgement of an earlier pop changes nothing."""
    stage = a_stage()
    first, _ = ordered(stage)
    stage.pass_ms(5001)
    again = ordered(stage)
    assert stage.ack(first).code == 0
    assert stage.committed(queue_id=1) == 0
    for one in again:
        stage.ack(one)
    assert stage.committed(queue_id=1) == 2


def test_acknowledged_what_was_not_popped() -> None:
    """A message that was not popped cannot be acknowledged; one that is done already can."""
    stage = a_stage()
    first, second = ordered(stage)
    assert stage.ack(first, offset=4).code == ResponseCode.MESSAGE_ILLEGAL
    stage.ack(first)
    stage.ack(second)
    assert stage.ack(first).code == 0


def test_a_wait_ends_with_the_lock() -> None:
    """Who waits for a locked queue gets it when it is free: acknowledged, or its time over."""
    stage = a_stage()
    first, second = ordered(stage)
    peer = stage.client()
    opaque = wait(stage, peer, order="true", queueId=1, invisibleTime=5000)
    other = stage.client()
    everywhere = wait(stage, other, order="true", invisibleTime=5000, maxMsgNums=2)
    stage.ack(first)
    stage.ack(second)
    stage.pass_ms(1)
    assert [bodies(other, everywhere), bodies(peer, opaque)] in (
        [[b"c", b"d"], None],
        [None, [b"c", b"d", b"e"]],
    )
    stage.pass_ms(30_000)
    peer.heard.clear()
    assert len(stage.popped(order="true", invisibleTime=5000)) == 3
    opaque = wait(stage, peer, 30_000, order="true", invisibleTime=5000)
    stage.pass_ms(4900)
    assert bodies(peer, opaque) is None
    stage.pass_ms(200)
    assert bodies(peer, opaque) == [b"c", b"d", b"e"]


def test_a_wait_does_not_end_with_the_lock_where_it_is_not_to() -> None:
    """Then only acknowledgements end one before its own time; settings hold from now on."""
    stage = a_stage()
    stage.broker.update_settings({"enableNotifyAfterPopOrderLockRelease": "false"})
    assert len(stage.popped(order="true", invisibleTime=5000)) == 5
    peer = stage.client()
    opaque = wait(stage, peer, 30_000, order="true", invisibleTime=5000)
    stage.pass_ms(20_000)
    assert bodies(peer, opaque) is None
    stage.pass_ms(10_000)
    assert bodies(peer, opaque) == [b"a", b"b", b"c", b"d", b"e"]
    stage.broker.update_settings({"enableNotifyAfterPopOrderLockRelease": "true"})
    stage.pass_ms(6000)
    popped = stage.popped(order="true", invisibleTime=5000)
    opaque = wait(stage, peer, 30_000, order="true", invisibleTime=5000)
    stage.pass_ms(5100)
    assert len(popped) == len(bodies(peer, opaque) or ()) == 5


def test_a_notice_passes_by_what_is_locked() -> None:
    """Messages that cannot be popped now are none."""
    stage = a_stage()
    ordered(stage)
    peer = stage.client()
    assert told(peer, ask(stage, peer, order="true")) == "false"
    assert told(peer, ask(stage, peer, order="false")) == "true"


def test_acknowledged_in_a_batch() -> None:
    """A batch acknowledges messages that were popped in order, one by one."""
    stage = a_stage()
    assert stage.ack_batch(*ordered(stage, 3)).code == 0
    assert stage.committed(queue_id=1) == 3


@pytest.mark.parametrize("end", ["close", "abandon"])
def test_after_a_restart(end: str) -> None:
    """A clean stop keeps the locks; whatever happens nothing is lost or out of order."""
    stage = a_stage()
    first, _ = ordered(stage)
    stage.ack(first)
    stage.broker.close() if end == "close" else stage.broker.abandon()
    stage.open()
    assert bool(ordered(stage)) == (end == "abandon")
    stage.pass_ms(5001)
    popped = names(ordered(stage, 5))
    assert popped in ([b"b", b"c", b"d", b"e"], [b"a", b"b", b"c", b"d", b"e"])


def test_the_file() -> None:
    """The table of locks stands in Java's file, and is read from there."""
    stage = a_stage()
    first, _ = ordered(stage, attemptId="one")
    stage.change(first, 9000)
    stage.pass_ms(10_001)
    path = "/store/config/consumerOrderInfo.json"
    assert stage.host.fs.exists(path)
    stage.broker.close()
    file = stage.host.fs.open(path)
    text = file.read(0, file.size()).decode().replace("1:{", '"1":{').replace("0:", '"0":')
    stored = orjson.loads(text)
    info = stored["table"][f"{TOPIC}@g"]["1"]
    assert (stored["orderInfoCount"], stored["orderedConsumptionLevel"]) == (1, "QUEUE")
    assert (info["o"], info["a"], info["cm"], info["i"]) == ([0, 1], "one", 0, 5000)
    assert info["ot"] == {"0": info["popTime"] + 9000}
