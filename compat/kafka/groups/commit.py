"""Offsets that somebody wants kept for a group."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.kafka.groups.exchange import NO_GENERATION, NO_MEMBER_ID
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset, TransactionalProducer


@attrs.frozen
class Commit:
    """
    Offsets that somebody wants kept for a group.

    `offsets` carry the caller's offset, leader epoch, metadata and topic id; when they were
    committed and when they expire is filled in later. `retention_ms` is -1 for the broker's own.
    With a `producer` they count once its transaction is committed. `generation_id` is the epoch of
    a member of a consumer group, who must know that there are such: `knows_epochs`.
    """

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    member_id: str = NO_MEMBER_ID
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None
    retention_ms: int = -1
    producer: TransactionalProducer | None = None
    knows_epochs: bool = True

    def kept(self, now_ms: int, metadata_size_max: int) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets as they are kept, committed now, but for those with too long texts."""
        expire_ms = -1 if self.retention_ms == -1 else now_ms + self.retention_ms
        return {
            partition: CommittedOffset(offset, now_ms, epoch, metadata, expire_ms, topic_id)
            for partition, (offset, _, epoch, metadata, _, topic_id) in self.offsets.items()
            if not metadata or metadata_fits(metadata, metadata_size_max)
        }


def metadata_fits(metadata: str, size_max: int) -> bool:
    """Tell whether the text beside an offset is short enough, as Java counts."""
    # It counts UTF-16 units; a character has one or two of them.
    return len(metadata) * 2 <= size_max or len(metadata.encode("utf-16-le")) <= size_max * 2
