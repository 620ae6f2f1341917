"""Files of a segment: opened again, torn, of an unknown magic, and on disks that fail."""

from __future__ import annotations

import struct

import attrs
import pytest

from logstore.errors import CorruptEntryError, WriteFailedError
from logstore.host import read_file
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost
from tests.segments.kafka.test_segment import (
    CONFIG,
    DIRECTORY,
    T,
    batch,
    filled,
    new_segment,
)


def test_a_closed_segment_ends_where_its_last_batch_does() -> None:
    """Opened after a clean stop the end is found from the last index entry on."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1, 2, 3, 4])
    segment.close()
    reopened = SegmentFiles(host, DIRECTORY, CONFIG).open(0, is_active=True)
    assert (reopened.next_offset, reopened.end_position) == (10, 495)
    assert (reopened.max_timestamp_ms, reopened.max_timestamp_offset) == (T + 5, 9)
    reopened.append(batch(10, T + 9))
    assert reopened.locate(10) == 495


def test_who_reads_beside_a_writer_finds_the_youngest_record() -> None:
    """The time index of a segment that is written to lags behind by up to an index interval."""
    host = SimulatedHost()
    segment = new_segment(host, attrs.evolve(CONFIG, index_interval_bytes=150))
    filled(segment, [0, 1000, 2000, 3000])
    segment.time_index.flush()
    assert segment.time_index.last_entry == (T + 2001, 5)
    reader = SegmentFiles(host, DIRECTORY, CONFIG, is_writable=False).open(0, is_active=True)
    assert reader.largest_timestamp_ms() == T + 3001
    assert (reader.max_timestamp_ms, reader.max_timestamp_offset) == (T + 3001, 7)
    found = reader.find_timestamp(T + 2500, 0)
    assert found is not None
    assert found.offset == 6


def test_a_torn_batch_after_a_clean_stop_is_cut_off_and_kept() -> None:
    """The marker said clean: nothing is cut in silence. Who only reads stops before the tear."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1])
    segment.close()
    file = host.fs.open(segment.path)
    file.write(file.size(), b"\1" * 30)
    reader = SegmentFiles(host, DIRECTORY, CONFIG, is_writable=False).open(0, is_active=True)
    assert (reader.next_offset, reader.end_position, file.size()) == (4, 198, 228)
    files = SegmentFiles(host, DIRECTORY, CONFIG)
    reopened = files.open(0, is_active=True)
    assert (reopened.next_offset, reopened.end_position, file.size()) == (4, 198, 198)
    assert files.mended is not None
    assert files.mended.kept_aside == (f"{segment.path}.cut-at-198",)


@pytest.mark.parametrize("magic", [3, 127, -128, -1])
def test_a_batch_of_an_unknown_magic_ends_the_log_and_is_kept_aside(magic: int) -> None:
    """No checksum covers the magic: Kafka goes on where it is positive, and no client reads it."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1000, 2000])
    segment.close()
    host.fs.damage(segment.path, 99 + 16, struct.pack(">b", magic))
    damaged = read_file(host.fs, segment.path)
    recovered = SegmentFiles(host, DIRECTORY, CONFIG, is_clean=False).open(0, is_active=True)
    outcome = recovered.recover()
    aside = f"{segment.path}.cut-at-99"
    assert outcome.reason == f"{segment.path}: position 99: magic {magic}, expected 2"
    assert (outcome.next_offset, outcome.kept_aside) == (2, (aside,))
    assert read_file(host.fs, segment.path) + read_file(host.fs, aside) == damaged


def test_a_batch_of_an_unknown_magic_is_named_to_who_reads_it() -> None:
    """After a clean stop nothing is cut: what stands before and behind it can be read."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1000, 2000])
    segment.close()
    host.fs.damage(segment.path, 99 + 16, b"\x03")
    reopened = SegmentFiles(host, DIRECTORY, CONFIG).open(0, is_active=True)
    entries = reopened.entries()
    assert next(entries).base_offset == 0
    with pytest.raises(CorruptEntryError, match="position 99: magic 3, expected 2"):
        next(entries)
    assert [entry.base_offset for entry in reopened.entries(reopened.locate(4))] == [4]


def test_batches_larger_than_a_reading_step_are_read_whole() -> None:
    """A scan takes a megabyte at a time; a batch of more is still one batch."""
    segment = new_segment(config=LogConfig())
    for offset, size_bytes in enumerate((3_000_000, 10, 1_500_000, 0)):
        data = encode_batch([Record(offset, T, None, bytes(size_bytes))], base_offset=offset)
        segment.append(RecordBatch(memoryview(data), len(data)))
    assert [entry.base_offset for entry in segment.entries()] == [0, 1, 2, 3]
    assert [entry.base_offset for entry in segment.entries(segment.locate(2))] == [2, 3]


def test_a_wrong_length_makes_nobody_read_gigabytes() -> None:
    """A length beyond the file's end is an error before anything is read for it."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1])
    host.fs.damage(segment.path, 99 + 8, struct.pack(">i", 2**31 - 1))
    entries = segment.entries()
    assert next(entries).base_offset == 0
    with pytest.raises(CorruptEntryError, match="position 99: a batch of 2147483659 bytes is cut"):
        next(entries)


def test_unchecked_entries_come_with_a_wrong_crc() -> None:
    """Who only wants headers is not stopped by a flipped byte in a record."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 1])
    host.fs.flip(segment.path, 90)
    assert [entry.base_offset for entry in segment.entries(is_checked=False)] == [0, 2]
    with pytest.raises(CorruptEntryError, match="position 0: CRC"):
        next(segment.entries())


def test_a_failed_write_leaves_the_segment_as_it_was() -> None:
    """A full disk refuses a batch; the next one that fits goes where that one was to go."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0])
    host.fs.fill_up(40)
    with pytest.raises(WriteFailedError, match="nothing was appended"):
        segment.append(batch(2, T + 1))
    assert (segment.next_offset, segment.end_position) == (2, 99)
    assert host.fs.open(segment.path).size() == 99
    host.fs.faults.clear()
    assert segment.append(batch(2, T + 1)) == 99


def test_sealing_on_a_full_disk_fails_and_can_be_repeated() -> None:
    """Indexes that could not be written are written by the next attempt, complete."""
    host = SimulatedHost()
    segment = new_segment(host)
    filled(segment, [0, 500, 400, 900, 950])
    host.fs.fill_up(0)
    with pytest.raises(WriteFailedError):
        segment.seal()
    host.fs.faults.clear()
    segment.resume()
    segment.append(batch(10, T + 1000, count=1, size_bytes=80))
    segment.seal()
    assert list(segment.offset_index.entries()) == [(5, 198), (9, 396)]
    assert segment.time_index.last_entry == (T + 1000, 10)
