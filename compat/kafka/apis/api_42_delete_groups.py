"""
DeleteGroups (42): versions 0-2.

* removes groups without members, and their offsets
* a group that has members 68, one that is not there 69; a group named twice is answered once
* v2: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka.protocol.admin.groups import DeleteGroupsRequest, DeleteGroupsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete groups, each on its own."""
    from kafka.protocol.admin.groups import DeleteGroupsResponse

    return DeleteGroupsResponse(
        version=request.API_VERSION,
        results=[
            DeleteGroupsResponse.DeletableGroupResult(
                group_id=group_id, error_code=broker.groups.delete_group(group_id)
            )
            for group_id in dict.fromkeys(request.groups_names)
        ],
    )
