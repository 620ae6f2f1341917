"""Waiting for a condition with a deadline, in place of sleeping for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

ValueT = TypeVar("ValueT")

PAUSE_SECONDS = 0.01


def eventually(
    question: Callable[[], ValueT], seconds: float = 30, *, what: str = "the condition"
) -> ValueT:
    """
    Ask until the answer is true, and return it.

    Raises AssertionError with the last answer once `seconds` are over.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true in {seconds} s; last: {answer!r}")
        time.sleep(PAUSE_SECONDS)
