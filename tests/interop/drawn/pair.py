"""What ours calls one thing, and what the real one calls it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Pair(NamedTuple):
    """What ours calls one thing and what the real one calls it."""

    ours: Any
    real: Any


def of_side(value: Any, side: int) -> Any:
    """Return a question as it is put to one of them: 0 is ours, 1 the real one."""
    if isinstance(value, Pair):
        return value[side]
    if callable(value):
        return value(side)
    if isinstance(value, dict):
        return {name: of_side(one, side) for name, one in value.items()}
    if isinstance(value, list):
        return [of_side(one, side) for one in value]
    return value
