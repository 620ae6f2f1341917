"""Who asks: what every request of a share group's member must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.features import SHARE_VERSION
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.share_sessions import SessionKey

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_MEMBER_ID_LENGTH_MAX = 36


def member_of(
    broker: Broker, client: Client, group_id: str | None, member_id: str | None
) -> SessionKey:
    """
    Return who asks.

    Raises:
        RefusedRequestError: 35, there are no share groups here; 42, a name cannot be.

    """
    if not broker.store.metadata.image.features.get(SHARE_VERSION, 0):
        raise RefusedRequestError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise RefusedRequestError(ErrorCode.INVALID_REQUEST)
    if not member_id or len(member_id) > _MEMBER_ID_LENGTH_MAX:
        raise RefusedRequestError(ErrorCode.INVALID_REQUEST)
    return SessionKey(group_id, member_id, broker.nodes.node_of(client.listener).node_id)
