"""
CreateAcls (30): versions 1-3.

* without an authorizer that could enforce a rule: 54 for each one
* 42, and why, for a rule that makes no sense; the others of the request are kept all the same
* a rule that is about any resource, pattern, operation or permission: all is -1, as in Kafka
* a rule that holds already is created once more without a word
* v1: pattern types; v2: flexible; v3: users as a resource type
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.apis.api_29_describe_acls import NO_AUTHORIZER, insist_on_known
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError, refusal_of
from logstore.compat.kafka.security.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.acl import CreateAclsRequest, CreateAclsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.security.authorizer import Authorizer


def handle(broker: Broker, client: Client, request: CreateAclsRequest) -> CreateAclsResponse:
    """Keep every rule that makes sense."""
    from kafka.protocol.admin.acl import CreateAclsResponse

    del client
    acls = [
        Acl(
            one.resource_type, one.resource_name, one.resource_pattern_type, one.principal,
            one.host, one.operation, one.permission_type,
        )
        for one in request.creations
    ]  # fmt: skip
    for acl in acls:
        insist_on_known(acl.numbers)
    if broker.authorizer is None:
        refusal = RefusedRequestError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        results = [_result(refusal) for _ in acls]
    elif any(_is_filter(acl) for acl in acls):  # Kafka stumbles over it, and creates nothing
        results = [_result(RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)) for _ in acls]
    else:
        results = _create(broker.authorizer, acls)
    if broker.emulation is not None:
        message = broker.emulation.message_of_success(request.API_KEY)
        for fields in results:
            if not fields["error_code"]:
                fields["error_message"] = message
    result_class = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(
        version=request.API_VERSION, results=[result_class(**fields) for fields in results]
    )


def _is_filter(acl: Acl) -> bool:
    """Tell whether a rule leaves open what it is about, as only filters may."""
    is_open = acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
    return is_open or (
        acl.resource_type == ResourceType.ANY
        or acl.operation == Operation.ANY
        or acl.permission == Permission.ANY
    )


def _create(authorizer: Authorizer, acls: list[Acl]) -> list[dict[str, Any]]:
    refusals = [_refusal_of(acl) for acl in acls]
    sound = [acl for acl, refusal in zip(acls, refusals, strict=True) if refusal is None]
    try:
        authorizer.create(sound)
    except (LogStoreError, OSError) as error:
        failure = refusal_of(error, "creating rules")
        refusals = [refusal or failure for refusal in refusals]
    return [_result(refusal) for refusal in refusals]


def _refusal_of(acl: Acl) -> RefusedRequestError | None:
    try:
        acl.check()
    except RefusedRequestError as refusal:
        return refusal
    return None


def _result(refusal: RefusedRequestError | None) -> dict[str, Any]:
    if refusal is None:
        return {"error_code": ErrorCode.NONE, "error_message": ""}
    return {"error_code": refusal.code, "error_message": refusal.message}
