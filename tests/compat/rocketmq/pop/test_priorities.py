"""Messages with priorities: which queue they go to, and which of them is popped first."""

from __future__ import annotations

import attrs
import pytest

from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupConfig
from tests.compat.rocketmq.broker_peer import TOPIC
from tests.compat.rocketmq.pop.pop_stage import GROUP, REVIVED_WITHIN_MS, PopStage

RETRY = f"%RETRY%{GROUP}_{TOPIC}"


def sent(stage: PopStage, priority: str, more: str = "", body: bytes = b"v") -> str:
    """Send a message to queue 1; return the queue that its sender is told."""
    text = f"{more}_SYS_MSG_PRIORITY_\x01{priority}\x02"
    answer = stage.peer.produce(body, queue_id=1, properties=text)
    assert answer.code == 0
    return str((answer.fields or {})["queueId"])


def of_priorities(stage: PopStage) -> None:
    """Say that the topic is one of priorities."""
    stage.produce(b"makes it", queue_id=0)
    assert stage.popped(queueId=0, invisibleTime=10_000_000)
    config = stage.broker.topics.get(TOPIC)
    assert config is not None
    stage.broker.topics.put(attrs.evolve(config, attributes={"message.type": "PRIORITY"}))


def first_chance(stage: PopStage, monkeypatch: pytest.MonkeyPatch, chance: int) -> None:
    """Let the next pops begin with the same chance."""

    def same(*_: int) -> int:
        return chance

    monkeypatch.setattr(stage.host.rng, "randrange", same)


@pytest.mark.parametrize(
    ("priority", "queue"),
    [("0", "0"), ("3", "3"), ("4", "3"), ("+2", "2"), ("2147483647", "3"),
     ("-1", "1"), ("high", "1"), ("2147483648", "1"), ("", "1")],
)  # fmt: skip
def test_a_priority_is_the_number_of_a_queue(priority: str, queue: str) -> None:
    """What is more than there are queues goes to the last one; what is no number says nothing."""
    stage = PopStage()
    for _ in range(3):  # the way is learned from the first and the second
        assert sent(stage, priority) == queue
    found = stage.peer.messages(queue_id=int(queue))
    assert [message.properties.get("_SYS_MSG_PRIORITY_", "") for message in found] == [priority] * 3


@pytest.mark.parametrize("more", ["__SHARDINGKEY\x01k\x02", "DELAY\x010\x02"])
def test_a_priority_goes_with_nothing_else(more: str) -> None:
    """A message that is special in another way goes where it is sent, and loses its priority."""
    stage = PopStage()
    assert sent(stage, "3", more) == "1"
    (message,) = stage.peer.messages(queue_id=1)
    assert "_SYS_MSG_PRIORITY_" not in message.properties


def test_a_half_message_loses_its_priority() -> None:
    """Its queue is the one that the client says."""
    stage = PopStage()
    stage.produce(b"makes the topic")
    answer = stage.peer.produce(
        b"half", queue_id=1, f=4,
        properties="TRAN_MSG\x01true\x02PGROUP\x01p\x02_SYS_MSG_PRIORITY_\x013\x02",
    )  # fmt: skip
    assert answer.code == 0
    (half,) = stage.peer.messages("RMQ_SYS_TRANS_HALF_TOPIC")
    assert half.properties["REAL_QID"] == "1"
    assert "_SYS_MSG_PRIORITY_" not in half.properties


@pytest.mark.parametrize(("ascending", "expected"), [("true", "3210"), ("false", "0123")])
def test_the_highest_is_popped_first(
    ascending: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever chance says; priorityOrderAsc=false makes 0 the highest."""
    stage = PopStage(priorityOrderAsc=ascending)
    of_priorities(stage)
    for priority in "2031":
        sent(stage, priority, body=priority.encode())
    first_chance(stage, monkeypatch, 42)
    found = [
        popped.message.body.decode() for _ in range(4) for popped in stage.popped(maxMsgNums=1)
    ]
    assert "".join(found) == expected


def test_chance_says_where_other_topics_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their queues are gone through from the last to the first, moved on by chance."""
    stage = PopStage()
    for queue_id in range(4):
        stage.produce(b"%d" % queue_id, queue_id=queue_id)
    first_chance(stage, monkeypatch, 42)
    assert [popped.message.body for popped in stage.popped()] == [b"1", b"0", b"3", b"2"]


@pytest.mark.parametrize(("factor", "chance", "first"), [("50", 49, b"3"), ("50", 50, b"1")])
def test_a_group_says_how_often(
    factor: str, chance: int, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its priority.factor is the percentage of pops that heed priorities."""
    stage = PopStage()
    of_priorities(stage)
    stage.broker.groups.put(SubscriptionGroupConfig(GROUP, attributes={"priority.factor": factor}))
    for queue_id in range(4):
        stage.produce(b"%d" % queue_id, queue_id=queue_id)
    first_chance(stage, monkeypatch, chance)
    (popped,) = stage.popped(maxMsgNums=1)
    assert popped.message.body == first


@pytest.mark.parametrize(("percent", "first"), [("0", b"new"), ("100", b"old")])
def test_what_comes_again_stands_behind(percent: str, first: bytes) -> None:
    """What popFromRetryProbabilityForPriority says holds where priorities are heeded."""
    stage = PopStage(popFromRetryProbability="50", popFromRetryProbabilityForPriority=percent)
    of_priorities(stage)
    stage.produce(b"old", queue_id=3)
    assert len(stage.popped(maxMsgNums=1)) == 1
    stage.pass_ms(10_000 + REVIVED_WITHIN_MS)
    stage.produce(b"new", queue_id=0)
    (popped,) = stage.popped(maxMsgNums=1)
    assert popped.message.body == first


def come_again(stage: PopStage) -> list[tuple[int, bytes]]:
    """Pop all and acknowledge nothing; return each message of the retry topic with its queue."""
    assert stage.popped(invisibleTime=1000)
    stage.pass_ms(1000 + REVIVED_WITHIN_MS)
    config = stage.broker.topics.get(RETRY)
    assert config is not None
    assert config.read_queue_count == config.write_queue_count
    return [
        (queue_id, message.body)
        for queue_id in range(config.read_queue_count)
        for message in stage.peer.messages(RETRY, queue_id=queue_id)
    ]


def test_what_comes_again_keeps_its_queue_where_it_is_to() -> None:
    """With useSeparateRetryQueue, and in the one queue of the retry topic without it."""
    stage = PopStage(useSeparateRetryQueue="true")
    for queue_id in range(4):
        stage.produce(b"%d" % queue_id, queue_id=queue_id)
    assert come_again(stage) == [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3")]
    assert [stage.committed(RETRY, queue_id) for queue_id in range(4)] == [0, 0, 0, 0]
    stage = PopStage()
    stage.produce(b"3", queue_id=3)
    assert come_again(stage) == [(0, b"3")]


def test_the_retry_topic_grows_with_the_other_one() -> None:
    """A topic that has got more queues since has them there too, once something comes back."""
    stage = PopStage(useSeparateRetryQueue="true")
    stage.produce(b"0", queue_id=0)
    assert come_again(stage) == [(0, b"0")]
    config = stage.broker.topics.get(TOPIC)
    assert config is not None
    stage.broker.topics.put(attrs.evolve(config, read_queue_count=6, write_queue_count=6))
    stage.produce(b"5", queue_id=5)
    assert (5, b"5") in come_again(stage)
    assert stage.committed(RETRY, 5) == 0
