"""
DescribeGroups (15): versions 0-6.

* protocol and members' metadata are shown only while the group is stable
* a group that is not there is "Dead", without an error; from v6 on also 69 with a message
* v1: throttle time; v3: authorized operations (all that a group has; an authorizer says less)
* v4: group instance ids; v5: flexible; v6: error message
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.groups import DescribeGroupsRequest, DescribeGroupsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_GROUP_NOT_FOUND = 6


def handle(
    broker: Broker, client: Client, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Return groups as they stand."""
    from kafka.protocol.admin.groups import DescribeGroupsResponse

    return DescribeGroupsResponse(
        version=request.API_VERSION,
        groups=[_described(broker, group_id, request) for group_id in request.groups],
    )


def _described(
    broker: Broker, group_id: str, request: DescribeGroupsRequest
) -> DescribeGroupsResponse.DescribedGroup:
    from kafka.protocol.admin.groups import DescribeGroupsResponse

    group_class = DescribeGroupsResponse.DescribedGroup
    group = broker.groups.describe(group_id)
    error, message = group.error_code, None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        if request.API_VERSION < _FIRST_WITH_GROUP_NOT_FOUND:
            error = ErrorCode.NONE
        else:
            groups = broker.groups
            is_other = groups.others.has(group_id)
            what = "is not a classic group" if is_other else "not found"
            message = f"Group {group_id} {what}."
    is_known = error is ErrorCode.NONE
    fields: dict[str, Any] = {
        "error_code": error,
        "error_message": message,
        "group_id": group_id,
        "group_state": group.state.value,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": [
            group_class.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    }
    if request.include_authorized_operations and is_known:
        fields["authorized_operations"] = set(GROUP_OPERATIONS)
    return group_class(version=request.API_VERSION, **fields)
