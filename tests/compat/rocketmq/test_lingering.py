"""A broker whose queues and index follow the log many messages at a time: nobody sees it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import (
    DIRECTORY,
    TOPIC,
    Peer,
    a_broker,
    decoded,
    sent_fields,
)
from tests.compat.rocketmq.frames import request

GROUP = "readers"


def a_lingering_broker(
    settings: Mapping[str, str] | None = None, *, lingers: bool = True
) -> tuple[Broker, Peer, ManualClock]:
    """Return a broker that a server drives, a client, and the clock; one message is there."""
    clock = ManualClock()
    broker = a_broker(SimulatedHost(clock=clock), settings)
    peer = Peer(broker)
    peer.produce(b"first", properties="WAIT\x01false\x02")
    peer.pull(group=GROUP)
    broker.defers_work, broker.lingers = True, lingers
    return broker, peer, clock


def test_queues_follow_many_messages_at_a_time() -> None:
    """What is put waits for the next tick; the turn after many messages dispatches them."""
    broker, peer, clock = a_lingering_broker()

    def produce_together(count: int) -> None:
        fields = sent_fields(TOPIC, 0, "")
        frame = request(RequestCode.SEND_MESSAGE_V2, fields, b"one of many")
        peer.connection.feed(frame * count)

    produce_together(100)
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    produce_together(27)
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    produce_together(3)
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 131
    peer.produce(b"a last one")
    broker.start_housekeeping()
    clock.advance(100)
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 132


def test_queues_follow_in_small_steps_where_messages_come_one_by_one() -> None:
    """Nobody has to wait long for what many messages take."""
    broker, peer, _ = a_lingering_broker()
    for number in range(16 - 1):
        peer.produce(b"%d" % number)
        broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    peer.produce(b"one more")
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 17
    peer.pull(group=GROUP)  # and all begins again
    for number in range(16 - 1):
        peer.produce(b"%d" % number)
        broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 17


def test_large_messages_are_not_kept_waiting() -> None:
    """A megabyte of messages is dispatched in the turn behind it."""
    broker, peer, _ = a_lingering_broker()
    peer.produce(bytes(900_000))
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 1
    peer.produce(bytes(200_000), queue_id=1)
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 2


@pytest.mark.parametrize("properties", ["DELAY\x011\x02", "TIMER_DELAY_MS\x011500\x02"])
def test_what_the_broker_delivers_waits_for_more(properties: str) -> None:
    """Messages that are to come later come into their queue together, with the next tick."""
    broker, peer, clock = a_lingering_broker({"timerWheelEnable": "true"})
    topic = "SCHEDULE_TOPIC_XXXX" if properties.startswith("DELAY") else "rmq_sys_wheel_timer"
    for _ in range(3):
        assert peer.produce(properties=properties).code == 0
        broker.timers.run()
    assert broker.store.max_queue_offset(topic, 0) == 0
    broker.start_housekeeping()
    clock.advance(100)
    broker.timers.run()
    assert broker.store.max_queue_offset(topic, 0) == 3


def test_who_has_put_nothing_leaves_nothing_to_do() -> None:
    """A read of questions alone sets no timer."""
    broker, peer, _ = a_lingering_broker()
    pending = len(broker.timers)
    peer.pull()
    peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": 0})
    assert len(broker.timers) == pending


@pytest.mark.parametrize(
    "settings",
    [{"flushDiskType": "SYNC_FLUSH"}, {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}],
)
def test_senders_who_wait_for_a_flush_or_slaves_do_not_wait_for_more(
    settings: Mapping[str, str],
) -> None:
    """Where answers wait for the disk or slaves, work begins with the next turn."""
    broker, peer, _ = a_lingering_broker(settings)
    peer.produce(b"second", properties="UNIQ_KEY\x011\x02WAIT\x01false\x02")
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 2


def test_slaves_get_at_once_what_was_put() -> None:
    """A slave that is connected does not wait either."""
    broker, peer, _ = a_lingering_broker()
    slave = broker.replication.connect("127.0.0.1", 40900)
    slave.writable()[:8] = (0).to_bytes(8, "big")
    slave.received(8)
    peer.produce(b"second")
    broker.timers.run()
    assert broker.store.max_queue_offset(TOPIC, 0) == 2


def test_whoever_waits_is_answered_at_once() -> None:
    """A held pull is answered with the send that ends it, and sees what was put before."""
    broker, peer, _ = a_lingering_broker()
    peer.produce(b"second")
    reader = Peer(broker, 40002)
    fields = reader.pull_fields(TOPIC, 0, 2, GROUP)
    opaque = reader.send(RequestCode.PULL_MESSAGE, fields)
    peer.produce(b"elsewhere", queue_id=1)
    assert reader.answer_to(opaque) is None
    peer.produce(b"third")
    answer = reader.answer_to(opaque)
    assert answer is not None
    assert [message.body for message in decoded(answer.body)] == [b"third"]


QUEUE: Mapping[str, object] = {"topic": TOPIC, "queueId": 0}
SPAN: Mapping[str, object] = {"topic": TOPIC, "maxNum": 10, "beginTimestamp": 0}


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.GET_MAX_OFFSET, QUEUE),
        (RequestCode.GET_BROKER_RUNTIME_INFO, {}),
        (RequestCode.QUERY_MESSAGE, {**SPAN, "endTimestamp": 2**60, "key": "k2"}),
        (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, {**QUEUE, "timestamp": 2**60}),
        (RequestCode.GET_TOPIC_STATS_INFO, {"topic": TOPIC}),
        (RequestCode.GET_CONSUME_STATS, {"consumerGroup": GROUP}),
        (RequestCode.GET_BROKER_CONSUME_STATS, {}),
        (RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": TOPIC, "group": GROUP}),
        (RequestCode.QUERY_CONSUME_QUEUE, {**QUEUE, "index": 0, "count": 9}),
    ],
)  # fmt: skip
def test_who_asks_sees_all_that_was_acknowledged(
    code: RequestCode, fields: Mapping[str, object]
) -> None:
    """Every question about queues and index is answered as by a broker that never lingers."""
    answers: list[tuple[object, ...]] = []
    before: list[tuple[object, ...]] = []
    for lingers in (True, False):
        broker, peer, clock = a_lingering_broker(lingers=lingers)
        broker.store.consumer_offsets.commit(GROUP, TOPIC, 0, 1)
        found = peer.ask(code, fields)
        before.append((found.code, found.fields, found.body))
        clock.advance(1)
        peer.produce(b"second", properties="KEYS\x01k2\x02UNIQ_KEY\x01u2\x02")
        if not lingers:
            broker.timers.run()
        found = peer.ask(code, fields)
        answers.append((found.code, found.fields, found.body))
    assert answers[0] == answers[1]
    assert answers != before


def test_a_topic_that_is_deleted_leaves_no_queue_behind() -> None:
    """What was sent right before is not dispatched into a queue that is gone."""
    broker, peer, clock = a_lingering_broker()
    peer.produce(b"second")
    assert peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": TOPIC}).code == 0
    clock.advance(10)
    broker.timers.run()
    assert broker.store.consume_queues.of_topic(TOPIC) == {}
    assert not broker.host.fs.is_directory(f"{DIRECTORY}/consumequeue/{TOPIC}")
