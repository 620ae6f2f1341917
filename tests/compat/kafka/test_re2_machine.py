"""What fits a pattern is what fits it for Python, in no more time than the text is long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.re2_pattern import compiled

#: Python's end is in front of a last line break, too; what keeps it from that is cut out for ours.
_ATOMS = st.sampled_from(
    ("a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "(?:)", "\\b", "^", "$(?!\n)", "\n", "-")
)
_COUNTS = st.sampled_from(("*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}", "*?", "{1,}?"))
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, _COUNTS).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)


@given(_PATTERNS, st.lists(st.text("ab1-\n", max_size=6), min_size=1, max_size=5))
def test_fits_what_fits_for_python(pattern: str, texts: list[str]) -> None:
    """Where the two read the same."""
    expected = [re.fullmatch(pattern, text, re.ASCII) is not None for text in texts]
    machine = compiled(pattern.replace("(?!\n)", ""))
    assert [machine.fits(text) for text in texts] == expected
    assert [machine.fits(text) for text in texts] == expected  # as it remembers


@pytest.mark.parametrize(
    "pattern",
    [
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+b",
        ".*.*.*.*.*.*.*.*b",
        "(.?){1000}(.?){1000}b",
        "((a?){1000}){1000}b",
        "((a?b?){1000}){1000}b",
        "(((a{0,1000}){0,1000}){0,1000}){0,1000}-",
        "((a|b?c?){1000}){1000}-",
    ],
)
def test_the_longest_name_is_read_at_once(pattern: str) -> None:
    """One way after the other it would not be done before the sun is cold."""
    assert not compiled(pattern).fits("a" * 249)
    assert compiled(pattern).fits("a" * 249 + pattern[-1])


def test_what_is_remembered_has_an_end() -> None:
    """A pattern with more sets than are kept goes on being right."""
    machine = compiled("(a|b)*a(a|b){14}")
    texts = [f"{number:017b}".replace("0", "a").replace("1", "b") for number in range(3000)]
    assert [machine.fits(text) for text in texts] == [text[2] == "a" for text in texts]


def test_a_deep_pattern_is_one() -> None:
    """As deep as a request may be long."""
    assert compiled("(" * 5000 + "a" + "|b)*" * 5000).fits("abba")
