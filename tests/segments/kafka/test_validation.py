"""What a leader takes, changes and refuses, batch by batch and record by record."""

from __future__ import annotations

import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import RejectedAppendError
from logstore.segments.kafka.append_errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
    UnsupportedCompressionError,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch, parse_batch
from logstore.segments.kafka.validation import accepted, parse_produced, validated

NOW_MS = 1_700_000_000_000
PLAIN = LogConfig()
COMPACTED = LogConfig(cleanup_policy=("compact",))
APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
BOUNDED = LogConfig(message_timestamp_before_max_ms=1000)
LOG_APPEND_TIME = 0x08
CONTROL = 0x20


def records_of(count: int, *, key: bytes | None = b"k", step_ms: int = 1) -> list[Record]:
    """Return records whose values compress."""
    return [Record(n, NOW_MS + n * step_ms, key, b"value " * 10) for n in range(count)]


def produced(records: list[Record], codec: Codec = Codec.NONE) -> bytearray:
    """Return a batch as a client sends it."""
    return encode_batch(records, codec=codec)


def with_field(data: bytes | bytearray, layout: str, position: int, value: int) -> bytearray:
    """Return a batch with one header field changed and its CRC made right."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    batch = RecordBatch(memoryview(changed), len(changed))
    struct.pack_into(">I", changed, 17, batch.computed_crc())
    return changed


def take(data: bytearray, config: LogConfig = PLAIN, now_ms: int = NOW_MS) -> RecordBatch:
    """Let a leader take a batch."""
    return accepted(memoryview(data), config, now_ms)


# what is taken


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
def test_a_good_batch_is_taken_as_it_is(codec: Codec) -> None:
    """In the producer's codec nothing is written anew, whatever the number of records."""
    for count in (1, 3, 40):
        data = produced(records_of(count), codec)
        batch = take(bytearray(data))
        assert bytes(batch.data) == data
        assert (batch.record_count, batch.codec) == (count, codec)


@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
def test_a_topic_with_a_codec_of_its_own_has_all_batches_in_it(codec: Codec, target: str) -> None:
    """Batches of another codec are written anew, records and producer unchanged."""
    data = encode_batch(
        records_of(5), codec=codec, producer_id=7, producer_epoch=2, base_sequence=30,
        is_transactional=True,
    )  # fmt: skip
    batch = take(bytearray(data), LogConfig(compression_type=target))
    assert batch.codec == (0 if target == "uncompressed" else Codec[target.upper()])
    assert parse_batch(memoryview(batch.data)).crc == batch.crc
    assert [r._replace(sequence=-1) for r in decode_records(batch.data)] == records_of(5)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, 30)
    assert batch.is_transactional
    if batch.codec == codec:
        assert bytes(batch.data) == data


def test_offsets_that_are_not_in_order_are_put_in_order() -> None:
    """Where every record is looked at, inner offsets become 0, 1, 2 as in Kafka."""
    spread = [record._replace(offset=record.offset * 2) for record in records_of(3)]
    data = with_field(encode_batch(spread), ">i", 23, 2)  # last offset delta as if in order
    batch = take(data, COMPACTED)
    assert [record.offset for record in decode_records(batch.data)] == [0, 1, 2]
    assert batch.last_offset_delta == 2


def test_the_broker_gives_its_time_where_the_topic_says_so() -> None:
    """All records of a LogAppendTime topic have the time of their append."""
    for codec in (Codec.NONE, Codec.LZ4):
        batch = take(produced(records_of(3), codec), APPEND_TIME, NOW_MS + 5000)
        assert batch.is_log_append_time
        assert parse_batch(memoryview(batch.data)).max_timestamp_ms == NOW_MS + 5000
        times = [record.timestamp_ms for record in decode_records(batch.data)]
        assert times == [NOW_MS + 5000] * 3


@pytest.mark.parametrize(
    "config", [PLAIN, COMPACTED, BOUNDED], ids=["plain", "compacted", "bounded"]
)
def test_a_producer_that_claims_append_time_is_corrected(config: LogConfig) -> None:
    """On a CreateTime topic the bit is taken away, and the CRC made right again."""
    data = produced(records_of(2))
    batch = take(with_field(data, ">h", 21, LOG_APPEND_TIME), config)
    assert not batch.is_log_append_time
    assert not parse_batch(memoryview(batch.data)).is_log_append_time
    assert bytes(batch.data) == data


def test_timestamps_may_be_missing() -> None:
    """-1 says that there is none; no bound applies to it."""
    data = produced([Record(0, -1, b"k", b"v")])
    assert bytes(take(bytearray(data), BOUNDED).data) == data


# what is refused


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ((">q", 0, 5), "base offset is 5; producers send 0"),
        ((">i", 57, 0), "0 records do not fit last offset delta 1"),
        ((">i", 57, 3), "3 records do not fit last offset delta 1"),
        ((">i", 23, -5), "2 records do not fit last offset delta -5"),
        ((">h", 21, CONTROL), "clients do not write control batches"),
        ((">q", 43, 9), "producer 9 sent base sequence -1"),
    ],
    ids=["base offset", "no records", "too many", "negative", "control", "no sequence"],
)
def test_headers_that_make_no_sense_are_refused(field: tuple[str, int, int], reason: str) -> None:
    """The error says what is wrong with which number."""
    with pytest.raises(InvalidRecordError, match=reason):
        take(with_field(produced(records_of(2)), *field))


def test_an_unknown_codec_is_unsupported() -> None:
    """Codec numbers 5 to 7 mean nothing."""
    with pytest.raises(UnsupportedCompressionError, match="codec 6 is unknown"):
        take(with_field(produced(records_of(2)), ">h", 21, 6))


def test_what_does_not_look_like_its_codec_is_refused() -> None:
    """A batch that says lz4 must start like lz4."""
    for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
        with pytest.raises(InvalidRecordError, match=f"not {codec.name.lower()} data"):
            take(with_field(produced(records_of(2)), ">h", 21, codec))


def test_a_wrong_crc_is_corrupt() -> None:
    """A flipped bit anywhere behind the CRC is found before anything is looked at."""
    data = produced(records_of(2))
    data[-3] ^= 1
    with pytest.raises(CorruptMessageError, match="CRC of the batch is 0x"):
        take(data)


def test_a_batch_larger_than_the_topic_takes_is_refused() -> None:
    """``max.message.bytes`` counts the whole batch; a recompressed one must still fit."""
    data = produced(records_of(4), Codec.GZIP)
    take(bytearray(data), LogConfig(max_message_bytes=len(data)))
    with pytest.raises(MessageTooLargeError, match=f"has {len(data)} bytes, max.message.bytes is"):
        take(bytearray(data), LogConfig(max_message_bytes=len(data) - 1))
    with pytest.raises(MessageTooLargeError, match="recompressed, the batch has"):
        take(
            bytearray(data), LogConfig(max_message_bytes=len(data), compression_type="uncompressed")
        )


def test_a_request_holds_one_batch() -> None:
    """Two batches, none, or an older format are refused; half of one behind it is cut off."""
    data = bytes(produced(records_of(2)))
    with pytest.raises(InvalidRecordError, match="exactly one record batch"):
        take(bytearray(data + data))
    for nothing in (b"", data[:40], data[:-1]):
        with pytest.raises(InvalidRecordError, match="no whole record batch"):
            take(bytearray(nothing))
    with pytest.raises(InvalidRecordError, match="magic 1: only record batches of magic 2"):
        take(bytearray(data[:16] + b"\1" + data[17:]))
    assert bytes(take(bytearray(data + data[:30])).data) == data


def test_records_that_do_not_fill_the_batch_are_refused() -> None:
    """Lengths that lead past the end, or stop before it, are found without decoding."""
    for count, position, value in ((1, 61, 0x10), (3, 61, 0x7E)):
        data = with_field(produced(records_of(count)), ">B", position, value)
        with pytest.raises(InvalidRecordError):
            take(data)


def test_every_keyless_record_of_a_compacted_topic_is_named() -> None:
    """The whole batch is refused, and the client learns which of its records are to blame."""
    records = records_of(4)
    for index in (1, 3):
        records[index] = records[index]._replace(key=None)
    with pytest.raises(InvalidRecordError, match="due to 2 record errors in total") as refused:
        take(produced(records), COMPACTED)
    assert [error.batch_index for error in refused.value.record_errors] == [1, 3]


@pytest.mark.parametrize("late_ms", [-2_000, 4_000_000])
def test_of_a_keyless_record_the_time_does_not_matter(late_ms: int) -> None:
    """Another one's does, and then all are named, by what is wrong with each."""
    config = attrs.evolve(COMPACTED, message_timestamp_before_max_ms=1000)
    late = Record(0, NOW_MS + late_ms, None, b"v")
    good = Record(1, NOW_MS, b"k", b"v")
    with pytest.raises(InvalidRecordError, match="due to 1 record errors") as refused:
        take(produced([late, good]), config)
    assert not isinstance(refused.value, InvalidTimestampError)
    with pytest.raises(InvalidTimestampError) as refused:
        take(produced([late, late._replace(offset=1, key=b"k")]), config)
    reasons = [error.message for error in refused.value.record_errors]
    assert ["without key" in one for one in reasons] == [True, False]


def test_timestamps_must_lie_within_the_topics_bounds() -> None:
    """Bounds are inclusive; every record outside of them is named."""
    config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    for timestamp_ms in (NOW_MS - 1000, NOW_MS + 500):
        take(produced([Record(0, timestamp_ms, None, b"v")]), config)
    records = [
        Record(index, NOW_MS + delta, None, b"v")
        for index, delta in enumerate((-1001, 0, 501, -1000))
    ]
    with pytest.raises(InvalidTimestampError, match="invalid timestamp") as refused:
        take(produced(records), config)
    assert [error.batch_index for error in refused.value.record_errors] == [0, 2]
    with pytest.raises(InvalidTimestampError) as refused:
        take(produced([Record(0, NOW_MS + 3_600_001, None, b"v")]))
    assert len(refused.value.record_errors) == 1


def test_append_time_may_not_be_claimed_where_it_would_count() -> None:
    """On a LogAppendTime topic, or without any timestamp, the claim is refused."""
    claimed = with_field(produced(records_of(2)), ">h", 21, LOG_APPEND_TIME)
    timeless = with_field(produced([Record(0, -1, b"k", b"v")]), ">h", 21, LOG_APPEND_TIME)
    for batch, config in ((claimed, APPEND_TIME), (timeless, LogConfig())):
        with pytest.raises(InvalidTimestampError) as refused:
            take(batch, config)
        reasons = [error.message for error in refused.value.record_errors]
        assert all("should not set timestamp type to LogAppendTime" in one for one in reasons)


@pytest.mark.parametrize(
    ("codec", "shown"),
    [(Codec.NONE, "DefaultRecord(offset=0, timestamp=7, key=0 bytes, value=1 bytes)"),
     (Codec.GZIP, "PartialDefaultRecord(offset=0, timestamp=7, key=-1 bytes, value=1 bytes)")],
)  # fmt: skip
def test_a_claim_is_refused_with_the_record_as_kafka_shows_it(codec: Codec, shown: str) -> None:
    """What stays compressed is not read whole: of a key that is null it has no size."""
    data = bytes(encode_batch([Record(0, 7, None, b"v")], codec=codec))
    with pytest.raises(InvalidTimestampError) as refused:
        take(with_field(data, ">h", 21, codec | LOG_APPEND_TIME), APPEND_TIME)
    (error,) = refused.value.record_errors
    assert error.message == (
        f"Invalid timestamp type in message {shown}. Producer should not set timestamp type to "
        "LogAppendTime."
    )


# the short way and the long way


def outcome(data: bytes, config: LogConfig, *, is_short: bool) -> tuple[str, bytes | str]:
    """Return what becomes of a batch on one of the two ways."""
    copy = memoryview(bytearray(data))
    try:
        if is_short:
            batch = accepted(copy, config, NOW_MS)
        else:
            batch = validated(parse_produced(copy, config), config, NOW_MS)
    except RejectedAppendError as error:
        return type(error).__name__, str(error)
    return "taken", bytes(batch.data)


@given(st.data())
def test_the_short_way_decides_as_the_long_one(data: st.DataObject) -> None:
    """Good, damaged or strange, a batch is taken or refused alike, with the same words."""
    count = data.draw(st.integers(1, 20), label="records")
    codec = data.draw(st.sampled_from(list(Codec)), label="codec")
    size = data.draw(st.integers(0, 120), label="value bytes")
    batch = bytearray(
        encode_batch([Record(n, NOW_MS + n, b"k", b"v" * size) for n in range(count)], codec=codec)
    )
    for _ in range(data.draw(st.integers(0, 2), label="changes")):
        position = data.draw(st.integers(0, len(batch) - 1), label="position")
        batch[position] = data.draw(st.integers(0, 255), label="byte")
    if data.draw(st.booleans(), label="CRC made right") and len(batch) >= 61:
        header = RecordBatch(memoryview(batch), len(batch))
        struct.pack_into(">I", batch, 17, header.computed_crc())
    cut = data.draw(st.integers(0, 5) | st.just(0), label="cut")
    found = bytes(batch[: len(batch) - cut])
    config = data.draw(
        st.sampled_from([PLAIN, COMPACTED, APPEND_TIME, BOUNDED, LogConfig(max_message_bytes=300)]),
        label="config",
    )
    assert outcome(found, config, is_short=True) == outcome(found, config, is_short=False)
