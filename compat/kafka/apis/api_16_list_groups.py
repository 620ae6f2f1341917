"""
ListGroups (16): versions 0-5.

* every group with its protocol type, empty for simple consumers
* filters compare without regard to case; an unknown state or type matches nothing
* v1: throttle time; v3: flexible; v4: states and a filter for them; v5: types and a filter
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.protocol.admin.groups import ListGroupsRequest, ListGroupsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return all groups that the filters let through."""
    from kafka.protocol.admin.groups import ListGroupsResponse

    error, groups = broker.groups.list_groups(
        request.states_filter or (), request.types_filter or ()
    )
    return ListGroupsResponse(
        version=request.API_VERSION,
        error_code=error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=group.group_type,
            )
            for group in groups
        ],
    )
