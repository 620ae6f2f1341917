"""Pops and notices that wait: woken in order, by arrivals, at their time, or never again."""

from __future__ import annotations

import pytest

from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, decoded, sent_fields
from tests.compat.rocketmq.frames import request
from tests.compat.rocketmq.pop.pop_stage import GROUP, REVIVED_WITHIN_MS, PopStage

POP, NOTIFICATION = RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION


def wait(stage: PopStage, peer: Peer, poll_ms: int = 15_000, **changes: object) -> int:
    """Have a client wait with a pop."""
    return peer.send(POP, stage.fields(pollTime=poll_ms, **changes))


def bodies(peer: Peer, opaque: int) -> list[bytes] | None:
    """Return what a pop that waited has got, None if it still waits."""
    answer = peer.answer_to(opaque)
    return None if answer is None else [message.body for message in decoded(answer.body)]


def a_stage() -> PopStage:
    """Return a stage whose topic is there and empty for the group."""
    stage = PopStage()
    stage.produce(b"first")
    (popped,) = stage.popped()
    stage.ack(popped)
    return stage


def polling_count(stage: PopStage, queue_id: int = -1) -> int:
    """Ask how many wait."""
    fields = {"consumerGroup": GROUP, "topic": TOPIC, "queueId": queue_id}
    answer = stage.peer.ask(RequestCode.POLLING_INFO, fields)
    return int((answer.fields or {})["pollingNum"])


def test_an_arrival_wakes_one() -> None:
    """The one who has waited longest gets the message; the others go on waiting."""
    stage = a_stage()
    first, second = stage.client(), stage.client()
    waits = [wait(stage, first), wait(stage, second, 16_000)]
    assert polling_count(stage) == 2
    stage.produce(b"a", queue_id=3)
    assert bodies(first, waits[0]) == [b"a"]
    assert bodies(second, waits[1]) is None
    stage.produce(b"b", queue_id=2)
    assert bodies(second, waits[1]) == [b"b"]
    assert polling_count(stage) == 0
    assert len(stage.broker.held_pulls) == 0


def test_what_is_left_wakes_the_next() -> None:
    """Whoever may not take all has the next one in line woken."""
    stage = a_stage()
    peers = [stage.client() for _ in range(3)]
    waits = [wait(stage, peer, maxMsgNums=2) for peer in peers]
    sends = [
        request(RequestCode.SEND_MESSAGE_V2, sent_fields(TOPIC, 0), body, opaque=number)
        for number, body in enumerate((b"a", b"b", b"c", b"d", b"e"))
    ]
    stage.peer.connection.feed(b"".join(sends))
    stage.pass_ms(1)
    found = [bodies(peer, opaque) for peer, opaque in zip(peers, waits, strict=True)]
    assert found == [[b"a", b"b"], [b"c", b"d"], [b"e"]]


def test_of_one_queue() -> None:
    """Who waits for one queue is not woken by another one."""
    stage = a_stage()
    opaque = wait(stage, stage.peer, queueId=2)
    stage.client().produce(b"a", queue_id=1)
    assert bodies(stage.peer, opaque) is None
    stage.client().produce(b"b", queue_id=2)
    assert bodies(stage.peer, opaque) == [b"b"]


@pytest.mark.parametrize("queue_id", [-1, -5, -(2**31)])
def test_any_number_below_zero_is_all_queues(queue_id: int) -> None:
    """Whoever waits by it stands in line with those who wait by -1, and is woken by any queue."""
    stage = a_stage()
    popper, asker = stage.client(), stage.client()
    waits = wait(stage, popper, queueId=queue_id), ask(stage, asker, 16_000, queueId=queue_id)
    assert polling_count(stage, queue_id) == polling_count(stage) == 1
    stage.produce(b"a", queue_id=2)
    assert bodies(popper, waits[0]) == [b"a"]
    stage.produce(b"b", queue_id=3)
    assert told(asker, waits[1]) == "true"


def test_other_tags() -> None:
    """A message that does not match leaves a pop waiting, and is behind it."""
    stage = a_stage()
    peer = stage.client()
    opaque = wait(stage, peer, exp="x", expType="TAG")
    stage.produce(b"a", tags="y")
    assert bodies(peer, opaque) is None
    assert stage.committed() == 2
    stage.produce(b"b", tags="x")
    assert bodies(peer, opaque) == [b"b"]


def test_until_its_time() -> None:
    """At the end of its time, a little before it, a pop is told that there is nothing."""
    stage = a_stage()
    peer = stage.client()
    opaque = wait(stage, peer, 5000)
    stage.pass_ms(4900)
    assert peer.heard == []
    stage.pass_ms(100)
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE")
    assert polling_count(stage) == 0


def test_what_comes_again_wakes() -> None:
    """Who waits gets what somebody else did not acknowledge, as soon as it comes again."""
    stage = a_stage()
    stage.produce(b"a")
    stage.pop(invisibleTime=2000)
    peer = stage.client()
    opaque = wait(stage, peer, 30_000)
    stage.pass_ms(2000 + REVIVED_WITHIN_MS)
    assert bodies(peer, opaque) == [b"a"]


def test_a_lost_connection() -> None:
    """Nobody is woken for a connection that is gone: the next one gets the message."""
    stage = a_stage()
    gone, here = stage.client(), stage.client()
    wait(stage, gone)
    opaque = wait(stage, here)
    gone.hang_up()
    stage.produce(b"a")
    assert bodies(here, opaque) == [b"a"]
    last = stage.client()
    wait(stage, last)
    last.hang_up()
    assert len(stage.broker.popping.waits) == len(stage.broker.held_pulls) == 0


def test_too_many() -> None:
    """A line takes so many and no more."""
    stage = a_stage()
    peer = stage.client()
    for _ in range(1025):
        wait(stage, peer)
    opaque = wait(stage, peer)
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.POLLING_FULL


@pytest.mark.parametrize(("setting", "count"), [("popPollingSize", 3), ("maxPopPollingSize", 2)])
def test_as_many_as_settings_say(setting: str, count: int) -> None:
    """Of one queue there may be one more than is said; of all there are no more."""
    stage = a_stage()
    peer = stage.client()
    stage.broker.update_settings({setting: "2"})
    waiting = [wait(stage, peer) for _ in range(count)]
    answer = peer.answer_to(wait(stage, peer))
    assert answer is not None
    assert answer.code == ResponseCode.POLLING_FULL
    other = peer.answer_to(wait(stage, peer, queueId=1))
    assert (other is None) is (setting == "popPollingSize")
    stage.broker.update_settings({setting: "3"})
    assert bodies(peer, wait(stage, peer)) is None
    assert all(bodies(peer, opaque) is None for opaque in waiting)


def test_a_topic_that_goes() -> None:
    """Who waits for messages of a topic that is deleted is told so."""
    stage = a_stage()
    peer = stage.client()
    opaque = wait(stage, peer)
    stage.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC})
    answer = peer.answer_to(opaque)
    assert answer is not None
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_long_wait() -> None:
    """A pop that waits for minutes is woken at the end of them by a message."""
    stage = a_stage()
    peer = stage.client()
    opaque = wait(stage, peer, 400_000)
    stage.pass_ms(300_000)
    stage.produce(b"a")
    assert bodies(peer, opaque) == [b"a"]


def ask(stage: PopStage, peer: Peer, poll_ms: int = 0, **changes: object) -> int:
    """Have a client ask whether there is something to pop."""
    fields = {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": -1,
        "pollTime": poll_ms,
        "bornTime": stage.clock.wall_ms(),
        **changes,
    }
    return peer.send(NOTIFICATION, fields)


def told(peer: Peer, opaque: int) -> str | None:
    """Return whether there are messages, None if it was not said."""
    answer = peer.answer_to(opaque)
    return None if answer is None else (answer.fields or {})["hasMsg"]


def test_a_notice_says_what_there_is() -> None:
    """Whoever does not want to wait is told at once."""
    stage = a_stage()
    peer = stage.client()
    assert told(peer, ask(stage, peer)) == "false"
    stage.produce(b"a")
    assert told(peer, ask(stage, peer)) == "true"
    assert told(peer, ask(stage, peer, queueId=1)) == "false"
    assert stage.bodies() == [b"a"]


def test_a_notice_comes_with_a_message() -> None:
    """Whoever waits is told of an arrival, or in the end that there was none."""
    stage = a_stage()
    peer = stage.client()
    opaque = ask(stage, peer, 10_000)
    assert told(peer, opaque) is None
    stage.produce(b"a")
    assert told(peer, opaque) == "true"
    stage.pop()
    opaque = ask(stage, peer, 10_000)
    stage.pass_ms(10_000)
    assert told(peer, opaque) == "false"


@pytest.mark.parametrize(
    ("expression", "expected"), [("A", "false"), ("A || B", "true"), ("*", "true")]
)
def test_a_notice_of_tags(expression: str, expected: str) -> None:
    """What has other tags is not spoken of, unless so much is there that some may have them."""
    stage = a_stage()
    peer = stage.client()
    stage.produce(b"b", tags="B")
    assert told(peer, ask(stage, peer, expType="TAG", exp=expression)) == expected
    stage.produce(*[b"b"] * 62, tags="B")
    assert told(peer, ask(stage, peer, expType="TAG", exp=expression)) == expected
    stage.produce(b"b", tags="B")
    assert told(peer, ask(stage, peer, expType="TAG", exp=expression)) == "true"


def test_a_notice_of_tags_as_settings_say() -> None:
    """They are looked at among as few messages as is said, or never."""
    stage = a_stage()
    peer = stage.client()
    stage.produce(b"b", tags="B")
    stage.broker.update_settings({"maxMessageFilterNumForNotification": "2"})
    assert told(peer, ask(stage, peer, expType="TAG", exp="A")) == "false"
    stage.produce(b"b", tags="B")
    assert told(peer, ask(stage, peer, expType="TAG", exp="A")) == "true"
    stage.broker.update_settings({"maxMessageFilterNumForNotification": "64"})
    assert told(peer, ask(stage, peer, expType="TAG", exp="A")) == "false"
    stage.broker.update_settings({"useMessageFilterForNotification": "false"})
    assert told(peer, ask(stage, peer, expType="TAG", exp="A")) == "true"
    assert told(peer, ask(stage, peer, expType="SQL92", exp="a >")) == "true"
    stage.pop()
    opaque = ask(stage, peer, 10_000, expType="TAG", exp="A")
    assert told(peer, opaque) is None
    stage.produce(b"b", tags="B")
    assert told(peer, opaque) == "true"


@pytest.mark.parametrize(("kind", "expression"), [("TAG", "A"), ("SQL92", "TAGS = 'A'")])
def test_a_notice_is_waited_for_past_others(kind: str, expression: str) -> None:
    """Whoever waits is not woken by messages that its filter does not let through."""
    stage = a_stage()
    peer = stage.client()
    opaque = ask(stage, peer, 10_000, expType=kind, exp=expression)
    stage.produce(b"b", tags="B")
    assert told(peer, opaque) is None
    stage.produce(b"a", tags="A")
    assert told(peer, opaque) == "true"


@pytest.mark.parametrize(("kind", "expression", "expected"), [
    ("TAG", "A", "false"), ("SQL92", "TAGS = 'A'", "true"),
])  # fmt: skip
def test_a_notice_at_the_end_of_a_wait(kind: str, expression: str, expected: str) -> None:
    """As at its begin no more than tags is looked at."""
    stage = a_stage()
    peer = stage.client()
    opaque = ask(stage, peer, 10_000, expType=kind, exp=expression)
    stage.produce(b"b", tags="B")
    stage.pass_ms(10_000)
    assert told(peer, opaque) == expected


def test_a_notice_of_a_queue_that_is_free_again() -> None:
    """Nobody says what is there, so whoever waits looks, and at no more than tags."""
    stage = a_stage()
    peer = stage.client()
    sql = ask(stage, peer, 10_000, expType="SQL92", exp="a")
    tags = ask(stage, peer, 10_000, queueId=0, expType="TAG", exp="A")
    stage.produce(b"b", b"c", tags="B")
    assert told(peer, sql) is None
    (popped,) = stage.popped(order="true", maxMsgNums=1)
    stage.ack(popped)
    stage.pass_ms(1)
    assert told(peer, sql) == "true"
    assert told(peer, tags) is None


def test_a_notice_by_what_is_no_expression() -> None:
    """Is refused."""
    stage = a_stage()
    peer = stage.client()
    answer = peer.answer_to(ask(stage, peer, expType="SQL92", exp="a >"))
    assert answer is not None
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_a_notice_of_what_comes_again() -> None:
    """Messages that come again count, too."""
    stage = a_stage()
    stage.produce(b"a")
    stage.pop(invisibleTime=1000)
    peer = stage.client()
    opaque = ask(stage, peer, 20_000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    assert told(peer, opaque) == "true"
