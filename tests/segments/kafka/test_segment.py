"""A segment: its sparse indexes byte by byte, when it is full, where an offset or a time is."""

from __future__ import annotations

import struct
from collections.abc import Callable

import attrs
import pytest

from logstore.host import read_file
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost

T = 1_700_000_000_000
#: as in the reference run of Kafka's own classes
CONFIG = LogConfig(index_interval_bytes=100, segment_index_bytes=1003, segment_bytes=1 << 20)
DIRECTORY = "/t-0"
BATCH_BYTES = 99


def batch(
    base_offset: int,
    timestamp_ms: int,
    *,
    count: int = 2,
    size_bytes: int = BATCH_BYTES,
    last_offset: int | None = None,
) -> RecordBatch:
    """Return a batch of that size whose records are 1 ms apart."""
    for padding in range(size_bytes):
        records = [
            Record(base_offset + n, timestamp_ms + n, b"k", b"v" * (padding if n == 0 else 1))
            for n in range(count)
        ]
        data = encode_batch(records, base_offset=base_offset, last_offset=last_offset)
        if len(data) == size_bytes:
            return RecordBatch(memoryview(data), size_bytes)
    raise AssertionError(f"no batch of {count} records has {size_bytes} bytes")


def new_segment(
    host: SimulatedHost | None = None, config: LogConfig = CONFIG, base_offset: int = 0
) -> KafkaSegment:
    """Return an empty active segment."""
    host = host or SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    return SegmentFiles(host, DIRECTORY, config, is_new=True).create(base_offset)


def index_bytes(segment: KafkaSegment) -> tuple[bytes, bytes]:
    """Return what stands in the .index and the .timeindex on disk."""
    return (
        read_file(segment.fs, segment.offset_index.path),
        read_file(segment.fs, segment.time_index.path),
    )


def filled(segment: KafkaSegment, deltas_ms: list[int]) -> None:
    """Append batches of two records and 99 bytes, at these times after T."""
    for number, delta_ms in enumerate(deltas_ms):
        segment.append(batch(number * 2, T + delta_ms))


# the indexes, as Kafka's own classes wrote them


def reference_segment() -> KafkaSegment:
    """Return the segment that Kafka's classes were run on: five batches, one more, an ABORT."""
    segment = new_segment()
    filled(segment, [0, 500, 400, 900, 950])
    segment.append(batch(10, T + 1000, count=1, size_bytes=80))
    marker = encode_control(
        ControlType.ABORT, timestamp_ms=T + 1100, producer_id=9, producer_epoch=1,
        coordinator_epoch=5, base_offset=11,
    )  # fmt: skip
    segment.append(RecordBatch(memoryview(marker), len(marker)))
    return segment


def test_a_sealed_segment_has_the_reference_indexes() -> None:
    """An entry once more than the interval was written, pointing at its batch; a last time."""
    segment = reference_segment()
    segment.seal()
    assert index_bytes(segment) == (
        bytes.fromhex("00000005000000c6 000000090000018c 0000000b0000023f"),
        bytes.fromhex("0000018bcfe569f500000003 0000018bcfe56bb700000009 0000018bcfe56c4c0000000b"),
    )


def test_an_active_index_stands_at_its_full_size_rounded_down() -> None:
    """1003 bytes allowed are 125 entries of 8 bytes, and 83 of 12, on disk from the first flush."""
    segment = new_segment()
    segment.flush()
    assert [len(data) for data in index_bytes(segment)] == [1000, 996]


def test_truncation_inside_a_batch_removes_the_batch() -> None:
    """The log goes on at the offset asked for; index entries at or above it are gone."""
    segment = reference_segment()
    segment.truncate(5)
    segment.flush()
    assert (segment.end_position, segment.next_offset) == (198, 5)
    assert [segment.offset_index.entry_count, segment.time_index.entry_count] == [0, 1]
    assert [len(data) for data in index_bytes(segment)] == [1000, 996]
    assert segment.fs.open(segment.path).size() == 198
    assert segment.max_timestamp_ms == T + 501


#: what is done to the file; bytes kept; entries of both indexes afterwards
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], int, int, int]] = {
    "torn tail": (lambda data: data + data[:19], 594, 2, 3),
    "flipped bit": (lambda data: flipped(data, 3 * 99 + 70), 297, 1, 1),
    "short length": (lambda data: with_length(data, 2 * 99, 5), 198, 0, 1),
    "zeros behind": (lambda data: data + bytes(4096), 594, 2, 3),
    "intact": (lambda data: data, 594, 2, 3),
}


def flipped(data: bytes, position: int) -> bytes:
    """Return `data` with one bit changed."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def with_length(data: bytes, position: int, length: int) -> bytes:
    """Return `data` with another ``batchLength`` in the batch at `position`."""
    return data[: position + 8] + struct.pack(">i", length) + data[position + 12 :]


@pytest.mark.parametrize("name", DAMAGES)
def test_recovery_cuts_where_kafka_cuts(name: str) -> None:
    """The reference table of recoveries: bytes kept, index and time index entries afterwards."""
    damage, kept_bytes, index_entries, time_entries = DAMAGES[name]
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1000, 2000, 3000, 4000, 5000])
    segment.close()
    damaged = damage(read_file(host.fs, segment.path))
    file = host.fs.open(segment.path)
    file.truncate(0)
    file.write(0, damaged)
    host.fs.remove(segment.offset_index.path)
    files = SegmentFiles(host, DIRECTORY, CONFIG, is_clean=False)
    recovered = files.open(0, is_active=True)
    outcome = recovered.recover()
    recovered.seal()
    assert outcome.dropped_bytes == len(damaged) - kept_bytes
    assert outcome.is_clean == (name == "intact")
    assert recovered.end_position == kept_bytes == host.fs.open(segment.path).size()
    assert recovered.offset_index.entry_count == index_entries
    assert recovered.time_index.entry_count == time_entries
    if kept_bytes == 594:
        assert index_bytes(recovered)[0] == bytes.fromhex("00000005000000c6 000000090000018c")
    else:
        assert outcome.reason
        assert f"position {kept_bytes}: " in outcome.reason


def test_the_interval_is_exceeded_not_reached() -> None:
    """Exactly the interval since the last entry makes none; one byte more does."""
    for interval_bytes, entries in ((2 * BATCH_BYTES, 1), (2 * BATCH_BYTES - 1, 2)):
        config = attrs.evolve(CONFIG, index_interval_bytes=interval_bytes)
        segment = new_segment(config=config)
        filled(segment, [0, 1, 2, 3, 4])
        assert segment.offset_index.entry_count == entries


def test_a_recovered_segment_counts_its_interval_anew() -> None:
    """Kafka's recovery makes entries, but what it found behind the last one does not count."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1])
    segment.close()
    recovered = SegmentFiles(host, DIRECTORY, CONFIG, is_clean=False).open(0, is_active=True)
    recovered.recover()
    for base_offset, entries in ((4, 0), (6, 0), (8, 1)):
        recovered.append(batch(base_offset, T))
        assert recovered.offset_index.entry_count == entries


# when it is full


def test_a_batch_may_fill_a_segment_exactly() -> None:
    """``segment.bytes`` may be reached, not exceeded."""
    config = attrs.evolve(CONFIG, segment_bytes=3 * BATCH_BYTES)
    segment = new_segment(config=config)
    filled(segment, [0, 1])
    assert segment.has_room_for(batch(4, T))
    assert not segment.has_room_for(batch(4, T, size_bytes=BATCH_BYTES + 1))


def test_a_segment_ages_by_the_time_in_its_data() -> None:
    """From its first batch's time on ``segment.ms`` may pass; the wall clock does not count."""
    host = SimulatedHost()
    config = attrs.evolve(CONFIG, segment_ms=1000)
    segment = new_segment(host, config)
    assert segment.has_room_for(batch(0, T + 10**9)), "an empty segment never rolls by time"
    segment.append(batch(0, T))
    host.clock.advance(10**9)
    first_ms = T + 1  # the batch's largest
    assert segment.has_room_for(batch(2, first_ms + 1000 - 1))
    assert not segment.has_room_for(batch(2, first_ms + 1000))
    assert segment.has_room_for(batch(2, T - 10**9)), "older data does not age it"


def test_a_reopened_segment_ages_from_its_first_batch() -> None:
    """After a restart the first batch's time is read from the file."""
    host = SimulatedHost()
    config = attrs.evolve(CONFIG, segment_ms=1000)
    segment = new_segment(host, config)
    filled(segment, [0, 400, 800])
    segment.close()
    reopened = SegmentFiles(host, DIRECTORY, config).open(0, is_active=True)
    assert reopened.next_offset == 6
    assert reopened.has_room_for(batch(6, T + 1000))
    assert not reopened.has_room_for(batch(6, T + 1001))


def test_data_without_timestamps_ages_by_the_clock() -> None:
    """Where the first batch has no time, waiting is counted from the segment's creation."""
    host = SimulatedHost()
    segment = new_segment(host, attrs.evolve(CONFIG, segment_ms=1000))
    data = encode_batch([Record(0, -1, None, b"v")])
    segment.append(RecordBatch(memoryview(data), len(data)))
    host.clock.advance(1000)
    assert segment.has_room_for(batch(1, -2))
    host.clock.advance(1)
    assert not segment.has_room_for(batch(1, -2))


def test_jitter_brings_the_roll_forward() -> None:
    """A segment's own draw of ``segment.jitter.ms`` shortens its ``segment.ms``."""
    config = attrs.evolve(CONFIG, segment_ms=1000, segment_jitter_ms=400)
    host = SimulatedHost(seed=3)
    segment = new_segment(host, config)
    assert 0 < segment.jitter_ms < 400
    segment.append(batch(0, T))
    assert segment.has_room_for(batch(2, T + 1000 - segment.jitter_ms))
    assert not segment.has_room_for(batch(2, T + 1001 - segment.jitter_ms))
    assert new_segment(SimulatedHost(seed=3), CONFIG).jitter_ms == 0


def test_a_compacted_topic_rolls_for_its_cleaner() -> None:
    """``max.compaction.lag.ms`` bounds how long data may stay in the active segment."""
    config = attrs.evolve(CONFIG, cleanup_policy=("compact",), max_compaction_lag_ms=500)
    segment = new_segment(config=config)
    segment.append(batch(0, T))
    assert segment.has_room_for(batch(2, T + 500))
    assert not segment.has_room_for(batch(2, T + 501))


def test_a_full_index_fills_the_segment() -> None:
    """When the offset index is full, or the time index but for its last slot, the segment rolls."""
    by_offset = new_segment(config=attrs.evolve(CONFIG, segment_index_bytes=60))
    filled(by_offset, [0] * 13)  # times stand still: the time index gets one entry
    assert by_offset.offset_index.entry_count == 6
    assert by_offset.has_room_for(batch(26, T))
    by_offset.append(batch(26, T))
    by_offset.append(batch(28, T))
    assert by_offset.offset_index.is_full
    assert not by_offset.has_room_for(batch(30, T))
    by_time = new_segment(config=attrs.evolve(CONFIG, segment_index_bytes=36))
    filled(by_time, [0, 10, 20, 30, 40])
    assert not by_time.offset_index.is_full
    assert by_time.time_index.is_full
    assert not by_time.has_room_for(batch(10, T + 50))


def test_offsets_too_far_from_the_base_go_into_the_next_segment() -> None:
    """Relative offsets have four bytes: 2^31-1 above the base is the last that fits."""
    segment = new_segment()
    segment.append(batch(0, T, last_offset=2**31 - 3))
    assert segment.has_room_for(batch(2**31 - 2, T))
    assert not segment.has_room_for(batch(2**31 - 2, T, count=3, size_bytes=110))


# where things are


def test_every_offset_leads_to_its_batch() -> None:
    """Whatever the index says, the position is that of the batch that holds the offset."""
    segment = new_segment()
    filled(segment, list(range(40)))
    for offset in range(80):
        assert segment.locate(offset) == offset // 2 * BATCH_BYTES
    assert segment.locate(80) == segment.end_position == 40 * BATCH_BYTES


def test_an_offset_in_a_hole_leads_to_the_next_batch() -> None:
    """Compaction removes batches; the search goes on to the first one that reaches so far."""
    segment = new_segment()
    for base_offset in (0, 10, 20, 30, 40):
        segment.append(batch(base_offset, T + base_offset))
    segment.seal()
    for offset, number in ((1, 0), (2, 1), (9, 1), (11, 1), (12, 2), (39, 4), (41, 4), (42, 5)):
        assert segment.locate(offset) == number * BATCH_BYTES, offset


def test_what_is_appended_behind_a_hole_is_read_from_within_it() -> None:
    """Also where somebody has looked into the hole before, and found nothing."""
    segment = new_segment()
    filled(segment, [0])
    segment.truncate(1)

    def found() -> bytes:
        end = segment.end_position
        return segment.read_batches(0, 1, end_position=end, is_first_whole=True).read()

    assert found() == b""
    segment.append(following := batch(1, T))
    assert found() == following.data


def test_reads_start_with_a_whole_batch_and_stop_where_told() -> None:
    """The first batch comes in full or not at all, and nothing from behind the end position."""
    segment = new_segment()
    filled(segment, [0, 1, 2])
    whole = segment.read_batches(3, 10, end_position=297, is_first_whole=True)
    assert (whole.position, whole.size_bytes) == (99, 99)
    nothing = segment.read_batches(3, 98, end_position=297, is_first_whole=False)
    assert nothing.size_bytes == 0
    torn = segment.read_batches(3, 120, end_position=297, is_first_whole=False)
    assert (torn.position, torn.size_bytes) == (99, 120), "a later one may be cut"
    two = segment.read_batches(3, 10_000, end_position=198, is_first_whole=True)
    assert (two.position, two.size_bytes) == (99, 99)
    none = segment.read_batches(3, 10_000, end_position=99, is_first_whole=True)
    assert none.size_bytes == 0


def test_a_time_leads_to_the_first_record_that_is_at_least_so_young() -> None:
    """Out of order or not, the first offset whose timestamp reaches the time asked for."""
    segment = new_segment()
    deltas = [0, 700, 300, 500, 900, 800, 1500, 1400]
    filled(segment, deltas)
    stamps = [T + delta + n for delta in deltas for n in range(2)]
    for asked in {stamp + n for stamp in stamps for n in (-1, 0, 1)}:
        wanted = next((o for o, stamp in enumerate(stamps) if stamp >= asked), None)
        found = segment.find_timestamp(asked, segment.base_offset)
        assert (None if found is None else found.offset) == wanted, asked - T
    found = segment.find_timestamp(T, 5)
    assert found is not None
    assert (found.offset, found.timestamp_ms, found.leader_epoch) == (5, T + 301, -1)


def test_the_newest_batch_is_found_after_a_truncation() -> None:
    """The short cut to the newest batch is forgotten when that batch goes."""
    segment = new_segment()
    filled(segment, [0, 1, 2])
    segment.truncate(4)
    assert segment.locate(4) == 198
    segment.append(batch(4, T + 9))
    assert [segment.locate(offset) for offset in (2, 3, 4, 5, 6)] == [99, 99, 198, 198, 297]


def test_largest_timestamp_or_when_it_was_written() -> None:
    """Data without times is as old as its file."""
    host = SimulatedHost()
    segment = new_segment(host)
    host.clock.advance(5000)
    data = encode_batch([Record(0, -1, None, b"v")])
    segment.append(RecordBatch(memoryview(data), len(data)))
    assert segment.largest_timestamp_ms() == T + 5000
    segment.append(batch(1, T + 77))
    assert segment.largest_timestamp_ms() == T + 78


def test_a_truncated_segment_finds_its_largest_timestamp_anew() -> None:
    """What the time index does not say is read from the batches that remain."""
    segment = new_segment(config=attrs.evolve(CONFIG, index_interval_bytes=10_000))
    filled(segment, [500, 100, 900])
    segment.truncate(4)
    assert (segment.max_timestamp_ms, segment.max_timestamp_offset) == (T + 501, 1)
