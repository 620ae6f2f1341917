"""
UnregisterBroker (64): version 0. A node that is gone is not told as a fenced one any more.

* 102 there is no such node, or it is not registered; 42 it is the only one that is up
* one that is up goes: nobody gets in by its port any more
* it is registered again as soon as it starts

Source: ``ReplicationControlManager.unregisterBroker``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.quorum_messages import OutcomeResponse, UnregisterBrokerRequest

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Forget a node."""
    del client
    node_id = read_request(UnregisterBrokerRequest, request).broker_id
    nodes = broker.nodes
    node = nodes.by_id.get(node_id)
    if node is None or not node.is_registered:
        text = f"Broker ID {node_id} is not currently registered"
        refused = OutcomeResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=text)
        return answered(refused, request)
    if nodes.ids_up == {node_id}:
        text = f"Broker ID {node_id} is the only one that is up"
        refused = OutcomeResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
        return answered(refused, request)
    nodes.unregister(node_id)
    return answered(OutcomeResponse(error_code=ErrorCode.NONE, error_message=""), request)
