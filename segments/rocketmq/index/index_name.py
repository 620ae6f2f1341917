"""The name of an index file: when it was made, to the millisecond, in the broker's own zone."""

from __future__ import annotations

from datetime import datetime

_LONG_MAX = 2**63 - 1


def is_index_name(name: str) -> bool:
    """Tell whether Java takes the name for a number; it lets other files alone."""
    return name.isascii() and name.isdigit() and int(name) <= _LONG_MAX


def next_index_name(wall_ms: int, last_name: str | None) -> str:
    """
    Return the wall clock's time in the local zone, or the number behind the last name.

    Files are read in the order of their names, so a clock that went back, or two files in one
    millisecond, must not put a new file before older ones.
    """
    seconds, millis = divmod(wall_ms, 1000)
    name = f"{datetime.fromtimestamp(seconds):%Y%m%d%H%M%S}{millis:03}"
    return name if last_name is None else str(max(int(name), int(last_name) + 1))
