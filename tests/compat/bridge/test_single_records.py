"""The short way of batches of one record over queues: the same files as by the long one."""

from __future__ import annotations

import errno

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import fetched, open_bridge, partition_of, pulled

NOW_MS = 1_700_000_000_000
FOLDERS = ("commitlog", "consumequeue/orders/0", "consumequeue/orders/1", "index")
PLAIN: list[Record] = [
    Record(0, NOW_MS, None, b"v"),
    Record(0, NOW_MS + 7, b"k", b"v" * 100),
    Record(0, 0, b"k2", b"v" * 8000),
    Record(0, NOW_MS, b"k" * 63, bytes(range(256))),
]
OTHERS: list[Record] = [
    Record(0, -1, b"k", b"v"),
    Record(0, NOW_MS, b"", b"v"),
    Record(0, NOW_MS, b"two keys", b"v"),
    Record(0, NOW_MS, "größe".encode(), b"v"),
    Record(0, NOW_MS, b"a\x01b", b"v"),
    Record(0, NOW_MS, b"a\x02b", b"v"),
    Record(0, NOW_MS, b"k" * 64, b"v"),
    Record(0, NOW_MS, None, b""),
    Record(0, NOW_MS, None, None),
    Record(0, NOW_MS, None, b"v" * 9000),
    Record(0, NOW_MS, None, b"v" * 20_000),
    Record(0, NOW_MS, b"k", b"v", (("name", b"value"),)),
]


def opened(**settings: str) -> tuple[SimulatedHost, Bridge]:
    """Return a bridge over queues whose topic has two partitions, a record in each."""
    host = SimulatedHost(seed=1, clock=ManualClock())
    bridge = open_bridge("rocketmq", host, **settings)
    bridge.kafka.create_topic("orders", 2)
    for index in (0, 1):
        partition = partition_of(bridge, "orders", index)
        partition.append_produced(batch_of(Record(0, NOW_MS, b"first", b"one")), NOW_MS)
    return host, bridge


def batch_of(*records: Record, producer_id: int = -1) -> memoryview:
    """Return a batch as it comes in a request."""
    sequence = 0 if producer_id >= 0 else -1
    numbered = [record._replace(offset=at) for at, record in enumerate(records)]
    data = encode_batch(numbered, producer_id=producer_id, base_sequence=sequence)
    return memoryview(bytearray(data))


def put_at_once(partition: KafkaPartition, record: Record) -> int:
    """Append a record the short way, or the long one; return its offset."""
    offset = partition.append_usual(batch_of(record), NOW_MS)
    if offset < 0:
        return partition.append_produced(batch_of(record), NOW_MS).base_offset
    return offset


def files_of(host: SimulatedHost) -> dict[str, bytes]:
    """Return what stands in the store's files, by folder and place in it."""
    found: dict[str, bytes] = {}
    for folder in FOLDERS:
        for place, entry in enumerate(host.fs.list_directory(f"/store/{folder}")):
            file = host.fs.open(f"/store/{folder}/{entry.name}", writable=False)
            found[f"{folder} {place}"] = file.read(0, file.size())
    return found


@pytest.mark.parametrize("settings", [{}, {"maxIndexNum": "9", "mappedFileSizeCommitLog": "32768"}])
@pytest.mark.parametrize("step_ms", [0, 3])
def test_both_ways_lead_to_the_same_files(settings: dict[str, str], step_ms: int) -> None:
    """Commit log, queues and index have the same bytes, files that fill up among them."""
    (host, bridge), (other_host, other) = opened(**settings), opened(**settings)
    records = [PLAIN[0], *PLAIN, *OTHERS, *PLAIN, PLAIN[0], PLAIN[0]] * 2
    for number, record in enumerate(records):
        index, is_turn_over = number % 3 % 2, number % 5 == 0
        offset = put_at_once(partition_of(bridge, "orders", index), record)
        done = partition_of(other, "orders", index).append_produced(batch_of(record), NOW_MS)
        assert offset == done.base_offset
        for host_of_one, one in ((host, bridge), (other_host, other)):
            if is_turn_over:
                one.standalone.broker.store.dispatch()
            host_of_one.clock.advance(step_ms)
    for one in (bridge, other):
        one.standalone.broker.store.dispatch()
        one.standalone.broker.store.write_derived()
    assert files_of(host) == files_of(other_host)
    assert [(r.key, r.value) for r in fetched(bridge, "orders")] == [
        (r.key, r.value) for r in fetched(other, "orders")
    ]
    counted = [one.standalone.broker.store.stats.put_times_by_topic for one in (bridge, other)]
    assert counted[0] == counted[1] == {"orders": len(records) + 2}


def test_plain_records_take_the_short_way() -> None:
    """Such a batch gets the next offset at once, whatever its value and time are."""
    _, bridge = opened()
    partition = partition_of(bridge, "orders")
    offsets = [partition.append_usual(batch_of(record), NOW_MS) for record in PLAIN]
    assert offsets == [1, 2, 3, 4]
    assert [message.keys for message in pulled(bridge, "orders")[1:]] == [
        () if record.key is None else (record.key.decode(),) for record in PLAIN
    ]


@pytest.mark.parametrize("record", OTHERS)
def test_other_records_do_not(record: Record) -> None:
    """Whatever is not plain is left to the long way, and nothing is done."""
    _, bridge = opened()
    partition = partition_of(bridge, "orders")
    end = bridge.standalone.broker.store.commit_log.max_physical_offset
    assert partition.append_usual(batch_of(record), NOW_MS) == -1
    assert bridge.standalone.broker.store.commit_log.max_physical_offset == end
    assert partition.end_offset == 1


def test_batches_that_are_more_than_a_record_do_not() -> None:
    """So it is with several records, producers, and damage."""
    _, bridge = opened()
    partition = partition_of(bridge, "orders")
    damaged = batch_of(PLAIN[0])
    damaged[-2] ^= 1
    for data in (batch_of(*PLAIN[:2]), batch_of(PLAIN[0], producer_id=5), damaged, damaged[:60]):
        assert partition.append_usual(data, NOW_MS) == -1
    assert partition.end_offset == 1


def test_a_disk_that_refuses_leaves_no_trace() -> None:
    """Nothing is put then, and the next record goes where this one would have."""
    host, bridge = opened()
    partition = partition_of(bridge, "orders")
    host.fs.faults.fail_next("write", errno.EIO, path="*/commitlog/*")
    assert partition.append_usual(batch_of(PLAIN[0]), NOW_MS) == -1
    assert partition.append_usual(batch_of(PLAIN[1]), NOW_MS) == 1
    assert [message.body for message in pulled(bridge, "orders")] == [b"one", PLAIN[1].value]


def test_a_reader_that_waits_is_woken() -> None:
    """Who waits for the partition's records learns of one that came the short way."""
    _, bridge = opened()
    partition = partition_of(bridge, "orders")
    woken: list[int] = []
    bridge.kafka.readers.wait([partition], lambda: woken.append(partition.end_offset))
    assert partition.append_usual(batch_of(PLAIN[0]), NOW_MS) == 1
    bridge.kafka.readers.wake()
    assert woken[0] == 2


def test_answers_wait_for_the_disk_where_the_store_is_synced() -> None:
    """With SYNC_FLUSH a flush is due with every record, in topics old and new, after a stop too."""
    host, bridge = opened(flushDiskType="SYNC_FLUSH")
    bridge.close()
    again = open_bridge("rocketmq", host, flushDiskType="SYNC_FLUSH")
    again.kafka.create_topic("more", 1)
    for topic, end in (("orders", 1), ("more", 0)):
        partition = partition_of(again, topic)
        assert partition.append_usual(batch_of(PLAIN[0]), NOW_MS) == -1
        assert partition.append_produced(batch_of(PLAIN[0]), NOW_MS).base_offset == end
        assert again.kafka.flusher.take_due() == [partition]


def test_records_of_kafka_become_messages_with_a_crc_where_the_settings_say_so() -> None:
    """Singly or many in a batch: `enabledAppendPropCRC` holds for them as for all messages."""
    _, bridge = opened(enabledAppendPropCRC="true")
    partition = partition_of(bridge, "orders")
    assert partition.append_usual(batch_of(PLAIN[1]), NOW_MS) == -1
    partition.append_produced(batch_of(PLAIN[1]), NOW_MS)
    partition.append_produced(batch_of(*PLAIN, *OTHERS[:7]), NOW_MS)
    bridge.standalone.broker.store.dispatch()
    messages = pulled(bridge, "orders")
    assert len(messages) == 13
    with_crc = [one for one in messages if "__CRC32#" in one.properties]
    assert len(with_crc) == 13 - 3, "a rest is not shown, and the CRC would be one of it, too"
    found = [(record.key, record.value) for record in fetched(bridge, "orders")]
    assert found[2:] == [(record.key, record.value) for record in [*PLAIN, *OTHERS[:7]]]
    assert all(record.headers == () for record in fetched(bridge, "orders"))
