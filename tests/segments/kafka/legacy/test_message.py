"""One message of magic 0 or 1, and the walk over logs that hold such."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptEntryError, RejectedAppendError
from logstore.segments.kafka.batch_walk import (
    STEP_BYTES,
    iterate_entries,
    parse_entry,
    walk_batches,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.message import LegacyMessage, parse_message
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record, TimestampType, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing import SimulatedHost

T = 1700000000000


def message(offset: int, magic: int = 0, value: bytes | None = None) -> bytes:
    """Return one message, of 26 or 34 bytes if it has no value."""
    return encode_message_set([Record(offset, T + offset, None, value)], magic=magic)


def wrapper(first: int, count: int, magic: int, codec: Codec = Codec.GZIP) -> bytes:
    """Return a compressed set."""
    records = [Record(first + index, T + index, b"k", b"v" * 9) for index in range(count)]
    return encode_message_set(records, magic=magic, codec=codec)


def with_crc(data: bytes | bytearray) -> bytes:
    """Return the message with the CRC that it should have."""
    return bytes(data[:12]) + zlib.crc32(data[16:]).to_bytes(4) + bytes(data[16:])


def view(data: bytes) -> LegacyMessage:
    """Return the message that these bytes are."""
    return parse_message(memoryview(data))


def test_a_plain_message_covers_its_offset() -> None:
    """Offset, size, time, CRC and codec are the header's; nobody leads, produces or controls."""
    data = message(7, 1, b"value")
    found = view(data)
    assert (found.base_offset, found.last_offset, found.next_offset) == (7, 7, 8)
    assert (found.size_bytes, found.offset_count, found.record_count) == (len(data), 1, 1)
    assert (found.max_timestamp_ms, found.is_log_append_time, found.codec) == (T + 7, False, 0)
    assert found.computed_crc() == found.crc == zlib.crc32(data[16:])
    assert (found.leader_epoch, found.producer_id, found.producer_epoch) == (-1, -1, -1)
    assert (found.base_sequence, found.last_sequence) == (-1, -1)
    assert (found.is_control, found.is_transactional) == (False, False)
    assert found.delete_horizon_ms is None
    assert "magic 1 message at 7" in repr(found)


def test_magic_0_has_no_time() -> None:
    """What magic 1 has in the place of the timestamp are keys and values there."""
    assert view(message(7)).max_timestamp_ms == -1
    assert len(message(7)) == 26
    assert len(message(7, 1)) == 34


def test_a_wrapper_stands_at_its_last_offset() -> None:
    """How many messages are inside, and from where on, its header does not tell."""
    found = view(wrapper(10, 4, 1, Codec.LZ4))
    assert (found.base_offset, found.last_offset, found.next_offset) == (13, 13, 14)
    assert (found.codec, found.record_count, found.max_timestamp_ms) == (Codec.LZ4, -1, T + 3)
    assert "magic 1 wrapper at 13" in repr(found)


def test_bits_that_mean_nothing_do_not_count() -> None:
    """Bits that later formats gave a meaning make no control message and no time of magic 0."""
    for magic, kept in ((0, 0), (1, 8)):
        data = bytearray(message(0, magic))
        data[17] = 0xF8
        found = view(with_crc(data))
        assert found.attributes == kept
        assert found.delete_horizon_ms is None
        assert found.is_log_append_time == (magic == 1)
        assert (found.is_control, found.is_transactional) == (False, False)


@pytest.mark.parametrize(
    ("position", "byte", "reason"),
    [
        (16, 2, "magic 2, expected 0 or 1"),
        (16, 0xFF, "magic 255"),
        (11, 13, "size 13 is too small"),
        (8, 0x80, "is too small"),
        (11, 23, "cut short"),
        (25, 1, "CRC is 0x"),
        (12, 1, "CRC is 0x"),
    ],
)
def test_what_is_no_message(position: int, byte: int, reason: str) -> None:
    """A wrong magic, size or CRC is named, with file and position."""
    data = bytearray(message(0))
    data[position] = byte
    with pytest.raises(CorruptEntryError, match=reason) as caught:
        parse_message(memoryview(b"12345" + data), 5, "some.log")
    assert (caught.value.path, caught.value.position) == ("some.log", 5)


def test_a_message_of_magic_1_has_room_for_its_time() -> None:
    """One that is long enough for magic 0 only is refused, even under a right CRC."""
    data = bytearray(message(0))
    data[16] = 1
    with pytest.raises(CorruptEntryError, match="too small"):
        view(with_crc(data))


def test_less_than_a_header_is_refused() -> None:
    """Fewer bytes than tell the magic are no message."""
    with pytest.raises(CorruptEntryError, match="17 bytes are less"):
        view(message(0)[:17])


def test_a_wrong_crc_can_be_overlooked() -> None:
    """A replay of producers must open a log although the disk lost a byte of it."""
    data = bytearray(message(3))
    data[20] ^= 1
    found = parse_entry(memoryview(data), is_checked=False)
    assert found.last_offset == 3
    assert found.crc != found.computed_crc()


def test_nobody_stamps_a_message() -> None:
    """A leader appends batches of magic 2 only; it must convert first."""
    found = view(message(3))
    with pytest.raises(RejectedAppendError, match="convert"):
        found.stamped(4, 1)
    with pytest.raises(RejectedAppendError, match="convert"):
        found.restamp_time(T, is_log_append_time=True)


def test_log_append_time_is_told() -> None:
    """Bit 3 of the attributes, of magic 1 and of its wrappers."""
    for codec in (Codec.NONE, Codec.SNAPPY):
        data = encode_message_set(
            [Record(0, T, None, b"v")],
            magic=1,
            codec=codec,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
        )
        assert view(data).is_log_append_time
        assert view(data).codec == codec


KINDS = st.sampled_from(["message 0", "message 1", "wrapper 0", "wrapper 1", "batch"])


def entry_bytes(kind: str, offset: int) -> bytes:
    """Return an entry of a kind that ends at `offset` + 2 at most."""
    name, _, magic = kind.partition(" ")
    if name == "batch":
        return bytes(encode_batch([Record(offset, T, b"k", b"v")], base_offset=offset))
    return message(offset, int(magic)) if name == "message" else wrapper(offset, 3, int(magic))


@given(kinds=st.lists(KINDS, max_size=30), step_bytes=st.integers(61, 300))
def test_a_walk_yields_every_entry_wherever_a_read_ends(kinds: list[str], step_bytes: int) -> None:
    """Messages of 26 bytes and up, wrappers and batches in any order; none lost, none cut."""
    stored = [entry_bytes(kind, 10 * index) for index, kind in enumerate(kinds)]
    data = b"".join(stored)
    walked = list(walk(data, step_bytes))
    assert [bytes(entry.data) for entry in walked] == stored
    assert [bytes(entry.data) for entry in iterate_entries(memoryview(data))] == stored
    for earlier, later in pairwise(walked):
        assert earlier.next_offset <= later.base_offset


def walk(data: bytes, step_bytes: int = STEP_BYTES) -> Iterator[RecordBatch]:
    """Walk over a file with this content, read in steps of that size."""
    host = SimulatedHost()
    file = host.fs.open("/some.log", create=True)
    file.write(0, data)
    yield from walk_batches(file, "/some.log", step_bytes=step_bytes)


@pytest.mark.parametrize("kind", ["message 0", "message 1", "wrapper 0", "wrapper 1", "batch"])
def test_a_walk_names_the_place_of_the_damage(kind: str) -> None:
    """A flipped byte, or a cut, raises with the position of the entry; those before it come."""
    stored = [entry_bytes(name, 10 * index) for index, name in enumerate(["batch", kind, kind])]
    data = b"".join(stored)
    start = len(stored[0]) + len(stored[1])
    for damaged in (data[:-1], data[: start + 20], data[:-1] + bytes([data[-1] ^ 1])):
        found: list[bytes] = []
        with pytest.raises(CorruptEntryError) as caught:
            found.extend(bytes(entry.data) for entry in walk(damaged))
        assert (caught.value.path, caught.value.position) == ("/some.log", start)
        assert found == stored[:2]


def test_a_walk_refuses_what_no_format_has() -> None:
    """Magic 3, or a batch that is too short for magic 2, ends the walk where it stands."""
    for magic, reason in ((3, "magic 3"), (2, "too small")):
        data = bytearray(message(0, 1, b"v" * (60 if magic == 3 else 10)))
        data[16] = magic
        with pytest.raises(CorruptEntryError, match=reason) as caught:
            list(walk(message(0) + with_crc(data) + message(2, 1)))
        assert caught.value.position == 26
    with pytest.raises(CorruptEntryError, match="20 bytes are less than a batch header"):
        list(walk(b"\xff" * 20))
