"""Bridges in a simulated world, and what tests put into them."""

from __future__ import annotations

from logstore.compat.bridge.bridge import Bridge
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.testing.simulated_host import SimulatedHost

SETTINGS = {
    "mappedFileSizeCommitLog": "1048576",
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
    "mappedFileSizeConsumeQueue": "20000",
    "offsets.topic.num.partitions": "1",
}
BORN = HostAddress.of("10.1.2.3", 4567)
STORED = HostAddress.of("10.0.0.1", 10911)


def _reach_nobody(*where: object) -> None:
    """Connect to nobody: there is no other server."""


def open_bridge(layout: str, host: SimulatedHost, **settings: str) -> Bridge:
    """Open both brokers on the store in /store; nobody listens."""
    bridge = Bridge.open(host, "/store", layout, {**SETTINGS, **settings})
    bridge.start_kafka("127.0.0.1", 9092)
    bridge.start_rocketmq(_reach_nobody)
    bridge.standalone.broker.defers_work = False
    return bridge


def partition_of(bridge: Bridge, topic: str, index: int = 0) -> KafkaPartition:
    """Return a partition of the Kafka side."""
    found = bridge.kafka.partition(topic, index)
    assert found is not None
    return found


def produce(bridge: Bridge, topic: str, records: list[Record]) -> int:
    """Append records as one batch; return the first offset."""
    data = memoryview(encode_batch(records))
    now_ms = bridge.kafka.host.clock.wall_ms()
    done = partition_of(bridge, topic).append_produced(data, now_ms)
    bridge.kafka.readers.wake()
    return done.base_offset


def fetched(bridge: Bridge, topic: str, offset: int = 0) -> list[Record]:
    """Return what a Kafka client gets from `offset` on."""
    found: list[Record] = []
    partition = partition_of(bridge, topic)
    while offset < partition.last_stable_offset:
        extent = partition.read(offset, 1 << 20)
        assert extent is not None
        data = extent.read()
        position = 0
        while position < len(data):
            end = position + 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            found += [r for r in decode_records(data[position:end]) if r.offset >= offset]
            position = end
        offset = found[-1].offset + 1
    return found


def draft(
    topic: str,
    body: bytes,
    properties: bytes = b"",
    *,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
) -> MessageDraft:
    """Return a message as a broker drafts one that was sent."""
    return draft_message(
        topic=topic,
        body=body,
        queue_id=0,
        properties_text=properties,
        born_timestamp_ms=1_700_000_000_000,
        born_host=BORN,
        store_host=STORED,
        flag=flag,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
    )


def pulled(bridge: Bridge, topic: str, queue_offset: int = 0) -> list[Message]:
    """Return what a RocketMQ client pulls from `queue_offset` on."""
    store = bridge.standalone.broker.store
    found: list[Message] = []
    while queue_offset < store.max_queue_offset(topic, 0):
        result = store.get_message("g", topic, 0, queue_offset, 32)
        assert result is not None
        data, position = result.read(), 0
        while position < len(data):
            found.append(decode_message(data, position))
            position += found[-1].size_bytes
        queue_offset = result.next_begin_offset
    return found
