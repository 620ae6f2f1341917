"""
Heartbeat (12): versions 0-4.

* renews the member's session; REBALANCE_IN_PROGRESS (27) tells it to join again
* in a group of KIP-848, also one that must give partitions back or can have more of them now
* unknown group or member 25, wrong generation 22, replaced static member 82
* v1: throttle time; v3: group instance id; v4: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import HeartbeatRequest, HeartbeatResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: HeartbeatRequest) -> HeartbeatResponse:
    """Note that a member is alive."""
    from kafka.protocol.consumer.group import HeartbeatResponse

    error = broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(version=request.API_VERSION, error_code=error)
