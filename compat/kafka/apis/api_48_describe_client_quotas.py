"""
DescribeClientQuotas (48): versions 0-1.

* there are no quotas, and none can be set: a well-formed question finds nothing
* a question that Kafka would not take is 42, an entity other than user, client-id and ip is 35
* v1: flexible
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from kafka.protocol.admin.client_quotas import (
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_ENTITY_TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def handle(
    broker: Broker, client: Client, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find no quota."""
    from kafka.protocol.admin.client_quotas import DescribeClientQuotasResponse

    del broker, client
    try:
        _check(request)
    except RefusedRequestError as refusal:
        return DescribeClientQuotasResponse(
            version=request.API_VERSION,
            error_code=refusal.code,
            error_message=refusal.message,
            entries=None,
        )
    return DescribeClientQuotasResponse(version=request.API_VERSION, entries=[])


def _check(request: DescribeClientQuotasRequest) -> None:
    counts = Counter(component.entity_type for component in request.components)
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _refused("an entity type must not be empty")
        if counts[kind] > 1:
            raise _refused(f"entity type {kind} comes {counts[kind]} times")
        if kind not in _ENTITY_TYPES:
            raise RefusedRequestError(
                ErrorCode.UNSUPPORTED_VERSION, f"there is no entity type {kind}"
            )
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise _refused(f"there is no match type {component.match_type}")
        if (component.match_type == _EXACT) != (match is not None):
            raise _refused(f"match type {component.match_type} does not go with {match!r}")
    if "ip" in counts and len(counts) > 1:
        raise _refused("an ip does not go with a user or a client-id")


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
