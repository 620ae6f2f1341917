"""
What RocketMQ's files owe to Java: what it takes for blank, and the order of a hash map.

The order of stored properties depends on that.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from logstore.java_hash import java_hash

_MASK = 0xFFFF_FFFF
#: what Java takes for whitespace, and does not
_BLANK_CONTROLS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f")
_BLANK_CATEGORIES = ("Zs", "Zl", "Zp")
_UNBROKEN_SPACES = "\u00a0\u2007\u202f"


def java_length(text: str) -> int:
    """Return ``text.length()`` of Java: how many UTF-16 code units it has."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


@lru_cache(maxsize=4096)
def is_java_blank(text: str) -> bool:
    """Tell whether ``Character.isWhitespace`` of Java holds for all of a text, or it is empty."""
    if "!" <= text[:1] <= "~":
        return False
    return all(
        letter in _BLANK_CONTROLS
        or (letter not in _UNBROKEN_SPACES and unicodedata.category(letter) in _BLANK_CATEGORIES)
        for letter in text
    )


@lru_cache(maxsize=256)
def java_hash_map_order(names: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    """
    Return `names` in the order in which a Java ``HashMap`` yields its keys.

    Args:
        names: in the order in which they were put, each once.
        capacity: of the map when it was made, as asked for: 16 by default. It grows.

    A bucket of more than eight, which Java turns into a tree in large maps, keeps the order of
    insertion here. Messages of one kind have the same names: their order is remembered.

    """
    size = 1
    while size < capacity:
        size *= 2
    hashes = [java_hash(name) & _MASK for name in names]
    spread = [value ^ value >> 16 for value in hashes]
    filled: dict[int, int] = {}
    for count, value in enumerate(spread, 1):
        bucket = value & size - 1
        filled[bucket] = filled.get(bucket, 0) + 1
        crowded = filled[bucket] > 8 and size < 64
        if count > size * 3 // 4 or crowded:
            size *= 2
            filled = {}
            for earlier in spread[:count]:
                filled[earlier & size - 1] = filled.get(earlier & size - 1, 0) + 1
    order = sorted(range(len(names)), key=lambda index: spread[index] & size - 1)
    return tuple(names[index] for index in order)
