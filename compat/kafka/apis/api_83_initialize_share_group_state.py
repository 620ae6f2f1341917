"""
InitializeShareGroupState (83): version 0. The state of share-partitions begins, or begins anew.

* asked by group coordinators; here the one in this process asks without a request
* a state that begins anew must have a state epoch that is not lower: 124
* 3 no such partition; an empty group id, or a topic without partitions, is answered with nothing
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.share_state.messages import (
    InitializeShareGroupStateRequest,
    StateToBegin,
)
from logstore.compat.kafka.share_state.partition_answers import change_each
from logstore.compat.kafka.share_state.persister import Outcome, SharePartitionKey

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Begin states."""
    del client
    asked = read_request(InitializeShareGroupStateRequest, request)

    def begin(key: SharePartitionKey, wanted: StateToBegin) -> Outcome:
        return broker.share_state.initialize(key, wanted.state_epoch, wanted.start_offset)

    found = change_each(asked.group_id, asked.topics, begin, passes_over=True)
    return answered(found, request)
