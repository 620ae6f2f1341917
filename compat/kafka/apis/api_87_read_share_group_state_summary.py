"""
ReadShareGroupStateSummary (87): versions 0-1. Where the states of share-partitions start.

* asked by group coordinators; here the one in this process asks without a request
* a state that has not begun starts at -1; 3 no such partition
* v1: how many records behind the start are done
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.messages import (
    PartitionSummary,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    StateToRead,
    TopicSummary,
)
from logstore.compat.kafka.share_state.partition_answers import ask_each
from logstore.compat.kafka.share_state.persister import SharePartitionKey

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return where states start."""
    del client
    asked = read_request(ReadShareGroupStateSummaryRequest, request)

    def read(key: SharePartitionKey, wanted: StateToRead) -> PartitionSummary:
        found = broker.share_state.read_summary(key, wanted.leader_epoch)
        if found.error_code is not ErrorCode.NONE:
            return PartitionSummary(
                partition=key.partition,
                error_code=found.error_code,
                error_message=found.error_message,
            )
        return PartitionSummary(
            partition=key.partition,
            error_code=ErrorCode.NONE,
            state_epoch=found.state_epoch,
            leader_epoch=found.leader_epoch,
            start_offset=found.start_offset,
            delivery_complete_count=found.delivery_complete_count,
        )

    results = ask_each(asked.group_id, asked.topics, read)
    topics = (TopicSummary(topic_id=topic_id, partitions=found) for topic_id, found in results)
    return answered(ReadShareGroupStateSummaryResponse(results=tuple(topics)), request)
