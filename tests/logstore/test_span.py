"""Half-open intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.span import Span

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: Span(*sorted(pair)))


@given(SPANS, st.integers(-1, 31))
def test_it_holds_its_start_and_not_its_end(span: Span, offset: int) -> None:
    """An offset is in the span exactly when a range of the same ends has it."""
    assert (offset in span) == (offset in range(span.start, span.end))


@given(SPANS)
def test_its_length_counts_offsets(span: Span) -> None:
    """The length is the number of offsets, and an empty span has none."""
    assert len(span) == len(range(span.start, span.end))
    assert bool(span) == (span.start != span.end)


def test_it_reads_as_an_interval() -> None:
    """The text shows that the end does not belong to it."""
    assert str(Span(10, 31)) == "[10, 31)"


def test_it_is_a_value() -> None:
    """Equal ends make equal, hashable spans that cannot change."""
    assert len({Span(1, 2), Span(1, 2), Span(1, 3)}) == 2
    with pytest.raises(AttributeError):
        Span(1, 2).start = 0  # type: ignore[misc]


def test_it_cannot_be_inside_out() -> None:
    """A span that ends before it starts is a mistake of the caller."""
    with pytest.raises(AssertionError, match=r"\[3, 2\) is inside out"):
        Span(3, 2)
