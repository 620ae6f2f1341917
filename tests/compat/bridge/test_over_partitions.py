"""RocketMQ's broker over Kafka's partitions: waits, times, topics, sends that come together."""

from __future__ import annotations

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.rocketmq.pulling.held_pulls import HeldPull
from logstore.segments.kafka.record import Record
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.reading.message_filter import TagFilter
from logstore.segments.rocketmq.reading.time_lookup import BoundaryType
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import draft, open_bridge, partition_of, produce, pulled
from tests.compat.rocketmq.broker_peer import TOPIC
from tests.compat.rocketmq.frames import Answer, answers, joined
from tests.compat.rocketmq.test_send_run import joined_frames, sends

BORN_MS = 1_700_000_000_000


def a_bridge(clock: ManualClock | None = None) -> Bridge:
    """Return a bridge over Kafka's layout with a topic of one partition."""
    bridge = open_bridge("kafka", SimulatedHost(seed=1, clock=clock or ManualClock()))
    bridge.kafka.create_topic("orders", 1)
    return bridge


def tagged(tag: bytes) -> bytes:
    """Return properties with that tag."""
    return b"TAGS\x01" + tag + b"\x02"


@pytest.mark.parametrize("side", ["kafka", "rocketmq"])
def test_only_its_tags_wake_a_waiting_pull(side: str) -> None:
    """A pull that waits for a tag waits on when another one comes, from clients of either side."""
    bridge = a_bridge()
    broker = bridge.standalone.broker
    woken: list[str] = []
    red = TagFilter.of_expression("red")
    wants_red = HeldPull("orders", 0, 0, red, lambda: woken.append("red"), "owner")
    broker.held_pulls.hold(wants_red, 15_000)
    for tag, expected in ((b"blue", []), (b"green", []), (b"red", ["red"])):
        if side == "kafka":
            produce(bridge, "orders", [Record(0, BORN_MS, None, b"x", (("TAGS", tag),))])
        else:
            assert broker.store.put_message(draft("orders", b"x", tagged(tag))).is_ok
        broker.held_pulls.wake()
        assert woken == expected, tag


def test_times_are_those_of_storing() -> None:
    """A queue offset for a time is that of the first message stored then, not born then."""
    clock = ManualClock()
    bridge = a_bridge(clock)
    store = bridge.standalone.broker.store
    stored: list[int] = []
    for number in range(5):
        clock.advance(1_000)
        result = store.put_message(draft("orders", b"%d" % number))
        stored.append(result.store_timestamp_ms)
    for number, at_ms in enumerate(stored):
        assert store.queue_offset_for_time("orders", 0, at_ms) == number
        assert store.queue_offset_for_time("orders", 0, at_ms - 1) == number
        upper = store.queue_offset_for_time("orders", 0, at_ms, BoundaryType.UPPER)
        assert upper == number
    assert store.queue_offset_for_time("orders", 0, stored[-1] + 1) == 5


def test_a_topic_may_be_written_to_fewer_queues_than_are_read() -> None:
    """Kafka knows one number of partitions; RocketMQ's two numbers stay as they were set."""
    bridge = a_bridge()
    topics = bridge.standalone.broker.topics
    topics.put(TopicConfig("orders", 5, 4))
    found = topics.get("orders")
    assert found is not None
    assert (found.read_queue_count, found.write_queue_count) == (5, 4)
    assert len(bridge.kafka.topics["orders"].partitions) == 5
    bridge.kafka.add_partitions(bridge.kafka.topics["orders"], 6)
    found = topics.get("orders")
    assert found is not None
    assert (found.read_queue_count, found.write_queue_count) == (6, 6)


def test_sends_of_one_read_become_one_batch_a_partition() -> None:
    """They are answered and read as if each had come by itself, and stand in few batches."""
    bridge = a_bridge()
    bridge.kafka.add_partitions(bridge.kafka.topics[TOPIC], 4)
    connection = bridge.standalone.broker.connect("127.0.0.1", 40001)
    told: list[Answer] = []
    for start in (0, 4, 8, 12):
        told += answers(joined(connection.feed(joined_frames(sends(range(start, start + 4))))))
    found = answers(joined(connection.feed(joined_frames(sends(range(100, 140))))))
    assert {answer.code for answer in told + found} == {0}
    partition = partition_of(bridge, TOPIC)
    counts = [batch.record_count for batch in partition.batches(0)]
    assert counts[-1] == 10, counts
    fields = [answer.fields or {} for answer in found]
    places = [(int(one["queueId"]), int(one["queueOffset"])) for one in fields]
    assert places == [(at % 4, 4 + (at - 100) // 4) for at in range(100, 140)]
    bodies = [message.body for message in pulled(bridge, TOPIC)]
    assert bodies == [b"body %d" % at for at in (0, 4, 8, 12, *range(100, 140, 4))]
    ids = {message.unique_key for message in pulled(bridge, TOPIC)}
    assert f"7F0000010000{136:020X}" in ids


def test_room_for_the_largest_message() -> None:
    """A topic that RocketMQ's clients make takes their largest messages, Kafka's own does not."""
    bridge = a_bridge()
    broker = bridge.standalone.broker
    broker.topics.put(TopicConfig("theirs", 1, 1))
    assert bridge.kafka.topics["theirs"].settings == {"max.message.bytes": str(8 * 1024 * 1024)}
    body = b"x" * (4 * 1024 * 1024)
    assert broker.store.put_message(draft("theirs", body)).is_ok
    refused = broker.store.put_message(draft("orders", body))
    assert refused.status is PutMessageStatus.MESSAGE_ILLEGAL
    assert "max.message.bytes is 1048588" in refused.reason


@pytest.mark.parametrize(
    ("broker_max", "message_max", "given"),
    [("20000", "10000", {}), ("1000", str(2**31 - 1), {"max.message.bytes": str(2**31 - 1)})],
)
def test_room_in_extreme_cases(broker_max: str, message_max: str, given: dict[str, str]) -> None:
    """A limit of the broker's own that is high enough is left to it; none is above Java's ints."""
    host = SimulatedHost(seed=1, clock=ManualClock())
    settings = {"message.max.bytes": broker_max, "maxMessageSize": message_max}
    bridge = open_bridge("kafka", host, **settings)
    bridge.standalone.broker.topics.put(TopicConfig("theirs", 1, 1))
    assert bridge.kafka.topics["theirs"].settings == given
