"""
The order in which Java walks a ``HashMap``.

Kafka's assignors deal partitions out in the order of such maps. Whoever wants to hand out the same
ones must walk in the same order: by bucket, and within a bucket as they came.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.java_hash import java_hash

KeyT = TypeVar("KeyT")

_SIZE_MIN = 16
_MASK = 0xFFFF_FFFF
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_FIBONACCI = 0x9E37_79B9_7F4A_7C15


def members_in_order(member_ids: Iterable[str]) -> list[str]:
    """Return member ids in the order of a map that they were put into one by one."""
    keys = list(member_ids)
    return _walked(keys, java_hash, _grown_size(len(keys)))


def members_in_sized_order(member_ids: Iterable[str], size: int) -> list[str]:
    """Return member ids in the order of a map that was made for `size` keys, and may have grown."""
    keys = list(member_ids)
    return _walked(keys, java_hash, _grown_size(len(keys), 1 << max(size - 1, 0).bit_length()))


def members_in_timeline_order(member_ids: Iterable[str], most: int = 0) -> list[str]:
    """
    Return member ids in the order of a ``TimelineHashMap`` that they were put into.

    At some time there were `most` of them: it grows and never shrinks.
    """
    keys = list(member_ids)
    count = max(len(keys), most)
    bits = 1
    while count * 3 > 4 << bits:
        bits += 1
    keys.reverse()  # of those in one slot the last one comes first
    return sorted(keys, key=lambda key: (java_hash(key) * _FIBONACCI & _MASK_64) >> (64 - bits))


def members_in_scala_order(member_ids: Iterable[str]) -> list[str]:
    """Return member ids in the order of Scala's ``HashMap``: by hash within a bucket."""
    keys = sorted(member_ids, key=lambda key: _signed(_spread(java_hash(key))))
    size = _SIZE_MIN
    while len(keys) >= size * 3 / 4:
        size *= 2
    return _walked(keys, java_hash, size)


def copied_in_order(keys: Iterable[KeyT], hash_of: Callable[[KeyT], int]) -> list[KeyT]:
    """Return keys in the order of a map that was copied into a smaller one and grew from there."""
    found = list(keys)
    return _walked(found, hash_of, _grown_size(len(found), 1))


def names_in_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of a set made from a sorted list of them."""
    keys = sorted(names)
    return _walked(keys, java_hash, _copied_size(len(keys)))


def topics_in_order(topic_ids: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Return topic ids in the order of a map that they were put into one by one."""
    keys = list(topic_ids)
    return _walked(keys, _id_hash, _grown_size(len(keys)))


def numbers_in_order(numbers: Iterable[int]) -> list[int]:
    """Return numbers in the order of a map that they were put into one by one."""
    keys = list(numbers)
    return _walked(keys, int, _grown_size(len(keys)))


def topic_set_in_order(topic_ids: Iterable[uuid.UUID], size: int) -> list[uuid.UUID]:
    """Return topic ids in the order of a set made from a collection that says it has `size`."""
    return _walked(list(topic_ids), _id_hash, _copied_size(size))


def partitions_in_order(partitions: Iterable[int]) -> list[int]:
    """Return partition numbers in the order of a set made from a sorted list of them."""
    keys = sorted(partitions)
    return _walked(keys, int, _copied_size(len(keys)))


def coordinators_in_order(count: int) -> list[int]:
    """Return the partitions of ``__consumer_offsets`` in the order of a concurrent map of them."""
    topic_hash = java_hash(GROUPS_TOPIC)
    size = _grown_size(count + 1)  # such a map doubles as soon as it is three quarters full
    return _walked(list(range(count)), lambda index: 31 * (31 + index) + topic_hash, size)


def partition_hash(partition: tuple[uuid.UUID, int]) -> int:
    """Return the hash of a topic's id and a partition's number (Java's ``TopicIdPartition``)."""
    topic_id, index = partition
    return 31 * _id_hash(topic_id) + index


def topic_partitions_in_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return topics with partition numbers in the order of a set made of them (``HashSet``)."""
    keys = sorted(partitions)
    return _walked(
        keys, lambda one: 31 * (31 + one[1]) + java_hash(one[0]), _copied_size(len(keys))
    )


class HashTable(Generic[KeyT]):
    """
    A set of keys that come and go, walked in Java's order: it grows and never shrinks.

    `expected_count` is how many keys it was made for; None for a table of the usual size. Keys
    that share a bucket stand as they came; a map that is filled by ``computeIfAbsent`` has each new
    one in front of them (`adds_in_front`).
    """

    def __init__(
        self,
        hash_of: Callable[[KeyT], int],
        expected_count: int | None = None,
        *,
        adds_in_front: bool = False,
    ) -> None:
        self._hash_of = hash_of
        self._adds_in_front = adds_in_front
        self._keys: dict[KeyT, None] = {}
        wanted = 0 if expected_count is None else int((expected_count + 1) / 0.75 + 1)
        self._size = _SIZE_MIN if expected_count is None else 1 << (wanted - 1).bit_length()

    def __contains__(self, key: KeyT) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[KeyT]:
        """Walk through the keys that are there now."""
        keys = reversed(self._keys) if self._adds_in_front else self._keys
        return iter(_walked(list(keys), self._hash_of, self._size))

    def add(self, key: KeyT) -> None:
        """Take a key in."""
        self._keys[key] = None
        while len(self._keys) > self._size * 3 // 4:
            self._size *= 2

    def remove(self, key: KeyT) -> None:
        """Let go of a key."""
        del self._keys[key]


def _walked(keys: list[KeyT], hash_of: Callable[[KeyT], int], size: int) -> list[KeyT]:
    return sorted(keys, key=lambda key: _spread(hash_of(key)) & (size - 1))


def _spread(hashed: int) -> int:
    unsigned = hashed & _MASK
    return unsigned ^ (unsigned >> 16)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _id_hash(topic_id: uuid.UUID) -> int:
    mixed = (topic_id.int >> 64) ^ (topic_id.int & 0xFFFF_FFFF_FFFF_FFFF)
    return (mixed >> 32) ^ (mixed & _MASK)


def _grown_size(count: int, size: int = _SIZE_MIN) -> int:
    """Return the size of a table that has doubled whenever it was three quarters full."""
    while count > size * 3 / 4:
        size *= 2
    return size


def _copied_size(count: int) -> int:
    """Return the size of a table that was made for so many keys."""
    wanted = max(int(count / 0.75) + 1, _SIZE_MIN)
    return 1 << (wanted - 1).bit_length()
