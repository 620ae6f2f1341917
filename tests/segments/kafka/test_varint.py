"""Variable-length integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.varint import (
    VarintError,
    decode_unsigned_varint,
    decode_unsigned_varlong,
    decode_varint,
    decode_varlong,
    encode_unsigned_varint,
    encode_unsigned_varlong,
    encode_varint,
    encode_varlong,
)

VARINTS = {
    0: "00", -1: "01", 1: "02", -2: "03", 2: "04", 63: "7e", -64: "7f", 64: "8001",
    150: "ac02", 300: "d804", -150: "ab02", 2**31 - 1: "feffffff0f", -(2**31): "ffffffff0f",
}  # fmt: skip
VARLONGS = {
    0: "00", -1: "01", 1: "02", 1700000000000: "80a0abfef962", -1700000000000: "ff9fabfef962",
    2**63 - 1: "feffffffffffffffff01", -(2**63): "ffffffffffffffffff01",
}  # fmt: skip


@pytest.mark.parametrize(("value", "text"), VARINTS.items())
def test_varint_golden_bytes(value: int, text: str) -> None:
    """A varint has the bytes that the Java client writes, and reads back from them."""
    assert encode_varint(value).hex() == text
    assert decode_varint(bytes.fromhex(text), 0) == (value, len(text) // 2)


@pytest.mark.parametrize(("value", "text"), VARLONGS.items())
def test_varlong_golden_bytes(value: int, text: str) -> None:
    """A varlong has the bytes that the Java client writes, and reads back from them."""
    assert encode_varlong(value).hex() == text
    assert decode_varlong(bytes.fromhex(text), 0) == (value, len(text) // 2)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_varint_round_trip(value: int, before: bytes, after: bytes) -> None:
    """Every 32-bit integer reads back from its bytes wherever they stand, in five bytes at most."""
    encoded = encode_varint(value)
    assert 1 <= len(encoded) <= 5
    end = len(before) + len(encoded)
    assert decode_varint(before + encoded + after, len(before)) == (value, end)
    assert decode_varint(memoryview(before + encoded + after), len(before)) == (value, end)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_round_trip(value: int) -> None:
    """Every 64-bit integer reads back from its bytes, in ten bytes at most."""
    encoded = encode_varlong(value)
    assert 1 <= len(encoded) <= 10
    assert decode_varlong(encoded, 0) == (value, len(encoded))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_unsigned_round_trip(small: int, large: int) -> None:
    """Unsigned integers are not zig-zagged and read back."""
    assert decode_unsigned_varint(encode_unsigned_varint(small), 0)[0] == small
    assert decode_unsigned_varlong(encode_unsigned_varlong(large), 0)[0] == large
    assert encode_unsigned_varint(300) == bytes.fromhex("ac02")


def test_excess_bits_of_the_last_byte_are_dropped() -> None:
    """As in Java, the fifth byte's high bits and the tenth byte's high bits do not count."""
    assert decode_unsigned_varint(bytes.fromhex("ffffffff7f"), 0) == (2**32 - 1, 5)
    assert decode_varint(bytes.fromhex("ffffffff7f"), 0) == (-(2**31), 5)
    assert decode_varlong(bytes.fromhex("ffffffffffffffffff7f"), 0) == (-(2**63), 10)


@pytest.mark.parametrize("text", ["", "80", "ffffffff", "ffffffffff", "808080808001"])
def test_bad_varint(text: str) -> None:
    """A varint that is cut or has more than five bytes is an error."""
    with pytest.raises(VarintError):
        decode_varint(bytes.fromhex(text), 0)
    with pytest.raises(VarintError):
        decode_unsigned_varint(bytes.fromhex(text), 0)


@pytest.mark.parametrize("text", ["", "80", "ff" * 9, "ff" * 10, "80" * 10 + "01"])
def test_bad_varlong(text: str) -> None:
    """A varlong that is cut or has more than ten bytes is an error."""
    with pytest.raises(VarintError):
        decode_varlong(bytes.fromhex(text), 0)
    with pytest.raises(VarintError):
        decode_unsigned_varlong(bytes.fromhex(text), 0)


def test_out_of_range() -> None:
    """A number that its type cannot hold is refused, not cut."""
    for encode, value in [
        (encode_varint, 2**31),
        (encode_varint, -(2**31) - 1),
        (encode_varlong, 2**63),
        (encode_unsigned_varint, -1),
        (encode_unsigned_varint, 2**32),
        (encode_unsigned_varlong, 2**64),
    ]:
        with pytest.raises(VarintError):
            encode(value)


@given(st.binary(max_size=12))
def test_fuzz(data: bytes) -> None:
    """Any bytes decode to a value in range, within the buffer, or raise VarintError."""
    for decode, low, high in [
        (decode_varint, -(2**31), 2**31),
        (decode_varlong, -(2**63), 2**63),
        (decode_unsigned_varint, 0, 2**32),
        (decode_unsigned_varlong, 0, 2**64),
    ]:
        try:
            value, position = decode(data, 0)
        except VarintError:
            continue
        assert low <= value < high
        assert 1 <= position <= len(data)
