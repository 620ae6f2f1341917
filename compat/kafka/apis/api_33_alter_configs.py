"""
AlterConfigs (33): versions 0-2. Replaces all settings of a topic or of the broker.

* what a resource had and the request does not name goes back to its default: deprecated since
  2.3 for that (KIP-339), see IncrementalAlterConfigs for the rules of both
* v2: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.changes import Change, Operation, Resource, alter_all

if TYPE_CHECKING:
    from kafka.protocol.admin.configs import AlterConfigsRequest, AlterConfigsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the settings of every resource that can have the new ones."""
    from kafka.protocol.admin.configs import AlterConfigsResponse

    node_id = broker.nodes.node_of(client.listener).node_id
    wanted = [
        (
            Resource(resource.resource_type, resource.resource_name),
            [Change(setting.name, Operation.SET, setting.value) for setting in resource.configs],
        )
        for resource in request.resources
    ]
    results = alter_all(
        broker, node_id, wanted, is_replacing=True, is_rehearsal=request.validate_only
    )
    result_class = AlterConfigsResponse.AlterConfigsResourceResponse
    return AlterConfigsResponse(
        version=request.API_VERSION, responses=[result_class(**fields) for fields in results]
    )
