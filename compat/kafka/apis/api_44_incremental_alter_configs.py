"""
IncrementalAlterConfigs (44): versions 0-1. Changes single settings of topics and of the broker.

* set, delete (back to the default), append to and subtract from lists
* a resource changes completely or not at all; one that comes twice is 42 both times
* topics: 40 for an unknown setting or a value out of range, 3 for an unknown topic; a change
  holds at once, for open segments too
* broker, by its number, or an empty name for every broker: what can be changed while it runs,
  until it stops; 42 for the rest, as in Kafka
* broker loggers: their levels
* groups: 40 for a setting out of the broker's bounds; subscriptions to clients' metrics
* v1: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.changes import Change, Resource, alter_all

if TYPE_CHECKING:
    from kafka.protocol.admin.configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(
    broker: Broker, client: Client, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change every resource that can be changed so."""
    from kafka.protocol.admin.configs import IncrementalAlterConfigsResponse

    node_id = broker.nodes.node_of(client.listener).node_id
    wanted = [
        (
            Resource(resource.resource_type, resource.resource_name),
            [
                Change(setting.name, setting.config_operation, setting.value)
                for setting in resource.configs
            ],
        )
        for resource in request.resources
    ]
    results = alter_all(
        broker, node_id, wanted, is_replacing=False, is_rehearsal=request.validate_only
    )
    result_class = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(
        version=request.API_VERSION, responses=[result_class(**fields) for fields in results]
    )
