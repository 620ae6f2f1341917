"""
DescribeCluster (60): versions 0-2. The cluster id and its brokers, one of which is the controller.

* v0: flexible from the start
* v1: endpoint type: brokers (1); controllers (2) are 114, anything else is 115
* v2: fenced brokers, if asked for: those that are down
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.authorized_operations import CLUSTER_OPERATIONS
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.nodes.node import Node

_BROKERS, _CONTROLLERS = 1, 2
_MISMATCH = (
    "The request was sent to an endpoint of type BROKER, "
    "but we wanted an endpoint of type CONTROLLER"
)
_FENCED_SINCE = 2


def handle(
    broker: Broker, client: Client, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe the cluster."""
    from kafka.protocol.admin.cluster import DescribeClusterResponse

    version = request.API_VERSION
    if request.endpoint_type != _BROKERS:
        is_known = request.endpoint_type == _CONTROLLERS
        message = _MISMATCH if is_known else f"Unsupported endpoint type {request.endpoint_type}"
        return DescribeClusterResponse(
            version=version,
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=message,
        )
    includes_fenced = version >= _FENCED_SINCE and request.include_fenced_brokers
    known = [node for node in broker.nodes.by_id.values() if node.is_registered]
    nodes = known if includes_fenced else broker.nodes.up
    fields: dict[str, Any] = {}
    if request.include_cluster_authorized_operations:
        fields["authorized_operations"] = set(CLUSTER_OPERATIONS)
    return DescribeClusterResponse(
        version=version,
        error_message=None,
        cluster_id=broker.cluster_id or "",
        controller_id=broker.nodes.controller_id,
        brokers=[_told(node, client, version) for node in nodes],
        **fields,
    )


def _told(node: Node, client: Client, version: int) -> Any:
    from kafka.protocol.admin.cluster import DescribeClusterResponse

    reached = node.listener_like(client.listener)
    fields: dict[str, Any] = {"is_fenced": not node.is_up} if version >= _FENCED_SINCE else {}
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id=node.node_id,
        host=reached.advertised_host,
        port=reached.advertised_port,
        rack=node.rack or None,
        **fields,
    )
