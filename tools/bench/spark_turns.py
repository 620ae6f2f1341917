"""Two reads in one session, held against each other: warmed alike, then measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: so many rows make the JVM compile what it does with each of them
_WARM_ROWS = 3_000_000
_WARM_ROUNDS_MAX = 10

#: does something, and returns how many seconds that took
Turn = Callable[[], float]


def seconds_of(frame: DataFrame) -> float:
    """Return how long it takes to read all rows and look at none."""
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def warm(row_count: int, *turns: Turn) -> None:
    """Take all turns, `row_count` rows each, until what they run is compiled."""
    for _ in range(min(_WARM_ROUNDS_MAX, -(-_WARM_ROWS // max(row_count, 1)))):
        for turn in turns:
            turn()


def in_turns(one: Turn, other: Turn) -> tuple[float, float]:
    """
    Return what each takes, of two turns: the one, twice the other, the one again.

    The JVM gets faster for minutes: whoever came second would be measured with what the first had
    compiled.
    """
    first = one()
    others = other() + other()
    return (first + one()) / 2, others / 2
