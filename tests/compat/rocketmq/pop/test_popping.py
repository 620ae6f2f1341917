"""Pops: what they get, what the answer says of it, what they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, decoded
from tests.compat.rocketmq.pop.pop_stage import GROUP, PopStage


def test_one_queue() -> None:
    """The answer holds the messages of the queue and says which they are."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c", queue_id=1)
    stage.produce(b"d", queue_id=2)
    answer = stage.pop(queueId=1, maxMsgNums=2)
    assert (answer.code, answer.remark) == (0, "FOUND")
    assert answer.fields == {
        "popTime": str(stage.clock.wall_ms()),
        "invisibleTime": "10000",
        "reviveQid": "0",
        "restNum": "1",
        "startOffsetInfo": "0 1 0",
        "msgOffsetInfo": "0 1 0,1",
    }
    assert [message.body for message in decoded(answer.body)] == [b"a", b"b"]
    assert stage.committed(queue_id=1) == 2


def test_nobody_else_gets_what_was_popped() -> None:
    """What one pop has got another one does not get, and it goes on behind it."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    assert stage.bodies(maxMsgNums=2) == [b"a", b"b"]
    assert stage.bodies(maxMsgNums=2) == [b"c"]
    answer = stage.pop()
    assert (answer.code, answer.remark) == (ResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE")
    assert (answer.fields or {})["startOffsetInfo"] == ""


def test_all_queues() -> None:
    """With queue -1 every queue is looked at, until there are as many as were wanted."""
    stage = PopStage()
    for queue_id in range(4):
        stage.produce(b"%d" % queue_id, b"%d" % queue_id, queue_id=queue_id)
    first = stage.pop(maxMsgNums=5)
    assert len(decoded(first.body)) == 5
    assert (first.fields or {})["restNum"] == "3"
    assert len(stage.popped(maxMsgNums=5)) == 3


def test_groups_do_not_know_of_each_other() -> None:
    """Each group gets every message."""
    stage = PopStage()
    stage.produce(b"a")
    assert stage.bodies() == stage.bodies(consumerGroup="other") == [b"a"]


@pytest.mark.parametrize(("mode", "expected"), [(0, [b"a", b"b", b"c"]), (1, [b"a", b"b", b"c"])])
def test_new_groups_begin_at_the_first_message(mode: int, expected: list[bytes]) -> None:
    """Where the first message is likely to be in memory either mode begins there, as in Java."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    assert stage.bodies(initMode=mode) == expected


def test_new_groups_begin_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not, mode 1 begins with the last message."""
    stage = PopStage()

    def never(topic: str, queue_id: int) -> bool:
        del topic, queue_id
        return False

    monkeypatch.setattr(stage.broker.store, "is_first_recent", never)
    stage.produce(b"a", b"b", b"c")
    assert stage.bodies(initMode=1) == [b"c"]


def test_new_groups_begin_at_the_end_where_it_is_said() -> None:
    """Without a look at whether the first message is near, mode 1 begins with the last one."""
    stage = PopStage(initPopOffsetByCheckMsgInMem="false")
    stage.produce(b"a", b"b", b"c")
    assert stage.bodies(initMode=1) == [b"c"]
    stage.broker.update_settings({"initPopOffsetByCheckMsgInMem": "true"})
    assert stage.bodies(initMode=1, consumerGroup="other") == [b"a", b"b", b"c"]


def test_by_tag() -> None:
    """Only messages with the tag are handed out; the group goes on behind all of them."""
    stage = PopStage()
    stage.produce(b"a", tags="x")
    stage.produce(b"b", tags="y")
    stage.produce(b"c", tags="x")
    (first, second) = stage.popped(exp="x", expType="TAG")
    assert (first.message.body, second.message.body) == (b"a", b"c")
    assert second.handle.endswith(" 0 2")
    assert stage.committed() == 3


def test_by_expression() -> None:
    """An SQL expression is evaluated for each message; one that is none is refused."""
    stage = PopStage()
    stage.peer.produce(b"a", properties="n\x013\x02")
    stage.peer.produce(b"b", properties="n\x017\x02")
    assert stage.bodies(exp="n > 5", expType="SQL92") == [b"b"]
    refused = stage.pop(exp="n >", expType="SQL92")
    assert refused.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_nothing_that_matches_is_passed_by() -> None:
    """Where nothing matches the group goes on all the same, and nothing comes again."""
    stage = PopStage()
    stage.produce(b"a", b"b", tags="x")
    assert stage.bodies(exp="y") == []
    assert stage.committed() == 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"maxMsgNums": 33}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": 99}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"bornTime": 1}, ResponseCode.POLLING_TIMEOUT),
        ({"consumerGroup": "no/group"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    ],
)
def test_refused(changes: dict[str, Any], code: int) -> None:
    """What cannot be served is refused as Java does, with a header of zeros."""
    stage = PopStage()
    stage.produce(b"a")
    answer = stage.pop(**changes)
    assert answer.code == code
    assert answer.fields == {
        "popTime": "0",
        "invisibleTime": "0",
        "reviveQid": "0",
        "restNum": "0",
    }


def test_without_a_time_wheel() -> None:
    """Checkpoints need the time wheel: without it nothing is popped."""
    stage = PopStage(timerWheelEnable="false")
    stage.produce(b"a")
    assert stage.pop().code == ResponseCode.SYSTEM_ERROR


def test_a_checkpoint_that_cannot_be_put() -> None:
    """What could not come again is not handed out, and the group stays where it is."""
    stage = PopStage()
    stage.produce(b"a")
    stage.pop(maxMsgNums=0)
    stage.broker.store.putting.closed_reason = "for a while"
    assert stage.bodies() == []
    stage.broker.store.putting.closed_reason = ""
    assert stage.bodies() == [b"a"]


def test_a_reset_on_the_server() -> None:
    """A group that was sent back pops from there."""
    stage = PopStage()
    stage.produce(b"a", b"b", b"c")
    assert len(stage.popped()) == 3
    stage.broker.store.consumer_offsets.assign_reset(TOPIC, "g", 0, 1)
    assert stage.bodies() == [b"b", b"c"]


def test_an_offset_that_is_gone() -> None:
    """A group that stands outside of the queue is set right."""
    stage = PopStage()
    stage.produce(b"a", b"b")
    stage.broker.store.consumer_offsets.commit("g", TOPIC, 0, 77)
    assert stage.bodies() == []
    assert stage.committed() == 2
    stage.produce(b"c")
    assert stage.bodies() == [b"c"]


def test_peeking_takes_nothing() -> None:
    """What is only looked at can still be popped."""
    stage = PopStage()
    stage.produce(b"a", b"b")
    asked = {"consumerGroup": "g", "topic": TOPIC, "queueId": -1, "maxMsgNums": 1}
    for _ in range(2):
        answer = stage.peer.ask(RequestCode.PEEK_MESSAGE, asked)
        assert [message.body for message in decoded(answer.body)] == [b"a"]
        assert (answer.fields or {})["restNum"] == "2"
    assert stage.bodies() == [b"a", b"b"]
    empty = stage.peer.ask(RequestCode.PEEK_MESSAGE, asked)
    assert empty.code == ResponseCode.PULL_NOT_FOUND


def test_nothing_is_made_without_need() -> None:
    """As long as nobody pops there is nothing of it: no file, no service."""
    stage = PopStage()
    stage.produce(b"a")
    stage.peer.pull()
    stage.pass_ms(15_000)
    assert not stage.broker.has_popped
    assert not stage.host.fs.exists("/store/config/consumerOrderInfo.json")


def test_a_group_ahead_of_a_queue_without_messages() -> None:
    """What it has committed stays, as where somebody has asked a real broker for the queue."""
    stage = PopStage()
    stage.produce(b"elsewhere")
    stage.broker.store.consumer_offsets.commit(GROUP, TOPIC, 1, 7)
    stage.pop(queueId=1)
    assert stage.committed(queue_id=1) == 7


def test_less_than_no_message() -> None:
    """Who wants that is refused, and the group has begun nowhere, as with Java."""
    stage = PopStage()
    stage.produce(b"a")
    refused = stage.pop(maxMsgNums=-1)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert (refused.remark or "").startswith("the custom field <maxMsgNums> is -1:")
    assert stage.committed() == -1
    asked = {"consumerGroup": "g", "topic": TOPIC, "queueId": -1, "maxMsgNums": -1}
    assert stage.peer.ask(RequestCode.PEEK_MESSAGE, asked).code == ResponseCode.SYSTEM_ERROR


def test_checkpoints_are_not_counted_as_sent() -> None:
    """What pops and acknowledgements leave in the time wheel's topic is none of Java's counts."""
    stage = PopStage()
    stage.produce(b"a")
    (popped,) = stage.popped()
    stage.ack(popped)
    assert stage.broker.store.stats.put_times_by_topic["rmq_sys_wheel_timer"] == 2
    asked = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "rmq_sys_wheel_timer"}
    assert stage.peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, asked).code == 1
