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

    `offsets` are as they shall be kept, committed now. With a `producer` they count once its
    transaction is committed. `generation_id` is the epoch of a member of a consumer group, who must
    know that there are such: `knows_epochs`.
    """

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    member_id: str = NO_MEMBER_ID
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None
    producer: TransactionalProducer | None = None
    knows_epochs: bool = True

    def kept(self, metadata_size_max: int) -> Mapping[TopicPartition, CommittedOffset]:
        """Return the offsets but for those with too long texts."""
        texts = {one.metadata for one in self.offsets.values()}
        if all(metadata_fits(text, metadata_size_max) for text in texts):
            return self.offsets
        return {
            partition: committed
            for partition, committed in self.offsets.items()
            if metadata_fits(committed.metadata, metadata_size_max)
        }


def metadata_fits(metadata: str, size_max: int) -> bool:
    """Tell whether the text beside an offset is short enough, as Java counts."""
    # It counts UTF-16 units; a character has one or two of them.
    return len(metadata) * 2 <= size_max or len(metadata.encode("utf-16-le")) <= size_max * 2
