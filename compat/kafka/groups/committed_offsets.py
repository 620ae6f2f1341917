"""What all groups have committed: offsets that count, and those of transactions that are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.offset_table import OffsetTable, TopicPartition
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    OffsetCommitKey,
    TransactionEnd,
)
from logstore.compat.kafka.groups.pending_offsets import PendingOffsets

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.group import Group
    from logstore.compat.kafka.groups.other_groups import OtherGroup


class CommittedOffsets:
    """The offsets of all groups; what is here has been written to the log before."""

    def __init__(self, table: OffsetTable | None = None) -> None:
        self._offsets = OffsetTable() if table is None else table
        self._pending = PendingOffsets()

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all that a group has committed and no transaction holds back."""
        return self._offsets.of_group(group_id)

    def holds_any(self, group_id: str) -> bool:
        """Tell whether open transactions may change any offset of a group."""
        return self._pending.has_any(group_id)

    def is_held(self, group_id: str, partition: TopicPartition) -> bool:
        """Tell whether an open transaction may change a group's offset."""
        return self._pending.is_held(group_id, partition)

    def put(self, key: OffsetCommitKey, committed: CommittedOffset) -> None:
        """Note an offset; what open transactions have committed before it will not count."""
        self._offsets.put(key, committed)
        self._pending.overtake(key)

    def put_all(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets of one group, as :meth:`put` does."""
        self._offsets.put_all(group_id, offsets)
        if self._pending.has_any(group_id):
            for one in offsets:
                self._pending.overtake(OffsetCommitKey(group_id, *one))

    def put_pending(
        self, partition: int, producer_id: int, key: OffsetCommitKey, committed: CommittedOffset
    ) -> None:
        """Note an offset that counts once the producer's transaction is committed."""
        self._pending.put(partition, producer_id, key, committed)

    def end(self, end: TransactionEnd) -> None:
        """Let the offsets of a transaction count, or forget them."""
        for key, committed in self._pending.end(
            end.partition, end.producer_id, is_commit=end.is_commit
        ):
            self._offsets.put(key, committed)

    def drop(self, key: OffsetCommitKey) -> None:
        """Forget an offset; fine if there is none."""
        self._offsets.remove(key)
        self._pending.remove(key)

    def keys(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> list[OffsetCommitKey]:
        """Return the keys of what a group has, in these partitions or (None) in all."""
        kept = self._offsets.of_group(group_id)
        if partitions is None:
            partitions = dict.fromkeys((*kept, *self._pending.of_group(group_id)))
        return [
            OffsetCommitKey(group_id, *one)
            for one in partitions
            if one in kept or self._pending.is_held(group_id, one)
        ]

    def keys_of_topic(
        self, topic: str, partitions: Iterable[int]
    ) -> Mapping[str, list[OffsetCommitKey]]:
        """Return by group the keys of what all groups have in these partitions of a topic."""
        wanted = list(partitions)
        keys_of: dict[str, dict[OffsetCommitKey, None]] = {}
        for key in (
            *self._offsets.keys_of_topic(topic, wanted),
            *self._pending.keys_of_topic(topic, wanted),
        ):
            keys_of.setdefault(key.group_id, {})[key] = None
        return {group_id: list(keys) for group_id, keys in keys_of.items()}

    def expired_keys(
        self, group: Group | OtherGroup, now_ms: int, retention_ms: int
    ) -> tuple[list[OffsetCommitKey], bool]:
        """Return what has outlived its retention time, and whether that is all of the group's."""
        expired, is_all = self._offsets.expired_keys(group, now_ms, retention_ms)
        pending = set(self._pending.of_group(group.group_id))
        if pending:  # what a transaction may change soon is left alone
            is_all = False
            expired = [key for key in expired if (key.topic, key.partition) not in pending]
        return expired, is_all

    def clear(self) -> None:
        """Forget everything."""
        self._offsets.clear()
        self._pending.clear()
