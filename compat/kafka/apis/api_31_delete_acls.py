"""
DeleteAcls (31): versions 1-3.

* there is no authorizer, so there are no rules: 54 for each filter
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_29_describe_acls import NO_AUTHORIZER
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import DeleteAclsRequest, DeleteAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Refuse every filter."""
    from kafka.protocol.admin.acl import DeleteAclsResponse

    del broker, client
    result_class = DeleteAclsResponse.DeleteAclsFilterResult
    return DeleteAclsResponse(
        version=request.API_VERSION,
        filter_results=[
            result_class(
                error_code=ErrorCode.SECURITY_DISABLED,
                error_message=NO_AUTHORIZER,
                matching_acls=[],
            )
            for _ in request.filters
        ],
    )
