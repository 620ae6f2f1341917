"""QUERY_CONSUME_TIME_SPAN: how old the messages are that a group consumes now."""

from __future__ import annotations

from datetime import datetime

import orjson

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.broker_peer import TOPIC
from tests.compat.rocketmq.pop.pop_stage import GROUP, PopStage


def test_times_are_told_as_numbers_and_as_texts() -> None:
    """The texts are those of the broker's zone; a queue without messages has had its last at -1."""
    stage = PopStage()
    stage.produce(b"a")
    sent_ms = stage.clock.wall_ms()
    answer = stage.peer.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": TOPIC, "group": GROUP})
    spans = orjson.loads(answer.body)["consumeTimeSpanSet"]
    for name in ("minTimeStamp", "maxTimeStamp", "consumeTimeStamp"):
        assert spans[0][name] == sent_ms
        at = datetime.fromtimestamp(sent_ms // 1000)
        assert spans[0][f"{name}Str"] == f"{at:%Y-%m-%d#%H:%M:%S}:{sent_ms % 1000:03}"
    assert spans[-1]["maxTimeStamp"] == -1
    at = datetime.fromtimestamp(-1)
    assert spans[-1]["maxTimeStampStr"] == f"{at:%Y-%m-%d#%H:%M:%S}:999"
