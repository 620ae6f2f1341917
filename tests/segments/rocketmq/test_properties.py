"""The text of a message's properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_4,
    HASH_MAP_CAPACITY_5,
    crc32_property,
    encode_properties,
    find_property,
    key_items,
    parse_crc32_property,
    parse_properties,
    property_needle,
    tags_code,
    without_property,
)

PROPERTIES = {"TAGS": "TagA", "KEYS": "k1 k2", "WAIT": "true", "CLUSTER": "DefaultCluster"}


def test_a_text_is_written_with_and_without_the_last_separator() -> None:
    """Both forms read the same; without properties both are empty."""
    text = encode_properties(PROPERTIES)
    assert text == b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02WAIT\x01true\x02CLUSTER\x01DefaultCluster\x02"
    assert encode_properties(PROPERTIES, ends_with_separator=False) == text[:-1]
    assert parse_properties(text) == parse_properties(text[:-1]) == PROPERTIES
    assert encode_properties({}, ends_with_separator=False) == encode_properties({}) == b""


def test_the_order_is_that_of_the_releases_map() -> None:
    """A map of 16 buckets yields another order than one of 128."""
    assert list(parse_properties(encode_properties(PROPERTIES, capacity=HASH_MAP_CAPACITY_4))) == [
        "KEYS",
        "CLUSTER",
        "WAIT",
        "TAGS",
    ]
    assert list(parse_properties(encode_properties(PROPERTIES, capacity=HASH_MAP_CAPACITY_5))) == [
        "CLUSTER",
        "TAGS",
        "KEYS",
        "WAIT",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", {}),
        (b"\x02\x02", {}),
        (b"a\x01\x02", {}),
        (b"\x01b\x02", {}),
        (b"ab\x02", {}),
        (b"a\x01b", {"a": "b"}),
        (b"a\x01b\x01c\x02", {"a": "b\x01c"}),
        (b"a\x01b\x02a\x01c\x02", {"a": "c"}),
        (b"a\x01b\x02a\x01\x02", {"a": "b"}),
        (b"xa\x01b\x02", {"xa": "b"}),
        ("名\x01值\x02".encode(), {"名": "值"}),
        (b"a\x01\xff\x02", {"a": "\ufffd"}),
    ],
)
def test_odd_texts_are_read_as_java_reads_them(text: bytes, found: dict[str, str]) -> None:
    """Pairs without name, value or separator fall out, the last value of a name counts."""
    assert parse_properties(text) == found
    value = find_property(text, property_needle("a"))
    assert (None if value is None else value.decode("utf-8", "replace")) == found.get("a")


@given(st.text("aT\x01\x02 ", max_size=40).map(str.encode), st.sampled_from(["a", "T", "aT"]))
def test_one_property_is_found_as_all_are_parsed(text: bytes, name: str) -> None:
    """The short cut never answers otherwise than the parser."""
    value = find_property(text, property_needle(name))
    assert (None if value is None else value.decode()) == parse_properties(text).get(name)


def test_digits_of_the_crc_stand_reversed() -> None:
    """The digit of least value comes first, zeros fill up the end."""
    assert crc32_property(907060870) == b"__CRC32#\x010780607090\x02"
    assert parse_crc32_property("0780607090") == 907060870
    assert parse_crc32_property("") == parse_crc32_property("07x") == -1


def test_tags_and_keys_are_taken_apart() -> None:
    """A tags code is the hash of the whole value; empty keys fall out."""
    assert tags_code(b"TagA") == 2598919
    assert tags_code(b"") == 0
    assert key_items(" k1  k2 ") == ("k1", "k2")
    assert key_items("") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", b""),
        (b"a\x011\x02b\x012\x02", b"b\x012\x02"),
        (b"b\x012\x02a\x011", b"b\x012\x02"),
        (b"a\x011\x02b\x012\x02a\x013\x02", b"b\x012\x02"),
        (b"xa\x011\x02b\x01a\x01\x02", b"xa\x011\x02b\x01a\x01\x02"),
    ],
)
def test_a_property_is_taken_out_wherever_it_stands(text: bytes, expected: bytes) -> None:
    """All of that name go; names and values that only end with it stay."""
    assert without_property(text, property_needle("a")) == expected
