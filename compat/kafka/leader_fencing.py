"""
Whether a client has come to the leader of a partition, and agrees on it with the broker (KIP-320).

A node that holds no replica says that it does not lead (6), whatever epoch the client knows; one
that does looks at the epoch first. Source: ``ReplicaManager.getPartitionOrError``,
``Partition.getLocalLog``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.security.listener import Listener
    from logstore.segments.kafka.partition import KafkaPartition

NOT_CHECKED = -1


def fencing_error(
    broker: Broker,
    listener: Listener,
    partition: KafkaPartition | None,
    client_epoch: int = NOT_CHECKED,
    *,
    may_follow: bool = False,
) -> ErrorCode:
    """
    Return why a client that came in by `listener` is refused.

    That is 3 without a partition, 6 where another node leads (or has it, if a follower will do),
    74 for an epoch of the past, 75 for one of the future.
    """
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    placements, is_alone = broker.placements, broker.nodes.is_alone
    if not is_alone and not placements.holds(listener, partition):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if client_epoch not in (NOT_CHECKED, partition.leader_epoch):
        is_over = client_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_over else ErrorCode.UNKNOWN_LEADER_EPOCH
    if not (is_alone or may_follow or placements.leads(listener, partition)):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
