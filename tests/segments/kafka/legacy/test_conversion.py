"""From messages to batches and back: what each format can hold survives, at the same offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.append_errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
)
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig, parse_topic_configs
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.legacy.down_conversion import (
    UnsupportedDownConversionError,
    down_convert,
)
from logstore.segments.kafka.legacy.message import LegacyMessage
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.legacy.up_conversion import up_convert, up_convert_produced
from logstore.segments.kafka.record import (
    CorruptRecordError,
    Record,
    TimestampType,
    decode_records,
    encode_batch,
)
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.validation import accepted
from tests.segments.kafka.legacy.legacy_case import LegacyCase, legacy_cases
from tests.segments.kafka.legacy.old_records import CODECS, T, old_records, with_crc, wrapped

PLAIN = [Record(0, T, b"k1", b"v1"), Record(1, T + 1, None, b"v2")]


def batch_of(data: bytes | bytearray) -> RecordBatch:
    """Return the batch that these bytes are."""
    (found,) = iterate_entries(memoryview(bytearray(data)))
    return found


def decoded(data: bytes | bytearray) -> list[Record]:
    """Return all records of messages and batches."""
    return [
        record
        for entry in iterate_entries(memoryview(bytearray(data)))
        for record in decode_records(entry.data)
    ]


def as_held(records: list[Record], magic: int) -> list[Record]:
    """Return the records as a format of that magic can hold them."""
    times = [-1 if magic == 0 else record.timestamp_ms for record in records]
    return [
        record._replace(timestamp_ms=time, headers=(), sequence=-1)
        for record, time in zip(records, times, strict=True)
    ]


# up


@given(
    records=old_records(),
    magic=st.sampled_from([0, 1]),
    codec=st.sampled_from(CODECS),
    timestamp_type=st.sampled_from(TimestampType),
)
def test_up_and_down_again_gives_the_same_messages(
    records: list[Record], magic: int, codec: Codec, timestamp_type: TimestampType
) -> None:
    """Each message becomes one batch with its records, codec and times; back it is what it was."""
    data = encode_message_set(records, magic=magic, codec=codec, timestamp_type=timestamp_type)
    messages = list(iterate_entries(memoryview(data)))
    batches = [batch_of(up_convert(message.data, leader_epoch=7)) for message in messages]
    assert b"".join(down_convert([batch], magic) for batch in batches) == data
    for message, batch in zip(messages, batches, strict=True):
        inside = decode_records(message.data)
        assert decode_records(batch.data) == inside
        assert (batch.base_offset, batch.last_offset) == (inside[0].offset, message.last_offset)
        assert (batch.magic, batch.codec, batch.leader_epoch) == (2, message.codec, 7)
        assert batch.is_log_append_time == message.is_log_append_time
        assert batch.max_timestamp_ms == message.max_timestamp_ms
        assert batch.record_count == len(inside)


def test_every_stored_message_of_a_real_broker_converts() -> None:
    """All of the golden messages, up and down: the same records, and with most codecs the bytes."""
    converted = 0
    for case in legacy_cases():
        for message in case.stored_messages():
            batch = batch_of(up_convert(message.data))
            assert decode_records(batch.data) == decode_records(message.data)
            back = down_convert([batch], message.magic)
            assert decoded(back) == decode_records(message.data)
            if message.codec != Codec.SNAPPY:  # libraries differ in how they compress
                assert back == bytes(message.data)
            converted += 1
    assert converted == 258


def test_what_cannot_be_read_is_not_converted() -> None:
    """A damaged wrapper makes no batch."""
    with pytest.raises(CorruptRecordError, match="no messages inside"):
        up_convert(wrapped(b"", offset=3))


# produced


def test_a_produced_set_becomes_one_batch() -> None:
    """Plain messages together, or what one wrapper holds, from offset 0 on, of the same codec."""
    for codec in CODECS:
        for magic in (0, 1):
            data = encode_message_set(
                [record._replace(offset=record.offset + 50) for record in PLAIN],
                magic=magic,
                codec=codec,
            )
            batch = batch_of(up_convert_produced(memoryview(data)))
            assert decode_records(batch.data) == as_held(PLAIN, magic)
            assert (batch.base_offset, batch.record_count, batch.codec) == (0, 2, codec)
            assert (batch.producer_id, batch.leader_epoch) == (-1, -1)


def test_inner_offsets_of_a_produced_wrapper_do_not_count() -> None:
    """Some old clients counted them wrongly; the leader always counted anew."""
    one = encode_message_set([Record(0, T, None, b"v")], magic=1)
    batch = batch_of(up_convert_produced(memoryview(wrapped(one * 3, offset=0))))
    assert [record.offset for record in decode_records(batch.data)] == [0, 1, 2]


def test_a_leader_takes_the_converted_batch() -> None:
    """It passes the checks of any produced batch, those of the topic's settings too."""
    compacted = parse_topic_configs({"cleanup.policy": "compact"})
    stamped = parse_topic_configs({"message.timestamp.type": "LogAppendTime"})
    data = memoryview(encode_message_set(PLAIN, magic=1, codec=Codec.GZIP))
    batch = accepted(memoryview(up_convert_produced(data)), LogConfig(), T)
    assert decode_records(batch.data) == PLAIN
    with pytest.raises(InvalidRecordError, match="message without key"):
        accepted(memoryview(up_convert_produced(data)), compacted, T)
    batch = accepted(memoryview(up_convert_produced(data)), stamped, T + 9)
    assert {record.timestamp_ms for record in decode_records(batch.data)} == {T + 9}


def test_a_producer_may_not_claim_log_append_time() -> None:
    """As in batches: refused where the topic has it, made CreateTime elsewhere."""
    data = memoryview(
        encode_message_set(PLAIN, magic=1, timestamp_type=TimestampType.LOG_APPEND_TIME)
    )
    stamped = parse_topic_configs({"message.timestamp.type": "LogAppendTime"})
    with pytest.raises(InvalidTimestampError) as refused:
        accepted(memoryview(up_convert_produced(data)), stamped, T)
    assert all("LogAppendTime" in one.message for one in refused.value.record_errors)
    batch = accepted(memoryview(up_convert_produced(data)), LogConfig(), T)
    assert not batch.is_log_append_time


ONE = encode_message_set(PLAIN[:1], magic=1)
WRAPPER = encode_message_set(PLAIN, magic=1, codec=Codec.LZ4)


NOT_TAKEN = {
    "nothing": (b"", InvalidRecordError, "no whole message in 0 bytes"),
    "cut": (ONE[:-1], InvalidRecordError, "no whole message"),
    "wrapper behind": (ONE + WRAPPER, InvalidRecordError, "does not stand alone"),
    "two wrappers": (WRAPPER + WRAPPER, InvalidRecordError, "does not stand alone"),
    "magic 0": (ONE + encode_message_set(PLAIN, magic=0), InvalidRecordError, "magic 0 follows"),
    "magic 2": (ONE + bytes(encode_batch(PLAIN)), InvalidRecordError, "magic 2 follows magic 1"),
    "flip": (ONE[:-1] + b"x", CorruptMessageError, "CRC"),
    "zeros": (ONE + b"\0" * 30, CorruptMessageError, "of 12 bytes"),
    "flip inside": (wrapped(ONE[:-1] + b"x", offset=0), InvalidRecordError, "damaged"),
    "magic 0 inside": (
        wrapped(encode_message_set(PLAIN, magic=0), offset=1),
        InvalidRecordError,
        "magic 0 stands inside of magic 1",
    ),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_a_leader_does_not_take(name: str) -> None:
    """Nothing, several wrappers, mixed magics, damage: refused as a broker refused them."""
    data, error, reason = NOT_TAKEN[name]
    with pytest.raises(error, match=reason):
        up_convert_produced(memoryview(data))


def test_a_message_cut_short_behind_whole_ones_is_left_out() -> None:
    """Old clients cut their buffers at a size, wherever that was."""
    for rest in (ONE[:5], ONE[:20], ONE[:-1]):
        batch = batch_of(up_convert_produced(memoryview(ONE + ONE + rest)))
        assert batch.record_count == 2


# down


@st.composite
def stored_batches(draw: st.DrawFn) -> RecordBatch:
    """Draw a batch of magic 2 with what old formats do not have."""
    records = [
        record._replace(headers=(("h", b"x"),)) if draw(st.booleans()) else record
        for record in draw(old_records())
    ]
    data = encode_batch(
        records,
        base_offset=records[0].offset,
        last_offset=records[-1].offset + draw(st.integers(0, 3)),
        codec=draw(st.sampled_from(CODECS)),
        timestamp_type=draw(st.sampled_from(TimestampType)),
        producer_id=draw(st.sampled_from([-1, 5])),
        base_sequence=0,
        leader_epoch=3,
    )
    return batch_of(data)


@given(batch=stored_batches(), magic=st.sampled_from([0, 1]))
def test_down_keeps_all_that_the_format_can_hold(batch: RecordBatch, magic: int) -> None:
    """Offset, key, value, codec, in magic 1 time and its type; headers and producers go."""
    records = decode_records(batch.data)
    data = down_convert([batch], magic)
    assert decoded(data) == as_held(records, magic)
    messages = list(iterate_entries(memoryview(data)))
    assert {message.magic for message in messages} == {magic}
    assert {message.codec for message in messages} == {batch.codec}
    is_stamped = magic == 1 and batch.is_log_append_time
    assert {message.is_log_append_time for message in messages} == {is_stamped}
    assert len(messages) == (1 if batch.codec else len(records))


def test_a_reader_gets_no_plain_message_that_it_did_not_ask_for() -> None:
    """Below the asked offset records are left out, but a wrapper is all or nothing."""
    records = [Record(offset, T, None, b"v") for offset in range(10, 20)]
    plain = batch_of(encode_batch(records, base_offset=10))
    packed = batch_of(encode_batch(records, base_offset=10, codec=Codec.LZ4))
    assert [r.offset for r in decoded(down_convert([plain], 1, first_offset=17))] == [17, 18, 19]
    assert len(decoded(down_convert([packed], 1, first_offset=17))) == 10
    assert down_convert([plain], 1, first_offset=20) == b""


def test_markers_are_left_out() -> None:
    """Old consumers know no transactions: they see records of aborted ones, and no marker."""
    marker = encode_control(
        ControlType.ABORT, timestamp_ms=T, producer_id=9, producer_epoch=3, coordinator_epoch=1
    )
    records = batch_of(encode_batch(PLAIN, producer_id=9, base_sequence=0, is_transactional=True))
    found = down_convert([records, batch_of(marker)], 1)
    assert decoded(found) == PLAIN


def test_a_batch_that_compaction_emptied_is_left_out() -> None:
    """It has a span but no record, and there are no empty messages."""
    empty = batch_of(encode_batch([], base_offset=5, last_offset=9))
    assert down_convert([empty], 0) == b""


def test_zstd_is_refused() -> None:
    """Also where it would have to be decompressed only."""
    batch = batch_of(encode_batch(PLAIN, codec=Codec.ZSTD))
    for magic in (0, 1):
        with pytest.raises(UnsupportedDownConversionError, match=f"magic {magic}"):
            down_convert([batch], magic)


def test_a_log_of_three_formats_goes_down_as_far_as_it_must() -> None:
    """Messages that are old enough go as they are; all others are converted, offsets kept."""
    case = LegacyCase("legacy-3.9", "magic-upgrade")
    entries = case.stored_batches(0)
    for magic in (0, 1):
        data = down_convert(entries, magic)
        found = list(iterate_entries(memoryview(data)))
        assert {entry.magic for entry in found} == set(range(magic + 1))
        untouched = [entry for entry in entries if entry.magic <= magic]
        assert data.startswith(b"".join(bytes(entry.data) for entry in untouched))
        wanted = [
            record._replace(timestamp_ms=-1 if magic == 0 else record.timestamp_ms)
            for entry in entries
            for record in decode_records(entry.data)
        ]
        assert decoded(data) == wanted


def test_damaged_batches_are_not_converted() -> None:
    """What cannot be read is an error, not an empty answer."""
    data = bytearray(encode_batch(PLAIN, codec=Codec.GZIP))
    data[74] ^= 0xFF
    with pytest.raises(CorruptRecordError):
        down_convert([RecordBatch(data, len(data))], 1)
    message = bytearray(encode_message_set(PLAIN, magic=1, codec=Codec.GZIP))
    message[50] ^= 0xFF
    data = bytearray(with_crc(message))
    with pytest.raises(CorruptRecordError):
        down_convert([LegacyMessage(data, len(data))], 0)
