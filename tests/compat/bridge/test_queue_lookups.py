"""What a Kafka client is told of a queue: by size, by time, by a name that no queue can have."""

from __future__ import annotations

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.segments.kafka.record import Record, decode_records
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import fetched, open_bridge, partition_of, produce
from tests.compat.kafka.peer import Peer

NOW_MS = 1_700_000_000_000
UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC = 3, 17


@pytest.fixture
def bridge() -> Bridge:
    """A bridge over queues with a topic."""
    bridge = open_bridge("rocketmq", SimulatedHost(seed=1))
    bridge.kafka.create_topic("t", 1)
    return bridge


def sizes_of(bridge: Bridge, offset: int, size_bytes_max: int) -> list[int]:
    """Return the sizes of the values that a fetch from `offset` on brings."""
    extent = partition_of(bridge, "t").read(offset, size_bytes_max)
    assert extent is not None
    return [len(record.value or b"") for record in decode_records(extent.read())]


def test_a_fetch_takes_no_more_than_the_client_does(bridge: Bridge) -> None:
    """What a batch made for a fetch holds fits, but for one message that does not by itself."""
    for size_bytes in (10, 50_000, 50, 60):
        produce(bridge, "t", [Record(0, NOW_MS, None, bytes(size_bytes))])

    assert sizes_of(bridge, 0, 4000) == [10]
    assert sizes_of(bridge, 1, 4000) == [50_000]
    assert sizes_of(bridge, 2, 4000) == [50, 60]
    assert sizes_of(bridge, 0, 1 << 20) == [10, 50_000, 50, 60]


def test_what_is_kept_of_a_queue_is_not_too_large_either(bridge: Bridge) -> None:
    """A batch of a larger fetch that was kept goes to nobody who takes less."""
    for _ in range(400):
        produce(bridge, "t", [Record(0, NOW_MS, None, bytes(1000))])
    assert len(fetched(bridge, "t")) == 400

    assert 1 <= len(sizes_of(bridge, 0, 10_000)) < 10


def test_a_later_partition_of_a_fetch_is_cut(bridge: Bridge) -> None:
    """Where others filled the answer the batch is cut to what is left, as Kafka's are."""
    produce(bridge, "t", [Record(0, NOW_MS, None, bytes(5000))])
    partition = partition_of(bridge, "t")

    extent = partition.read(0, 300, is_first_whole=False)
    assert extent is not None
    assert extent.size_bytes == 300
    assert partition.read(0, 300, end_offset=0) is None


def test_a_time_is_found_as_soon_as_its_record_is_acknowledged(bridge: Bridge) -> None:
    """A client that asks right after it produced does not come before the queue."""
    bridge.standalone.broker.defers_work = True
    peer = Peer(bridge.kafka)
    for number in range(10):
        born_ms = NOW_MS - 100_000 + 1000 * number
        produce(bridge, "t", [Record(0, born_ms, None, b"x")])
        for timestamp_ms in (born_ms, -3):
            answer = peer.ask(
                "ListOffsets", 7,
                {
                    "replica_id": -1,
                    "isolation_level": 0,
                    "topics": [{"name": "t", "partitions": [{
                        "partition_index": 0, "current_leader_epoch": -1,
                        "timestamp": timestamp_ms,
                    }]}],
                },
            ).message  # fmt: skip
            (found,) = answer["topics"][0]["partitions"]
            assert (found["offset"], found["timestamp"]) == (number, born_ms)


def test_a_size_counts_what_was_acknowledged(bridge: Bridge) -> None:
    """Also where the queue comes to know of it later."""
    bridge.standalone.broker.defers_work = True
    sizes: list[int] = []
    for _ in range(3):
        produce(bridge, "t", [Record(0, NOW_MS, None, b"x")])
        sizes.append(partition_of(bridge, "t").size_bytes)
    assert sizes == [sizes[0], 2 * sizes[0], 3 * sizes[0]]
    assert sizes[0] > 0


@pytest.mark.parametrize("name", ["orders.dlq", "TBW102", "n" * 200])
def test_a_name_that_no_queue_can_have_is_not_looked_for_again(bridge: Bridge, name: str) -> None:
    """Clients give up on an invalid topic (17), and ask again and again for an unknown one (3)."""
    peer = Peer(bridge.kafka)
    for wanted, code in ((name, INVALID_TOPIC), ("not-there", UNKNOWN_TOPIC_OR_PARTITION)):
        asked = {"topics": [{"name": wanted}], "allow_auto_topic_creation": False}
        (topic,) = peer.ask("Metadata", 9, asked).message["topics"]
        assert topic["error_code"] == code
        asked = {"topics": [{"name": wanted}], "response_partition_limit": 10, "cursor": None}
        (topic,) = peer.ask("DescribeTopicPartitions", 0, asked).message["topics"]
        assert topic["error_code"] == code


def test_the_latest_timestamp_is_the_first_of_the_latest_births(bridge: Bridge) -> None:
    """Wherever in the queue it is, and whether it came before the last question or after it."""
    partition = partition_of(bridge, "t")
    assert partition.find_max_timestamp() is None
    for births, expected in [((1, 5, 3), (5, 1)), ((4, 5), (5, 1)), ((9, 2), (9, 5)), ((), (9, 5))]:
        if births:
            produce(
                bridge, "t", [Record(n, NOW_MS + at, None, b"x") for n, at in enumerate(births)]
            )
        found = partition.find_max_timestamp()
        assert found is not None
        assert (found.timestamp_ms - NOW_MS, found.offset) == expected

    partition.delete_records(6)
    found = partition.find_max_timestamp()
    assert found is not None
    assert (found.timestamp_ms - NOW_MS, found.offset) == (2, 6)


def test_the_latest_timestamp_of_a_topic_that_was_made_again(bridge: Bridge) -> None:
    """Nothing of the one before is told."""
    produce(bridge, "t", [Record(0, NOW_MS + 7, None, b"x")])
    assert partition_of(bridge, "t").find_max_timestamp() is not None
    bridge.kafka.delete_topic(bridge.kafka.topics["t"])
    bridge.kafka.create_topic("t", 1)
    assert partition_of(bridge, "t").find_max_timestamp() is None
