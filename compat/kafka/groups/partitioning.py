"""Which partition of ``__consumer_offsets`` a group lives in."""

from __future__ import annotations

from functools import lru_cache


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: 32 bits, signed, over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for position in range(0, len(units), 2):
        total = (31 * total + (units[position] << 8 | units[position + 1])) & 0xFFFF_FFFF
    return total - (1 << 32) if total >> 31 else total


@lru_cache(maxsize=1024)  # a group is looked for with every commit
def partition_of(group_id: str, partition_count: int) -> int:
    """
    Return which partition of ``__consumer_offsets`` a group lives in.

    The smallest 32-bit integer has no positive twin; like Kafka's ``Utils.abs`` it counts as 0.
    """
    hashed = java_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count
