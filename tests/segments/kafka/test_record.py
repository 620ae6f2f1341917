"""Records and the batches made of them."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.checksum import crc32c
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    TimestampType,
    check_structure,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_batch import iterate_batches

T = 1700000000000
WITH_HEADER = [Record(0, T, b"k1", b"v1", (("h", b"x"),)), Record(1, T + 1, None, b"v2")]
PLAIN = [Record(0, T, b"k1", b"v1"), Record(1, T + 1, None, b"v2")]

#: as the Java client (4.3.0) wrote them
GOLDEN = (
    "000000000000000000000049ffffffff029b6dfadf0000000000010000018bcfe568000000018bcfe56801ffffff"
    "ffffffffffffffffffffff000000021c000000046b310476310202680278100002020104763200"
)
GOLDEN_PRODUCER = (
    "00000000000003e8000000450000000502e44963890010000000010000018bcfe568000000018bcfe56801000000"
    "000000000900037fffffff0000000214000000046b3104763100100002020104763200"
)
GOLDEN_APPEND_TIME = (
    "000000000000000000000045000000000250601dfa0008000000010000018bcfe568000000018bcfe58f0fffffff"
    "ffffffffffffffffffffff0000000214000000046b3104763100100002020104763200"
)
GOLDEN_EMPTY = (
    "000000000000006400000031000000070280afe1d0000000000004ffffffffffffffff0000018bcfe56800000000"
    "000000000900030000000a00000000"
)
GOLDEN_COMPACTED = (
    "00000000000000000000004b0000000002bbb797830040000000020000018bd50d4aa00000018bcfe56807ffffff"
    "ffffffffffffffffffffff000000021600b58abf5202046b3201001a00b18abf5204046b3304763300"
)
GOLDEN_COMPRESSED = {
    Codec.GZIP: "00000000000000000000005dffffffff0250db096d0001000000010000018bcfe568000000018bcf"
    "e56801ffffffffffffffffffffffffffff000000021f8b08000000000000ff9361606060c9366429336462ca60aa"
    "1060606262642933620000ed33249518000000",
    Codec.SNAPPY: "00000000000000000000005fffffffff02bcaaa3de0002000000010000018bcfe568000000018b"
    "cfe56801ffffffffffffffffffffffffffff0000000282534e415050590000000001000000010000001a185c1c00"
    "0000046b310476310202680278100002020104763200",
    Codec.LZ4: "000000000000000000000058ffffffff022679d1fa0003000000010000018bcfe568000000018bcfe"
    "56801ffffffffffffffffffffffffffff0000000204224d18604082180000801c000000046b31047631020268027"
    "810000202010476320000000000",
    Codec.ZSTD: "000000000000000000000055ffffffff02688d78500004000000010000018bcfe568000000018bcf"
    "e56801ffffffffffffffffffffffffffff0000000228b52ffd0058c000001c000000046b31047631020268027810"
    "0002020104763200010000",
}


def test_golden_plain() -> None:
    """Two records have the bytes that the Java client gives them, and read back."""
    assert encode_batch(WITH_HEADER).hex() == GOLDEN
    assert decode_records(bytes.fromhex(GOLDEN)) == WITH_HEADER


def test_golden_producer() -> None:
    """Offsets count from the base; sequences wrap from 2^31-1 to 0."""
    records = [
        Record(1000, T, b"k1", b"v1", sequence=2**31 - 1),
        Record(1001, T + 1, None, b"v2", sequence=0),
    ]
    batch = encode_batch(
        records,
        base_offset=1000,
        leader_epoch=5,
        producer_id=9,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        is_transactional=True,
    )
    assert batch.hex() == GOLDEN_PRODUCER
    assert decode_records(batch) == records


def test_golden_log_append_time() -> None:
    """All records of a LogAppendTime batch have its maximal timestamp, whatever their deltas."""
    batch = encode_batch(
        PLAIN,
        leader_epoch=0,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp_ms=T + 9999,
    )
    assert batch.hex() == GOLDEN_APPEND_TIME
    assert [record.timestamp_ms for record in decode_records(batch)] == [T + 9999] * 2


def test_golden_empty() -> None:
    """A batch of which compaction kept only the header has no records and no base timestamp."""
    batch = encode_batch(
        [],
        base_offset=100,
        last_offset=104,
        max_timestamp_ms=T,
        leader_epoch=7,
        producer_id=9,
        producer_epoch=3,
        base_sequence=10,
        codec=Codec.ZSTD,
    )
    assert batch.hex() == GOLDEN_EMPTY
    assert decode_records(batch) == []


def test_golden_compacted() -> None:
    """With a delete horizon the deltas count from it, and go far below zero."""
    records = [Record(1, T + 5, b"k2", None), Record(2, T + 7, b"k3", b"v3")]
    batch = encode_batch(records, leader_epoch=0, delete_horizon_ms=1700086500000)
    assert batch.hex() == GOLDEN_COMPACTED
    assert decode_records(batch) == records


@pytest.mark.parametrize("codec", GOLDEN_COMPRESSED)
def test_golden_compressed(codec: Codec) -> None:
    """Compressed batches of the Java client read back; ours differ in the blob at most."""
    golden = bytes.fromhex(GOLDEN_COMPRESSED[codec])
    assert decode_records(golden) == WITH_HEADER
    ours = encode_batch(WITH_HEADER, codec=codec)
    assert decode_records(ours) == WITH_HEADER
    assert ours[21:61] == golden[21:61]


BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=10), BYTES), max_size=4).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Draw records with increasing offsets, some of them missing."""
    offset = draw(st.integers(0, 2**40))
    records: list[Record] = []
    for gap in draw(st.lists(st.integers(1, 300), min_size=1, max_size=20)):
        offset += gap
        timestamp_ms = draw(st.integers(-1, 2**42))
        records.append(Record(offset, timestamp_ms, draw(BYTES), draw(BYTES), draw(HEADERS)))
    return records


@given(records=record_lists(), codec=st.sampled_from(Codec), lead=st.integers(0, 5))
def test_round_trip(records: list[Record], codec: Codec, lead: int) -> None:
    """Nulls, empties, repeated headers, gaps and times out of order come back as they were."""
    base_offset = max(0, records[0].offset - lead)
    batch = encode_batch(records, base_offset=base_offset, codec=codec)
    assert decode_records(memoryview(batch)) == records
    header = next(iterate_batches(memoryview(batch)))
    assert header.record_count == len(records)
    assert header.last_offset == records[-1].offset
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in records)
    if codec is Codec.NONE:
        check_structure(batch)


def test_header_names_that_are_no_text() -> None:
    """A header name that is not UTF-8 survives a rewrite."""
    golden = bytearray.fromhex(GOLDEN)
    golden[golden.index(b"\x02h\x02x") + 1] = 0xFF
    (record, _) = decode_records(golden)
    assert record.headers == (("\udcff", b"x"),)
    assert encode_batch(decode_records(golden))[61:] == golden[61:]


def test_every_record_of_the_golden_logs_is_rewritten_identically(golden: Path) -> None:
    """Batch by batch, what real clients wrote without compression comes out as it went in."""
    rewritten = 0
    for path in sorted((golden / "kafka-4.3" / "data").rglob("*.log")):
        if path.parent.name.startswith("__cluster_metadata"):
            continue
        for header in iterate_batches(memoryview(path.read_bytes()), str(path)):
            records = decode_records(header.data)
            if header.codec:
                continue
            ours = encode_batch(
                records,
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                max_timestamp_ms=header.max_timestamp_ms,
                delete_horizon_ms=header.delete_horizon_ms,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                is_transactional=header.is_transactional,
                is_control=header.is_control,
                leader_epoch=header.leader_epoch,
                timestamp_type=TimestampType(header.is_log_append_time),
            )
            if header.is_log_append_time:
                assert decode_records(ours) == records  # the producer's own times are gone
            else:
                assert ours == header.data, f"{path}: {header!r}"
            rewritten += 1
    assert rewritten > 100


def with_crc(batch: bytearray) -> bytearray:
    """Return the batch with the CRC that it should have."""
    struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    return batch


@pytest.mark.parametrize(
    ("position", "byte", "reason"),
    [
        (16, 3, "magic 3"),
        (11, 0x48, "batch length"),
        (60, 1, "follow"),
        (60, 3, "cut short"),
        (57, 0xFF, "record count"),
        (61, 0x1A, "runs out"),
        (61, 0x1E, "takes"),
        (61, 0x01, "a record of"),
        (61, 0x7E, "a record of"),
        (65, 0x06, "runs out"),
        (65, 0x7E, "runs out"),
        (71, 0x01, "headers"),
        (71, 0x20, "headers"),
        (72, 0x01, "null"),
        (22, 0x05, "5 is not a valid Codec"),
        (22, 0x01, "gzip"),
    ],
)
def test_what_is_refused(position: int, byte: int, reason: str) -> None:
    """Each wrong length or count is found, even under a correct CRC."""
    batch = bytearray.fromhex(GOLDEN)
    batch[position] = byte
    with pytest.raises(CorruptRecordError, match=reason):
        decode_records(with_crc(batch))


def test_what_cannot_be_written() -> None:
    """Offsets that do not increase, and numbers beyond their fields, are refused."""
    for records, base_offset in [
        ([Record(1, 0), Record(1, 0)], 0),
        ([Record(1, 0), Record(0, 0)], 0),
        ([Record(1, 0)], 2),
        ([Record(2**31, 0)], 0),
        ([Record(0, 0), Record(1, 2**64)], 0),
        ([Record(0, 0, headers=(("\ud800", None),))], 0),
    ]:
        with pytest.raises(CorruptRecordError):
            encode_batch(records, base_offset=base_offset)
    with pytest.raises(CorruptRecordError):
        encode_batch([Record(5, 0)], last_offset=4)


def test_times_that_are_far_apart_come_back() -> None:
    """Their difference runs over, and the sum does again, as in Java: each is what it was."""
    times = [1_700_000_000_000, -(2**63), 2**63 - 1, -5]
    batch = encode_batch([Record(offset, time) for offset, time in enumerate(times)])
    assert [record.timestamp_ms for record in decode_records(batch)] == times


def test_check_structure() -> None:
    """Lengths that do not chain up to the end are found within the records looked at."""
    batch = encode_batch([Record(index, T, None, b"v" * 10) for index in range(40)])
    check_structure(batch)
    check_structure(batch, records_max=100)
    with pytest.raises(CorruptRecordError, match="follow"):
        check_structure(batch + b"\0", records_max=40)
    check_structure(batch + b"\0", records_max=16)
    batch[61] = 0x7E
    with pytest.raises(CorruptRecordError):
        check_structure(batch, records_max=100)
    for cut in (0, 60, 61, 70):
        with pytest.raises(CorruptRecordError):
            check_structure(batch[:cut])


#: one record behind its length: attributes, two deltas, key, value, header count
@pytest.mark.parametrize(
    "record",
    [
        b"\0\0\0\x04k\x02v\0",  # the key has two bytes
        b"\0\0\0\x02k\x04v\0",  # the value has
        b"\0\0\0\x02k\x02v\2",  # there is a header
        b"\0\0\0\x02k\x02v\1",  # there are -1
        b"\0\0\0\x02k\x02v\2\1\1",  # one without a name
        b"\0\0\0\x02k\x02v\0\0",  # something follows
        b"\0\0\0\x02k\x80\x80\x80\x80\x80\x80",  # no number
        b"\0\x80\x80\x80\x80\x80\x80",  # no end of the deltas
    ],
)
def test_fields_that_do_not_fill_their_record_are_found(record: bytes) -> None:
    """Of the first record, whose encoder is that of the others."""
    batch = encode_batch([Record(0, T, b"k", b"v")])
    assert batch[61:] == b"\x10\0\0\0\x02k\x02v\0"
    check_structure(batch)
    broken = bytes(batch[:61]) + bytes([len(record) * 2]) + record
    with pytest.raises(CorruptRecordError):
        check_structure(broken)


@given(edits=st.lists(st.tuples(st.integers(61, 120), st.integers(0, 255)), max_size=3))
def test_what_can_be_read_passes_the_check(edits: list[tuple[int, int]]) -> None:
    """Whatever is refused could not have been decoded either."""
    headers = (("h", b"x"), ("i", None), ("", b""))
    batch = encode_batch([Record(0, T, b"key", b"v" * 70, headers)])
    for position, byte in edits:
        batch[position % len(batch)] = byte
    try:
        check_structure(batch)
    except CorruptRecordError:
        with pytest.raises(CorruptRecordError):
            decode_records(batch)


@given(
    edits=st.lists(st.tuples(st.integers(8, 200), st.integers(0, 255)), max_size=4),
    codec=st.sampled_from(Codec),
    cut=st.integers(0, 200),
)
def test_fuzz(edits: list[tuple[int, int]], codec: Codec, cut: int) -> None:
    """A batch with wrong bytes, or cut, decodes or raises CorruptRecordError; nothing else."""
    batch = encode_batch(WITH_HEADER, codec=codec)
    for position, byte in edits:
        batch[position % len(batch)] = byte
    for data in (batch, batch[:cut]):
        with contextlib.suppress(CorruptRecordError):
            decode_records(data, size_bytes_max=100_000)
        with contextlib.suppress(CorruptRecordError):
            check_structure(data)
