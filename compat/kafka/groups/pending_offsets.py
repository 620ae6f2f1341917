"""Offsets that a transaction has committed and nobody has decided on yet."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset, OffsetCommitKey

#: (partition of ``__consumer_offsets``, producer id): whose transaction, and where it ends
_Producer = tuple[int, int]


@attrs.define
class _Pending:
    """
    An offset of an open transaction; `order` counts the writes.

    It is overtaken once something newer counts for its partition: then it never will.
    """

    committed: CommittedOffset
    order: int
    is_overtaken: bool = False


class PendingOffsets:
    """
    The offsets of open transactions, by producer; what is here has been written to the log before.

    What was written last counts, whether in a transaction or not, so an offset that waits for its
    marker may be overtaken. Source: ``OffsetMetadataManager``.
    """

    def __init__(self) -> None:
        self._by_producer: dict[_Producer, dict[OffsetCommitKey, _Pending]] = {}
        self._holders: dict[str, dict[TopicPartition, set[_Producer]]] = {}
        self._order = 0

    def put(
        self, partition: int, producer_id: int, key: OffsetCommitKey, committed: CommittedOffset
    ) -> None:
        """Note an offset of the producer's open transaction."""
        producer = partition, producer_id
        self._order += 1
        self._by_producer.setdefault(producer, {})[key] = _Pending(committed, self._order)
        holders = self._holders.setdefault(key.group_id, {})
        holders.setdefault((key.topic, key.partition), set()).add(producer)

    def end(
        self, partition: int, producer_id: int, *, is_commit: bool
    ) -> list[tuple[OffsetCommitKey, CommittedOffset]]:
        """Forget the producer's offsets in a partition; return those that count from now on."""
        found = self._by_producer.pop((partition, producer_id), {})
        for key in found:
            self._release(key, (partition, producer_id))
        counting = [
            (key, pending)
            for key, pending in found.items()
            if is_commit and not pending.is_overtaken
        ]
        for key, pending in counting:
            self._overtake(key, pending.order)
        return [(key, pending.committed) for key, pending in counting]

    def overtake(self, key: OffsetCommitKey) -> None:
        """Take note of a commit outside transactions: what is pending below it never counts."""
        if key.group_id in self._holders:
            self._overtake(key, self._order)

    def _overtake(self, key: OffsetCommitKey, order: int) -> None:
        for producer in self._holders_of(key):
            pending = self._by_producer[producer][key]
            pending.is_overtaken = pending.is_overtaken or pending.order <= order

    def remove(self, key: OffsetCommitKey) -> None:
        """Forget what is pending for a group's partition; fine if nothing is."""
        for producer in list(self._holders_of(key)):
            del self._by_producer[producer][key]
            self._release(key, producer)

    def has_any(self, group_id: str) -> bool:
        """Tell whether an open transaction has any offset for a group."""
        return group_id in self._holders

    def is_held(self, group_id: str, partition: TopicPartition) -> bool:
        """Tell whether an open transaction has an offset for a group's partition."""
        return partition in self._holders.get(group_id, {})

    def of_group(self, group_id: str) -> Iterator[TopicPartition]:
        """Yield the partitions for which a group has offsets in open transactions."""
        yield from list(self._holders.get(group_id, {}))

    def keys_of_topic(self, topic: str, partitions: list[int]) -> list[OffsetCommitKey]:
        """Return the keys of all groups in these partitions of a topic."""
        return [
            OffsetCommitKey(group_id, topic, partition)
            for group_id, holders in self._holders.items()
            for partition in partitions
            if (topic, partition) in holders
        ]

    def clear(self) -> None:
        """Forget everything."""
        self._by_producer.clear()
        self._holders.clear()

    def _holders_of(self, key: OffsetCommitKey) -> set[_Producer]:
        return self._holders.get(key.group_id, {}).get((key.topic, key.partition), set())

    def _release(self, key: OffsetCommitKey, producer: _Producer) -> None:
        holders = self._holders[key.group_id]
        producers = holders[key.topic, key.partition]
        producers.discard(producer)
        if not producers:
            del holders[key.topic, key.partition]
        if not holders:
            del self._holders[key.group_id]
