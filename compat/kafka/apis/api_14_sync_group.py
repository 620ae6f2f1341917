"""
SyncGroup (14): versions 0-5.

* the leader brings everyone's assignment, the others wait for theirs; a stable group answers at
  once; members for whom the leader brought nothing get an empty assignment
* in a group of KIP-848 the coordinator has assigned, and answers at once with what is free
* a rebalance goes on 27, wrong generation 22, unknown member 25, replaced static member 82
* the group is written to ``__consumer_offsets`` before anyone is answered
* v1: throttle time; v3: group instance id; v4: flexible
* v5: protocol type and name, both required and checked (23)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import Sync, Synced
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import SyncGroupRequest, SyncGroupResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_PROTOCOL = 5


def handle(
    broker: Broker, client: Client, request: SyncGroupRequest
) -> SyncGroupResponse | Later[SyncGroupResponse]:
    """Hand a member its assignment, once there is one."""
    version = request.API_VERSION
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if version >= _FIRST_WITH_PROTOCOL and not has_protocol:
        return _response(Synced(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), version)
    sync = Sync(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={one.member_id: cast("bytes", one.assignment) for one in request.assignments},
    )
    answer: Later[SyncGroupResponse] = Later()
    broker.groups.sync(sync).then(lambda synced: answer.answer(_response(synced, version)))
    return answer


def _response(synced: Synced, version: int) -> SyncGroupResponse:
    from kafka.protocol.consumer.group import SyncGroupResponse

    return SyncGroupResponse(
        version=version,
        error_code=synced.error_code,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )
