"""
WriteShareGroupState (85): versions 0-1. What has changed of what a share group has read.

* asked by leaders of partitions; here the one in this process asks without a request
* an epoch, of the leader or of the state, that is lower than the known one is refused: 74, 124
* 42 a state that has not begun; 3 no such partition
* v1: how many records behind the start are done
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.share_state.messages import StateToWrite, WriteShareGroupStateRequest
from logstore.compat.kafka.share_state.partition_answers import change_each
from logstore.compat.kafka.share_state.persister import Outcome, SharePartitionKey
from logstore.compat.kafka.share_state.records import batches_in

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Change states."""
    del client
    asked = read_request(WriteShareGroupStateRequest, request)

    def write(key: SharePartitionKey, wanted: StateToWrite) -> Outcome:
        return broker.share_state.write(
            key,
            state_epoch=wanted.state_epoch,
            leader_epoch=wanted.leader_epoch,
            start_offset=wanted.start_offset,
            delivery_complete_count=wanted.delivery_complete_count,
            state_batches=batches_in(wanted.state_batches),
        )

    return answered(change_each(asked.group_id, asked.topics, write), request)
