"""RocketMQ's own headers: read and written byte for byte as Java does."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.rocketmq.wire.binary_header import read_binary_header, write_binary_header
from logstore.compat.rocketmq.wire.languages import LANGUAGES

#: code 17, JAVA, version 409, opaque 5, flag 0, no remark, fields topic=t and order=false
EXAMPLE = bytes.fromhex(
    "0011 00 0199 00000005 00000000 00000000 0000001c"
    "0005 746f706963 00000001 74"
    "0005 6f72646572 00000005 66616c7365"
)  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


def header(fields: bytes = b"", *, remark: bytes = b"", fields_bytes: int | None = None) -> bytes:
    """Return a header with these raw fields."""
    length = len(fields) if fields_bytes is None else fields_bytes
    start = struct.pack(">hbhiii", 17, 0, 409, 5, 0, len(remark))
    return start + remark + struct.pack(">i", length) + fields


def test_an_example_by_hand() -> None:
    """Every field where the reference has it, in both directions."""
    fields = {"topic": "t", "order": "false"}
    assert read_binary_header(EXAMPLE) == (17, 5, 0, "JAVA", 409, None, fields)
    assert write_binary_header(17, 5, 0, "JAVA", 409, None, fields) == EXAMPLE


def test_a_view_is_read_too() -> None:
    """Headers come as views of the connection's memory."""
    assert read_binary_header(memoryview(EXAMPLE)) == read_binary_header(EXAMPLE)


def test_empty_text_is_null() -> None:
    """A value of no length is no value, and a name of none is no field."""
    fields = b"\0\1a\0\0\0\0" + b"\0\0\0\0\0\1x" + b"\0\1b\0\0\0\1y"
    assert read_binary_header(header(fields))[6] == {"b": "y"}


def test_high_codes_lose_their_high_bits() -> None:
    """Two bytes hold a code: 200050 arrives as 3442, and 40000 as a negative one."""
    assert read_binary_header(write_binary_header(200050, 1, 0, "JAVA", 1, None, None))[0] == 3442
    assert read_binary_header(write_binary_header(40000, 1, 0, "JAVA", 1, None, None))[0] == -25536


def test_an_unknown_language_is_other() -> None:
    """A number that no language has does no harm."""
    assert read_binary_header(EXAMPLE[:2] + b"\x63" + EXAMPLE[3:])[3] == "OTHER"


def test_what_is_no_utf8_is_replaced() -> None:
    """As Java does it: one odd byte in a name or a value does not end the connection."""
    fields = b"\0\2b\xff\0\0\0\1x" + b"\0\1a\0\0\0\2y\xff"
    assert read_binary_header(header(fields))[6] == {"b\ufffd": "x", "a": "y\ufffd"}


@pytest.mark.parametrize("size_bytes", range(len(EXAMPLE)))
def test_a_header_that_is_cut_off(size_bytes: int) -> None:
    """Is refused wherever it ends."""
    with pytest.raises(ValueError, match=r"."):
        read_binary_header(EXAMPLE[:size_bytes])


@pytest.mark.parametrize(
    "data",
    [
        header(fields_bytes=1),
        header(fields_bytes=-1),
        header(b"\0\5top"),
        header(b"\0\1a\0\0\0\5xx"),
        header(b"\0\1a\xff\xff\xff\xff"),
        header(b"\0\1a\x7f\xff\xff\xff"),
        header(b"\xff\xff" + b"a" * 40),
        struct.pack(">hbhiii", 17, 0, 409, 5, 0, -1) + bytes(8),
        struct.pack(">hbhiii", 17, 0, 409, 5, 0, 2**30) + bytes(8),
    ],
)
def test_lengths_that_do_not_fit(data: bytes) -> None:
    """Are refused, not followed."""
    with pytest.raises(ValueError, match=r"."):
        read_binary_header(data)


@given(
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from(LANGUAGES),
    st.none() | TEXT.filter(bool),
    st.dictionaries(TEXT.filter(bool), TEXT.filter(bool)),
)
def test_what_is_written_is_read(
    code: int, opaque: int, language: str, remark: str | None, fields: dict[str, str]
) -> None:
    """Every header comes back."""
    data = write_binary_header(code, opaque, 3, language, 409, remark, fields)
    assert read_binary_header(data) == (code, opaque, 3, language, 409, remark, fields)
