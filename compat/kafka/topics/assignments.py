"""
Which brokers are to hold a partition, as a client wants it.

Source: ``ReplicationControlManager.validateManualPartitionAssignment``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

#: (partition number, ids of its brokers)
Assignment = tuple[int, Sequence[int]]


def check_brokers(broker: Broker, broker_ids: Sequence[int], factor: int | None = None) -> None:
    """
    Check the brokers of one partition; `factor` is how many the partitions beside it have.

    Raises:
        RefusedRequestError: 39; there are not such brokers, or not so many, or one comes twice.

    """
    if not broker_ids:
        raise _refused("The manual partition assignment includes an empty replica list.")
    nodes, before = broker.nodes.by_id, None
    for number in sorted(broker_ids):
        if number not in nodes or not nodes[number].is_registered:
            raise _refused(
                f"The manual partition assignment includes broker {number}, but no such broker is "
                "registered."
            )
        if number == before:
            raise _refused(
                f"The manual partition assignment includes the broker {number} more than once."
            )
        before = number
    if factor is not None and len(broker_ids) != factor:
        raise _refused(
            f"The manual partition assignment includes a partition with {len(broker_ids)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s)."
        )


def check_new(broker: Broker, assignments: Sequence[Assignment], factor: int | None = None) -> None:
    """
    Check the brokers of partitions that are to be made, of which each needs one that is up.

    Raises:
        RefusedRequestError: as for :func:`check_brokers`, or all are down.

    """
    for index, broker_ids in assignments:
        check_brokers(broker, broker_ids, factor)
        factor = len(broker_ids)
        if not broker.nodes.ids_up.intersection(broker_ids):
            raise _refused(
                f"All brokers specified in the manual partition assignment for partition {index} "
                "are fenced or in controlled shutdown."
            )


def check_all(broker: Broker, assignments: Sequence[Assignment]) -> int:
    """
    Check the brokers of all partitions of a new topic; return how many partitions there are.

    Raises:
        RefusedRequestError: as for :func:`check_new`, or the partitions do not count up from 0.

    """
    seen: set[int] = set()
    factor: int | None = None
    for index, broker_ids in assignments:
        if index in seen:
            raise _refused(f"Found multiple manual partition assignments for partition {index}")
        check_new(broker, [(index, broker_ids)], factor)
        factor = len(broker_ids)
        seen.add(index)
    if seen != set(range(len(seen))):
        raise _refused("partitions should be a consecutive 0-based integer sequence")
    return len(seen)


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
