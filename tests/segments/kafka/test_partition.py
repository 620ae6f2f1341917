"""A partition: what a leader does with batches, offsets, epochs, producers and time."""

from __future__ import annotations

import struct

import attrs
import pytest

from logstore.errors import (
    OffsetMismatchError,
    OffsetOutOfRangeError,
    RejectedAppendError,
)
from logstore.partition import Header
from logstore.partition import Record as PlainRecord
from logstore.segments.kafka.append_errors import RecordListTooLargeError
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.producer_snapshot import list_snapshots, read_snapshot, snapshot_name
from logstore.segments.kafka.producer_state import EXPIRATION_MS
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost

DIRECTORY = "/data/t-0"
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, file_delete_delay_ms=0)


@pytest.fixture
def host() -> SimulatedHost:
    """A world with an empty, durable partition directory."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    for path in (DIRECTORY, "/data", "/"):
        host.fs.sync_directory(path)
    return host


def open_partition(
    host: SimulatedHost,
    config: LogConfig = CONFIG,
    *,
    recovery_point: int | None = None,
    log_start_offset: int = 0,
    is_writable: bool = True,
) -> KafkaPartition:
    """Open or create the partition."""
    files = SegmentFiles(
        host, DIRECTORY, config, is_clean=recovery_point is None, is_writable=is_writable
    )
    return KafkaPartition(
        host, files, "t", 0, recovery_point=recovery_point, log_start_offset=log_start_offset
    )


def batch_of(
    count: int = 1,
    *,
    timestamp_ms: int = NOW_MS,
    producer_id: int = -1,
    sequence: int = -1,
    epoch: int = 0,
    is_transactional: bool = False,
    size_bytes: int = 30,
) -> memoryview:
    """Return a produced batch."""
    records = [Record(n, timestamp_ms + n, b"k%d" % n, b"v" * size_bytes) for n in range(count)]
    return memoryview(
        encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
    )


def stored(
    base_offset: int, *, last_offset: int | None = None, leader_epoch: int = 0
) -> RecordBatch:
    """Return a batch as another leader stored it."""
    data = encode_batch(
        [Record(base_offset, NOW_MS, b"k", b"v" * 30)],
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
    )
    return RecordBatch(memoryview(data), len(data))


def fill(partition: KafkaPartition, count: int) -> None:
    """Produce `count` batches of one record."""
    for _ in range(count):
        partition.append_produced(batch_of(), NOW_MS)


# appending


def test_offsets_epoch_and_time_are_the_leaders(host: SimulatedHost) -> None:
    """A produced batch gets the next offsets and the leader's epoch; the answer says which."""
    partition = open_partition(host)
    partition.become_leader(3)
    first = partition.append_produced(batch_of(3), NOW_MS)
    second = partition.append_produced(batch_of(2), NOW_MS)
    assert (first.base_offset, first.last_offset, first.log_append_time_ms) == (0, 2, -1)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert partition.end_offset == partition.last_stable_offset == 5
    assert [(b.base_offset, b.leader_epoch) for b in partition.batches()] == [(0, 3), (3, 3)]


def test_the_answer_has_the_brokers_time_where_the_topic_says_so(host: SimulatedHost) -> None:
    """LogAppendTime is told to the producer."""
    config = attrs.evolve(CONFIG, message_timestamp_type="LogAppendTime")
    appended = open_partition(host, config).append_produced(batch_of(), NOW_MS + 77)
    assert appended.log_append_time_ms == NOW_MS + 77


def test_records_are_appended_as_one_batch(host: SimulatedHost) -> None:
    """Keys, values, headers, nulls and times come back; an append of nothing is refused."""
    partition = open_partition(host)
    records = [
        PlainRecord(b"k", b"v", 5, (Header("h", b"1"), Header("h", None))),
        PlainRecord(None, None, 6),
    ]
    assert partition.append_records(records).next_offset == 2
    found = partition.read_records(0, 10)
    assert found == [record._replace(offset=n) for n, record in enumerate(records)]
    assert len(list(partition.batches())) == 1
    with pytest.raises(RejectedAppendError, match="there is nothing to append"):
        partition.append_records([])


def test_a_batch_larger_than_a_segment_is_refused(host: SimulatedHost) -> None:
    """Whoever sends or restores it: no segment could hold it, and nothing is written."""
    partition = open_partition(host)
    with pytest.raises(RecordListTooLargeError, match="a segment holds 500"):
        partition.append_produced(batch_of(size_bytes=600), NOW_MS)
    data = encode_batch([Record(0, NOW_MS, None, b"v" * 600)])
    with pytest.raises(RecordListTooLargeError, match="a segment holds 500"):
        partition.append_stored(RecordBatch(memoryview(data), len(data)))
    assert partition.end_offset == 0


def test_stored_batches_keep_offsets_epochs_and_holes(host: SimulatedHost) -> None:
    """A replica or a restore takes batches as they are, as long as they go up."""
    partition = open_partition(host)
    for batch in (stored(5, leader_epoch=2), stored(9, last_offset=20, leader_epoch=4)):
        partition.append_stored(batch)
    assert partition.end_offset == 21
    assert partition.leader_epochs.entries == [(2, 5), (4, 9)]
    with pytest.raises(OffsetMismatchError, match="starts at offset 20, the log continues at 21"):
        partition.append_stored(stored(20, leader_epoch=9))
    assert partition.leader_epochs.latest_epoch == 4, "nothing of the refused batch remains"


def test_a_new_segment_starts_where_its_first_batch_does(host: SimulatedHost) -> None:
    """Behind a hole the next segment is named after the batch, as Kafka names it."""
    partition = open_partition(host)
    for base_offset in (0, 10, 20, 30, 40, 50):
        partition.append_stored(stored(base_offset))
    bases = list(partition.log.segments)
    assert bases == [0, 50]
    assert list_snapshots(host.fs, DIRECTORY) == [50]
    far = 2**31 + 50
    partition.append_stored(stored(far))
    assert list(partition.log.segments) == [0, 50, far], "relative offsets have four bytes"
    assert [b.base_offset for b in partition.batches(20)] == [20, 30, 40, 50, far]


def test_rolls_take_a_snapshot_and_are_told(host: SimulatedHost) -> None:
    """At each new segment the producers' state is written, and whoever flushes is called."""
    partition = open_partition(host)
    rolled: list[int] = []
    appended: list[int] = []
    partition.on_roll = lambda p: rolled.append(p.end_offset)
    partition.on_append = lambda p: appended.append(p.end_offset)
    for sequence in range(9):
        partition.append_produced(batch_of(producer_id=7, sequence=sequence), NOW_MS)
    assert appended == list(range(1, 10))
    assert rolled == list(partition.log.segments)[1:] == list_snapshots(host.fs, DIRECTORY)
    (entry,) = read_snapshot(host.fs, f"{DIRECTORY}/{snapshot_name(rolled[-1])}")
    assert (entry.producer_id, entry.last_sequence) == (7, rolled[-1] - 1)


def test_flushes_are_due_by_count(host: SimulatedHost) -> None:
    """``flush.messages`` flushes in the append, or tells whoever took that over."""
    config = attrs.evolve(CONFIG, flush_messages=3)
    partition = open_partition(host, config)
    fill(partition, 2)
    assert partition.log.recovery_point == 0
    fill(partition, 1)
    assert partition.log.recovery_point == 3
    due: list[int] = []
    partition.on_flush_due = lambda p: due.append(p.end_offset)
    fill(partition, 4)
    assert due == [6, 7]
    assert partition.log.recovery_point == 3


def test_an_append_during_a_flush_is_not_counted_as_flushed(host: SimulatedHost) -> None:
    """The recovery point moves to where the flush began."""
    partition = open_partition(host)
    fill(partition, 2)
    task = partition.begin_flush()
    fill(partition, 1)
    task.run()
    partition.end_flush(task)
    assert partition.log.recovery_point == 2


# reading


def test_a_read_stops_at_the_bound_given(host: SimulatedHost) -> None:
    """At the bound and behind it there is nothing yet; before it whole batches up to it."""
    partition = open_partition(host)
    fill(partition, 3)
    size = partition.log.size_bytes // 3
    bounded = partition.read(0, 10_000, end_offset=2)
    assert bounded is not None
    assert len(bounded.read()) == 2 * size
    assert partition.read(2, 10_000, end_offset=2) is None
    assert partition.read(3, 10_000) is None
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 4 is outside of \[0, 3\)"):
        partition.read(4, 10_000)


def test_a_read_goes_on_behind_a_hole_at_the_end_of_a_segment(host: SimulatedHost) -> None:
    """Where compaction emptied the rest of a segment, the next one answers."""
    partition = open_partition(host)
    partition.append_stored(stored(0))
    partition.log.roll(10)
    partition.append_stored(stored(10))
    extent = partition.read(5, 10_000)
    assert extent is not None
    assert RecordBatch(extent.read(), extent.size_bytes).base_offset == 10


def test_a_read_in_front_of_the_first_segment_goes_on_in_it(host: SimulatedHost) -> None:
    """Where a truncation emptied the log and it goes on higher up, the start leads there."""
    partition = open_partition(host)
    partition.append_produced(batch_of(3), NOW_MS)
    partition.truncate(1)
    partition.log.roll()
    fill(partition, 1)
    extent = partition.read(0, 1)
    assert extent is not None
    assert RecordBatch(extent.read(), extent.size_bytes).base_offset == 1
    assert [r.offset for r in partition.read_records(0, 5)] == [1]


def test_the_youngest_record_is_found(host: SimulatedHost) -> None:
    """The largest timestamp need not be the last; of an empty log there is none."""
    partition = open_partition(host)
    assert partition.find_max_timestamp() is None
    assert partition.offset_for_timestamp(0) is None
    for delta in (0, 5000, 300, 100, 200, 700):
        partition.append_produced(batch_of(timestamp_ms=NOW_MS + delta), NOW_MS)
    found = partition.find_max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (1, NOW_MS + 5000)
    assert partition.offset_for_timestamp(NOW_MS + 1) == 1


def test_the_youngest_record_may_have_been_deleted(host: SimulatedHost) -> None:
    """As in Kafka: as long as its segment is there, it is the one that is named."""
    partition = open_partition(host)
    for delta in (5000, 0):
        partition.append_produced(batch_of(timestamp_ms=NOW_MS + delta), NOW_MS)
    partition.delete_records(1)
    found = partition.find_max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (0, NOW_MS + 5000)


# producers


def test_a_retry_is_answered_with_the_first_offsets(host: SimulatedHost) -> None:
    """The same batch again changes nothing and says where it went."""
    partition = open_partition(host)
    first = partition.append_produced(batch_of(2, producer_id=7, sequence=0), NOW_MS)
    fill(partition, 1)
    again = partition.append_produced(batch_of(2, producer_id=7, sequence=0), NOW_MS)
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert partition.end_offset == 3


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean stop", "crash"])
def test_producers_are_known_after_a_restart(host: SimulatedHost, is_clean: bool) -> None:
    """From the snapshot and the log behind it, after a clean stop and after a crash alike."""
    partition = open_partition(host)
    for sequence in range(12):
        partition.append_produced(batch_of(producer_id=7, sequence=sequence), NOW_MS)
    if is_clean:
        partition.close()
    else:
        host.fs.process_death()
    partition = open_partition(host, recovery_point=None if is_clean else 0)
    assert partition.append_produced(batch_of(producer_id=7, sequence=11), NOW_MS).is_duplicate
    assert partition.append_produced(batch_of(producer_id=7, sequence=12), NOW_MS).base_offset == 12


def test_producers_that_were_silent_for_a_day_are_forgotten_at_a_start(
    host: SimulatedHost,
) -> None:
    """As in Kafka; else the state would grow with every producer that ever was."""
    partition = open_partition(host)
    partition.append_produced(batch_of(producer_id=7, sequence=5), NOW_MS)
    partition.close()
    host.clock.advance(EXPIRATION_MS - 1)
    assert open_partition(host).producers.get(7) is not None
    host.clock.advance(1)
    assert open_partition(host).producers.get(7) is None


def test_a_damaged_record_below_the_recovery_point_does_not_keep_a_log_closed(
    host: SimulatedHost,
) -> None:
    """Producers are replayed without a look at CRCs; who reads the batch will know."""
    partition = open_partition(host)
    for sequence in range(12):
        partition.append_produced(batch_of(producer_id=7, sequence=sequence), NOW_MS)
    partition.close()
    for offset in list_snapshots(host.fs, DIRECTORY)[:-1]:
        host.fs.remove(f"{DIRECTORY}/{snapshot_name(offset)}")
    host.fs.damage(f"{DIRECTORY}/{snapshot_name(12)}", 8, b"\xff")
    host.fs.flip(f"{DIRECTORY}/{0:020d}.log", 90)
    partition = open_partition(host)
    entry = partition.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 11


def test_snapshots_of_another_history_are_removed(host: SimulatedHost) -> None:
    """What lies above a truncation is not the past of what is appended after it."""
    partition = open_partition(host)
    for sequence in range(9):
        partition.append_produced(batch_of(producer_id=7, sequence=sequence), NOW_MS)
    rolled = list_snapshots(host.fs, DIRECTORY)
    partition.truncate(2)
    # what was replayed up to the new end is kept at once, as in Kafka
    assert list_snapshots(host.fs, DIRECTORY) == sorted({2, *(o for o in rolled if o <= 2)})
    fill(partition, 10)
    host.fs.process_death()
    partition = open_partition(host, recovery_point=2)
    entry = partition.producers.get(7)
    assert entry is not None
    assert entry.last_sequence == 1


def test_only_the_newest_snapshot_of_no_segment_is_kept(host: SimulatedHost) -> None:
    """Every clean stop leaves one; the next start keeps the last, and an empty log needs none."""
    open_partition(host).close()
    assert list_snapshots(host.fs, DIRECTORY) == []
    for count in (1, 2, 3):
        partition = open_partition(host)
        fill(partition, 1)
        partition.close()
        assert list_snapshots(host.fs, DIRECTORY)[-1] == count
    open_partition(host).close()
    assert list_snapshots(host.fs, DIRECTORY) == [3]


def test_an_open_transaction_holds_the_last_stable_offset(host: SimulatedHost) -> None:
    """It stays at the first record of the oldest open transaction, until the marker is there."""
    partition = open_partition(host)
    fill(partition, 1)
    partition.append_produced(batch_of(2, producer_id=7, sequence=0, is_transactional=True), NOW_MS)
    fill(partition, 1)
    assert (partition.last_stable_offset, partition.end_offset) == (1, 4)
    partition.close()
    partition = open_partition(host)
    assert partition.last_stable_offset == 1, "after a restart too"
    marker = encode_control(
        ControlType.COMMIT, timestamp_ms=NOW_MS, producer_id=7, producer_epoch=0,
        coordinator_epoch=0, base_offset=4, leader_epoch=0,
    )  # fmt: skip
    partition.append_stored(RecordBatch(memoryview(marker), len(marker)))
    assert (partition.last_stable_offset, partition.end_offset) == (5, 5)
    assert [r.offset for r in partition.read_records(0, 10)] == [0, 1, 2, 3]


def test_new_settings_hold_at_once(host: SimulatedHost) -> None:
    """A smaller segment size rolls the open segment at the next append."""
    partition = open_partition(host)
    fill(partition, 2)
    partition.reconfigure(attrs.evolve(CONFIG, segment_bytes=210))
    fill(partition, 1)
    assert list(partition.log.segments) == [0, 2]


def test_who_only_reads_writes_nothing(host: SimulatedHost) -> None:
    """Also of a partition without any segment, and after a crash."""
    reader = open_partition(host, is_writable=False)
    assert (reader.start_offset, reader.end_offset) == (0, 0)
    assert list(reader.batches()) == []
    assert reader.read_records(0, 5) == []
    assert host.fs.list_directory(DIRECTORY) == []
    partition = open_partition(host)
    fill(partition, 12)
    host.fs.process_death()
    before = [(e.name, e.size_bytes) for e in host.fs.list_directory(DIRECTORY)]
    reader = open_partition(host, is_writable=False)
    assert [r.offset for r in reader.read_records(0, 20)] == list(range(12))
    assert [(e.name, e.size_bytes) for e in host.fs.list_directory(DIRECTORY)] == before


def test_stamps_are_written_in_place(host: SimulatedHost) -> None:
    """The memory that a request came in is the memory that is written: nothing is copied."""
    partition = open_partition(host)
    fill(partition, 3)
    data = batch_of()
    partition.append_produced(data, NOW_MS)
    assert struct.unpack_from(">q", data)[0] == 3
