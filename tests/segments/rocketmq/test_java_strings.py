"""Java's hash of a string and order of a hash map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.messages.java_strings import (
    is_java_blank,
    java_hash,
    java_hash_map_order,
    java_length,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("标签", 857175),
        ("polygenelubricants", -2147483648),
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
    assert java_length(text) == len(data) // 2


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


NAMES = (
    "KEYS",
    "TAGS",
    "UNIQ_KEY",
    "WAIT",
    "MSG_REGION",
    "TRACE_ON",
    "CLUSTER",
    "DELAY",
    "REAL_TOPIC",
    "REAL_QID",
    "PGROUP",
    "TRAN_MSG",
    "RETRY_TOPIC",
    "ORIGIN_MESSAGE_ID",
    "x",
)


def test_a_map_of_128_buckets_yields_its_keys_as_java_does() -> None:
    """The order is one that a JVM printed."""
    assert java_hash_map_order(NAMES, 128) == (
        "ORIGIN_MESSAGE_ID",
        "RETRY_TOPIC",
        "MSG_REGION",
        "UNIQ_KEY",
        "CLUSTER",
        "PGROUP",
        "DELAY",
        "TAGS",
        "TRAN_MSG",
        "KEYS",
        "WAIT",
        "TRACE_ON",
        "REAL_TOPIC",
        "x",
        "REAL_QID",
    )


def test_a_map_grows_beyond_three_quarters() -> None:
    """13 keys in 16 buckets make 32 of them; 12 do not."""
    for count, size in ((12, 16), (13, 32), (24, 32), (25, 64)):
        names = tuple(f"name{number}" for number in range(count))
        assert java_hash_map_order(names, 16) == java_hash_map_order(names, size)
    names = tuple(f"name{number}" for number in range(13))
    assert java_hash_map_order(names, 16) != java_hash_map_order(names[:12], 16) + names[12:]


def test_a_bucket_of_nine_doubles_a_small_map() -> None:
    """Equal hashes keep the order of insertion; other keys move to where a larger map has them."""
    pairs = [("Aa", "BB")[bit] + ("Aa", "BB")[other] for bit in (0, 1) for other in (0, 1)]
    equal = [one + two for one in pairs for two in pairs][:9]
    assert len({java_hash(name) for name in equal}) == 1
    names = ("q", *equal)
    assert java_hash_map_order(names, 16) == java_hash_map_order(names, 32)
    assert [name for name in java_hash_map_order(names, 16) if name != "q"] == equal


@pytest.mark.parametrize("text", ["", " ", "\t\n\v\f\r", "\x1c\x1f", "\u2028\u2029", "\u3000 "])
def test_what_is_blank_to_java(text: str) -> None:
    """Spaces, and what parts lines, paragraphs, files, groups, records and units."""
    assert is_java_blank(text)


@pytest.mark.parametrize("text", ["\u00a0", "\u2007", "\u202f", "\x85", "\u200b", " a ", "\0"])
def test_what_is_not_blank_to_java(text: str) -> None:
    """Spaces that do not break a line are none; Python takes some for them."""
    assert not is_java_blank(text)
