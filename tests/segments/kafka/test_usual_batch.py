"""The short way of usual batches: that it is the long way, only shorter."""

from __future__ import annotations

import random
import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import RejectedAppendError, WriteFailedError
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.usual_batch import usual_batch
from logstore.testing import SimulatedHost
from tests.segments.kafka.accidents.recovered import contents

NOW_MS = 1_700_000_000_000
DIRECTORY = "/data/t-0"
CONFIG = LogConfig(
    segment_bytes=2000, index_interval_bytes=300, segment_ms=5000, segment_index_bytes=200
)
#: what says that a producer numbers its batches, and does it badly
NUMBERS = [(">q", 43, 9), (">q", 43, 1), (">h", 51, 1), (">i", 53, 3), (">i", 53, -1)]
#: what makes a batch unusual: (layout, position, value) of a header field
FIELDS = [
    (">q", 0, 5), (">i", 8, 77), (">b", 16, 1), (">h", 21, 0x08), (">h", 21, 0x10),
    (">h", 21, 0x20), (">h", 21, 3), (">i", 23, 7), (">q", 35, NOW_MS + 2**40),
    (">i", 57, 0), (">i", 57, -1), (">i", 57, 9),
]  # fmt: skip


def open_partition(config: LogConfig = CONFIG) -> KafkaPartition:
    """Create a partition in a world of its own."""
    host = SimulatedHost(seed=3)
    host.fs.make_directory(DIRECTORY)
    return KafkaPartition(host, SegmentFiles(host, DIRECTORY, config, is_clean=True), "t", 0)


def batch_of(
    count: int,
    size_bytes: int,
    time_ms: int = NOW_MS,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """Return a batch as a client sends it; `producer` is its id, its epoch, and a sequence."""
    records = [Record(n, time_ms + n, b"k", b"v" * size_bytes) for n in range(count)]
    producer_id, epoch, sequence = producer
    return bytes(
        encode_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


class Numbering:
    """Numbers of two producers that mostly go on, and start again with a new epoch."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._next = {1: (0, 0), 2: (0, 2**31 - 30)}

    def take(self, count: int) -> tuple[int, int, int]:
        """Return the producer of the next batch, of so many records."""
        dice = self._dice
        producer_id = dice.choice([1, 1, 1, 2])
        epoch, sequence = self._next[producer_id]
        chance = dice.random()
        if chance < 0.05:
            return producer_id, epoch, max(0, sequence - dice.choice([1, 1, 2, 20]))
        if chance < 0.1:
            epoch, sequence = epoch + 1, 0
        self._next[producer_id] = epoch, (sequence + count) % 2**31
        return producer_id, epoch, sequence


def with_field(data: bytes, layout: str, position: int, value: int, *, mends_crc: bool) -> bytes:
    """Return the batch with a header field changed."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    if mends_crc:
        crc = RecordBatch(memoryview(changed), len(changed)).computed_crc()
        struct.pack_into(">I", changed, 17, crc)
    return bytes(changed)


def outcome(partition: KafkaPartition, data: bytes, *, is_short: bool) -> object:
    """Append by the short way if it is open, else by the long one; return what came of it."""
    view = memoryview(bytearray(data))
    if is_short:
        start = partition.append_usual(view, NOW_MS)
        if start >= 0:
            return start
        assert bytes(view) == data, "what is not usual is left as it is"
    try:
        return partition.append_produced(view, NOW_MS).base_offset
    except RejectedAppendError as error:
        return type(error), str(error)


def life(seed: int, *, is_short: bool, numbered: float) -> tuple[list[object], dict[str, bytes]]:
    """Append batches of all kinds; return what came of each, and the files at the end."""
    dice = random.Random(seed)
    partition = open_partition()
    outcomes: list[object] = []
    numbering = Numbering(dice)
    time_ms = NOW_MS
    for _ in range(40):
        time_ms += dice.choice([0, 1, 1, 10, 3000, -500])
        codec = dice.choice([Codec.NONE] * 6 + [Codec.LZ4])
        count = dice.choice([1, 1, 1, 2, 20])
        producer = numbering.take(count) if dice.random() < numbered else (-1, -1, -1)
        data = batch_of(count, dice.randrange(150), time_ms, codec, producer)
        if dice.random() < 0.3 - numbered / 4:
            data = with_field(data, *dice.choice(FIELDS + NUMBERS), mends_crc=dice.random() < 0.7)
        if dice.random() < 0.1:
            cut = dice.randrange(len(data))
            data = data[:cut] if dice.random() < 0.5 else data + data[cut:]
        outcomes.append(outcome(partition, data, is_short=is_short))
        if dice.random() < 0.05:
            partition.flush()
    partition.close()
    host = partition.host
    assert isinstance(host, SimulatedHost)
    return outcomes, contents(host, DIRECTORY)


@pytest.mark.parametrize("numbered", [0, 0.5, 1])
@pytest.mark.parametrize("seed", range(30))
def test_both_ways_write_the_same_log_and_refuse_the_same(seed: int, numbered: float) -> None:
    """Data, indexes, offsets and refusals do not depend on the way, whatever is appended."""
    short = life(seed, is_short=True, numbered=numbered)
    assert short == life(seed, is_short=False, numbered=numbered)


@pytest.mark.parametrize("producer_id", [-1, 0, 2**62])
@pytest.mark.parametrize("count", [1, 2, 16, 40])
def test_plain_batches_are_usual(count: int, producer_id: int) -> None:
    """Any number of uncompressed records, with a producer or without one."""
    data = memoryview(batch_of(count, 100, producer=(producer_id, 0, 0)))
    told = (count - 1, NOW_MS + count - 1, producer_id)
    assert usual_batch(data, LogConfig(), NOW_MS) == told


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_batch_with_a_strange_header_is_not_usual(field: tuple[str, int, int]) -> None:
    """Also where its CRC is right."""
    data = with_field(batch_of(3, 100), *field, mends_crc=True)
    assert usual_batch(memoryview(data), LogConfig(), NOW_MS) is None


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(cleanup_policy=("compact",)),
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(message_timestamp_before_max_ms=1000),
        LogConfig(compression_type="zstd"),
        LogConfig(max_message_bytes=100),
    ],
    ids=lambda config: str(attrs.asdict(config)["cleanup_policy"]),
)
def test_a_topic_with_rules_about_records_has_no_usual_batches(config: LogConfig) -> None:
    """Keys of compacted topics, clocks, codecs and sizes are looked at the long way."""
    assert usual_batch(memoryview(batch_of(1, 100)), config, NOW_MS) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_usual_or_not(data: bytes) -> None:
    """Nothing that arrives makes the look fail."""
    assert usual_batch(memoryview(data), LogConfig(), NOW_MS) is None


@given(st.data())
def test_a_changed_byte_ends_the_short_way(data: st.DataObject) -> None:
    """Whatever byte it is, but for the leader epoch, which is the leader's own."""
    batch = bytearray(batch_of(2, 80))
    position = data.draw(st.integers(0, len(batch) - 1).filter(lambda at: not 12 <= at < 16))
    batch[position] ^= data.draw(st.integers(1, 255))
    assert usual_batch(memoryview(batch), LogConfig(), NOW_MS) is None


def test_whoever_waits_for_appends_is_told_of_short_ones() -> None:
    """Long polls see what came the short way."""
    partition = open_partition()
    told: list[int] = []
    partition.on_append = lambda which: told.append(which.end_offset)
    assert (
        partition.append_produced(memoryview(bytearray(batch_of(1, 100))), NOW_MS).base_offset == 0
    )
    assert partition.append_usual(memoryview(bytearray(batch_of(2, 100))), NOW_MS) == 1
    for sequence in (0, 1):
        outcome(partition, batch_of(1, 100, producer=(9, 0, sequence)), is_short=True)
    assert told == [1, 3, 4, 5]


def test_numbers_that_go_on_are_usual_and_others_are_for_the_long_way() -> None:
    """A repetition, a gap, a new epoch and a producer that nobody knows: nothing was done."""
    partition = open_partition()

    def append(count: int, producer_id: int, epoch: int, sequence: int) -> int:
        data = memoryview(bytearray(batch_of(count, 100, producer=(producer_id, epoch, sequence))))
        return partition.append_usual(data, NOW_MS)

    partition.append_produced(memoryview(bytearray(batch_of(2, 100, producer=(9, 3, 40)))), NOW_MS)
    assert [append(3, 9, 3, 42), append(1, 9, 3, 45)] == [2, 5]
    for stranger in ((9, 3, 45), (9, 3, 47), (9, 4, 0), (9, 2, 46), (8, 3, 46), (8, 3, 0)):
        assert append(1, *stranger) == -1
    (known,) = partition.known_producers()
    assert [known.recent[-1], known.last_timestamp_ms] == [(45, 45, 5, 0, NOW_MS), NOW_MS]
    assert partition.end_offset == 6


def test_the_largest_numbers_are_for_the_long_way() -> None:
    """It knows that they begin again at 0."""
    partition = open_partition()
    for back, is_usual in ((9, False), (6, True), (3, False), (0, False), (-3, True)):
        sequence = (2**31 - back) % 2**31
        data = memoryview(bytearray(batch_of(3, 100, producer=(9, 0, sequence))))
        start = partition.append_usual(data, NOW_MS)
        assert (start >= 0) == is_usual
        if not is_usual:
            partition.append_produced(data, NOW_MS)
    (known,) = partition.known_producers()
    assert [batch.last_sequence for batch in known.batches][-2:] == [2, 5]


def test_who_has_a_transaction_open_sends_nothing_usual() -> None:
    """A plain batch within a transaction is refused, by the long way."""
    partition = open_partition()
    data = batch_of(1, 100, producer=(9, 0, 0))
    open_batch = with_field(data, ">h", 21, 0x10, mends_crc=True)
    partition.append_produced(memoryview(bytearray(open_batch)), NOW_MS)
    follower = memoryview(bytearray(batch_of(1, 100, producer=(9, 0, 1))))
    assert partition.append_usual(follower, NOW_MS) == -1
    assert partition.append_run_at_once([(0, follower, 0, NOW_MS, 9)] * 2) == -1
    assert partition.end_offset == 1


def test_with_flushes_by_count_nothing_is_usual() -> None:
    """The acknowledgement waits for the disk, which is not the short way's business."""
    partition = open_partition(attrs.evolve(CONFIG, flush_messages=2))
    partition.append_produced(memoryview(bytearray(batch_of(1, 100))), NOW_MS)
    assert partition.append_usual(memoryview(bytearray(batch_of(1, 100))), NOW_MS) == -1
    assert partition.end_offset == 1


def test_a_disk_that_refuses_leaves_the_log_as_it_was() -> None:
    """The short way too undoes what a failed write left behind."""
    host = SimulatedHost(seed=1)
    host.fs.make_directory(DIRECTORY)
    files = SegmentFiles(host, DIRECTORY, CONFIG, is_clean=True)
    partition = KafkaPartition(host, files, "t", 0)
    partition.append_produced(memoryview(bytearray(batch_of(1, 100))), NOW_MS)
    host.fs.fill_up(10)
    with pytest.raises(WriteFailedError, match="nothing was appended"):
        partition.append_usual(memoryview(bytearray(batch_of(1, 100))), NOW_MS)
    assert partition.end_offset == 1
    host.fs.faults.clear()
    assert partition.append_usual(memoryview(bytearray(batch_of(1, 100))), NOW_MS) == 1
