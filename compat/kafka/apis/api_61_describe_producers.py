"""
DescribeProducers (61): version 0. Which producers a partition remembers (KIP-664).

* the last sequence, when it came, and where an open transaction starts (-1: none is open)
* an unknown topic or partition: 3; no name that a topic can have: 17; a node without a replica: 6
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.topics.names import flaw_of

if TYPE_CHECKING:
    from kafka.protocol.admin.transactions import (
        DescribeProducersRequest,
        DescribeProducersResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.producer_state import ProducerEntry


def handle(
    broker: Broker, client: Client, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """List the producers of every asked partition."""
    from kafka.protocol.admin.transactions import DescribeProducersResponse

    topic_class = DescribeProducersResponse.TopicResponse
    return DescribeProducersResponse(
        version=request.API_VERSION,
        topics=[
            topic_class(
                name=asked.name,
                partitions=[
                    topic_class.PartitionResponse(**_partition(broker, client, asked.name, index))
                    for index in asked.partition_indexes
                ],
            )
            for asked in request.topics
        ],
    )


def _partition(broker: Broker, client: Client, topic: str, index: int) -> dict[str, Any]:
    from kafka.protocol.admin.transactions import DescribeProducersResponse

    state_class = DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState
    fields: dict[str, Any] = {"partition_index": index, "active_producers": []}
    partition = broker.partition(topic, index)
    if partition is not None and not broker.placements.holds(client.listener, partition):
        return {**fields, "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    if partition is not None:
        fields["active_producers"] = [
            state_class(**_producer(entry)) for entry in partition.known_producers()
        ]
        return fields
    if topic in broker.topics:
        return {**fields, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    flaw = flaw_of(topic)
    if flaw is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = MESSAGES[code]
    else:
        code, message = ErrorCode.INVALID_TOPIC_EXCEPTION, flaw
    return {**fields, "error_code": code, "error_message": message}


def _producer(entry: ProducerEntry) -> dict[str, int]:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp_ms,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": entry.transaction_first_offset,
    }
