"""What both sides know after a stop of any kind: producers, offsets, what was flushed."""

from __future__ import annotations

from functools import partial

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.bridge.kafka_over_rocketmq import producer_journal
from logstore.compat.bridge.kafka_over_rocketmq.producer_journal import (
    FILE_NAME,
    ProducerJournal,
    SentBatch,
    unpacked,
)
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offsets_log import CommittedOffset
from logstore.segments.kafka.append_errors import OutOfOrderSequenceError
from logstore.segments.kafka.appended import Appended
from logstore.segments.kafka.record import Record, encode_batch
from logstore.testing.manual_clock import ManualClock
from logstore.testing.power_loss import PowerLoss
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import draft, fetched, open_bridge, partition_of, produce, pulled
from tests.compat.kafka.transactions.producer import GROUP, TransactionalClient, group_offset

NOW_MS = 1_700_000_000_000
COUNT = 3


def opened(layout: str, host: SimulatedHost, **settings: str) -> Bridge:
    """Return a bridge whose topic has one partition."""
    bridge = open_bridge(layout, host, **settings)
    if "orders" not in bridge.kafka.topics:
        bridge.kafka.create_topic("orders", 1)
    return bridge


def send(bridge: Bridge, number: int, producer_id: int = 7, epoch: int = 0) -> Appended:
    """Append the batch of that number of an idempotent producer."""
    data = encode_batch(
        [Record(at, NOW_MS, None, b"%d-%d" % (number, at)) for at in range(COUNT)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=number * COUNT,
    )
    return partition_of(bridge, "orders").append_produced(memoryview(bytearray(data)), NOW_MS)


@pytest.mark.parametrize("stop", ["close", "abandon"])
def test_a_repeated_batch_is_known_after_a_stop(stop: str) -> None:
    """Over queues a batch is stored once though it comes again after a stop, clean or not."""
    host = SimulatedHost(seed=1)
    bridge = opened("rocketmq", host)
    offsets = [send(bridge, number).base_offset for number in range(8)]
    getattr(bridge, stop)()
    bridge = opened("rocketmq", host)
    for number in (3, 7):
        again = send(bridge, number)
        assert again.is_duplicate
        assert again.base_offset == offsets[number]
    assert not send(bridge, 8).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        send(bridge, 11)
    assert len(fetched(bridge, "orders")) == 9 * COUNT


@pytest.mark.parametrize("seed", range(20))
def test_a_power_loss_costs_no_flushed_batch_and_stops_no_producer(seed: int) -> None:
    """What was flushed is known for a repetition; whatever else is lost, the producer goes on."""
    host = SimulatedHost(seed=seed)
    bridge = opened("rocketmq", host)
    for number in range(4):
        send(bridge, number)
    partition_of(bridge, "orders").flush()
    for number in range(4, 7):
        send(bridge, number)
    host.power_loss(PowerLoss.random(seed))
    bridge = opened("rocketmq", host)
    end = partition_of(bridge, "orders").end_offset
    assert end >= 4 * COUNT
    assert send(bridge, 3).is_duplicate
    send(bridge, 7)
    send(bridge, 8)
    found = [record.value for record in fetched(bridge, "orders")]
    assert found[: 4 * COUNT] == [b"%d-%d" % (n, at) for n in range(4) for at in range(COUNT)]
    assert found[-2 * COUNT :] == [b"%d-%d" % (n, at) for n in (7, 8) for at in range(COUNT)]
    with pytest.raises(OutOfOrderSequenceError):
        send(bridge, 11)


def test_another_topic_of_that_name_has_other_producers() -> None:
    """What was sent to a topic that was deleted is no repetition in the next one."""
    host = SimulatedHost(seed=1)
    bridge = opened("rocketmq", host)
    send(bridge, 0)
    send(bridge, 1)
    bridge.kafka.delete_topic(bridge.kafka.topics["orders"])
    bridge.kafka.create_topic("orders", 1)
    produce(bridge, "orders", [Record(at, NOW_MS, None, b"x", ()) for at in range(9)])
    bridge.close()
    bridge = opened("rocketmq", host)
    assert not send(bridge, 0).is_duplicate
    bridge.close()


def test_a_cut_journal_tells_what_is_whole() -> None:
    """Entries up to the first that is cut short or damaged are read, and none is made up."""
    entries = [SentBatch("orders", 0, 7, 0, at, at, at, 0, NOW_MS) for at in range(3)]
    data = b"".join(entry.packed() for entry in entries)
    size_bytes = len(data) // 3
    assert list(unpacked(data)) == entries
    for end in range(len(data)):
        assert list(unpacked(data[:end])) == entries[: end // size_bytes]
    for at in range(size_bytes, 2 * size_bytes):
        damaged = bytearray(data)
        damaged[at] ^= 0x40
        assert list(unpacked(bytes(damaged)))[:1] == entries[:1]
        assert len(list(unpacked(bytes(damaged)))) < 3


def test_a_long_journal_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what counts and nothing else, and goes on."""
    monkeypatch.setattr(producer_journal, "SIZE_BYTES_MAX", 1000)
    host = SimulatedHost(seed=1)
    host.fs.make_directory("/beside")
    journal = ProducerJournal(host, "/beside")
    entries = [SentBatch("orders", 0, 7, 0, at, at, at, 0, NOW_MS) for at in range(100)]
    for at, entry in enumerate(entries):
        journal.kept = partial(list, entries[max(at - 4, 0) : at])
        journal.note(entry)
    journal.close()
    file = host.fs.open(f"/beside/{FILE_NAME}")
    assert file.size() < 1100
    assert ProducerJournal(host, "/beside").load()[-4:] == entries[-4:]


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
@pytest.mark.parametrize("seed", range(8))
def test_both_sides_open_after_a_power_loss(layout: str, seed: int) -> None:
    """What was flushed is there for both sides, offsets are as committed, or older."""
    host = SimulatedHost(seed=seed)
    bridge = opened(layout, host)
    records = [Record(at, NOW_MS + at, b"k", b"%d" % at, ()) for at in range(10)]
    produce(bridge, "orders", records)
    store = bridge.standalone.broker.store
    assert store.put_message(draft("orders", b"10")).is_ok
    partition_of(bridge, "orders").flush()
    for offset in (3, 7):
        news = {("orders", 0): CommittedOffset(offset, NOW_MS)}
        bridge.kafka.groups.commit_offsets(Commit("readers", news))
        store.consumer_offsets.persist()
    produce(bridge, "orders", records)
    host.power_loss(PowerLoss.random(seed))
    bridge = opened(layout, host)
    values = [record.value for record in fetched(bridge, "orders")]
    assert values[:11] == [b"%d" % at for at in range(11)]
    assert [message.body for message in pulled(bridge, "orders")] == values
    _, found = bridge.kafka.groups.fetch_offsets("readers", [("orders", 0)])
    committed = found["orders", 0]
    assert committed is None or committed.offset in (3, 7)
    offset = produce(bridge, "orders", records[:1])
    assert offset == len(values)
    assert fetched(bridge, "orders", offset)[0].value == b"0"
    bridge.close()


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_commit_of_kafkas_outlives_a_kill(layout: str) -> None:
    """The last offset that a Kafka group committed counts, though RocketMQ's table is older."""
    clock = ManualClock()
    host = SimulatedHost(seed=1, clock=clock)
    bridge = opened(layout, host)

    def commit(offset: int) -> None:
        news = {("orders", 0): CommittedOffset(offset, clock.wall_ms())}
        bridge.kafka.groups.commit_offsets(Commit("readers", news))

    table = bridge.standalone.broker.store.consumer_offsets
    commit(3)
    clock.advance(10)
    table.persist()
    clock.advance(10)
    commit(7)
    clock.advance(10)
    bridge.abandon()
    bridge = opened(layout, host)
    assert bridge.standalone.broker.store.consumer_offsets.query("readers", "orders", 0) == 7
    _, found = bridge.kafka.groups.fetch_offsets("readers", [("orders", 0)])
    committed = found["orders", 0]
    assert committed is not None
    assert committed.offset == 7


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_an_offset_of_a_transaction_counts_from_its_end(layout: str) -> None:
    """RocketMQ's table, written between the offset and the commit, is not the newer one."""
    clock = ManualClock()
    host = SimulatedHost(seed=1, clock=clock)
    bridge = opened(layout, host)
    table = bridge.standalone.broker.store.consumer_offsets
    client = TransactionalClient(bridge.kafka)
    assert client.init() == 0
    for offset in (3, 7):
        assert client.send("orders", 0, b"x") == client.send_offset("orders", 0, offset) == 0
        clock.advance(10)
        table.is_dirty = True
        table.persist()
        clock.advance(10)
        assert client.end(is_commit=True) == 0
    bridge.abandon()
    bridge = opened(layout, host)
    assert group_offset(bridge.kafka, "orders") == (0, 7)
    assert bridge.standalone.broker.store.consumer_offsets.query(GROUP, "orders", 0) == 7


@pytest.mark.parametrize("layout", ["kafka", "rocketmq"])
def test_a_later_commit_of_rocketmqs_outlives_a_stop(layout: str) -> None:
    """What a RocketMQ group of the same name committed after Kafka's counts after a clean stop."""
    clock = ManualClock()
    host = SimulatedHost(seed=1, clock=clock)
    bridge = opened(layout, host)
    news = {("orders", 0): CommittedOffset(7, clock.wall_ms())}
    bridge.kafka.groups.commit_offsets(Commit("readers", news))
    clock.advance(10)
    bridge.standalone.broker.store.consumer_offsets.commit("readers", "orders", 0, 4)
    clock.advance(10)
    bridge.close()
    bridge = opened(layout, host)
    _, found = bridge.kafka.groups.fetch_offsets("readers", [("orders", 0)])
    committed = found["orders", 0]
    assert committed is not None
    assert committed.offset == 4
