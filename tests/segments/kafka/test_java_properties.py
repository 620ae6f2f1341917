"""Java's properties text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.java_properties import (
    PropertiesError,
    format_properties,
    parse_properties,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b\r\nc   d\re", {"a": "b", "c": "d", "e": ""}),
        ("  # no\n! no\n\n \t\n a=#b", {"a": "#b"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("a\\=b\\ c=d", {"a=b c": "d"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\", {"a": "b"}),
        ("# no \\\na=b", {"a": "b"}),
        ("a=\\t\\u0041\\x\\:", {"a": "\tAx:"}),
        ("a=1\na=2", {"a": "2"}),
        ("=b", {"": "b"}),
    ],
)
def test_the_rules_of_java(text: str, expected: dict[str, str]) -> None:
    """Separators, comments, continuations and escapes are read as Java reads them."""
    assert parse_properties(text) == expected


def test_a_malformed_escape_is_refused() -> None:
    r"""A \u that is not followed by four digits is an error, as in Java."""
    with pytest.raises(PropertiesError):
        parse_properties("a=\\u00x1")


def test_written_form() -> None:
    """Text has Java's two comment lines, the date in UTC, and escapes."""
    text = format_properties({"a b": " c:d", "e": "f g"}, wall_ms=1795232442000)
    assert text == "#\n#Sat Nov 21 03:40:42 UTC 2026\na\\ b=\\ c\\:d\ne=f g\n"
    assert "Thu Jan 01 00:00:00 UTC 1970" in format_properties({}, wall_ms=999)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_round_trip(properties: dict[str, str]) -> None:
    """Any keys and values read back."""
    assert parse_properties(format_properties(properties, wall_ms=0)) == properties


@given(st.text("ab\\=: \t\n\r#u0", max_size=40))
def test_fuzz(text: str) -> None:
    """Any text gives properties or PropertiesError."""
    with contextlib.suppress(PropertiesError):
        parse_properties(text)
