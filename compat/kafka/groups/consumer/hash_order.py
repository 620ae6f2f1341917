"""
The order in which Java walks a ``HashMap``.

Kafka's assignors deal partitions out in the order of such maps. Whoever wants to hand out the same
ones must walk in the same order: by bucket, and within a bucket as they came.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from logstore.compat.kafka.groups.partitioning import java_hash

KeyT = TypeVar("KeyT")

_SIZE_MIN = 16
_MASK = 0xFFFF_FFFF


def members_in_order(member_ids: Iterable[str]) -> list[str]:
    """Return member ids in the order of a map that they were put into one by one."""
    keys = list(member_ids)
    return _walked(keys, java_hash, _grown_size(len(keys)))


def topics_in_order(topic_ids: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Return topic ids in the order of a map that they were put into one by one."""
    keys = list(topic_ids)
    return _walked(keys, _id_hash, _grown_size(len(keys)))


def topic_set_in_order(topic_ids: Iterable[uuid.UUID], size: int) -> list[uuid.UUID]:
    """Return topic ids in the order of a set made from a collection that says it has `size`."""
    return _walked(list(topic_ids), _id_hash, _copied_size(size))


def partitions_in_order(partitions: Iterable[int]) -> list[int]:
    """Return partition numbers in the order of a set made from a sorted list of them."""
    keys = sorted(partitions)
    return _walked(keys, int, _copied_size(len(keys)))


def _walked(keys: list[KeyT], hash_of: Callable[[KeyT], int], size: int) -> list[KeyT]:
    return sorted(keys, key=lambda key: _spread(hash_of(key)) & (size - 1))


def _spread(hashed: int) -> int:
    unsigned = hashed & _MASK
    return unsigned ^ (unsigned >> 16)


def _id_hash(topic_id: uuid.UUID) -> int:
    mixed = (topic_id.int >> 64) ^ (topic_id.int & 0xFFFF_FFFF_FFFF_FFFF)
    return (mixed >> 32) ^ (mixed & _MASK)


def _grown_size(count: int) -> int:
    """Return the size of a table that has doubled whenever it was three quarters full."""
    size = _SIZE_MIN
    while count > size * 3 // 4:
        size *= 2
    return size


def _copied_size(count: int) -> int:
    """Return the size of a table that was made for so many keys."""
    wanted = max(int(count / 0.75) + 1, _SIZE_MIN)
    return 1 << (wanted - 1).bit_length()
