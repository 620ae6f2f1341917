"""
AlterPartitionReassignments (45): versions 0-1.

* a partition is where it is wanted at once; brokers that there are not, the same twice, or none: 39
* replicas null calls a move off; there is never one under way: 85
* a partition that does not exist is 3
* no time at all: 7, of the whole and of each partition; that, and an answer about nothing, says
  that the number of replicas may change, whatever was asked
* v1: where the number of replicas may not change, one that would is 38 (KIP-860)

Source: ``ReplicationControlManager.alterPartitionReassignments``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.topics.assignments import check_brokers
from logstore.compat.kafka.topics.time_given import is_none_given

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_FACTOR_CHANGE = 1


def handle(
    broker: Broker, client: Client, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Move every partition to where it is wanted."""
    from kafka.protocol.admin.topics import AlterPartitionReassignmentsResponse

    del client
    topic_class = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    fields: dict[str, Any] = {}
    is_over = is_none_given(broker, request.timeout_ms) and bool(request.topics)
    may_change_factor = True
    if request.API_VERSION >= _FIRST_WITH_FACTOR_CHANGE:
        may_change_factor = request.allow_replication_factor_change
        is_looked_at = bool(request.topics) and not is_over
        fields["allow_replication_factor_change"] = may_change_factor or not is_looked_at
    return AlterPartitionReassignmentsResponse(
        version=request.API_VERSION,
        error_code=ErrorCode.REQUEST_TIMED_OUT if is_over else ErrorCode.NONE,
        error_message=None if request.topics else "",
        responses=[
            topic_class(
                name=topic.name,
                partitions=[
                    topic_class.ReassignablePartitionResponse(**one)
                    for one in (
                        _too_late(topic)
                        if is_over
                        else _moved(broker, topic, may_change_factor=may_change_factor)
                    )
                ],
            )
            for topic in request.topics
        ],
        **fields,
    )


def _too_late(
    topic: AlterPartitionReassignmentsRequest.ReassignableTopic,
) -> list[dict[str, Any]]:
    fields = {"error_code": ErrorCode.REQUEST_TIMED_OUT, "error_message": None}
    return [{"partition_index": one.partition_index, **fields} for one in topic.partitions]


def _moved(
    broker: Broker,
    topic: AlterPartitionReassignmentsRequest.ReassignableTopic,
    *,
    may_change_factor: bool,
) -> list[dict[str, Any]]:
    return [
        _result(broker, topic.name, one, may_change_factor=may_change_factor)
        for one in topic.partitions
    ]


def _result(
    broker: Broker,
    topic: str,
    asked: AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition,
    *,
    may_change_factor: bool,
) -> dict[str, Any]:
    code, message = ErrorCode.NONE, None
    index = asked.partition_index
    try:
        _move(broker, topic, index, asked.replicas, may_change_factor=may_change_factor)
    except RefusedRequestError as refusal:
        code, message = refusal.code, refusal.message
    return {"partition_index": index, "error_code": code, "error_message": message}


def _move(
    broker: Broker,
    topic: str,
    index: int,
    replicas: Sequence[int] | None,
    *,
    may_change_factor: bool,
) -> None:
    if broker.partition(topic, index) is None:
        what = f"partition {topic}:{index}" if topic in broker.topics else f"a topic named {topic}"
        raise RefusedRequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {what}.")
    if replicas is None:
        raise RefusedRequestError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_brokers(broker, replicas)
    factor = len(broker.placements.find(broker.topics[topic], index).replicas)
    if not may_change_factor and len(replicas) != factor:
        raise RefusedRequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(replicas)}",
        )
    broker.placements.reassign(broker.topics[topic], index, replicas)
