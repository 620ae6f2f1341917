"""
The order in which Java's ``HashMap`` and Scala's ``mutable.HashMap`` give their keys back.

Kafka's tool collects complaints in such maps, one key a file, so it prints the files in the order
of their paths' hashes.
"""

from __future__ import annotations

from collections.abc import Iterable

from logstore.java_hash import java_hash

_TABLE_SIZE = 16
_MASK = 0xFFFF_FFFF


def _spread(text: str) -> int:
    value = java_hash(text) & _MASK
    return value ^ (value >> 16)


def java_order(keys: Iterable[str]) -> list[str]:
    """
    Return the keys, given in the order of their insertion, as a ``HashMap`` has them.

    They came by ``computeIfAbsent``, which puts a new key in front of its bucket, and lets the
    table grow one key later than ``put`` does.
    """
    found = list(dict.fromkeys(keys))
    size = _TABLE_SIZE
    while len(found) - 1 > size * 3 // 4:
        size *= 2
    found.reverse()
    return sorted(found, key=lambda key: _spread(key) & (size - 1))


def scala_order(keys: Iterable[str]) -> list[str]:
    """Return the keys as Scala 2.13's ``mutable.HashMap`` has them: sorted within a bucket."""
    found = list(dict.fromkeys(keys))
    size = _TABLE_SIZE
    while len(found) >= size * 3 // 4:
        size *= 2
    return sorted(found, key=lambda key: (_spread(key) & (size - 1), _signed(_spread(key))))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
