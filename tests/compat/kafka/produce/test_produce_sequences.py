"""Produce by idempotent producers: a retry is not written twice, a gap is not written at all."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, batch
from tests.compat.kafka.peer import Peer, a_broker, produce_fields

OUT_OF_ORDER, OLD_EPOCH, INVALID_STATE = 45, 47, 48
SEQUENCE_MAX = 2**31 - 1


class Producer:
    """Sends batches of so many records with the numbers that a test says."""

    def __init__(self, broker: Broker, *, producer_id: int = 7, version: int = 9) -> None:
        self.peer = Peer(broker)
        self._producer_id = producer_id
        self._version = version

    def send(
        self, sequence: int, count: int = 1, *, epoch: int = 0, is_transactional: bool = False
    ) -> dict[str, Any]:
        """Return the result for a batch of `count` records from `sequence` on."""
        data = batch(
            *[b"v"] * count,
            producer=(self._producer_id, epoch, sequence),
            is_transactional=is_transactional,
        )
        fields = produce_fields([("t", [(0, data)])], self._version, 1)
        fields["transactional_id"] = "payments" if is_transactional else None
        return self.peer.ask("Produce", self._version, fields).partition

    def codes(self, *sequences: int, epoch: int = 0) -> list[tuple[int, int]]:
        """Return (error code, base offset) for batches of one record with these numbers."""
        results = [self.send(sequence, epoch=epoch) for sequence in sequences]
        return [(result["error_code"], result["base_offset"]) for result in results]


def end_offset(broker: Broker) -> int:
    """Return how many records there are."""
    return broker.topics["t"].partitions[0].end_offset


@pytest.fixture
def broker() -> Broker:
    """A broker with a topic of one partition."""
    broker = a_broker()
    broker.create_topic("t", 1)
    return broker


@pytest.mark.parametrize("version", [3, 5, 8, 9])
def test_a_duplicate_is_answered_with_the_offset_of_the_first_time(
    broker: Broker, version: int
) -> None:
    """The last five batches may come again: no error, the old offset, nothing is written."""
    producer = Producer(broker, version=version)
    firsts = [producer.send(sequence, 2) for sequence in range(0, 12, 2)]
    assert [result["base_offset"] for result in firsts] == [0, 2, 4, 6, 8, 10]

    for index in (5, 1, 3, 5):
        again = producer.send(index * 2, 2)
        assert (again["error_code"], again["base_offset"]) == (0, index * 2)
        assert again["log_append_time_ms"] == NOW_MS  # as Kafka: the batch's own time
    assert producer.send(0, 2)["error_code"] == OUT_OF_ORDER  # the sixth last
    assert end_offset(broker) == 12


def test_a_duplicate_must_be_the_same_batch(broker: Broker) -> None:
    """A batch that starts like a known one and has another length is out of order."""
    producer = Producer(broker)
    producer.send(0, 3)
    producer.send(3, 3)
    assert producer.send(3, 2)["error_code"] == OUT_OF_ORDER
    assert producer.send(4, 2)["error_code"] == OUT_OF_ORDER
    assert end_offset(broker) == 6


def test_a_gap_is_refused_and_changes_nothing(broker: Broker) -> None:
    """After 45 the number that was expected is still expected."""
    producer = Producer(broker)
    assert producer.codes(0, 2, 5, 1, 2) == [
        (0, 0), (OUT_OF_ORDER, -1), (OUT_OF_ORDER, -1), (0, 1), (0, 2)
    ]  # fmt: skip


def test_a_producer_that_is_not_known_starts_anywhere(broker: Broker) -> None:
    """The broker may have forgotten it: the first number is taken as it is."""
    assert Producer(broker).codes(41, 42) == [(0, 0), (0, 1)]


def test_numbers_wrap(broker: Broker) -> None:
    """After 2^31-1 comes 0, between batches and within one; a wrapped batch may come again."""
    producer = Producer(broker)
    assert producer.codes(SEQUENCE_MAX - 1, SEQUENCE_MAX, 0) == [(0, 0), (0, 1), (0, 2)]
    other = Producer(broker, producer_id=8)
    assert other.send(SEQUENCE_MAX, 3)["base_offset"] == 3  # 2^31-1, 0, 1
    assert other.send(2)["base_offset"] == 6
    assert other.send(SEQUENCE_MAX, 3)["base_offset"] == 3
    assert end_offset(broker) == 7


def test_a_new_epoch_starts_at_0_and_fences_the_old_one(broker: Broker) -> None:
    """A restarted producer counts anew; what its former self still sends is 47."""
    producer = Producer(broker)
    assert producer.codes(0, 1) == [(0, 0), (0, 1)]
    assert producer.codes(3, epoch=1) == [(OUT_OF_ORDER, -1)]
    assert producer.codes(0, 1, epoch=1) == [(0, 2), (0, 3)]
    assert producer.codes(2, 0, epoch=0) == [(OLD_EPOCH, -1), (OLD_EPOCH, -1)]
    assert producer.codes(2, epoch=1) == [(0, 4)]


def test_producers_do_not_see_each_other(broker: Broker) -> None:
    """Every id counts for itself, and in every partition for itself."""
    first, second = Producer(broker, producer_id=1), Producer(broker, producer_id=2)
    assert [code for producer in (first, second, first) for code in producer.codes(0)] == [
        (0, 0), (0, 1), (0, 0)
    ]  # fmt: skip
    assert first.codes(1) == [(0, 2)]


def test_a_transaction_keeps_other_batches_of_its_producer_out() -> None:
    """While a transaction is open a batch outside of it is 48."""
    broker = a_broker(transaction_partition_verification_enable="false")
    broker.create_topic("t", 1)
    producer = Producer(broker)
    assert producer.send(0, is_transactional=True)["error_code"] == 0
    assert producer.send(1)["error_code"] == INVALID_STATE
    assert producer.send(1, is_transactional=True)["base_offset"] == 1


def test_refusals_on_a_topic_of_append_time_are_the_same() -> None:
    """The broker writes its time into a batch before it looks at the number; the code stays."""
    broker = a_broker()
    broker.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"})
    producer = Producer(broker)
    assert producer.codes(0, 1, 5, 1, 2) == [
        (0, 0), (0, 1), (OUT_OF_ORDER, -1), (0, 1), (0, 2)
    ]  # fmt: skip
    assert producer.codes(0, 1, epoch=1) == [(0, 3), (0, 4)]
    assert producer.codes(9, epoch=0) == [(OLD_EPOCH, -1)]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_retry_is_recognised_after_a_restart(is_clean: bool) -> None:
    """Snapshot and replay bring the numbers back: the last one is known, the next expected."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1)
    Producer(broker).codes(0, 1, 2)
    if is_clean:
        broker.close()
    else:
        host.fs.process_death()
    again = Producer(a_broker(host))
    assert again.codes(2, 4, 3) == [(0, 2), (OUT_OF_ORDER, -1), (0, 3)]


def test_a_failed_write_does_not_count() -> None:
    """A batch that the disk refused is not a duplicate when it comes again."""
    host = SimulatedHost()
    broker = a_broker(host)
    broker.create_topic("t", 1)
    producer = Producer(broker)
    assert producer.codes(0, 1) == [(0, 0), (0, 1)]
    host.fs.fill_up(10)
    assert producer.codes(2, 2) == [(56, -1), (56, -1)]
    host.fs.faults.clear()
    assert producer.codes(2, 2, 3) == [(0, 2), (0, 2), (0, 3)]
