"""
DescribeCluster (60): versions 0-2. The cluster id and its one broker, which is its controller.

* v0: flexible from the start
* v1: endpoint type: brokers (1); controllers (2) are 114, anything else is 115
* v2: fenced brokers: there are none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.authorized_operations import CLUSTER_OPERATIONS
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_BROKERS, _CONTROLLERS = 1, 2


def handle(
    broker: Broker, client: Client, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe a cluster of one."""
    from kafka.protocol.admin.cluster import DescribeClusterResponse

    version = request.API_VERSION
    if request.endpoint_type != _BROKERS:
        is_known = request.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            version=version,
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"this is a broker, not an endpoint of type {request.endpoint_type}",
        )
    node = DescribeClusterResponse.DescribeClusterBroker(
        broker_id=broker.node_id,
        host=client.listener.advertised_host,
        port=client.listener.advertised_port,
        rack=broker.config.broker_rack or None,
    )
    fields: dict[str, Any] = {}
    if request.include_cluster_authorized_operations:
        fields["authorized_operations"] = set(CLUSTER_OPERATIONS)
    return DescribeClusterResponse(
        version=version,
        error_message=None,
        cluster_id=broker.cluster_id or "",
        controller_id=broker.node_id,
        brokers=[node],
        **fields,
    )
