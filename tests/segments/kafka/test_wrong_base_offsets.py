"""Base offsets that cannot be right: what recovery believes, puts up with, cuts, and says."""

from __future__ import annotations

import struct

import pytest

from logstore.errors import CorruptEntryError
from logstore.host import read_file
from logstore.recovery import Recovery
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost

DIRECTORY = "/t-0"
NOW_MS = 1_700_000_000_000
BASE, COUNT, BATCH_BYTES = 100, 8, 69
PATH = f"{DIRECTORY}/{BASE:020d}.log"
#: an index entry before every other batch from the third on
CONFIG = LogConfig(segment_bytes=10_000, index_interval_bytes=75, segment_index_bytes=240)


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with a segment of eight batches of one record, at offsets 100 to 107."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    segment = SegmentFiles(host, DIRECTORY, CONFIG).create(BASE)
    for number in range(COUNT):
        records = [Record(BASE + number, NOW_MS + number, None, b"%d" % number)]
        data = encode_batch(records, base_offset=BASE + number, leader_epoch=0)
        segment.append(RecordBatch(memoryview(data), len(data)))
    segment.close()
    return host


def say(host: SimulatedHost, number: int, base_offset: int) -> None:
    """Give one of the batches another base offset."""
    file = host.fs.open(PATH)
    file.write(number * BATCH_BYTES, struct.pack(">q", base_offset))
    file.close()


def recovered(
    host: SimulatedHost, *, keeps_good_prefix: bool = False
) -> tuple[KafkaSegment, Recovery]:
    """Recover the segment."""
    files = SegmentFiles(host, DIRECTORY, CONFIG, is_clean=False)
    files.keeps_good_prefix = keeps_good_prefix
    segment = files.open(BASE, is_active=True)
    return segment, segment.recover()


def offsets(segment: KafkaSegment) -> list[int]:
    """Return the base offsets of all batches, in the order of the file."""
    return [batch.base_offset for batch in segment.entries()]


@pytest.mark.parametrize("number", [0, 1, 3, 5])
def test_one_that_is_too_high_is_put_up_with(
    host: SimulatedHost, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no index entry comes of it: every batch stays, and the log says where it stands."""
    say(host, number, 300)
    segment, outcome = recovered(host)
    assert outcome.is_clean
    expected = [300 if n == number else BASE + n for n in range(COUNT)]
    assert offsets(segment) == expected
    assert segment.next_offset == BASE + COUNT
    (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert f"{PATH}: the batch before position {(number + 1) * BATCH_BYTES} " in warning


def test_at_the_end_nothing_tells_that_it_is_too_high(host: SimulatedHost) -> None:
    """A log may have holes, so it is believed, as Kafka does."""
    say(host, COUNT - 1, 300)
    segment, outcome = recovered(host)
    assert (outcome.is_clean, segment.next_offset) == (True, 301)


@pytest.mark.parametrize("number", [1, 4, 7])
@pytest.mark.parametrize("base_offset", [0, BASE])
def test_one_that_goes_back_cuts_the_segment(
    host: SimulatedHost, number: int, base_offset: int
) -> None:
    """A torn write and an old batch look like that; what is cut is kept aside."""
    whole = read_file(host.fs, PATH)
    say(host, number, base_offset)
    segment, outcome = recovered(host)
    position = number * BATCH_BYTES
    assert (segment.next_offset, segment.end_position) == (BASE + number, position)
    assert outcome.reason is not None
    assert f"{PATH}: position {position}: offset {base_offset} goes back" in outcome.reason
    (aside,) = outcome.kept_aside
    assert read_file(host.fs, aside)[8:] == whole[position + 8 :]


@pytest.mark.parametrize("keeps_good_prefix", [False, True])
def test_offsets_that_no_index_can_take(host: SimulatedHost, keeps_good_prefix: bool) -> None:
    """Kafka then keeps nothing of the segment, and so do we unless told otherwise."""
    say(host, 2, 300)  # gets an index entry; the next one, for 104, cannot follow it
    whole = read_file(host.fs, PATH)
    segment, outcome = recovered(host, keeps_good_prefix=keeps_good_prefix)
    kept = 4 if keeps_good_prefix else 0
    assert len(offsets(segment)) == kept
    assert segment.next_offset == BASE + kept
    assert outcome.dropped_bytes == (COUNT - kept) * BATCH_BYTES
    assert outcome.reason is not None
    assert f"{PATH}: position {4 * BATCH_BYTES}: " in outcome.reason
    (aside,) = outcome.kept_aside
    assert read_file(host.fs, aside) == whole[kept * BATCH_BYTES :]
    records = [Record(BASE + kept, NOW_MS + 99, None, b"more")]
    data = encode_batch(records, base_offset=BASE + kept, leader_epoch=0)
    segment.append(RecordBatch(memoryview(data), len(data)))
    assert segment.locate(BASE + kept) == kept * BATCH_BYTES
    found = segment.find_timestamp(NOW_MS + 99, BASE)
    assert found is not None
    assert found.offset == BASE + kept


@pytest.mark.parametrize("keeps_good_prefix", [False, True])
def test_a_last_time_that_its_index_cannot_take(
    host: SimulatedHost, keeps_good_prefix: bool
) -> None:
    """The batch behind a wrong one needs no entry, but its time comes last: as above."""
    say(host, COUNT - 2, 300)
    whole = read_file(host.fs, PATH)
    segment, outcome = recovered(host, keeps_good_prefix=keeps_good_prefix)
    kept = COUNT if keeps_good_prefix else 0
    assert len(offsets(segment)) == kept
    assert outcome.dropped_bytes == (COUNT - kept) * BATCH_BYTES
    assert [read_file(host.fs, aside) for aside in outcome.kept_aside] == (
        [] if keeps_good_prefix else [whole]
    )
    assert segment.next_offset == BASE + kept


def test_a_search_ends_where_damage_ends_it(host: SimulatedHost) -> None:
    """A reader who starts there meets the damage, and does not pass over the rest in silence."""
    segment = SegmentFiles(host, DIRECTORY, CONFIG).open(BASE, is_active=True)
    host.fs.damage(PATH, 4 * BATCH_BYTES + 8, bytes(4))
    position = segment.locate(BASE + 5)
    assert position == 4 * BATCH_BYTES
    with pytest.raises(CorruptEntryError, match=f"position {position}"):
        list(segment.entries(position))
