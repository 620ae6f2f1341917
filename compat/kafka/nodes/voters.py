"""
Why the voters of the quorum do not change: with ``kraft.version`` 0 they are given at the start.

Source: ``KafkaRaftClient``, ``AddVoterHandler``, ``RemoveVoterHandler``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.nodes.quorum_messages import (
    AddRaftVoterRequest,
    OutcomeResponse,
    RemoveRaftVoterRequest,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_NO_LISTENER = (
    "Add voter request didn't include the endpoint (Endpoints(endpoints={%s})) for the default "
    "listener ListenerName(%s)"
)


def refused_change(
    broker: Broker, asked: AddRaftVoterRequest | RemoveRaftVoterRequest
) -> OutcomeResponse:
    """Return why a voter is not added or removed."""
    is_addition = isinstance(asked, AddRaftVoterRequest)
    cluster_id = broker.cluster_id
    if asked.cluster_id not in (None, cluster_id):
        text = f'The given id "{asked.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        return OutcomeResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message=text)
    if asked.voter_id < 0 or not asked.voter_directory_id.int:
        what = "Add" if is_addition else "Remove"
        text = f"{what} voter request didn't include a valid voter"
        return OutcomeResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    if isinstance(asked, AddRaftVoterRequest):
        name = _controller_listener(broker)
        if all(one.name.upper() != name for one in asked.listeners):
            found = ", ".join(
                f"ListenerName({one.name})={one.host}/<unresolved>:{one.port}"
                for one in asked.listeners
            )
            text = _NO_LISTENER % (found, name)
            return OutcomeResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    what = "adding" if is_addition else "removing"
    text = f"Cluster doesn't support {what} voter because the kraft.version feature is 0"
    return OutcomeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=text)


def _controller_listener(broker: Broker) -> str:
    names = broker.config.given.text("controller.listener.names") or ""
    return names.partition(",")[0].strip().upper()
