"""
ShareGroupHeartbeat (76): version 1. All that a member of a share group says to its coordinator.

* epoch 0 joins, -1 leaves; members make up their ids themselves, of 36 characters at most
* the answer tells the epoch, when to come again and, if it has changed, what may be read now
* 35 where the cluster has no share groups (``share.version``)
* 42 contradicts itself; 81 the group is full; 69 no such group, or one of another kind
* 25 no such member; 110 it must give up everything and join again
* partitions are assigned once their state has begun, which the first heartbeat brings about

Read and written by messages of our own: the library does not have these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.messages import HeartbeatAssignment
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.exchange import ShareHeartbeat, ShareHeartbeatAnswer
from logstore.compat.kafka.groups.share.messages import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from logstore.compat.kafka.groups.share.records import topic_partitions

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_MEMBER_ID_LENGTH_MAX = 36


def can_be_member_id(member_id: str) -> bool:
    """Tell whether a member can have that id."""
    # Java counts UTF-16 units.
    return 0 < len(member_id.encode("utf-16-le")) <= 2 * _MEMBER_ID_LENGTH_MAX


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Note that a member lives, and tell it what it may read."""
    asked = read_request(ShareGroupHeartbeatRequest, request)
    return answered(_response(_answer(broker, client, asked)), request)


def _answer(
    broker: Broker, client: Client, asked: ShareGroupHeartbeatRequest
) -> ShareHeartbeatAnswer:
    if not serves_share_groups(broker):
        return ShareHeartbeatAnswer(ErrorCode.UNSUPPORTED_VERSION)
    if not can_be_member_id(asked.member_id):
        return ShareHeartbeatAnswer(ErrorCode.INVALID_REQUEST)
    names = asked.subscribed_topic_names
    return broker.groups.shares.heartbeat(
        ShareHeartbeat(
            group_id=asked.group_id,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
            client_id=client.client_id,
            # Java prints an address as name/number, and the name of a peer is not looked up.
            client_host=f"/{client.host}",
            rack_id=asked.rack_id,
            subscribed_topic_names=None if names is None else frozenset(names),
        )
    )


def _response(answer: ShareHeartbeatAnswer) -> ShareGroupHeartbeatResponse:
    assignment = answer.assignment
    return ShareGroupHeartbeatResponse(
        error_code=answer.error_code,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None
        if assignment is None
        else HeartbeatAssignment(topic_partitions=topic_partitions(assignment)),
    )
