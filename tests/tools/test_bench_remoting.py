"""The raw client's requests, as a broker understands them."""

from __future__ import annotations

import pytest

from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.remoting_frames import (
    ack_frames,
    checked_reply,
    commit_frame,
    half_frame,
    pop_frame,
    pull_frame,
    send_frame,
)
from logstore.tools.dev.remoting_request import read_answer
from tests.compat.rocketmq.broker_peer import TOPIC, decoded
from tests.compat.rocketmq.frames import answers, joined, split
from tests.compat.rocketmq.pop.pop_stage import GROUP, PopStage

COUNT = 8


def served(stage: PopStage, frame: bytes) -> bytes:
    """Return what a broker answers, without its size."""
    (reply,) = split(joined(stage.broker.connect("127.0.0.1", 40_900).feed(frame)))
    return reply


def test_what_is_popped_can_be_acknowledged() -> None:
    """All of it, by what the answer says of queues and offsets; nothing comes again."""
    stage = PopStage(brokerName="broker-a")
    for number in range(COUNT):
        checked_reply(served(stage, send_frame(TOPIC, number % 2, b"body", {"TAGS": "A"})))
    popped = checked_reply(served(stage, pop_frame(TOPIC, GROUP)))
    acks = ack_frames(TOPIC, GROUP, popped)
    assert len(acks) == COUNT
    for frame in acks:
        checked_reply(served(stage, frame))
    stage.pass_ms(3_700_000)
    assert stage.bodies() == []


def test_half_messages_are_committed() -> None:
    """They are read then."""
    stage = PopStage()
    half = checked_reply(served(stage, half_frame(TOPIC, b"half")))
    assert stage.peer.messages() == []
    checked_reply(served(stage, commit_frame(TOPIC, half)))
    assert [message.body for message in stage.peer.messages()] == [b"half"]


@pytest.mark.parametrize(("kind", "expression"), [("TAG", "A"), ("SQL92", "a = '1'")])
def test_a_pull_gets_what_passes_its_filter(kind: str, expression: str) -> None:
    """By tag, and by property."""
    stage = PopStage(enablePropertyFilter="true")
    for number in range(COUNT):
        tag = "A" if number == 1 else "B"
        properties = {"TAGS": tag, "a": str(number)}
        checked_reply(served(stage, send_frame(TOPIC, 0, b"%d" % number, properties)))
    connection = stage.broker.connect("127.0.0.1", 40_901)
    (answer,) = answers(joined(connection.feed(pull_frame(TOPIC, 0, kind, expression))))
    assert [message.body for message in decoded(answer.body)] == [b"1"]


def test_a_refusal_is_told() -> None:
    """With code and remark."""
    stage = PopStage()
    reply = served(stage, send_frame("no/such", 0, b"", {}))
    assert read_answer(reply).code
    with pytest.raises(BenchError, match=rf"answered {read_answer(reply).code}: "):
        checked_reply(reply)
