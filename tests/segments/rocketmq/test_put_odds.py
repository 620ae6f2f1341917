"""What properties ask of the store, as odd as programs may write them."""

from __future__ import annotations

import pytest

from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.test_put_path import LMQ, roomy


@pytest.fixture
def host() -> SimulatedHost:
    """Return a simulated machine."""
    return SimulatedHost()


def test_a_delay_level_stays_as_it_is_spelled(host: SimulatedHost) -> None:
    """Only one that is too high is written anew."""
    store = roomy(host)
    store.put_message(draft(properties={"DELAY": "+018"}))
    store.dispatch()
    (message,) = store.queue("SCHEDULE_TOPIC_XXXX", 17).messages(0, 1)
    assert message.properties["DELAY"] == "+018"


def test_other_queues_are_named_in_vain(host: SimulatedHost) -> None:
    """Only light queues get an offset, and where none does there is no unit either."""
    store = roomy(host, LMQ)
    store.put_message(draft(properties={"INNER_MULTI_DISPATCH": "plain"}))
    store.dispatch()
    (message,) = store.queue("TopicTest", 0).messages(0, 1)
    assert b"INNER_MULTI_QUEUE_OFFSET\x01\x02" in message.properties_text
    assert store.consume_queues.get("plain", 0) is None


def test_a_time_beyond_java_s_is_long_past(host: SimulatedHost) -> None:
    """Its sum with now is below 0 there, so the message is delivered at once."""
    store = roomy(host)
    store.put_message(draft(properties={"TIMER_DELAY_MS": str(2**63 - 1)}))
    store.dispatch()
    assert store.max_queue_offset("TopicTest", 0) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("TIMER_DELAY_SEC", " 5"), ("TIMER_DELAY_MS", "5_0"), ("TIMER_DELIVER_MS", str(2**63))],
)
def test_a_time_is_what_java_takes_for_a_number(name: str, value: str, host: SimulatedHost) -> None:
    """Blanks are none of one, and there is a largest."""
    result = roomy(host).put_message(draft(properties={name: value}))
    assert result.status == PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL
