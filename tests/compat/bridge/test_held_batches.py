"""What is held of a transaction beside a queue: refused in time, put once, gone at its end."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from logstore.compat.bridge.bridge import Bridge
from logstore.compat.bridge.kafka_over_rocketmq import held_batches
from logstore.compat.bridge.kafka_over_rocketmq.commit_intent import CommitIntent, intent_of
from logstore.compat.bridge.kafka_over_rocketmq.held_batches import HeldBatches
from logstore.compat.bridge.kafka_over_rocketmq.held_drafts import HELD_BIT
from logstore.compat.bridge.kafka_over_rocketmq.queue_partition import QueuePartition
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.produce.unknown_offsets import told_base_offset
from logstore.segments.kafka.append_errors import InvalidRecordError, MessageTooLargeError
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.producer_state import (
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
)
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing.manual_clock import ManualClock
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.bridge.bridges import fetched, partition_of, produce, pulled
from tests.compat.bridge.test_transactions_over_queues import client_of, opened, values
from tests.compat.kafka.peer import Peer
from tests.compat.kafka.transactions.producer import TransactionalClient

NOW_MS = 1_700_000_000_000
ONE = 7
COMMIT_LOG = "/store/commitlog/*"


def queue_partition(bridge: Bridge) -> QueuePartition:
    """Return the partition that transactions of these tests write to, asking no coordinator."""
    found = partition_of(bridge, "t")
    assert isinstance(found, QueuePartition)
    found.verifies_transactions = False
    return found


def send(
    partition: QueuePartition, sequence: int, *records: Record, is_transactional: bool = True
) -> int:
    """Append a batch of the producer; return the base offset that is told."""
    data = encode_batch(
        list(records) or [Record(0, NOW_MS, None, b"%d" % sequence)],
        producer_id=ONE,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return partition.append_produced(memoryview(bytearray(data)), NOW_MS).base_offset


def end(partition: QueuePartition, *, is_commit: bool, epoch: int = 0) -> None:
    """End the producer's transaction."""
    partition.append_marker(
        ONE, epoch, is_commit=is_commit, coordinator_epoch=0, now_ms=NOW_MS, transaction_version=1
    )


def held_of(partition: QueuePartition) -> HeldBatches:
    """Return what is held for a partition that had a transaction."""
    assert partition.held is not None
    return partition.held


# what is told


def test_no_record_of_an_open_transaction_has_an_offset() -> None:
    """Whatever a client makes of the base, each record's offset is negative; a repetition's too."""
    bridge = opened(SimulatedHost(seed=1))
    partition = queue_partition(bridge)
    records = [Record(at, NOW_MS, None, b"x") for at in range(3)]
    for _ in range(2):
        base_offset = send(partition, 0, *records)
        assert [base_offset + at for at in range(3)] == [-3, -2, -1]
    end(partition, is_commit=True)
    assert values(bridge) == [b"x"] * 3
    bridge.abandon()


@pytest.mark.parametrize(
    ("software", "told"),
    [
        ("apache-kafka-java 4.3.0", -1),
        ("kafka-python 3.0.12", -1),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", -3),
        ("librdkafka 2.16.0", -3),
        ("kgo v1.20.0", -3),
        ("", -3),
    ],
)
def test_who_knows_minus_one_is_told_that(software: str, told: int) -> None:
    """Java's client takes nothing else for an offset that is not known; real ones stay."""
    assert told_base_offset(-3, software) == told
    assert told_base_offset(0, software) == 0


def test_an_intent_is_read_as_it_was_written() -> None:
    """And neither a producer's batch nor a marker is taken for one."""
    intent = CommitIntent(ONE, 3, 4, 5)
    data = intent.encoded(NOW_MS)
    assert intent_of(RecordBatch(memoryview(data), len(data))) == intent
    other = encode_batch([Record(0, NOW_MS, None, b"x")], producer_id=ONE, producer_epoch=0)
    assert intent_of(RecordBatch(memoryview(other), len(other))) is None


# what is refused, and when


def test_what_no_queue_could_take_is_refused_before_it_is_held() -> None:
    """A commit must not meet a record that is too large; the producer is told at once."""
    bridge = opened(SimulatedHost(seed=1), maxMessageSize="2000")
    partition = queue_partition(bridge)
    with pytest.raises(MessageTooLargeError, match="maxMessageSize"):
        send(partition, 0, Record(0, NOW_MS, None, bytes(3000)))
    with pytest.raises(InvalidRecordError, match="properties"):
        send(partition, 0, Record(0, NOW_MS, b"k" * 40_000, b"x"))
    assert held_of(partition).log.end_offset == 0
    assert send(partition, 0) == -1
    end(partition, is_commit=True)
    assert values(bridge) == [b"0"]
    bridge.abandon()


def test_a_transaction_without_a_producer_is_refused() -> None:
    """Nobody could end it, and what belongs to no producer among the held is ours."""
    bridge = opened(SimulatedHost(seed=1))
    data = encode_batch([Record(0, NOW_MS, None, b"x")], is_transactional=True)
    with pytest.raises(InvalidRecordError, match="no producer"):
        queue_partition(bridge).append_produced(memoryview(data), NOW_MS)
    assert values(bridge) == []
    bridge.abandon()


def test_an_open_transaction_takes_nothing_but_its_own() -> None:
    """A batch outside of it is refused; so is one that leaves out a number."""
    bridge = opened(SimulatedHost(seed=1))
    partition = queue_partition(bridge)
    send(partition, 0)
    with pytest.raises(InvalidTransactionStateError):
        send(partition, 1, is_transactional=False)
    with pytest.raises(OutOfOrderSequenceError):
        send(partition, 2)
    end(partition, is_commit=False)
    assert values(bridge) == []
    bridge.abandon()


# what becomes of it


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_records_come_out_as_they_went_in(codec: Codec) -> None:
    """Nulls, headers and keys, of a compressed batch too; times are those of the producer."""
    bridge = opened(SimulatedHost(seed=1))
    partition = queue_partition(bridge)
    records = [
        Record(0, NOW_MS, b"k", b"v", (("h", b"1"), ("h", None))),
        Record(1, NOW_MS + 7, None, None),
        Record(2, NOW_MS - 7, b"\xff", b""),
    ]
    data = encode_batch(
        records, producer_id=ONE, producer_epoch=0, base_sequence=0, is_transactional=True,
        codec=codec,
    )  # fmt: skip
    partition.append_produced(memoryview(bytearray(data)), NOW_MS)
    end(partition, is_commit=True)
    assert fetched(bridge, "t") == records
    (first, *_) = pulled(bridge, "t")
    assert first.prepared_transaction_offset & HELD_BIT
    bridge.abandon()


@pytest.mark.parametrize("stop", ["retry", "abandon"])
def test_a_commit_that_the_disk_refuses_halfway_is_finished_once(stop: str) -> None:
    """The coordinator tries again, or the next start does, with others' records in between."""
    clock = ManualClock()
    host = SimulatedHost(seed=1, clock=clock)
    bridge = opened(host)
    client = client_of(bridge, 2)
    for value in (b"a", b"b", b"c"):
        assert client.send("t", 0, value) == 0
    host.fs.faults.fail_next("write", errno.ENOSPC, path=COMMIT_LOG, after=1)
    assert client.end(is_commit=True) == 0
    assert values(bridge) == [b"a"]
    produce(bridge, "t", [Record(0, NOW_MS, None, b"other")])
    if stop == "retry":
        clock.advance(1000)
        bridge.kafka.timers.run()
    else:
        bridge.abandon()
        bridge = opened(host)
    assert values(bridge) == [b"a", b"other", b"b", b"c"]
    again = TransactionalClient(bridge.kafka, 2)
    again.producer_id, again.epoch = client.producer_id, client.epoch
    assert again.send("t", 0, b"d") == again.end(is_commit=True) == 0
    assert values(bridge) == [b"a", b"other", b"b", b"c", b"d"]
    bridge.close()


def test_a_commit_whose_completion_is_known_and_marker_lost_is_finished() -> None:
    """The messages are in the queue; the marker, which nobody synced, is written at the start."""
    host = SimulatedHost(seed=1)
    bridge = opened(host)
    partition = queue_partition(bridge)
    send(partition, 0)
    end(partition, is_commit=True)
    host.power_loss(LOSE_UNSYNCED)
    bridge = opened(host)
    partition = queue_partition(bridge)
    assert values(bridge) == [b"0"]
    assert partition.producers.open_transactions() == []
    send(partition, 1)
    end(partition, is_commit=False)
    assert values(bridge) == [b"0"]
    bridge.close()


def test_what_has_ended_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what an open transaction needs stays on disk, and producers go on."""
    monkeypatch.setattr(held_batches, "SEGMENT_BYTES", 20_000)
    monkeypatch.setattr(held_batches, "KEPT_BYTES_MAX", 1000)
    host = SimulatedHost(seed=1)
    bridge = opened(host, **{"message.max.bytes": "9000"})
    partition = queue_partition(bridge)
    for number in range(20):
        value = b"%d" % number + bytes(4000)
        send(partition, number, Record(0, NOW_MS, None, value))
        if number == 9:
            end(partition, is_commit=False)
        elif number % 3 == 0:
            end(partition, is_commit=True)
        partition.retain()
    open_from = partition.producers.first_unstable_offset(-1)
    log = held_of(partition).log
    assert log.log.start_offset <= open_from
    assert log.log.size_bytes < 30_000
    end(partition, is_commit=True)
    partition.retain()
    assert log.log.size_bytes == 0
    assert not log.files.condemned
    host.power_loss(KEEP_EVERYTHING)
    bridge = opened(host)
    partition = queue_partition(bridge)
    send(partition, 20)
    end(partition, is_commit=True)
    assert [(r.value or b"")[:2] for r in fetched(bridge, "t")][-2:] == [b"19", b"20"]
    bridge.close()


def test_a_topic_that_is_deleted_takes_what_is_held_along() -> None:
    """The next one of its name knows nothing of it, and its producer's commit does no harm."""
    host = SimulatedHost(seed=1)
    bridge = opened(host)
    client = client_of(bridge, 1)
    assert client.send("t", 0, b"gone") == 0
    bridge.kafka.delete_topic(bridge.kafka.topics["t"])
    bridge.kafka.create_topic("t", 2)
    assert client.end(is_commit=True) == 0
    assert values(bridge) == []
    client.sequences.clear()
    assert client.send("t", 0, b"new") == client.end(is_commit=True) == 0
    bridge.close()
    bridge = opened(host)
    assert values(bridge) == [b"new"]
    bridge.close()


def state_of(bridge: Bridge) -> str:
    """Return how far the producer's transaction is."""
    _, found = bridge.kafka.transactions.describe("payments")
    assert found is not None
    return found.state.name


@pytest.fixture
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a commit two records are put in one go."""
    monkeypatch.setattr(held_batches, "PORTION_RECORDS", 2)


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("speaks", [1, 2])
def test_a_large_commit_is_put_between_other_work(speaks: int) -> None:
    """Others' records come in between; the producer may begin anew once all of it is there."""
    clock = ManualClock()
    bridge = opened(SimulatedHost(seed=1, clock=clock))
    client = client_of(bridge, speaks)
    sent = [b"%d" % number for number in range(5)]
    for value in sent:
        assert client.send("t", 0, value) == 0
    assert client.end(is_commit=True) == 0
    assert values(bridge) == sent[:2]
    produce(bridge, "t", [Record(0, NOW_MS, None, b"other")])
    assert state_of(bridge) == "PREPARE_COMMIT"
    while state_of(bridge) == "PREPARE_COMMIT":
        clock.advance(1)
        bridge.kafka.timers.run()
    assert values(bridge) == [*sent[:2], b"other", *sent[2:]]
    assert client.send("t", 0, b"next") == client.end(is_commit=True) == 0
    assert values(bridge)[-1] == b"next"
    bridge.abandon()


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("stop", ["close", "abandon"])
def test_a_large_commit_that_a_stop_cuts_short_is_finished(stop: str) -> None:
    """By a clean stop itself, so that any broker finds it whole; by the next start otherwise."""
    host = SimulatedHost(seed=1)
    bridge = opened(host)
    client = client_of(bridge, 2)
    sent = [b"%d" % number for number in range(5)]
    for value in sent:
        assert client.send("t", 0, value) == 0
    assert client.end(is_commit=True) == 0
    assert values(bridge) == sent[:2]
    store = bridge.standalone.broker.store
    getattr(bridge.kafka, stop)()
    assert store.max_queue_offset("t", 0) == (5 if stop == "close" else 2)
    getattr(bridge.standalone, stop)()
    bridge = opened(host)
    assert values(bridge) == sent
    assert state_of(bridge) == "COMPLETE_COMMIT"
    bridge.close()


@pytest.mark.usefixtures("small_portions")
def test_a_large_commit_is_durable_before_its_marker() -> None:
    """It is synced off the loop; the marker waits, and where the disk refuses it does not come."""
    clock = ManualClock()
    bridge = opened(SimulatedHost(seed=1, clock=clock))
    client = client_of(bridge, 2)
    for number in range(4):
        assert client.send("t", 0, b"%d" % number) == 0
    begun: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    bridge.kafka.offload = lambda work, done: begun.append((work, done))
    assert client.end(is_commit=True) == 0
    for _ in range(5):
        clock.advance(1)
        bridge.kafka.timers.run()
    held, ((_, done),) = held_of(queue_partition(bridge)), begun
    assert values(bridge) == [b"0", b"1", b"2", b"3"]
    assert held.log.producers.open_transactions()
    done(OSError(errno.EIO, "refused"))
    clock.advance(1)
    bridge.kafka.timers.run()
    assert held.log.producers.open_transactions()
    bridge.abandon()


# what is told of it


def test_the_tools_see_an_open_transaction() -> None:
    """DescribeProducers tells from where on its records can come; WriteTxnMarkers aborts it."""
    bridge = opened(SimulatedHost(seed=1))
    produce(bridge, "t", [Record(0, NOW_MS, None, b"plain")])
    client = client_of(bridge, 2)
    assert client.send("t", 0, b"open") == 0
    produce(bridge, "t", [Record(0, NOW_MS, None, b"plain")])
    peer = Peer(bridge.kafka)

    def producers() -> list[dict[str, int]]:
        wanted = {"topics": [{"name": "t", "partition_indexes": [0]}]}
        (topic,) = peer.ask("DescribeProducers", 0, wanted).message["topics"]
        found: list[dict[str, int]] = topic["partitions"][0]["active_producers"]
        return found

    (told,) = producers()
    assert (told["producer_id"], told["producer_epoch"]) == (client.producer_id, client.epoch)
    assert told["current_txn_start_offset"] == 1
    marker = {
        "producer_id": client.producer_id, "producer_epoch": client.epoch + 1,
        "transaction_result": False, "coordinator_epoch": 0, "transaction_version": 2,
        "topics": [{"name": "t", "partition_indexes": [0]}],
    }  # fmt: skip
    answer = peer.ask("WriteTxnMarkers", 2, {"markers": [marker]}).message
    assert answer["markers"][0]["topics"][0]["partitions"][0]["error_code"] == 0
    (told,) = producers()
    assert told["current_txn_start_offset"] == -1
    assert client.write("t", 0, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert values(bridge) == [b"plain"] * 2
    bridge.abandon()


@pytest.mark.parametrize("speaks", [1, 2])
def test_a_second_instance_shuts_the_first_one_out(speaks: int) -> None:
    """What the first one has open is aborted, and it gets nothing in any more."""
    bridge = opened(SimulatedHost(seed=1))
    first = client_of(bridge, speaks)
    assert first.send("t", 0, b"lost") == 0
    second = client_of(bridge, speaks)
    assert first.write("t", 0, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.end(is_commit=True) in (
        ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
    )  # fmt: skip
    assert second.send("t", 0, b"new") == second.end(is_commit=True) == 0
    assert values(bridge) == [b"new"]
    bridge.abandon()


def test_a_transaction_that_is_open_for_too_long_is_aborted() -> None:
    """Nobody waits for it meanwhile: what others write comes into the queue at once."""
    clock = ManualClock()
    bridge = opened(SimulatedHost(seed=1, clock=clock))
    client = TransactionalClient(bridge.kafka, 2)
    assert client.init(timeout_ms=1000) == 0
    assert client.send("t", 0, b"late") == 0
    produce(bridge, "t", [Record(0, NOW_MS, None, b"other")])
    assert values(bridge) == [b"other"]
    clock.advance(1001)
    assert bridge.kafka.transactions.abort_timed_out() == 1
    assert client.end(is_commit=True) != 0
    assert values(bridge) == [b"other"]
    bridge.abandon()


def test_an_answer_waits_for_a_flush_that_covers_what_is_held() -> None:
    """A flush that had begun before the batch came does not count for it."""
    bridge = opened(SimulatedHost(seed=1))
    partition = queue_partition(bridge)
    partition.on_flush_due = lambda _: None
    send(partition, 0)
    task = partition.begin_flush()
    send(partition, 1)
    assert task.offset < partition.flush_position
    task.run()
    partition.end_flush(task)
    task = partition.begin_flush()
    assert task.offset == partition.flush_position
    task.run()
    partition.end_flush(task)
    log = held_of(partition).log.log
    assert log.recovery_point == log.next_offset == 2
    bridge.abandon()


def test_a_flush_that_waits_for_a_deleted_topic_ends() -> None:
    """What a flush must reach stays the same when the queue and what is held are gone."""
    bridge = opened(SimulatedHost(seed=1))
    partition = queue_partition(bridge)
    produce(bridge, "t", [Record(0, NOW_MS, None, b"x")])
    send(partition, 0)
    asked: list[BaseException | None] = []
    waiting: list[Callable[[], None]] = []

    def offload(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        del work
        waiting.append(lambda: done(None))

    bridge.kafka.offload = offload
    bridge.kafka.flusher.flush(partition, asked.append)
    send(partition, 1)
    bridge.kafka.flusher.flush(partition, asked.append)
    bridge.kafka.delete_topic(bridge.kafka.topics["t"])
    while waiting and len(asked) < 3:
        waiting.pop(0)()
    assert asked == [None, None]
    bridge.abandon()
