"""What is held against each other in one session has the same chances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from logstore.tools.bench.spark_turns import in_turns, warm


def turn(name: str, taken: list[str], seconds: list[float]) -> Callable[[], float]:
    """Return what writes its name down and says the next number of seconds."""

    def take() -> float:
        taken.append(name)
        return seconds.pop(0)

    return take


def test_what_gets_faster_meanwhile_serves_both() -> None:
    """Of two that lose a second at every turn neither is faster than the other."""
    taken: list[str] = []
    seconds = [4.0, 3.0, 2.0, 1.0]

    found = in_turns(turn("a", taken, seconds), turn("b", taken, seconds))

    assert taken == ["a", "b", "b", "a"]
    assert found == (2.5, 2.5)


@pytest.mark.parametrize(
    ("row_count", "rounds"), [(3_000_000, 1), (1_000_001, 3), (7, 10), (0, 10)]
)
def test_few_rows_are_read_more_often(row_count: int, rounds: int) -> None:
    """The JVM compiles what ran often, whatever a row weighs; but there is an end to it."""
    taken: list[str] = []

    warm(row_count, turn("a", taken, [0.0] * 10), turn("b", taken, [0.0] * 10))

    assert Counter(taken) == {"a": rounds, "b": rounds}
    assert taken[:2] == ["a", "b"]
