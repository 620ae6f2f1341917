"""Rows in, rows out: the same bytes and the same records as the codec that makes objects."""

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
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.record_run import Row, decode_run, encode_run

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
ROWS = st.lists(
    st.tuples(
        st.integers(1_700_000_000_000, 1_700_000_100_000),
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=200),
        HEADERS.map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def records_of(rows: list[Row], base_offset: int) -> list[Record]:
    """Return rows as records."""
    return [
        Record(base_offset + index, timestamp_ms, key, value, tuple(headers))
        for index, (timestamp_ms, key, value, headers) in enumerate(rows)
    ]


def batch_of(data: bytes | bytearray) -> RecordBatch:
    """Return a batch as the log has it."""
    return RecordBatch(memoryview(data), len(data))


@given(rows=ROWS, base_offset=st.integers(0, 1 << 40))
def test_rows_become_the_batch_that_their_records_do(rows: list[Row], base_offset: int) -> None:
    """The bytes are those that the other codec makes."""
    expected = encode_batch(records_of(rows, base_offset), base_offset=base_offset, leader_epoch=3)
    assert encode_run(base_offset, rows, 3) == expected


@given(rows=ROWS, codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_a_batch_is_read_as_its_records_are(rows: list[Row], codec: Codec) -> None:
    """Rows come back as they went in, compressed or not, plain or with headers."""
    data = encode_batch(records_of(rows, 0), codec=codec)
    found = decode_run(batch_of(data))
    assert [(*row[:3], tuple(row[3])) for row in found] == [
        (record.timestamp_ms, record.key, record.value, record.headers)
        for record in decode_records(data)
    ]


def test_log_append_time_counts() -> None:
    """In a batch of LogAppendTime every row has the batch's time."""
    data = encode_batch(
        [Record(0, 5, None, b"a"), Record(1, 6, None, b"b")],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp_ms=99,
    )
    assert [row[0] for row in decode_run(batch_of(data))] == [99, 99]


@given(rows=ROWS, data=st.data())
def test_a_damaged_batch_is_refused_or_read_alike(rows: list[Row], data: st.DataObject) -> None:
    """Whatever byte of the records is wrong: both codecs refuse, or find the same."""
    batch = bytearray(encode_run(0, rows))
    place = data.draw(st.integers(61, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))
    try:
        expected = [(r.timestamp_ms, r.key, r.value) for r in decode_records(batch)]
    except CorruptRecordError:
        with pytest.raises(CorruptRecordError):
            decode_run(batch_of(batch))
    else:
        assert [row[:3] for row in decode_run(batch_of(batch))] == expected
