"""
The order in which Java's maps yield their entries, which is that of their JSON.

No reader depends on it. Tables are written in it so that our files are those of a real broker,
byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from logstore.java_hash import java_hash

Value = TypeVar("Value")


@lru_cache(maxsize=65_536)
def _spread(text: str) -> int:
    value = java_hash(text) & 0xFFFF_FFFF
    return value ^ value >> 16


def in_concurrent_map_order(
    entries: Mapping[str, Value], initial_capacity: int = 0
) -> dict[str, Value]:
    """
    Return the entries as a ``ConcurrentHashMap`` that never held others yields them.

    Args:
        entries: in the order in which they were put.
        initial_capacity: that the map was made with; 0 for none.

    Entries of one bucket keep their order, which Java's growing may turn round.

    """
    size = 16 if initial_capacity == 0 else _power_of_two(initial_capacity * 3 // 2 + 1)
    while len(entries) >= size - (size >> 2):
        size *= 2
    order = sorted(entries, key=lambda name: _spread(name) & size - 1)
    return {name: entries[name] for name in order}


def in_number_order(entries: Mapping[int, Value]) -> dict[int, Value]:
    """Return the entries as a ``ConcurrentHashMap`` yields them whose keys are numbers."""
    size = 16
    while len(entries) >= size - (size >> 2):
        size *= 2
    order = sorted(entries, key=lambda number: (number ^ number >> 16) & size - 1)
    return {number: entries[number] for number in order}


def in_hash_map_order(names: Iterable[str], initial_capacity: int = 16) -> list[str]:
    """Return the names as a ``HashMap`` or ``HashSet`` yields them that they were put into."""
    put = list(dict.fromkeys(names))
    size = _power_of_two(initial_capacity)
    while len(put) > size * 3 // 4:
        size *= 2
    return sorted(put, key=lambda name: _spread(name) & size - 1)


def _power_of_two(least: int) -> int:
    """Return the lowest power of two that is not less."""
    return 1 << max(least - 1, 0).bit_length()
