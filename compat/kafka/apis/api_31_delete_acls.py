"""
DeleteAcls (31): versions 1-3.

* without an authorizer there are no rules: 54 for each filter
* each filter is answered with the rules that it found; one that nobody can follow is 42
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.apis.api_29_describe_acls import NO_AUTHORIZER, insist_on_known
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.security.acl import Acl, AclFilter
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import DeleteAclsRequest, DeleteAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.security.authorizer import Authorizer

#: what a filter found, or why it was not followed
_Found = list[Acl] | RefusedRequestError


def handle(broker: Broker, client: Client, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Let the rules hold no more that any filter finds."""
    from kafka.protocol.admin.acl import DeleteAclsResponse

    del client
    version = request.API_VERSION
    filters = [
        AclFilter(
            one.resource_type_filter, one.resource_name_filter, one.pattern_type_filter,
            one.principal_filter, one.host_filter, one.operation, one.permission_type,
        )
        for one in request.filters
    ]  # fmt: skip
    for wanted in filters:
        insist_on_known(wanted.numbers)
    found: list[_Found]
    if broker.authorizer is None:
        found = [RefusedRequestError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in filters]
    else:
        found = _delete(broker.authorizer, filters)
    return DeleteAclsResponse(
        version=version, filter_results=[_result(version, one) for one in found]
    )


def _delete(authorizer: Authorizer, filters: list[AclFilter]) -> list[_Found]:
    found: list[_Found] = []
    for wanted in filters:
        flaw = wanted.flaw
        if flaw is None:
            found.append(authorizer.matching(wanted))
        else:
            found.append(RefusedRequestError(ErrorCode.INVALID_REQUEST, flaw))
    meant = dict.fromkeys(acl for acls in found if isinstance(acls, list) for acl in acls)
    try:
        authorizer.delete(list(meant))
    except (LogStoreError, OSError) as error:
        return [refusal_of(error, "deleting rules") for _ in filters]
    return found


def _result(version: int, found: _Found) -> Any:
    from kafka.protocol.admin.acl import DeleteAclsResponse

    kind = DeleteAclsResponse.DeleteAclsFilterResult
    if isinstance(found, RefusedRequestError):
        return kind(
            version=version, error_code=found.code, error_message=found.message, matching_acls=[]
        )
    return kind(
        version=version,
        error_message=None,
        matching_acls=[
            kind.DeleteAclsMatchingAcl(
                version=version,
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in found
        ],
    )
