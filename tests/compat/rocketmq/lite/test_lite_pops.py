"""Pops of lite topics: in order, again in their place, waiting, acknowledged one by one."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import decoded
from tests.compat.rocketmq.lite.lite_stage import PARENT, LiteStage, fields_of


def a_stage(*bodies: bytes) -> LiteStage:
    """Return a stage whose client reads a lite topic with messages."""
    stage = LiteStage()
    stage.send("chat", *bodies)
    stage.subscribe("chat", offsetOption={"type": "POLICY", "value": 1})
    return stage


def test_one_batch_at_a_time() -> None:
    """The next ones come when all before are acknowledged, in whatever order that was."""
    stage = a_stage(b"a", b"b", b"c")
    popped = stage.pop_lite(maxMsgNum=2)
    assert [message.body for message in decoded(popped.body)] == [b"a", b"b"]
    assert fields_of(popped)["orderCountInfo"] == "0;0"
    stage.send("chat", b"d")
    assert stage.lite_bodies() == []
    assert stage.ack_lite(popped, 1).code == 0
    assert (stage.lite_bodies(), stage.read()) == ([], 0)
    assert stage.ack_lite(popped, 0).code == 0
    assert (stage.lite_bodies(), stage.read()) == ([b"c", b"d"], 2)


def test_of_many_lite_topics() -> None:
    """One answer has messages of several; of one that is locked nothing comes."""
    stage = a_stage(b"a")
    stage.subscribe("news", "talk")
    stage.send("news", b"b", b"c")
    stage.send("talk", b"d", b"e")
    assert stage.lite_bodies(maxMsgNum=4) == [b"a", b"b", b"c", b"d"]
    stage.send("chat", b"f")
    assert stage.lite_bodies() == []
    stage.pass_ms(10_000)  # nothing was acknowledged
    assert sorted(stage.lite_bodies()) == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_again_in_its_place() -> None:
    """What is not acknowledged in time comes again, and how often is told."""
    stage = a_stage(b"a", b"b")
    stage.pop_lite(maxMsgNum=1, invisibleTime=1000)
    stage.pass_ms(1000)
    answer = stage.pop_lite(invisibleTime=1000)
    assert [message.body for message in decoded(answer.body)] == [b"a", b"b"]
    assert fields_of(answer)["orderCountInfo"] == "0 qo0%0 1"
    stage.pass_ms(1000)
    assert fields_of(stage.pop_lite())["orderCountInfo"] == "0 qo0%0 2;0 qo0%1 1"


def test_put_off() -> None:
    """A message comes again when its client says; suspended, it is not counted as tried."""
    stage = a_stage(b"a")
    stage.pop_lite(invisibleTime=100)
    stage.pass_ms(100)
    popped = stage.pop_lite()
    shown = stage.shown(popped, 0, invisibleTime=300, suspend="true")
    answer = stage.peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, shown)
    assert fields_of(answer)["invisibleTime"] == "300"
    assert stage.lite_bodies() == []
    stage.pass_ms(300)
    popped = stage.pop_lite()
    assert fields_of(popped)["orderCountInfo"] == "0 qo0%0 1"
    shown = stage.shown(popped, 0, invisibleTime=400)
    stage.peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, shown)
    stage.pass_ms(400)
    assert fields_of(stage.pop_lite())["orderCountInfo"] == "0 qo0%0 2"
    beyond = stage.shown(popped, 9, invisibleTime=400)
    answer = stage.peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, beyond)
    assert answer.code == ResponseCode.NO_MESSAGE


def test_a_pop_waits_for_messages() -> None:
    """It is woken by one that comes, by a lock that ends, and at its time."""
    stage = a_stage()
    opaque = stage.wait()
    stage.send("chat", b"a")
    answer = stage.peer.answer_to(opaque)
    assert answer is not None
    assert [message.body for message in decoded(answer.body)] == [b"a"]
    opaque = stage.wait()
    stage.pass_ms(4000)
    assert stage.peer.answer_to(opaque) is None
    stage.pass_ms(1000)
    answer = stage.peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.POLLING_TIMEOUT
    stage.pass_ms(4000)
    opaque = stage.wait()
    stage.pass_ms(1000)
    answer = stage.peer.answer_to(opaque)
    assert answer is not None
    assert [message.body for message in decoded(answer.body)] == [b"a"]


def test_an_acknowledgement_wakes_who_waits() -> None:
    """What is behind the message may be had now."""
    stage = a_stage(b"a", b"b")
    popped = stage.pop_lite(maxMsgNum=1)
    opaque = stage.wait()
    stage.ack_lite(popped, 0)
    answer = stage.peer.answer_to(opaque)
    assert answer is not None
    assert [message.body for message in decoded(answer.body)] == [b"b"]


def test_without_events_all_that_is_read_is_looked_at() -> None:
    """With ``enableLiteEventMode=false``."""
    stage = LiteStage(enableLiteEventMode="false")
    stage.send("chat", b"a")
    stage.subscribe("none", "chat")
    assert stage.lite_bodies() == [b"a"]


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"maxMsgNum": 33}, ResponseCode.INVALID_PARAMETER, "num is greater than 32"),
        ({"bornTime": 1}, ResponseCode.POLLING_TIMEOUT, "timeout too much"),
        ({"topic": "nothing"}, ResponseCode.TOPIC_NOT_EXIST, "topic [nothing] not exist"),
        ({"topic": "plain"}, ResponseCode.INVALID_PARAMETER, "message type not match"),
        ({"consumerGroup": "others"}, ResponseCode.INVALID_PARAMETER, "bind topic not match"),
    ],
)
def test_pops_that_are_refused(changes: dict[str, object], code: int, remark: str) -> None:
    """In Java's words."""
    stage = a_stage()
    stage.make_topic("plain", "+message.type=NORMAL")
    answer = stage.pop_lite(**changes)
    assert answer.code == code
    assert remark in (answer.remark or "")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "plain"}, ResponseCode.INVALID_PARAMETER),
        ({"consumerGroup": "others"}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": 1}, ResponseCode.INVALID_PARAMETER),
        ({"offset": 9}, ResponseCode.NO_MESSAGE),
        ({"offset": 1}, ResponseCode.MESSAGE_ILLEGAL),
        ({"offset": 0}, ResponseCode.SUCCESS),
    ],
)
def test_acknowledgements_that_are_refused(changes: dict[str, object], code: int) -> None:
    """Of another topic, group or queue, and of what was not popped."""
    stage = a_stage(b"a", b"b")
    stage.make_topic("plain", "+message.type=NORMAL")
    popped = stage.pop_lite(maxMsgNum=1)
    assert stage.ack_lite(popped, 0, **changes).code == code


def test_acknowledged_twice() -> None:
    """It is as if it were acknowledged once; so is what another pop has had since."""
    stage = a_stage(b"a")
    popped = stage.pop_lite(invisibleTime=100)
    stage.pass_ms(100)
    again = stage.pop_lite()
    assert (stage.ack_lite(popped, 0).code, stage.read()) == (0, 0)
    assert [stage.ack_lite(again, 0).code for _ in range(2)] == [0, 0]
    assert stage.read() == 1
    info = stage.told(RequestCode.GET_BROKER_LITE_INFO)
    assert (info["orderInfoCount"], info["topicMeta"]) == (1, {PARENT: 30})
