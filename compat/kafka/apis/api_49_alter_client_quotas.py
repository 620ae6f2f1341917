"""
AlterClientQuotas (49): versions 0-1.

* limits of users, client ids and both are in force at once; those of addresses, and
  ``request_percentage``, are kept
* an entity, limit or value that cannot be is 42, and why; the other entities change all the same;
  one that comes again is refused, and told in place of the first
* the parts of an entity are looked at, and told, in the order of Java's map
* v1: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.quotas.alteration import (
    Change,
    as_walked,
    named_twice,
    records_of,
)
from logstore.compat.kafka.refused_request import refusal_of
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.admin.client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.cluster_metadata.access_records import ClientQuotaRecord


def handle(
    broker: Broker, client: Client, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Change the limits of every entity that can have them, durably and at once."""
    from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse

    del client
    records: list[ClientQuotaRecord] = []
    results: dict[frozenset[tuple[str, str | None]], dict[str, Any]] = {}
    known = broker.store.metadata.image.client_quotas
    for entry in request.entries:
        named = as_walked([(part.entity_type, part.entity_name) for part in entry.entity])
        key = frozenset(named)
        changes = [Change(op.key, None if op.remove else op.value) for op in entry.ops]
        result: dict[str, Any] = {"error_code": ErrorCode.NONE, "error_message": None}
        try:
            if key in results:
                raise named_twice(named)
            records += records_of(named, changes, known)
        except LogStoreError as error:
            result = _refused(error)
        results[key] = {**result, "entity": named}
    if records and not request.validate_only:
        try:
            broker.change_client_quotas(records)
        except (LogStoreError, OSError) as error:
            results = {key: {**result, **_refused(error)} for key, result in results.items()}
    entry_class = AlterClientQuotasResponse.EntryData
    entries: list[Any] = []
    for result in results.values():
        entity = [
            entry_class.EntityData(entity_type=kind, entity_name=name)
            for kind, name in result.pop("entity")
        ]
        entries.append(entry_class(entity=entity, **result))
    return AlterClientQuotasResponse(version=request.API_VERSION, entries=entries)


def _refused(error: LogStoreError | OSError) -> dict[str, Any]:
    refusal = refusal_of(error, "changing client quotas")
    return {"error_code": refusal.code, "error_message": refusal.message}
