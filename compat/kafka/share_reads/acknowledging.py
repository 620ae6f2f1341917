"""
What a request says of records, partition by partition: checked, and passed on.

Source: ``KafkaApis.handleAcknowledgements``, ``validateAcknowledgementBatches``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch, AcknowledgeType
from logstore.compat.kafka.share_reads.share_sessions import PartitionKey, SessionKey

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.share_reads.messages import SharedTopic
    from logstore.compat.kafka.share_reads.share_partitions import SharePartitions

_RENEWALS_SINCE = 2


class Acknowledged(NamedTuple):
    """What came of a partition's acknowledgements."""

    error_code: int = 0
    message: str | None = None


_FINE = Acknowledged()


def anything(topic_id: bytes) -> bool:
    """Tell whether a client may read a topic where nobody asks who it is."""
    del topic_id
    return True


def acknowledge(
    broker: Broker,
    open_partitions: SharePartitions,
    member: SessionKey,
    topics: Sequence[SharedTopic],
    *,
    version: int,
    is_renewal: bool,
    may_read: Callable[[bytes], bool],
) -> dict[PartitionKey, Acknowledged]:
    """Apply a request's acknowledgements; nothing wrong in one partition concerns another."""
    refused: dict[PartitionKey, Acknowledged] = {}
    empty: dict[PartitionKey, Acknowledged] = {}
    said: dict[PartitionKey, list[AcknowledgementBatch]] = {}
    type_max = AcknowledgeType.RENEW if version >= _RENEWALS_SINCE else AcknowledgeType.REJECT
    for topic in topics:
        partitions = broker.by_id.get(topic.topic_id.bytes)
        for partition in topic.partitions:
            key = PartitionKey(topic.topic_id.bytes, partition.partition_index)
            batches = [
                AcknowledgementBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in partition.acknowledgement_batches
            ]
            if partitions is None:
                refused[key] = Acknowledged(ErrorCode.UNKNOWN_TOPIC_ID)
            elif not _is_sound(batches, type_max, is_renewal=is_renewal):
                refused[key] = Acknowledged(ErrorCode.INVALID_REQUEST)
            elif not may_read(key.topic_id):
                refused[key] = Acknowledged(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif key.partition not in partitions:
                refused[key] = Acknowledged(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not broker.placements.is_led_by(member.node_id, partitions[key.partition]):
                refused[key] = Acknowledged(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif batches:
                said[key] = batches
            else:
                empty[key] = _FINE
    if not said:
        return refused  # where nothing is said at all, nothing is answered
    outcome = open_partitions.acknowledge(member, said)
    done = {
        key: _FINE if error is None else Acknowledged(error.code, error.message)
        for key, error in outcome.items()
    }
    return done | refused | empty


def _is_sound(batches: Sequence[AcknowledgementBatch], type_max: int, *, is_renewal: bool) -> bool:
    """Tell whether batches are in order and each says something of all its offsets."""
    previous = -1
    for first_offset, last_offset, types in batches:
        count = last_offset - first_offset + 1
        if count < 1 or first_offset < previous or len(types) not in (1, count):
            return False
        if not all(0 <= kind <= type_max for kind in types):
            return False
        if AcknowledgeType.RENEW in types and not is_renewal:
            return False
        previous = last_offset
    return True
