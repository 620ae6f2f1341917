"""Records into messages of magic 0 and 1, and back."""

from __future__ import annotations

import importlib
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec, CompressionError, compress
from logstore.segments.kafka.legacy.compressed_set import compress_set, decompress_set
from logstore.segments.kafka.legacy.message import LegacyMessage
from logstore.segments.kafka.legacy.message_set import decode_message, encode_message_set
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    TimestampType,
    decode_records,
)
from tests.segments.kafka.legacy.legacy_case import legacy_cases
from tests.segments.kafka.legacy.old_records import CODECS, T, old_records, with_crc, wrapped

PLAIN = [Record(0, T, b"k1", b"v1"), Record(1, T + 1, None, b"v2")]
LATER = [Record(10, T, b"k1", b"v1"), Record(11, T + 1, None, b"v2")]

#: as Kafka's own classes wrote them: by magic and codec
GOLDEN = {
    (
        0,
        Codec.NONE,
    ): "00000000000000000000001257e7496e0000000000026b31000000027631000000000000000100"
    "000010d5960a780000ffffffff000000027632",
    (0, Codec.LZ4): "000000000000000b00000052579e4bac0003ffffffff0000004404224d1860401a350000001200"
    "0100910a0000001257e7496e0f0080026b3100000002760600000200f0060b00000010d5960a780000ffffffff00"
    "000002763200000000",
    (
        0,
        Codec.GZIP,
    ): "000000000000000b00000047d19cd4fe0001ffffffff000000391f8b08000000000000ff636000"
    "032e20160a7fee9907e631651b82c8324388240337100b5c9dc655c1c0f01f08c072460055fb8b673a000000",
    (1, Codec.NONE): "00000000000000000000001aa5da6a6201000000018bcfe56800000000026b31000000027631"
    "000000000000000100000018"
    "32d28e8101000000018bcfe56801ffffffff000000027632",
    (1, Codec.LZ4): "000000000000000b0000006233f1f33701030000018bcfe56801ffffffff0000004c04224d1860"
    "40823d00000016000100e01aa5da6a6201000000018bcfe568180080026b3100000002760600000200001d005018"
    "32d28e810900012600b001ffffffff00000002763200000000",
    (
        1,
        Codec.GZIP,
    ): "000000000000000b00000055a869b55901010000018bcfe56801ffffffff0000003f1f8b080000"
    "00000000ff63608003a9a5b7b29218810cc6eef34f3340224cd98620b2cc10aa0224296174a9af11ae8af13f1080"
    "d51801009c3e15454a000000",
}


def decoded(data: bytes) -> list[Record]:
    """Return the records of a whole set."""
    return [
        record
        for entry in iterate_entries(memoryview(data))
        for record in decode_records(entry.data)
    ]


@pytest.mark.parametrize(("magic", "codec"), GOLDEN)
def test_what_kafka_wrote_is_read_and_written(magic: int, codec: Codec) -> None:
    """The same records in each format, with the same bytes where the codec's library agrees."""
    data = bytes.fromhex(GOLDEN[magic, codec])
    records = LATER if codec else PLAIN
    times = {0: -1, 1: T}
    found = decoded(data)
    assert [(r.offset, r.key, r.value) for r in found] == [
        (r.offset, r.key, r.value) for r in records
    ]
    assert found[0].timestamp_ms == times[magic]
    if codec is not Codec.GZIP:  # Java's zlib chose another way through these few bytes
        assert encode_message_set(records, magic=magic, codec=codec) == data


def test_what_brokers_converted_is_written_again() -> None:
    """
    A 3.9 broker made these messages of batches of magic 2; ours are the same bytes.

    Its snappy library may compress in another way than ours: then only what is inside is the same.
    """
    identical = 0
    for case in legacy_cases():
        for message in case.stored_messages():
            records = decode_message(message.data)
            written = encode_message_set(
                records,
                magic=message.magic,
                codec=Codec(message.codec),
                timestamp_type=TimestampType(message.is_log_append_time),
            )
            if written == bytes(message.data):
                identical += 1
                continue
            assert message.codec == Codec.SNAPPY
            assert inside(written) == inside(message.data)
    assert identical == 240


def inside(wrapper: bytes | bytearray | memoryview) -> bytes:
    """Return what a wrapper has in its value."""
    data = bytes(wrapper)
    message = LegacyMessage(data, len(data))
    value = data[{0: 26, 1: 34}[message.magic] :]
    return decompress_set(Codec(message.codec), value, message.magic)


@given(
    records=old_records(),
    magic=st.sampled_from([0, 1]),
    codec=st.sampled_from(CODECS),
    timestamp_type=st.sampled_from(TimestampType),
)
def test_what_was_written_is_read(
    records: list[Record], magic: int, codec: Codec, timestamp_type: TimestampType
) -> None:
    """Offset, key and value come back; the time in magic 1, all the largest if LogAppendTime."""
    data = encode_message_set(records, magic=magic, codec=codec, timestamp_type=timestamp_type)
    found = decoded(data)
    assert [(r.offset, r.key, r.value) for r in found] == [
        (r.offset, r.key, r.value) for r in records
    ]
    times = [record.timestamp_ms for record in records]
    if magic == 0:
        times = [-1] * len(records)
    elif timestamp_type is TimestampType.LOG_APPEND_TIME:
        times = [max(times)] * len(records)
    assert [record.timestamp_ms for record in found] == times
    entries = list(iterate_entries(memoryview(data)))
    assert len(entries) == (1 if codec else len(records))
    assert entries[-1].last_offset == records[-1].offset
    assert max(entry.max_timestamp_ms for entry in entries) == max(times)


def test_offsets_inside_are_absolute_in_magic_0_and_relative_in_magic_1() -> None:
    """A magic 1 wrapper can move without being opened, one of magic 0 cannot."""
    first = {}
    for magic in (0, 1):
        content = inside(encode_message_set(LATER, magic=magic, codec=Codec.GZIP))
        first[magic] = int.from_bytes(content[:8])
    assert first == {0: 10, 1: 0}
    for magic, offsets in ((0, [10, 11]), (1, [98, 99])):
        moved = bytearray(encode_message_set(LATER, magic=magic, codec=Codec.GZIP))
        moved[:8] = (99).to_bytes(8)
        assert [record.offset for record in decode_message(moved)] == offsets


def test_relative_offsets_may_have_holes() -> None:
    """Compaction leaves some; the wrapper's offset is that of the last one that is left."""
    records = [Record(5, T), Record(9, T), Record(1000, T)]
    data = encode_message_set(records, magic=1, codec=Codec.LZ4)
    assert [record.offset for record in decode_message(data)] == [5, 9, 1000]


def test_a_wrapper_with_offset_0_starts_there() -> None:
    """Some librdkafka sent wrappers that did not count their messages."""
    data = wrapped(encode_message_set(PLAIN, magic=1), offset=0)
    assert [record.offset for record in decode_message(data)] == [0, 1]


def test_a_wrapper_below_its_last_message_is_refused() -> None:
    """Any other offset that is too small would make offsets below zero."""
    records = [Record(index, T) for index in range(5)]
    with pytest.raises(CorruptRecordError, match="offset 3, below 4"):
        decode_message(wrapped(encode_message_set(records, magic=1), offset=3))


def test_the_log_append_time_of_a_wrapper_is_everybodys() -> None:
    """The broker stamped the wrapper only; what stands inside is the producer's time."""
    content = encode_message_set(PLAIN, magic=1)
    stamped = decode_message(wrapped(content, offset=1, attributes=0x09, timestamp_ms=T + 99))
    assert [record.timestamp_ms for record in stamped] == [T + 99, T + 99]
    created = decode_message(wrapped(content, offset=1, timestamp_ms=T + 99))
    assert [record.timestamp_ms for record in created] == [T, T + 1]


def test_magic_0_inside_of_magic_1_is_read_but_not_where_magics_must_match() -> None:
    """A consumer takes such a wrapper, a leader does not."""
    data = wrapped(encode_message_set(PLAIN, magic=0), offset=11)
    assert [(r.offset, r.timestamp_ms) for r in decode_message(data)] == [(10, -1), (11, -1)]
    with pytest.raises(CorruptRecordError, match="magic 0 stands inside of magic 1"):
        decode_message(data, is_magic_uniform=True)


def test_a_message_cut_short_ends_what_is_inside() -> None:
    """As in Kafka, whole messages in front of it are read."""
    content = encode_message_set(PLAIN, magic=1)
    for cut in (1, 20, 30):
        data = wrapped(content[:-cut], offset=7)
        assert [record.offset for record in decode_message(data)] == [7]


def test_bytes_behind_the_value_do_not_count() -> None:
    """No format of messages says that the value is the end."""
    data = bytearray(encode_message_set(PLAIN[:1], magic=0) + b"rest")
    data[8:12] = (len(data) - 12).to_bytes(4)
    assert decode_message(with_crc(data))[0].value == b"v1"


@pytest.mark.parametrize(
    ("content", "attributes", "reason"),
    [
        (b"", 1, "no messages inside"),
        (None, 1, "no value"),
        (encode_message_set(PLAIN, magic=1, codec=Codec.GZIP), 1, "compressed itself"),
        (b"\0" * 11 + b"\x05" + b"\0" * 20, 1, "of 17 bytes inside"),
        (b"\0" * 11 + b"\x0e" + b"\0" * 4 + b"\x07" + b"\0" * 9, 1, "magic 7"),
        (b"\0" * 11 + b"\x0e" + b"\0" * 4 + b"\x01" + b"\0" * 9, 1, "26 bytes and magic 1"),
        (b"12345", 4, "zstd"),
        (b"12345", 5, "Codec"),
        (b"12345", 3, "lz4"),
    ],
)
def test_what_a_wrapper_may_not_hold(content: bytes | None, attributes: int, reason: str) -> None:
    """Nothing, wrappers, rubbish and codecs that are younger: each is named."""
    with pytest.raises(CorruptRecordError, match=reason):
        decode_message(wrapped(content, offset=9, attributes=attributes))


def test_damage_inside_of_a_wrapper_is_found() -> None:
    """Inner messages have CRCs of their own."""
    content = bytearray(encode_message_set(PLAIN, magic=1))
    content[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="damaged"):
        decode_message(wrapped(bytes(content), offset=1))


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [(18, 100, "runs out"), (18, 7, "inside of a length"), (24, 3, "runs out"), (8, 1, "size")],
)
def test_lengths_that_do_not_fit(position: int, value: int, reason: str) -> None:
    """A key or value that is longer than its message is named, also under a right CRC."""
    data = bytearray(encode_message_set([Record(0, -1, b"k1", b"v1")], magic=0))
    data[position : position + 4] = value.to_bytes(4)
    with pytest.raises(CorruptRecordError, match=reason):
        decode_message(with_crc(data))


def test_negative_lengths_are_null() -> None:
    """Kafka takes any negative length for a null."""
    data = bytearray(encode_message_set([Record(0, -1, None, b"v1")], magic=0))
    data[18:22] = (-7).to_bytes(4, signed=True)
    assert decode_message(with_crc(data))[0].key is None


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "no empty"),
        ([Record(1, T), Record(1, T)], "offset 1 comes after 1"),
        ([Record(0, T), Record(2**31, T)], "comes after"),
        ([Record(0, -2)], "timestamp -2"),
        ([Record(0, T, headers=(("h", b"x"),))], "no headers"),
        ([Record(2**63, T)], "do not fit"),
    ],
)
def test_what_cannot_be_written(records: list[Record], reason: str) -> None:
    """Offsets that do not rise, numbers beyond their fields, and what the format cannot hold."""
    with pytest.raises(CorruptRecordError, match=reason):
        encode_message_set(records, magic=1)


def test_zstd_is_refused() -> None:
    """The codec is younger than the formats."""
    with pytest.raises(CompressionError, match="zstd"):
        encode_message_set(PLAIN, magic=1, codec=Codec.ZSTD)


# the header checksum of lz4


def test_magic_0_gets_the_header_checksum_wrong_on_purpose() -> None:
    """Clients of that time look at it, and expect what the first writers computed."""
    assert compress_set(Codec.LZ4, b"x", 0)[:7].hex() == "04224d1860401a"
    assert compress_set(Codec.LZ4, b"x", 1)[:7].hex() == "04224d18604082"


@given(
    data=st.binary(max_size=400),
    block_size=st.sampled_from([4, 5, 6, 7]),
    has_content_size=st.booleans(),
    has_content_checksum=st.booleans(),
    has_block_checksum=st.booleans(),
    checksum=st.integers(0, 255),
)
def test_any_header_checksum_is_read_in_magic_0(
    data: bytes,
    block_size: int,
    has_content_size: bool,
    has_content_checksum: bool,
    has_block_checksum: bool,
    checksum: int,
) -> None:
    """Whatever it is, and whatever else the frame has; in magic 1 it must be right."""
    frame_of_lz4: Any = importlib.import_module("lz4.frame")  # has no types
    frame = bytearray(
        frame_of_lz4.compress(
            data,
            block_size=block_size,
            block_linked=False,
            store_size=has_content_size,
            content_checksum=has_content_checksum,
            block_checksum=has_block_checksum,
        )
    )
    position = 14 if frame[4] & 0x08 else 6
    right = frame[position]
    frame[position] = checksum
    assert decompress_set(Codec.LZ4, frame, 0) == data
    if checksum == right:
        assert decompress_set(Codec.LZ4, frame, 1) == data
    else:
        with pytest.raises(CompressionError):
            decompress_set(Codec.LZ4, frame, 1)


BAD_FRAMES = """
04224d18 04224d1960401a 04224d18684000 04224d1840401a 04224d18a0401a
04224d1860301a 04224d1861401a 04224d18604f1a
"""


@pytest.mark.parametrize("frame", ["", *BAD_FRAMES.split()])
def test_frames_that_java_refuses(frame: str) -> None:
    """Cut, foreign, dependent blocks, another version, reserved bits: an error, no crash."""
    with pytest.raises(CompressionError):
        decompress_set(Codec.LZ4, bytes.fromhex(frame), 0)


def test_snappy_without_xerials_framing_is_read() -> None:
    """Clients of that time that were not Java sent it bare."""
    from cramjam import snappy

    content = encode_message_set(PLAIN, magic=1)
    raw = bytes(snappy.compress_raw(content))
    for value in (raw, compress(Codec.SNAPPY, content)):
        data = wrapped(value, offset=1, attributes=2, is_compressed=True)
        assert decode_message(data) == PLAIN


def test_a_small_wrapper_does_not_take_all_memory() -> None:
    """What it may grow to is the caller's to say."""
    bomb = zlib.compress(b"\0" * (1 << 22), wbits=31)
    data = wrapped(bomb, offset=1, is_compressed=True)
    with pytest.raises(CorruptRecordError, match="more than 65536 bytes"):
        decode_records(data, size_bytes_max=1 << 16)
