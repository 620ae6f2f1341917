"""What is told of the time wheel: how far it is, and how many messages wait."""

from __future__ import annotations

from typing import Any

import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker
from tests.compat.rocketmq.pop.pop_stage import PopStage


def checkpoint(stage: PopStage) -> TimerCheckpoint:
    """Return how far the wheel is."""
    answer = stage.peer.ask(RequestCode.GET_TIMER_CHECK_POINT)
    assert (answer.code, len(answer.body)) == (ResponseCode.SUCCESS, 56)
    return TimerCheckpoint.decode(bytes(answer.body))


def waiting(stage: PopStage) -> dict[str, Any]:
    """Return how many messages of each topic wait."""
    answer = stage.peer.ask(RequestCode.GET_TIMER_METRICS)
    counts = orjson.loads(answer.body)["timingCount"]
    return {topic: metric["count"] for topic, metric in counts.items()}


def test_messages_that_wait_are_counted() -> None:
    """As long as they do; the wheel has read up to now where none is left."""
    stage = PopStage()
    assert waiting(stage) == {}
    before = checkpoint(stage)
    assert (before.last_timer_queue_offset, before.last_timer_log_flush_where) == (0, 0)
    assert before.last_read_time_ms == stage.clock.wall_ms() // 1000 * 1000
    for seconds in (3, 30):
        stage.peer.produce(b"later", properties=f"TIMER_DELAY_SEC\x01{seconds}\x02")
    stage.pass_ms(1500)
    assert waiting(stage) == {TOPIC: 2}
    among = checkpoint(stage)
    assert (among.last_timer_queue_offset, among.master_timer_queue_offset) == (2, 2)
    assert among.last_timer_log_flush_where == 104
    stage.pass_ms(4000)
    assert waiting(stage) == {TOPIC: 1}
    stage.pass_ms(30_000)
    assert waiting(stage) == {TOPIC: 0}
    assert checkpoint(stage).last_read_time_ms == stage.clock.wall_ms() // 1000 * 1000


def test_the_runtime_table_tells_what_waits() -> None:
    """What stands in the wheel, and what has yet to come into it."""
    stage = PopStage()

    def told() -> tuple[str, str]:
        table = stage.peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).content["table"]
        return table["timerOffsetBehind"], table["timerCongestNum"]

    assert told() == ("0", "0")
    for seconds in (3, 30):
        stage.peer.produce(b"later", properties=f"TIMER_DELAY_SEC\x01{seconds}\x02")
    assert told() == ("2", "0")
    stage.pass_ms(1500)
    assert told() == ("0", "2")
    stage.pass_ms(4000)
    assert told() == ("0", "1")
    stage.pass_ms(30_000)
    assert told() == ("0", "0")


def test_what_waits_for_a_topic_that_is_deleted_is_not_counted() -> None:
    """Though it comes all the same, and is subtracted then, as by a real broker."""
    stage = PopStage()
    stage.peer.produce(b"later", properties="TIMER_DELAY_SEC\x013\x02")
    stage.pass_ms(1500)
    assert waiting(stage) == {TOPIC: 1}
    assert stage.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    assert waiting(stage) == {}
    stage.pass_ms(4000)
    assert waiting(stage) == {TOPIC: -1}


def test_without_a_wheel_there_is_nothing_to_tell() -> None:
    """In Java's words."""
    peer = Peer(a_broker())
    for code, remark in (
        (RequestCode.GET_TIMER_CHECK_POINT, "The checkpoint is null"),
        (RequestCode.GET_TIMER_METRICS, "The timer message store is null"),
    ):
        answer = peer.ask(code)
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
