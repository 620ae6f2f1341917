"""The first record that is young enough, against all records read one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    TimestampType,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_times import first_at_or_after

BASE_MS = 1_700_000_000_000
#: of one byte and of more, earlier than the first record's, and far away
DELTAS = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**31, -1, -64, -9000, 2**40])
BATCHES = st.lists(st.tuples(DELTAS, st.integers(1, 200)), min_size=1, max_size=20)


def batch_of(deltas: list[tuple[int, int]], **options: object) -> bytes:
    """Return a batch with gaps between its offsets and records of several sizes."""
    offset = 1000
    records: list[Record] = []
    for delta, size in deltas:
        records.append(Record(offset, BASE_MS + delta, b"key", b"v" * size))
        offset += 1 + size // 50
    return bytes(encode_batch(records, base_offset=1000, **options))  # type: ignore[arg-type]


def one_by_one(data: bytes, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    """Return what reading everything finds."""
    for record in decode_records(data):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return record.timestamp_ms, record.offset
    return None


@given(
    BATCHES,
    DELTAS,
    st.integers(0, 40),
    st.sampled_from([Codec.NONE, Codec.GZIP, Codec.ZSTD]),
    st.sampled_from(TimestampType),
)
def test_it_is_what_all_records_say(
    deltas: list[tuple[int, int]],
    asked: int,
    start: int,
    codec: Codec,
    timestamp_type: TimestampType,
) -> None:
    """Whatever the times are and wherever it begins, compressed or not."""
    data = batch_of(deltas, codec=codec, timestamp_type=timestamp_type)
    for timestamp_ms in (BASE_MS + asked, BASE_MS + asked + 1):
        found = first_at_or_after(data, timestamp_ms, 1000 + start)
        assert found == one_by_one(data, timestamp_ms, 1000 + start)


@pytest.mark.parametrize("base_ms", [2**63 - 1, -(2**62) - 5, 2**62])
def test_times_at_the_end_of_time(base_ms: int) -> None:
    """Sums that 64 bits do not hold go round, as in Java."""
    data = bytes(encode_batch([Record(0, base_ms), Record(1, base_ms - 60), Record(2, base_ms)]))
    for asked in (base_ms, base_ms - 60, base_ms - 61, -(2**63)):
        assert first_at_or_after(data, asked, 1) == one_by_one(data, asked, 1)


def test_damage_on_the_way_is_told() -> None:
    """Behind the record that is asked for nobody looks."""
    data = bytearray(batch_of([(number, 10) for number in range(10)]))
    third = data.index(b"key", data.index(b"key", data.index(b"key") + 1) + 1)
    data[third - 5] = 0x7F  # the length: more than is left, or less than none
    assert first_at_or_after(data, BASE_MS + 1, 0) == (BASE_MS + 1, 1001)
    with pytest.raises(CorruptRecordError, match="record 2 claims"):
        first_at_or_after(data, BASE_MS + 5, 0)
    with pytest.raises(CorruptRecordError):
        first_at_or_after(bytes(data[:80]), BASE_MS, 0)


def test_a_batch_that_ends_too_early_is_told() -> None:
    """Its header counts more records than there are."""
    data = bytearray(batch_of([(0, 10)]))
    data[57:61] = (2).to_bytes(4, "big")
    with pytest.raises(CorruptRecordError, match="record 1 is cut short"):
        first_at_or_after(data, BASE_MS + 1, 0)
