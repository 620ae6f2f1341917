"""Which partition of ``__consumer_offsets`` a group lives in."""

from __future__ import annotations

from functools import lru_cache

from logstore.java_hash import java_hash


@lru_cache(maxsize=1024)  # a group is looked for with every commit
def partition_of(group_id: str, partition_count: int) -> int:
    """
    Return which partition of ``__consumer_offsets`` a group lives in.

    The smallest 32-bit integer has no positive twin; like Kafka's ``Utils.abs`` it counts as 0.
    """
    hashed = java_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count
