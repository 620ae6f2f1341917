"""Transactions in a partition: markers, what is stable, what was aborted, who may write."""

from __future__ import annotations

import attrs
import pytest

from logstore.errors import OffsetOutOfRangeError
from logstore.host import read_file
from logstore.segments.kafka.append_errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from logstore.segments.kafka.control_record import ControlType, decode_marker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.producer_state import EXPIRATION_MS, OpenTransaction
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.transaction_index import AbortedTransaction
from logstore.segments.kafka.transaction_verification import Verification
from logstore.testing import PowerLoss, SimulatedHost
from tests.segments.kafka.transactional_writer import (
    CONFIG,
    DIRECTORY,
    NOW_MS,
    ONE,
    TWO,
    Writer,
    a_host,
    open_partition,
)


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with the directory of a partition."""
    return a_host()


def committed(partition: KafkaPartition) -> list[int]:
    """Return the offsets that a read_committed reader gets."""
    found = partition.read_records(partition.start_offset, 1000, is_committed_only=True)
    return [record.offset for record in found]


# markers


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_a_control_batch_of_the_producer(host: SimulatedHost, is_commit: bool) -> None:
    """Transactional, without sequence, with the producer's epoch and the coordinator's."""
    partition = open_partition(host)
    partition.become_leader(3)
    writer = Writer(partition, ONE, epoch=2)
    assert writer.write() == 0
    assert writer.end(is_commit=is_commit, coordinator_epoch=9) == 1
    marker = list(partition.batches())[-1]
    assert (marker.is_control, marker.is_transactional, marker.size_bytes) == (True, True, 78)
    assert (marker.producer_id, marker.producer_epoch, marker.base_sequence) == (ONE, 2, -1)
    assert (marker.leader_epoch, marker.max_timestamp_ms) == (3, NOW_MS + 5)
    (record,) = decode_records(marker.data)
    decoded = decode_marker(record)
    assert decoded is not None
    assert decoded.type is (ControlType.COMMIT if is_commit else ControlType.ABORT)
    assert decoded.coordinator_epoch == 9


def test_a_marker_has_the_brokers_time_where_the_topic_says_so(host: SimulatedHost) -> None:
    """It is no producer's batch, but gets the topic's type of timestamps like one."""
    partition = open_partition(
        host, config=attrs.evolve(CONFIG, message_timestamp_type="LogAppendTime")
    )
    Writer(partition, ONE).end(is_commit=True)
    (marker,) = partition.batches()
    assert (marker.is_log_append_time, marker.max_timestamp_ms) == (True, NOW_MS + 5)
    assert marker.computed_crc() == marker.crc


def test_a_marker_rolls_like_any_batch(host: SimulatedHost) -> None:
    """What it aborts is noted in the index of the segment that the marker is in."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    marker = -1
    while len(partition.log.segments) < 2:
        writer.write()
        marker = writer.end(is_commit=False)
    first, second = partition.log.segments.values()
    assert second.base_offset <= marker
    assert [entry.last_offset for entry in second.transaction_index.entries()] == [marker]
    assert marker not in [entry.last_offset for entry in first.transaction_index.entries()]


def test_a_marker_without_data_changes_nothing_for_readers(host: SimulatedHost) -> None:
    """It is appended; no index entry is made, and no index file."""
    partition = open_partition(host)
    assert Writer(partition, ONE).end(is_commit=False) == 0
    assert partition.last_stable_offset == partition.end_offset == 1
    assert partition.aborted_transactions(0, 1) == []
    assert not host.fs.exists(f"{DIRECTORY}/{0:020d}.txnindex")


def test_older_epochs_are_fenced(host: SimulatedHost) -> None:
    """A marker of an older producer or coordinator is refused, a newer one taken."""
    partition = open_partition(host)
    writer = Writer(partition, ONE, epoch=5)
    writer.write()
    writer.end(is_commit=True, coordinator_epoch=3)
    with pytest.raises(TransactionCoordinatorFencedError):
        writer.end(is_commit=True, coordinator_epoch=2)
    writer.epoch = 4
    with pytest.raises(InvalidProducerEpochError):
        writer.end(is_commit=True, coordinator_epoch=3)
    assert partition.end_offset == 2
    writer.epoch = 6
    assert writer.end(is_commit=True, coordinator_epoch=4) == 2
    with pytest.raises(InvalidProducerEpochError):
        Writer(partition, ONE, epoch=5).write()


def test_a_marker_of_version_2_has_an_epoch_of_its_own(host: SimulatedHost) -> None:
    """The epoch of the data would end the wrong one; after the end it is a retry, and taken."""
    partition = open_partition(host)
    writer = Writer(partition, ONE, epoch=5)
    writer.write()
    with pytest.raises(InvalidProducerEpochError):
        writer.end(is_commit=True, version=2)
    writer.epoch = 6
    assert writer.end(is_commit=True, version=2) == 1
    assert writer.end(is_commit=True, version=2) == 2
    writer.sequence = 0
    assert writer.write() == 3


# what readers see


def test_readers_of_committed_data_stop_at_the_oldest_open_transaction(host: SimulatedHost) -> None:
    """Until its marker is there; then at the next one."""
    partition = open_partition(host)
    one, two = Writer(partition, ONE), Writer(partition, TWO)
    one.write(2)
    two.write()
    plain = encode_batch([Record(0, NOW_MS, b"k", b"plain")])
    partition.append_produced(memoryview(plain), NOW_MS)
    assert (partition.last_stable_offset, committed(partition)) == (0, [])
    assert partition.producers.open_transactions() == [
        OpenTransaction(ONE, 0, 0, NOW_MS),
        OpenTransaction(TWO, 0, 2, NOW_MS),
    ]
    one.end(is_commit=False)
    assert (partition.last_stable_offset, committed(partition)) == (2, [])
    two.end(is_commit=True)
    assert (partition.last_stable_offset, committed(partition)) == (6, [2, 3])
    assert partition.producers.open_transactions() == []
    assert partition.aborted_transactions(0, 6) == [AbortedTransaction(ONE, 0, 4, 2)]


def test_an_abort_is_known_wherever_its_data_is(host: SimulatedHost) -> None:
    """A transaction over many segments: each fetch of its data names it."""
    partition = open_partition(host)
    one, two = Writer(partition, ONE), Writer(partition, TWO)
    while len(partition.log.segments) < 4:
        one.write()
        two.write()
        two.end(is_commit=True)
    marker = one.end(is_commit=False)
    aborted = AbortedTransaction(ONE, 0, marker, marker + 1)
    for offset in range(marker + 1):
        assert partition.read_committed(offset, 100).aborted == [aborted]
        assert partition.aborted_transactions(offset, offset + 1) == [aborted]
    offsets = [r.offset for r in partition.read_records(0, 1000) if r.value == b"%d" % TWO]
    assert committed(partition) == offsets


def test_an_unknown_offset_is_out_of_range_for_committed_reads_too(host: SimulatedHost) -> None:
    """Between the last stable offset and the end there is nothing, behind it an error."""
    partition = open_partition(host)
    Writer(partition, ONE).write(3)
    for offset in range(4):
        assert partition.read_committed(offset, 100).extent is None
    with pytest.raises(OffsetOutOfRangeError):
        partition.read_committed(4, 100)


# deletion, truncation, restarts


def test_records_are_deleted_across_an_open_transaction(host: SimulatedHost) -> None:
    """The last stable offset does not lie below the log start; the marker lets it go on."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    writer.write(3)
    writer.write(3)
    assert partition.delete_records(4) == 4
    assert partition.last_stable_offset == 4
    assert partition.read_committed(4, 1000).extent is None
    partition.close()
    host.clock.advance(1)
    partition = open_partition(host)
    partition.delete_records(4)
    assert partition.last_stable_offset == 4
    Writer(partition, ONE).end(is_commit=False)
    assert partition.last_stable_offset == 7
    assert partition.aborted_transactions(4, 7) == [AbortedTransaction(ONE, 0, 6, 7)]
    assert committed(partition) == []


def test_retention_takes_segments_of_an_open_transaction(host: SimulatedHost) -> None:
    """As in Kafka; what is left of it is still aborted as a whole, also after a restart."""
    partition = open_partition(host, config=attrs.evolve(CONFIG, retention_bytes=500))
    writer = Writer(partition, ONE)
    while len(partition.log.segments) < 4:
        writer.write()
    assert partition.retain() > 0
    assert partition.start_offset > 0
    assert partition.last_stable_offset == partition.start_offset
    partition.close()
    partition = open_partition(host)
    assert partition.last_stable_offset == partition.start_offset
    assert partition.producers.open_transactions() == [OpenTransaction(ONE, 0, 0, NOW_MS)]
    writer.partition = partition
    marker = writer.end(is_commit=False)
    assert partition.last_stable_offset == marker + 1
    assert committed(partition) == []


def test_a_removed_segment_takes_its_transaction_index_along(host: SimulatedHost) -> None:
    """First it gets another name, later it goes."""
    partition = open_partition(host, config=attrs.evolve(CONFIG, retention_bytes=1))
    writer = Writer(partition, ONE)
    while len(partition.log.segments) < 2:
        writer.write()
        writer.end(is_commit=False)
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    assert host.fs.exists(path)
    partition.retain()
    assert not host.fs.exists(path)
    assert host.fs.exists(path + ".deleted")
    host.clock.advance(CONFIG.file_delete_delay_ms)
    partition.files.purge()
    assert not host.fs.exists(path + ".deleted")


def test_a_truncation_opens_what_its_marker_had_ended(host: SimulatedHost) -> None:
    """Index entries and producers go back to what the rest of the log says."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    writer.write(2)
    first = writer.end(is_commit=False)
    writer.write(2)
    second = writer.end(is_commit=False)
    assert [t.last_offset for t in partition.aborted_transactions(0, 100)] == [first, second]
    partition.truncate(second)
    assert [t.last_offset for t in partition.aborted_transactions(0, 100)] == [first]
    assert partition.last_stable_offset == first + 1
    assert partition.producers.open_transactions() == [OpenTransaction(ONE, 0, first + 1, NOW_MS)]
    assert writer.end(is_commit=True) == second
    assert committed(partition) == [first + 1, first + 2]


@pytest.mark.parametrize("stop", ["clean", "death", "power loss"])
def test_transactions_are_known_after_a_restart(host: SimulatedHost, stop: str) -> None:
    """Open ones, aborted ones and epochs, from snapshots and indexes or rebuilt from the log."""
    partition = open_partition(host)
    one, two = Writer(partition, ONE), Writer(partition, TWO, epoch=4)
    two.write()
    while len(partition.log.segments) < 3:
        one.write()
        one.end(is_commit=False, coordinator_epoch=6)
    partition.flush()
    expected = partition.aborted_transactions(0, 1000), partition.producers.open_transactions()
    assert len(expected[0]) > 2
    if stop == "clean":
        partition.close()
    elif stop == "death":
        host.fs.process_death()
    else:
        host.power_loss(PowerLoss())
    partition = open_partition(host, None if stop == "clean" else 0)
    found = partition.aborted_transactions(0, 1000), partition.producers.open_transactions()
    assert found == expected
    with pytest.raises(TransactionCoordinatorFencedError):
        partition.append_marker(ONE, 0, is_commit=True, coordinator_epoch=5, now_ms=NOW_MS)
    with pytest.raises(InvalidProducerEpochError):
        partition.append_marker(TWO, 3, is_commit=True, coordinator_epoch=0, now_ms=NOW_MS)


def test_a_lost_or_impossible_index_is_rebuilt(host: SimulatedHost) -> None:
    """An impossible one at the next start, a lost one with the recovery of its segment."""
    partition = open_partition(host)
    writer = Writer(partition, ONE)
    while len(partition.log.segments) < 2:
        writer.write()
        writer.end(is_commit=False)
    expected = partition.aborted_transactions(0, 1000)
    partition.close()
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    whole = read_file(host.fs, path)
    host.fs.damage(path, 0, b"\x07\x00")
    partition = open_partition(host)
    assert partition.aborted_transactions(0, 1000) == expected
    assert read_file(host.fs, path) == whole
    assert partition.recovery is None
    host.fs.process_death()
    host.fs.remove(path)
    partition = open_partition(host, recovery_point=0)
    assert partition.aborted_transactions(0, 1000) == expected
    assert read_file(host.fs, path) == whole


def test_a_reader_beside_a_broker_sees_what_is_not_decided(host: SimulatedHost) -> None:
    """Also in a log that has not rolled yet, and so has no snapshot of its producers."""
    partition = open_partition(host)
    one, two = Writer(partition, ONE), Writer(partition, TWO)
    one.write()
    one.end(is_commit=False)
    two.write()
    files = SegmentFiles(host, DIRECTORY, CONFIG, is_writable=False)
    reader = KafkaPartition(host, files, "t", 0)
    assert (reader.last_stable_offset, reader.end_offset) == (2, 3)
    assert reader.aborted_transactions(0, 3) == [AbortedTransaction(ONE, 0, 1, 2)]
    assert committed(reader) == []


# verification (KIP-890)


def asked(writer: Writer, *, is_version_2: bool = True) -> Verification | None:
    """Ask the partition for a guard, as a leader does before it asks the coordinator."""
    return writer.partition.producers.start_verification(
        producer_id=writer.producer_id,
        epoch=writer.epoch,
        first_sequence=writer.sequence,
        supports_epoch_bump=is_version_2,
        now_ms=NOW_MS,
    )


@pytest.fixture
def verifying(host: SimulatedHost) -> KafkaPartition:
    """A partition that lets nobody start a transaction behind the coordinator's back."""
    partition = open_partition(host)
    partition.verifies_transactions = True
    return partition


def test_the_first_batch_of_a_transaction_needs_its_guard(verifying: KafkaPartition) -> None:
    """Later ones do not: the transaction is open then, until its marker."""
    writer = Writer(verifying, ONE)
    with pytest.raises(InvalidTransactionStateError):
        writer.write()
    guard = asked(writer)
    with pytest.raises(InvalidTransactionStateError):
        writer.write(guard=asked(Writer(verifying, TWO)))
    assert writer.write(guard=guard) == 0
    assert asked(writer) is None
    assert writer.write() == 1
    writer.end(is_commit=True)
    with pytest.raises(InvalidTransactionStateError):
        writer.write()
    with pytest.raises(InvalidTransactionStateError):
        writer.write(guard=guard)
    assert verifying.end_offset == 3


def test_a_retry_is_a_duplicate_also_after_the_end(verifying: KafkaPartition) -> None:
    """What was written in the transaction is answered as before; no guard is asked for."""
    writer = Writer(verifying, ONE)
    sent = bytes(writer.batch())
    writer.write(guard=asked(writer))
    writer.end(is_commit=True)
    again = verifying.append_produced(memoryview(bytearray(sent)), NOW_MS)
    assert (again.is_duplicate, again.base_offset) == (True, 0)


def test_a_marker_makes_an_earlier_answer_worthless(verifying: KafkaPartition) -> None:
    """The coordinator said yes to a transaction that is over when the batch comes."""
    writer = Writer(verifying, ONE)
    guard = asked(writer, is_version_2=False)
    writer.end(is_commit=False)
    with pytest.raises(InvalidTransactionStateError):
        writer.write(guard=guard)
    assert writer.write(guard=asked(writer, is_version_2=False)) == 1


def test_with_version_2_the_next_transaction_may_ask_before_the_marker(
    verifying: KafkaPartition,
) -> None:
    """The marker of the one before has the epoch of the next one, whose guard stays good."""
    writer = Writer(verifying, ONE, epoch=1)
    guard = asked(writer)
    Writer(verifying, ONE, epoch=1).end(is_commit=True, version=2)
    assert writer.write(guard=guard) == 1


def test_the_lowest_sequence_that_asked_goes_first(verifying: KafkaPartition) -> None:
    """A higher one would be written, and the lower one be refused for good."""
    writer = Writer(verifying, ONE)
    asked(writer, is_version_2=False)
    writer.sequence = 3
    guard = asked(writer, is_version_2=False)
    with pytest.raises(OutOfOrderSequenceError, match="asking for 0"):
        writer.write(guard=guard)
    writer.sequence = 0
    assert writer.write(guard=guard) == 0


def test_a_new_producer_of_version_2_starts_at_0(verifying: KafkaPartition) -> None:
    """A lost batch before it would otherwise go unnoticed."""
    writer = Writer(verifying, ONE)
    writer.sequence = 4
    with pytest.raises(OutOfOrderSequenceError, match="instead of 0"):
        writer.write(guard=asked(writer))
    assert Writer(verifying, TWO).write(guard=asked(Writer(verifying, TWO))) == 0


def test_old_epochs_do_not_get_as_far_as_the_coordinator(verifying: KafkaPartition) -> None:
    """They are refused when they ask, and when they append."""
    writer = Writer(verifying, ONE, epoch=3)
    writer.write(guard=asked(writer))
    writer.epoch = 2
    with pytest.raises(InvalidProducerEpochError):
        asked(writer)
    with pytest.raises(InvalidProducerEpochError):
        writer.write()


def test_questions_without_an_answer_are_forgotten(verifying: KafkaPartition) -> None:
    """After a day, as producers are."""
    guard = asked(Writer(verifying, ONE))
    verifying.producers.expire(NOW_MS + EXPIRATION_MS - 1)
    assert asked(Writer(verifying, ONE)) is guard
    verifying.producers.expire(NOW_MS + EXPIRATION_MS)
    assert asked(Writer(verifying, ONE)) is not guard


# offsets of a transactional producer's group


def test_the_sequences_of_a_coordinators_batch_do_not_count(verifying: KafkaPartition) -> None:
    """It opens a transaction as data does; only epoch and guard are checked."""
    writer = Writer(verifying, ONE, epoch=3)
    writer.sequence = 5
    offsets = writer.batch()
    with pytest.raises(InvalidTransactionStateError):
        verifying.append_coordinated(offsets, NOW_MS)
    assert verifying.append_coordinated(offsets, NOW_MS, asked(writer)) == 0
    assert verifying.append_coordinated(writer.batch(), NOW_MS) == 1
    assert verifying.last_stable_offset == 0
    (first, second) = verifying.batches()
    assert (first.base_sequence, second.leader_epoch) == (5, verifying.leader_epoch)
    writer.end(is_commit=True)
    assert verifying.last_stable_offset == 3
    writer.epoch = 2
    with pytest.raises(InvalidProducerEpochError):
        verifying.append_coordinated(writer.batch(), NOW_MS)


def test_stored_batches_with_markers_are_noted_as_a_leaders(host: SimulatedHost) -> None:
    """A replica or a restore ends up with the same index and the same producers."""
    partition = open_partition(host)
    one, two = Writer(partition, ONE), Writer(partition, TWO)
    one.write()
    two.write()
    one.end(is_commit=False)
    stored = [bytes(batch.data) for batch in partition.batches()]
    other = SimulatedHost()
    other.fs.make_directory(DIRECTORY)
    replica = open_partition(other)
    for data in stored:
        replica.append_stored(RecordBatch(data, len(data)))
    assert replica.aborted_transactions(0, 9) == partition.aborted_transactions(0, 9)
    assert replica.producers.open_transactions() == partition.producers.open_transactions()
    assert replica.last_stable_offset == partition.last_stable_offset == 1
