"""What is left in memory of clients, topics and groups that are gone: nothing may be."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

WorldT = TypeVar("WorldT")

_OURS = ("logstore.compat.", "logstore.segments.")
_CONTAINERS = (dict, list, set, deque, bytearray)


def census() -> Counter[str]:
    """Return how many objects of each class of ours there are, and what is in their containers."""
    gc.collect()
    found: Counter[str] = Counter()
    everything: list[object] = gc.get_objects()
    for one in everything:
        kind = type(one)
        if not str(kind.__module__).startswith(_OURS):
            continue
        name = f"{kind.__module__.removeprefix('logstore.')}.{kind.__qualname__}"
        found[name] += 1
        for attribute, value in _attributes(one):
            if isinstance(value, _CONTAINERS):
                found[f"{name}.{attribute}"] += len(cast("list[Any]", value))
    return found


def _attributes(one: object) -> Iterator[tuple[str, object]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in cast("tuple[str, ...]", getattr(kind, "__slots__", ())):
            if hasattr(one, name):
                yield name, getattr(one, name)


def left_behind(
    make: Callable[[], WorldT],
    one_round: Callable[[WorldT, int], None],
    settle: Callable[[WorldT], None],
    *,
    rounds: int = 12,
) -> dict[str, int]:
    """
    Return what there is more of after `rounds` more of something, of which each is by itself.

    What grows by less than one for two rounds is none of theirs. `settle` lets pass what time they
    may be remembered for. Only what comes into being meanwhile is looked at, `make`'s world first.
    """
    gc.collect()
    gc.freeze()
    try:
        world = make()
        for number in range(3):
            one_round(world, number)
        settle(world)
        before = census()
        for number in range(3, 3 + rounds):
            one_round(world, number)
        settle(world)
        after = census()
    finally:
        gc.unfreeze()
    return {
        name: count - before[name]
        for name, count in sorted(after.items())
        if 2 * (count - before[name]) >= rounds
    }
