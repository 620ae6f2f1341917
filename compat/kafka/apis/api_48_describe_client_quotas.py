"""
DescribeClientQuotas (48): versions 0-1.

* all entities that have what is asked for; if it is strict, those that have nothing else
* a question that Kafka would not take is 42, an entity other than user, client-id and ip is 35
* entities, and limits of one, come in the order of Kafka's tables, which it copies at every change
* v1: flexible
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import copied_in_order, members_in_order
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.java_hash import java_hash

if TYPE_CHECKING:
    from kafka.protocol.admin.client_quotas import (
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.cluster_metadata.access_records import QuotaEntity

_ENTITY_TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _ANY = 0, 1, 2
#: what Kafka calls the match types when it refuses one
_NAMES = {
    _EXACT: "MATCH_TYPE_EXACT",
    _DEFAULT: "MATCH_TYPE_DEFAULT",
    _ANY: "MATCH_TYPE_SPECIFIED",
}


def handle(
    broker: Broker, client: Client, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find the limits of the entities that are meant."""
    from kafka.protocol.admin.client_quotas import DescribeClientQuotasResponse

    del client
    try:
        _check(request)
    except RefusedRequestError as refusal:
        return DescribeClientQuotasResponse(
            version=request.API_VERSION,
            error_code=refusal.code,
            error_message=refusal.message,
            entries=None,
        )
    entry_class = DescribeClientQuotasResponse.EntryData
    quotas = broker.store.metadata.image.client_quotas
    return DescribeClientQuotasResponse(
        version=request.API_VERSION,
        error_message="",
        entries=[
            entry_class(
                entity=[
                    entry_class.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity
                ],
                values=[
                    entry_class.ValueData(key=key, value=quotas[entity][key])
                    for key in _in_order(quotas[entity])
                ],
            )
            for entity in copied_in_order(quotas, _entity_hash)
            if _is_meant(request, dict(entity))
        ],
    )


def _in_order(keys: Iterable[str]) -> list[str]:
    """Return limits in the order that they have if all of an entity's were set at once."""
    return copied_in_order(members_in_order(keys), java_hash)


def _entity_hash(entity: QuotaEntity) -> int:
    """Return Java's hash of a ``ClientQuotaEntity``; a default has the hash of null."""
    parts = (java_hash(kind) ^ (0 if name is None else java_hash(name)) for kind, name in entity)
    return 31 + sum(parts)


def _is_meant(request: DescribeClientQuotasRequest, entity: Mapping[str, str | None]) -> bool:
    if request.strict and len(entity) != len(request.components):
        return False
    return all(
        component.entity_type in entity
        and (component.match_type == _ANY or entity[component.entity_type] == component.match)
        for component in request.components
    )


def _check(request: DescribeClientQuotasRequest) -> None:
    kinds: set[str] = set()
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _refused("Invalid empty entity type.")
        if kind in kinds:
            raise _refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _ENTITY_TYPES:
            raise RefusedRequestError(
                ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
            )
        name = _NAMES.get(component.match_type)
        if name is None:
            raise _refused(f"Unknown match type {component.match_type}")
        if component.match_type == _EXACT and match is None:
            raise _refused(f"Request specified {name}, but set match string to null.")
        if component.match_type != _EXACT and match is not None:
            raise _refused(f"Request specified {name}, but also specified a match string.")
        kinds.add(kind)
    if "ip" in kinds and len(kinds) > 1:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def _refused(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)
