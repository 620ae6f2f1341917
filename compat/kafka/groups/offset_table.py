"""The committed offsets of all groups, as they are in memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    GroupRecord,
    OffsetCommitKey,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from logstore.segments.kafka.internal_topics.offset_commit import (
    VALUE_VERSION,
    encode_key_start,
    encode_partition,
    encode_plain_end,
    encode_value_start,
)
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.other_groups import OtherGroup

#: A topic's name and the index of one of its partitions.
TopicPartition = tuple[str, int]


class OffsetTable:
    """
    Offsets by group, topic and partition; what is here has been written to the log before.

    Those of open transactions are in
    :class:`~logstore.compat.kafka.groups.pending_offsets.PendingOffsets`.
    Source: ``OffsetMetadataManager``.
    """

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all offsets of a group, in the order of first commits; not to be changed."""
        return self._by_group.get(group_id, {})

    def put(self, key: OffsetCommitKey, committed: CommittedOffset) -> None:
        """Note an offset."""
        offsets = self._by_group.setdefault(key.group_id, {})
        offsets[key.topic, key.partition] = committed

    def put_all(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets of one group."""
        if offsets:
            self._by_group.setdefault(group_id, {}).update(offsets)

    def remove(self, key: OffsetCommitKey) -> None:
        """Forget an offset; fine if there is none."""
        offsets = self._by_group.get(key.group_id, {})
        offsets.pop((key.topic, key.partition), None)
        if not offsets:
            self._by_group.pop(key.group_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self._by_group.clear()

    def keys(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[OffsetCommitKey]:
        """Return the keys of those partitions in which the group has an offset."""
        offsets = self.of_group(group_id)
        return [OffsetCommitKey(group_id, *one) for one in partitions if one in offsets]

    def keys_of_topic(self, topic: str, partitions: Iterable[int]) -> Iterator[OffsetCommitKey]:
        """Yield the keys of all groups in these partitions of a topic."""
        wanted = [(topic, partition) for partition in partitions]
        for group_id in list(self._by_group):
            yield from self.keys(group_id, wanted)

    def expired_keys(
        self, group: Group | OtherGroup, now_ms: int, retention_ms: int
    ) -> tuple[list[OffsetCommitKey], bool]:
        """
        Return what has outlived its retention time, and whether that is all that the group has.

        An offset with an expiry time of its own lives until then; see
        :meth:`Group.retention_starts_ms` for the others. What a member still reads stays.
        """
        offsets = self.of_group(group.group_id)
        expired: list[OffsetCommitKey] = []
        for (topic, partition), committed in offsets.items():
            start_ms = group.retention_starts_ms(committed.commit_timestamp_ms)
            if start_ms is None:
                return [], False
            end_ms = committed.expire_timestamp_ms
            if end_ms == -1:
                end_ms = start_ms + retention_ms
            if now_ms >= end_ms and not group.is_subscribed_to(topic):
                expired.append(OffsetCommitKey(group.group_id, topic, partition))
        return expired, len(expired) == len(offsets)


def offset_record(
    key: OffsetCommitKey, committed: CommittedOffset | None, version: int = VALUE_VERSION
) -> GroupRecord:
    """Return the record that sets an offset, or its tombstone; a time to end needs version 1."""
    if committed is None:
        return encode_offset_commit_key(key), None
    is_plain = version == VALUE_VERSION or committed.expire_timestamp_ms != NO_TIMESTAMP
    value = encode_offset_commit_value(committed, None if is_plain else version)
    return encode_offset_commit_key(key), value


def offset_records(
    group_id: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    version: int = VALUE_VERSION,
) -> list[GroupRecord]:
    """Return the records that set offsets of one group, in a version of their values."""
    if version != VALUE_VERSION:
        return [
            offset_record(OffsetCommitKey(group_id, *of), committed, version)
            for of, committed in offsets.items()
        ]
    records: list[GroupRecord] = []
    last: tuple[str, int, uuid.UUID | None] | None = None
    start = end = b""
    for (topic, partition), committed in offsets.items():
        offset, time_ms, leader_epoch, metadata, expire_ms, topic_id = committed
        if metadata or expire_ms != NO_TIMESTAMP:
            records.append(offset_record(OffsetCommitKey(group_id, topic, partition), committed))
            continue
        # All of one topic, committed at once, begins and ends alike.
        if last != (topic, time_ms, topic_id):
            last = topic, time_ms, topic_id
            start, end = encode_key_start(group_id, topic), encode_plain_end(time_ms, topic_id)
        value = encode_value_start(VALUE_VERSION, offset, leader_epoch) + end
        records.append((start + encode_partition(partition), value))
    return records
