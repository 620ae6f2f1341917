"""Whether a client and the broker agree on who leads a partition (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from logstore.segments.kafka.partition import KafkaPartition

NOT_CHECKED = -1


def fencing_error(partition: KafkaPartition | None, client_epoch: int) -> ErrorCode:
    """Return 3 without a partition, 74 for an epoch of the past, 75 for one of the future."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if client_epoch == NOT_CHECKED or client_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if client_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
