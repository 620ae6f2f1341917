"""
CreateAcls (30): versions 1-3.

* there is no authorizer that could enforce a rule: 54 for each one
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_29_describe_acls import NO_AUTHORIZER
from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import CreateAclsRequest, CreateAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client


def handle(broker: Broker, client: Client, request: CreateAclsRequest) -> CreateAclsResponse:
    """Refuse every rule."""
    from kafka.protocol.admin.acl import CreateAclsResponse

    del broker, client
    result_class = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(
        version=request.API_VERSION,
        results=[
            result_class(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.creations
        ],
    )
