"""
DescribeAcls (29): versions 1-3.

* there is no authorizer, so there is nothing to describe: 54, as Kafka answers then
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import DescribeAclsRequest, DescribeAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: said by all three ACL APIs
NO_AUTHORIZER = "this broker has no authorizer: everybody may do everything"


def handle(broker: Broker, client: Client, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Say that there are no access rules."""
    from kafka.protocol.admin.acl import DescribeAclsResponse

    del broker, client
    return DescribeAclsResponse(
        version=request.API_VERSION,
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message=NO_AUTHORIZER,
    )
