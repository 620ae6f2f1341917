"""The header of a batch: read, stamped in place, and refused where it cannot be right."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptEntryError
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    RecordBatch,
    batch_size_bytes,
    iterate_batches,
    parse_batch,
)

#: base offset 1000, leader epoch 5, producer 9 epoch 3, sequence 2^31-1, transactional (Java 4.3.0)
JAVA_BATCH = bytes.fromhex(
    "00000000000003e8000000450000000502e44963890010000000010000018bcfe568000000018bcfe56801000000"
    "000000000900037fffffff0000000214000000046b3104763100100002020104763200"
)
#: the bytes that the CRC does not cover: base offset, length and leader epoch, magic, the CRC
UNPROTECTED_BYTES = 21
T = 1_700_000_000_000


def batch_of(count: int, base_offset: int = 0) -> bytearray:
    """Return a batch of `count` records."""
    records = [Record(base_offset + n, T + n, b"k%d" % n, b"v") for n in range(count)]
    return encode_batch(records, base_offset=base_offset)


def test_every_field_of_a_java_batch_is_read() -> None:
    """The header that the Java client wrote, field by field, and what follows from it."""
    batch = parse_batch(memoryview(JAVA_BATCH))
    assert batch.size_bytes == len(JAVA_BATCH) == batch_size_bytes(JAVA_BATCH)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (1000, 1001, 1002)
    assert (batch.leader_epoch, batch.magic, batch.crc) == (5, 2, 0xE4496389)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (T, T + 1)
    assert (batch.producer_id, batch.producer_epoch) == (9, 3)
    assert (batch.record_count, batch.last_offset_delta, batch.offset_count) == (2, 1, 2)
    assert (batch.is_transactional, batch.is_control, batch.is_log_append_time) == (
        True,
        False,
        False,
    )
    assert batch.codec == 0
    assert batch.delete_horizon_ms is None
    assert batch.computed_crc() == batch.crc


def test_sequences_wrap_after_the_largest_one() -> None:
    """A producer's numbers go from 2^31-1 to 0; without a first there is no last."""
    batch = parse_batch(memoryview(JAVA_BATCH))
    assert (batch.base_sequence, batch.last_sequence) == (2**31 - 1, 0)
    batch.base_sequence = -1
    assert batch.last_sequence == -1


def test_the_delete_horizon_stands_where_the_base_timestamp_was() -> None:
    """With bit 6 the base timestamp says when tombstones may go."""
    batch = parse_batch(memoryview(JAVA_BATCH))
    batch.attributes |= DELETE_HORIZON_BIT
    assert batch.delete_horizon_ms == T


def test_stamping_touches_base_offset_and_epoch_alone() -> None:
    """The leader's stamp leaves every other byte as it is, and the CRC right."""
    data = bytearray(JAVA_BATCH)
    batch = parse_batch(memoryview(data))
    assert batch.stamped(2**40, 17) is batch
    assert (batch.base_offset, batch.leader_epoch) == (2**40, 17)
    changed = [position for position in range(len(data)) if data[position] != JAVA_BATCH[position]]
    assert set(changed) <= {*range(8), *range(12, 16)}
    again = parse_batch(memoryview(data))
    assert (again.base_offset, again.leader_epoch) == (2**40, 17)
    assert batch.stamped(5).leader_epoch == 17, "without an epoch the old one stays"


def test_restamped_times_are_read_back() -> None:
    """A broker that gives its own time sets type and maximum, and makes the CRC right again."""
    data = batch_of(3)
    batch = parse_batch(memoryview(data))
    batch.restamp_time(T + 9999, is_log_append_time=True)
    again = parse_batch(memoryview(data))
    assert again.is_log_append_time
    assert [record.timestamp_ms for record in decode_records(data)] == [T + 9999] * 3
    again.restamp_time(T + 2, is_log_append_time=False)
    assert data == batch_of(3), "and back again"


@pytest.mark.parametrize(("given", "left"), [(0x7F00, 0x08), (0x80, 0x08), (0xFF, 0x7F)])
def test_restamping_drops_what_java_knows_no_attribute_for(given: int, left: int) -> None:
    """As Java rewrites a header: only seven bits of the attributes survive."""
    data = batch_of(1)
    struct.pack_into(">h", data, 21, given)
    batch = RecordBatch(memoryview(data), len(data))
    batch.restamp_time(T, is_log_append_time=True)
    assert parse_batch(memoryview(data)).attributes == left


BATCH = bytes(batch_of(2))


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (BATCH[:60], "60 bytes are less than a batch header"),
        (BATCH[:-1], "is cut short after"),
        (BATCH[:8] + struct.pack(">i", 48) + BATCH[12:], "batch length 48 is too small"),
        (BATCH[:8] + struct.pack(">i", -1) + BATCH[12:], "batch length -1 is too small"),
        (BATCH[:16] + b"\x01" + BATCH[17:], "magic 1, expected 2"),
        (BATCH[:-1] + b"\x7f", "CRC is 0x"),
    ],
    ids=["header", "body", "short length", "negative length", "magic", "crc"],
)
def test_what_is_no_batch_is_refused_with_its_place(damaged: bytes, reason: str) -> None:
    """The error names file, position and reason."""
    with pytest.raises(CorruptEntryError, match=reason) as refused:
        parse_batch(memoryview(b"\xaa" * 7 + damaged), 7, "some.log")
    assert (refused.value.path, refused.value.position) == ("some.log", 7)
    assert str(refused.value).startswith("some.log: position 7: ")


def test_a_wrong_crc_may_be_passed_over() -> None:
    """Who only needs the header can read a batch whose records lost a bit."""
    data = batch_of(2)
    data[-1] ^= 1
    batch = parse_batch(memoryview(data), is_checked=False)
    assert batch.computed_crc() != batch.crc
    assert batch.record_count == 2


@given(st.data())
def test_every_flipped_bit_behind_the_crc_is_found(data: st.DataObject) -> None:
    """No single bit from the attributes on can change unseen."""
    batch = batch_of(data.draw(st.integers(1, 4)))
    position = data.draw(st.integers(UNPROTECTED_BYTES, len(batch) - 1))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptEntryError, match="CRC is"):
        parse_batch(memoryview(batch))


def test_batches_follow_each_other_and_a_torn_one_ends_them() -> None:
    """Every whole batch is yielded; what is cut short behind them is not an error."""
    data = batch_of(2) + batch_of(1, 2) + batch_of(3, 3)
    whole = list(iterate_batches(memoryview(data)))
    assert [(b.base_offset, b.next_offset) for b in whole] == [(0, 2), (2, 3), (3, 6)]
    for cut in (1, HEADER_BYTES, len(whole[-1].data) - 1):
        assert len(list(iterate_batches(memoryview(data)[:-cut]))) == 2
    assert list(iterate_batches(memoryview(b""))) == []


def test_a_bad_batch_between_good_ones_is_an_error() -> None:
    """Iteration does not step over damage."""
    data = batch_of(2) + batch_of(1, 2) + batch_of(3, 3)
    second = len(batch_of(2))
    data[second + 65] ^= 0x10
    batches = iterate_batches(memoryview(data), "some.log")
    assert next(batches).base_offset == 0
    with pytest.raises(CorruptEntryError, match=f"some.log: position {second}: CRC"):
        next(batches)


def test_a_batch_shows_itself() -> None:
    """The representation names offsets and sizes, as a debugger wants them."""
    assert repr(parse_batch(memoryview(JAVA_BATCH))) == (
        f"RecordBatch([1000, 1002), 2 records, {len(JAVA_BATCH)} bytes)"
    )
