"""Reading one step ahead changes nothing but when the steps are made."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from logstore.segments.rocketmq.log.read_ahead import read_ahead


def threads() -> set[str]:
    """Return the names of the threads there are."""
    return {thread.name for thread in threading.enumerate()}


def test_items_come_in_order_from_another_thread() -> None:
    """Every item comes once, was made beside the consumer, and no thread is left behind."""
    before = threads()
    makers: set[int] = set()

    def items() -> Iterator[int]:
        for number in range(50):
            makers.add(threading.get_ident())
            yield number

    assert list(read_ahead(items())) == list(range(50))
    assert threading.get_ident() not in makers
    assert threads() == before


def test_the_next_item_is_made_while_the_last_is_looked_at() -> None:
    """An item is there although nobody has asked for it, and no more than that one."""
    made = [threading.Event() for _ in range(5)]

    def items() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    running = read_ahead(items())
    assert next(running) == 0
    assert made[1].wait(10)
    assert not made[2].is_set()
    assert list(running) == [1, 2, 3, 4]


def test_an_error_comes_behind_the_items_before_it() -> None:
    """What was made before something went wrong is seen first."""

    def items() -> Iterator[str]:
        yield "good"
        raise ValueError("bad")

    running = read_ahead(items())
    assert next(running) == "good"
    with pytest.raises(ValueError, match="bad"):
        next(running)


def test_whoever_stops_early_leaves_no_thread() -> None:
    """Closed in the middle, the iterator waits for its thread."""
    before = threads()
    running = read_ahead(iter(range(100)))
    assert next(running) == 0
    running.close()  # type: ignore[attr-defined]
    assert threads() == before
