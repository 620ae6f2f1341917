"""One step ahead: the next run of records is read and checked while the last is dispatched."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

ItemT = TypeVar("ItemT")


def read_ahead(items: Iterator[ItemT]) -> Iterator[ItemT]:
    """
    Yield what `items` yields; the next item is made in a thread of its own meanwhile.

    Worth it where both sides leave the interpreter's lock alone most of the time. What `items`
    raises is raised where its item would have come. When this iterator ends, or is closed, no
    thread is left.
    """
    with ThreadPoolExecutor(1, "recovery") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
