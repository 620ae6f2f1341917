"""
AddRaftVoter (80): versions 0-1. The only voter is the first node, and there can be no other.

* 35: the voters of a cluster whose ``kraft.version`` is 0 are those that it was made with
* 104 it is meant for another cluster; 42 it names no voter, or nowhere to find it
* v1: whether to wait until the others know of it

Source: ``KafkaRaftClient.handleAddVoterRequest``, ``AddVoterHandler``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.nodes.quorum_messages import AddRaftVoterRequest
from logstore.compat.kafka.nodes.voters import refused_change

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Say why there is no other voter."""
    del client
    return answered(refused_change(broker, read_request(AddRaftVoterRequest, request)), request)
