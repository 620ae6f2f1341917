"""Java's hash of a string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("标签", 857175),
        ("polygenelubricants", -2147483648),
        ("hello", 99162322),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}", 233),
        ("\N{GRINNING FACE}", 1772899),
        ("AaTopic#BB", -10606476),
        ("BBTopic#Aa", -10606476),
    ],
)
def test_hashes_are_those_of_java(text: str, value: int) -> None:
    """The values are what a JVM printed."""
    assert java_hash(text) == value


@given(st.one_of(st.text(), st.text(alphabet="abc#0123456789ABCDEF", min_size=10, max_size=80)))
def test_the_fast_hash_is_the_plain_one(text: str) -> None:
    """31 times what stands before plus each UTF-16 code unit, in 32 bits with a sign."""
    data = text.encode("utf-16-be")
    value = 0
    for unit in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + int.from_bytes(unit)) % 2**32
    assert java_hash(text) == (value if value < 2**31 else value - 2**32)
    assert java_hash(text) == java_hash(text)


def test_a_long_text_has_a_hash_too() -> None:
    """As many characters as the properties of a message may have: no recursion runs out."""
    text = "k" * 32_767
    expected = 0
    for character in text:
        expected = (31 * expected + ord(character)) % 2**32
    assert java_hash(text) % 2**32 == expected


def test_many_different_prefixes_are_forgotten_again() -> None:
    """More strings than are kept give right hashes all the same."""
    texts = [f"{number:040d}" for number in range(10_000)]
    first = [java_hash(text) for text in texts]
    assert [java_hash(text) for text in texts] == first
    assert len(set(first)) == len(texts)
