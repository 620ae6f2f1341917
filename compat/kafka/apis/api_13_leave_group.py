"""
LeaveGroup (13): versions 0-5.

* takes members out at once; the others are told to join again with their next heartbeat
* an empty member id with an instance id removes whoever has that instance id (administrators)
* unknown members 25, a replaced static member's old id 82, each for itself
* v0-2: one member, whose error is the response's; v1: throttle time; v3: several members
* v4: flexible; v5: reason
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.exchange import MemberIdentity

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import LeaveGroupRequest, LeaveGroupResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_SEVERAL_MEMBERS = 3


def handle(broker: Broker, client: Client, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members from a group."""
    from kafka.protocol.consumer.group import LeaveGroupResponse

    version = request.API_VERSION
    if version < _FIRST_WITH_SEVERAL_MEMBERS:
        error, left = broker.groups.leave(request.group_id, [MemberIdentity(request.member_id)])
        return LeaveGroupResponse(
            version=version, error_code=error or left[0].error_code, members=[]
        )
    identities = [
        MemberIdentity(member.member_id, member.group_instance_id) for member in request.members
    ]
    error, left = broker.groups.leave(request.group_id, identities)
    return LeaveGroupResponse(
        version=version,
        error_code=error,
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=one.identity.member_id,
                group_instance_id=one.identity.group_instance_id,
                error_code=one.error_code,
            )
            for one in left
        ],
    )
