"""
JoinGroup (11): versions 0-9.

* answered when the next generation stands: after the initial delay of a new group, or when all
  members have come back, or when the time for that is up
* new dynamic members are sent back with an id of their own (79) from v4 on
* session timeout outside of the broker's limits: 26; group is full: 81; nothing in common with the
  other members: 23; a member id that is not known: 25; the older of two with one instance id: 82
* only the leader is told the members
* a group of KIP-848 with members answers at once and has no leader; it takes members of the
  protocol type "consumer", none where ``group.consumer.migration.policy`` is disabled (23)
* v0 has one timeout for session and rebalance; v1: rebalance timeout; v2: throttle time
* v5: group instance id (static members); v6: flexible; v7: protocol type, nullable protocol name
* v8: reason; v9: skip assignment, told to a static leader that came back
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from logstore.compat.kafka.groups.exchange import GroupProtocol, Join, Joined
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import JoinGroupRequest, JoinGroupResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_REBALANCE_TIMEOUT = 1
_FIRST_WITH_REQUIRED_MEMBER_ID = 4
_FIRST_WITH_NULLABLE_NAME = 7
_FIRST_WITH_SKIP_ASSIGNMENT = 9


def handle(broker: Broker, client: Client, request: JoinGroupRequest) -> Later[JoinGroupResponse]:
    """Let a member join; the answer comes with the generation."""
    version = request.API_VERSION
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if version < _FIRST_WITH_REBALANCE_TIMEOUT:
        rebalance_timeout_ms = request.session_timeout_ms
    join = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=tuple(
            GroupProtocol(protocol.name, cast("bytes", protocol.metadata))
            for protocol in request.protocols
        ),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        client_id=client.client_id,
        # Java prints an address as name/number, and the name of a peer is not looked up.
        client_host=f"/{client.host}",
        must_know_member_id=version >= _FIRST_WITH_REQUIRED_MEMBER_ID,
        can_skip_assignment=version >= _FIRST_WITH_SKIP_ASSIGNMENT,
        reason=request.reason or "not provided",
    )
    answer: Later[JoinGroupResponse] = Later()
    broker.groups.join(join).then(lambda joined: answer.answer(_response(joined, version)))
    return answer


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    from kafka.protocol.consumer.group import JoinGroupResponse

    name = joined.protocol_name or None  # one that a member has called nothing is none, as in Kafka
    return JoinGroupResponse(
        version=version,
        error_code=joined.error_code,
        generation_id=joined.generation_id,
        protocol_type=joined.protocol_type,
        protocol_name=name if version >= _FIRST_WITH_NULLABLE_NAME else name or "",
        leader=joined.leader_id,
        skip_assignment=joined.can_skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in joined.members
        ],
    )
