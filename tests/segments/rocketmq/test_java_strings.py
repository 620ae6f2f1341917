"""What is blank to Java, how long a string is, and the order of a hash map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.messages.java_strings import (
    is_java_blank,
    java_hash_map_order,
    java_length,
)


@given(st.text())
def test_a_length_counts_utf_16_units(text: str) -> None:
    """A character beyond the first plane counts as two."""
    assert java_length(text) == len(text.encode("utf-16-be")) // 2


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
