"""The primitive types of the protocol, read and written by hand."""

from __future__ import annotations

import importlib
import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.framing import (
    MalformedRequestError,
    Reader,
    framed,
    read_uvarint,
    skip_tags,
    uvarint,
)
from logstore.compat.kafka.writer import Writer

UINT32_MAX = 2**32 - 1


@given(value=st.integers(0, UINT32_MAX), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_unsigned_varints_are_the_librarys(value: int, before: bytes, after: bytes) -> None:
    """What is written is what kafka-python writes, and is read back from any place."""
    library: Any = importlib.import_module("kafka.protocol.schemas.fields.codecs.types")
    written = uvarint(value)
    assert written == bytes(library.UnsignedVarInt32.encode(value))
    assert library.UnsignedVarInt32.decode(io.BytesIO(written)) == value
    data = memoryview(before + written + after)
    assert read_uvarint(data, len(before)) == (value, len(before) + len(written))


@pytest.mark.parametrize("data", [b"\xff" * 5, b"\x80" * 5 + b"\0", b"\xff" * 100])
def test_a_varint_ends_within_five_bytes(data: bytes) -> None:
    """More bytes than any length needs are refused, however many follow."""
    with pytest.raises(MalformedRequestError, match="five bytes"):
        read_uvarint(memoryview(data), 0)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_a_varint_that_is_cut_is_an_index_error(data: bytes) -> None:
    """Which closes the connection like every other error of reading."""
    with pytest.raises(IndexError):
        read_uvarint(memoryview(data), 0)


@given(st.dictionaries(st.integers(0, 1000), st.binary(max_size=200), max_size=5), st.binary())
def test_tags_are_skipped_whatever_they_are(fields: dict[int, bytes], rest: bytes) -> None:
    """Unknown tagged fields are as good as none."""
    writer = Writer(is_flexible=True)
    writer.tags(fields)
    data = writer.body()
    assert skip_tags(memoryview(data + rest), 0) == len(data)


def test_a_lie_about_the_number_of_tags_ends_soon() -> None:
    """Four thousand million tags are not looked for in ten bytes."""
    with pytest.raises((IndexError, MalformedRequestError)):
        skip_tags(memoryview(uvarint(UINT32_MAX) + b"\x01\x00" * 3), 0)


@given(
    is_flexible=st.booleans(),
    numbers=st.tuples(
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
    ),
    text=st.none() | st.binary(max_size=300),
    tags=st.dictionaries(st.integers(0, 9), st.binary(max_size=9), max_size=2),
)
def test_what_is_written_is_read(
    is_flexible: bool,
    numbers: tuple[int, int, int],
    text: bytes | None,
    tags: dict[int, bytes],
) -> None:
    """Reader and writer agree in the compact encoding and in the other one."""
    writer = Writer(is_flexible=is_flexible)
    writer.i16(numbers[0])
    writer.i32(numbers[1])
    writer.i64(numbers[2])
    writer.boolean(numbers[0] > 0)
    writer.string(text)
    writer.count(3)
    writer.raw(b"abc")
    writer.tags(tags)
    data = memoryview(writer.body())
    reader = Reader(data, 0, is_flexible=is_flexible)
    assert (reader.i16(), reader.i32(), reader.i64()) == numbers
    assert reader.i8() == (1 if numbers[0] > 0 else 0)
    assert reader.string() == text
    assert [reader.take(1) for _ in range(reader.count())] == [b"a", b"b", b"c"]
    reader.tags()
    assert reader.position == len(data)


@pytest.mark.parametrize("value", [-128, -1, 0, 1, 127])
def test_bytes_are_signed(value: int) -> None:
    """An int8 is read with its sign."""
    assert Reader(memoryview(struct.pack("b", value)), 0, is_flexible=False).i8() == value


@pytest.mark.parametrize("is_flexible", [False, True])
def test_an_array_has_no_more_entries_than_bytes(is_flexible: bool) -> None:
    """A count that cannot be true is refused before a loop begins, and so is null."""
    lie = uvarint(100_001) if is_flexible else struct.pack(">i", 100_000)
    with pytest.raises(MalformedRequestError, match="100000 entries"):
        Reader(memoryview(lie + bytes(99)), 0, is_flexible=is_flexible).count()
    null = b"\0" if is_flexible else struct.pack(">i", -1)
    with pytest.raises(MalformedRequestError, match="an array is null"):
        Reader(memoryview(null), 0, is_flexible=is_flexible).count()


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), 5, 2**31])
def test_what_is_not_there_is_not_taken(size_bytes: int) -> None:
    """Neither past the end nor backwards."""
    reader = Reader(memoryview(b"abcd"), 0, is_flexible=False)
    with pytest.raises(MalformedRequestError, match="are not there"):
        reader.take(size_bytes)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50), st.booleans())
def test_a_response_has_its_length_in_front(number: int, body: bytes, has_tags: bool) -> None:
    """Length, correlation id, no tags where the header has a place for them, body."""
    frame = framed(number, body, has_tags=has_tags)
    size_bytes, correlation_id = struct.unpack_from(">ii", frame)
    assert (size_bytes, correlation_id) == (len(frame) - 4, number)
    assert frame[8:] == (b"\0" + body if has_tags else body)
