"""
ReadShareGroupState (84): version 0. What a share group has read of partitions.

* asked by leaders of partitions; here the one in this process asks without a request
* a leader epoch that is higher than the known one is kept, one that is lower is refused: 74
* 42 a state that has not begun; 3 no such partition
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.messages import (
    PartitionState,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    StateToRead,
    TopicState,
)
from logstore.compat.kafka.share_state.partition_answers import ask_each
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.compat.kafka.share_state.records import stored_batches

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return states."""
    del client
    asked = read_request(ReadShareGroupStateRequest, request)

    def read(key: SharePartitionKey, wanted: StateToRead) -> PartitionState:
        found = broker.share_state.read(key, wanted.leader_epoch)
        if found.error_code is not ErrorCode.NONE:
            return PartitionState(
                partition=key.partition,
                error_code=found.error_code,
                error_message=found.error_message,
            )
        return PartitionState(
            partition=key.partition,
            error_code=ErrorCode.NONE,
            state_epoch=found.state_epoch,
            start_offset=found.start_offset,
            state_batches=stored_batches(found.state_batches),
        )

    results = ask_each(asked.group_id, asked.topics, read)
    topics = (TopicState(topic_id=topic_id, partitions=found) for topic_id, found in results)
    return answered(ReadShareGroupStateResponse(results=tuple(topics)), request)
