"""
FindCoordinator (10): versions 0-6.

* the coordinator of a key is who leads the partition that its state is in; nobody: 15
* whoever looks for a coordinator brings the topic into being that it keeps its state in; where the
  disk refuses that: COORDINATOR_NOT_AVAILABLE
* key type 0 group (the only one in v0), 1 transactional id, 2 share-partition, named as
  group:topic id:partition; a key that is none, and unknown types: INVALID_REQUEST
* v1: key type, throttle time, error message; v3: flexible; v4: several keys, an answer for each
* v5: TRANSACTION_ABORTABLE may be answered, which does not happen here; v6: share-partitions
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.topics.internal_partitions import internal_partition
from logstore.compat.kafka.topics.names import (
    GROUPS_TOPIC,
    SHARE_GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
)
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from kafka.protocol.metadata.find_coordinator import (
        FindCoordinatorRequest,
        FindCoordinatorResponse,
    )

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_log = logging.getLogger(__name__)

_FIRST_WITH_SEVERAL_KEYS = 4
_FIRST_WITH_SHARE_PARTITIONS = 6
_SHARE = 2
#: the topic of the coordinator, by key type
_TOPICS = {0: GROUPS_TOPIC, 1: TRANSACTIONS_TOPIC, _SHARE: SHARE_GROUPS_TOPIC}


def handle(
    broker: Broker, client: Client, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name the coordinator of every key."""
    from kafka.protocol.metadata.find_coordinator import FindCoordinatorResponse

    version = request.API_VERSION
    if version >= _FIRST_WITH_SEVERAL_KEYS:
        coordinators = [
            FindCoordinatorResponse.Coordinator(
                key=key, **_found(broker, client, request.key_type, key, version)
            )
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(version=version, coordinators=coordinators)
    found = _found(broker, client, request.key_type, request.key, version)
    # Kafka's habit: versions with a single key spell success out, later ones leave it empty.
    found["error_message"] = found["error_message"] or ErrorCode.NONE.name
    return FindCoordinatorResponse(version=version, **found)


def _found(broker: Broker, client: Client, key_type: int, key: str, version: int) -> dict[str, Any]:
    if key_type == _SHARE and (version < _FIRST_WITH_SHARE_PARTITIONS or not _is_partition(key)):
        code = ErrorCode.INVALID_REQUEST
        return _none(code, "" if version >= _FIRST_WITH_SEVERAL_KEYS else MESSAGES[code])
    if key_type not in _TOPICS:
        return _none(ErrorCode.INVALID_REQUEST, MESSAGES[ErrorCode.INVALID_REQUEST])
    try:
        internal_partition(broker, _TOPICS[key_type], key)
    except (LogStoreError, OSError) as error:
        _log.warning("%s has no coordinator: %s", key, error)
        return _none(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    node = broker.nodes.by_id.get(broker.placements.coordinator_of(_TOPICS[key_type], key))
    if node is None:
        return _none(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    reached = node.listener_like(client.listener)
    return {
        "error_code": ErrorCode.NONE,
        "error_message": "",
        "node_id": node.node_id,
        "host": reached.advertised_host,
        "port": reached.advertised_port,
    }


def _is_partition(key: str) -> bool:
    """Tell whether a key has a group, which may have colons in it, a topic's id and a number."""
    from logstore.compat.kafka.share_state.topic import is_coordinator_key

    return is_coordinator_key(key)


def _none(error: ErrorCode, message: str) -> dict[str, Any]:
    return {
        "error_code": error,
        "error_message": message,
        "node_id": -1,
        "host": "",
        "port": -1,
    }
