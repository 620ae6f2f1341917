"""How many bytes a queue's messages take, as DescribeLogDirs tells of a partition over it."""

from __future__ import annotations

from logstore.segments.kafka.record import Record
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import open_bridge, partition_of, produce, pulled
from tests.compat.bridge.test_transactions_over_queues import opened
from tests.compat.kafka.peer import Peer

NOW_MS = 1_700_000_000_000


def test_each_queue_has_the_size_of_its_messages() -> None:
    """Those that came since the last time included; an empty queue has none."""
    bridge = opened(SimulatedHost(seed=1))
    partition = partition_of(bridge, "t")
    assert partition.size_bytes == 0
    for count in (1, 30, 7):
        records = [Record(at, NOW_MS, b"k", bytes(at)) for at in range(count)]
        produce(bridge, "t", records)
        assert partition.size_bytes == sum(one.size_bytes for one in pulled(bridge, "t")) > 0
    assert partition_of(bridge, "t", 1).size_bytes == 0
    bridge.close()


def test_sizes_are_counted_file_by_file() -> None:
    """Files of a queue that have gone since the last time do not count any more."""
    host = SimulatedHost(seed=1)
    bridge = open_bridge("rocketmq", host, mappedFileSizeConsumeQueue="200")
    bridge.kafka.create_topic("t", 1)
    for number in range(35):
        produce(bridge, "t", [Record(0, NOW_MS, None, bytes(100 * number))])
    partition = partition_of(bridge, "t")
    sizes = [one.size_bytes for one in pulled(bridge, "t")]
    assert partition.size_bytes == sum(sizes)
    queue = bridge.standalone.broker.store.consume_queues.get("t", 0)
    assert queue is not None
    queue.correct_min(pulled(bridge, "t")[14].physical_offset)
    assert queue.min_queue_offset == 14
    assert partition.size_bytes == sum(sizes[14:])
    bridge.kafka.delete_topic(bridge.kafka.topics["t"])
    bridge.kafka.create_topic("t", 1)
    assert partition_of(bridge, "t").size_bytes == 0
    bridge.close()


def test_a_client_is_told_where_the_messages_are_and_how_large() -> None:
    """The directory is RocketMQ's, not the one beside it."""
    bridge = opened(SimulatedHost(seed=1))
    produce(bridge, "t", [Record(0, NOW_MS, None, b"value")])
    (told,) = Peer(bridge.kafka).ask("DescribeLogDirs", 4, {"topics": None}).message["results"]
    assert told["log_dir"] == "/store"
    sizes = {
        (topic["name"], one["partition_index"]): one["partition_size"]
        for topic in told["topics"]
        for one in topic["partitions"]
    }
    (message,) = pulled(bridge, "t")
    assert (sizes["t", 0], sizes["t", 1]) == (message.size_bytes, 0)
    bridge.close()
