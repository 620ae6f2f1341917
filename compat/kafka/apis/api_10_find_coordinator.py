"""
FindCoordinator (10): versions 0-6.

* one broker is the coordinator of everything: every group and every transactional id lives here
* key type 0 group (the only one in v0), 1 transactional id, 2 share group; share groups are not
  served and unknown types do not exist: INVALID_REQUEST
* v1: key type, throttle time, error message; v3: flexible; v4: several keys, an answer for each
* v5: TRANSACTION_ABORTABLE may be answered, which does not happen here; v6: share groups
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka.protocol.metadata.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_SEVERAL_KEYS = 4
_SERVED_KEY_TYPES = (0, 1)


def handle(
    broker: Broker, client: Client, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name this broker as the coordinator of all keys."""
    from kafka.protocol.metadata.find_coordinator import FindCoordinatorResponse

    version = request.API_VERSION
    found = _found(broker, request.key_type)
    if version >= _FIRST_WITH_SEVERAL_KEYS:
        coordinators = [
            FindCoordinatorResponse.Coordinator(key=key, **found)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(version=version, coordinators=coordinators)
    # Kafka's habit: versions with a single key spell success out, later ones leave it empty.
    found["error_message"] = found["error_message"] or ErrorCode.NONE.name
    return FindCoordinatorResponse(version=version, **found)


def _found(broker: Broker, key_type: int) -> dict[str, Any]:
    if key_type in _SERVED_KEY_TYPES:
        return {
            "error_code": ErrorCode.NONE,
            "error_message": "",
            "node_id": broker.node_id,
            "host": broker.advertised_host,
            "port": broker.advertised_port,
        }
    return {
        "error_code": ErrorCode.INVALID_REQUEST,
        "error_message": f"There is no coordinator for key type {key_type} here.",
        "node_id": -1,
        "host": "",
        "port": -1,
    }
