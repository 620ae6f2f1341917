"""
DescribeAcls (29): versions 1-3.

* without an authorizer there is nothing to describe: 54
* a filter of what nobody knows is hung up on, as by Kafka
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import MalformedRequestError
from logstore.compat.kafka.security.acl import Acl, AclFilter

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import DescribeAclsRequest, DescribeAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

#: said by all three ACL APIs
NO_AUTHORIZER = "No Authorizer is configured."


def handle(broker: Broker, client: Client, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the rules that are asked for, by what they are about."""
    from kafka.protocol.admin.acl import DescribeAclsResponse

    del client
    version = request.API_VERSION
    wanted = AclFilter(
        request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter,
        request.principal_filter, request.host_filter, request.operation, request.permission_type,
    )  # fmt: skip
    insist_on_known(wanted.numbers)
    if broker.authorizer is None:
        return DescribeAclsResponse(
            version=version,
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    resource_class = DescribeAclsResponse.DescribeAclsResource
    resources = [
        resource_class(
            version=version,
            resource_type=pattern[0],
            resource_name=pattern[1],
            pattern_type=pattern[2],
            acls=[
                resource_class.AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in acls
            ],
        )
        for pattern, acls in groupby(broker.authorizer.matching(wanted), _pattern)
    ]
    emulation = broker.emulation
    message = "" if emulation is None else emulation.message_of_success(request.API_KEY)
    return DescribeAclsResponse(version=version, error_message=message, resources=resources)


def _pattern(acl: Acl) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def insist_on_known(numbers: tuple[int, int, int, int]) -> None:
    """
    Hang up on who says that a kind, pattern, operation or permission is unknown (0), as Kafka does.

    It cannot be read, so it is not looked at further, whether there is an authorizer or not.

    Raises:
        MalformedRequestError: one is.

    """
    if 0 in numbers:
        raise MalformedRequestError("a rule or a filter has an element that is UNKNOWN")
