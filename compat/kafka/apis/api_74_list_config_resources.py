"""
ListConfigResources (74): versions 0-1. What has settings that can be described.

* groups and subscriptions to clients' metrics that have settings of their own, topics, the broker
  and its loggers (under the broker's number)
* a type that Kafka does not know: 35
* v0: was ListClientMetricsResources, and lists only those
* v1: resource types; an empty list asks for all (KIP-1142)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.configs.resources import ResourceType
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.configs import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_LISTED = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle(
    broker: Broker, client: Client, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List the resources of the asked types."""
    from kafka.protocol.admin.configs import ListConfigResourcesResponse

    del client
    version = request.API_VERSION
    types: set[int] = set(request.resource_types if version >= 1 else [ResourceType.CLIENT_METRICS])
    if not types <= set(ResourceType):
        return ListConfigResourcesResponse(
            version=version, error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[]
        )
    return ListConfigResourcesResponse(
        version=version,
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(
                version=version, resource_name=name, resource_type=kind
            )
            for kind in _LISTED
            if not types or kind in types
            for name in _names(broker, kind)
        ],
    )


def _names(broker: Broker, kind: ResourceType) -> list[str]:
    if kind in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        return broker.store.metadata.resources_with_settings(kind)
    return list(broker.topics) if kind is ResourceType.TOPIC else list(map(str, broker.nodes.by_id))
