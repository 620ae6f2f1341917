"""
DeleteShareGroupState (86): version 0. What a share group has read is forgotten.

* asked by group coordinators; here the one in this process asks without a request
* there need not be a state; 3 no such partition
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.share_state.messages import DeleteShareGroupStateRequest, StateToDelete
from logstore.compat.kafka.share_state.partition_answers import change_each
from logstore.compat.kafka.share_state.persister import Outcome, SharePartitionKey

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Forget states."""
    asked = read_request(DeleteShareGroupStateRequest, request)
    del client

    def delete(key: SharePartitionKey, wanted: StateToDelete) -> Outcome:
        del wanted
        return broker.share_state.delete(key)

    return answered(change_each(asked.group_id, asked.topics, delete), request)
