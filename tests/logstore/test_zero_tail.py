"""The zeros at the end of a preallocated file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.zero_tail import written_length

CHUNK = 64 * 1024


@given(st.binary(max_size=300), st.integers(0, 300))
def test_zeros_at_the_end_do_not_count(data: bytes, zeros: int) -> None:
    """The length is that of what is left when all of them are taken away."""
    padded = data + bytes(zeros)
    assert written_length(padded) == len(padded.rstrip(b"\0"))
    assert written_length(bytearray(padded)) == len(padded.rstrip(b"\0"))


@pytest.mark.parametrize("last", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 3 * CHUNK])
@pytest.mark.parametrize("zeros", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK])
def test_the_last_byte_is_found_wherever_it_lies(last: int, zeros: int) -> None:
    """Also at the edges of what is looked at in one step, with zeros before it."""
    data = bytes(last) + b"x" + bytes(zeros)
    assert written_length(data) == last + 1


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK])
def test_nothing_but_zeros_is_nothing(size: int) -> None:
    """A file that nobody has written to holds no byte."""
    assert written_length(bytes(size)) == 0
