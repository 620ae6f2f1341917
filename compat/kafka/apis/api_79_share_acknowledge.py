"""
ShareAcknowledge (79): versions 1-2. What became of records, without asking for more.

* a request of its session's epochs: 122 no session, 123 another epoch, and epoch 0 is no epoch
* -1 closes the session, and gives back what the member still has
* answered partition by partition: 121 for what the member does not have, 42 for what contradicts
  itself, 3 for a partition that nobody has fetched here
* 35 where there are no share groups
* v2: renewed locks (KIP-1222), and how long a lock lasts

Read and written by messages of our own: the library does not have these.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledging import Acknowledged, acknowledge, anything
from logstore.compat.kafka.share_reads.fetch_reply import MOVED, leader_of
from logstore.compat.kafka.share_reads.messages import (
    AcknowledgedSharePartition,
    AcknowledgedShareTopic,
    Leader,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from logstore.compat.kafka.share_reads.request_check import member_of
from logstore.compat.kafka.share_reads.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    PartitionKey,
    SessionKey,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Note what became of records."""
    return serve(
        broker, client, request, read_request(ShareAcknowledgeRequest, request), may_read=anything
    )


def serve(
    broker: Broker,
    client: Client,
    request: RawRequest,
    asked: ShareAcknowledgeRequest,
    *,
    may_read: Callable[[bytes], bool],
) -> list[Chunk]:
    """Do the same for a client that may read some topics, by their ids, and perhaps not others."""
    try:
        member = member_of(broker, client, asked.group_id, asked.member_id)
        _go_on(broker, member, asked.share_session_epoch)
    except RefusedRequestError as error:
        return answered(ShareAcknowledgeResponse(error_code=error.code), request)
    open_partitions = broker.share_partitions
    outcome = acknowledge(
        broker,
        open_partitions,
        member,
        asked.topics,
        version=request.version,
        is_renewal=bool(asked.is_renew_ack),
        may_read=may_read,
    )
    if asked.share_session_epoch == FINAL_EPOCH:
        open_partitions.release_session(member)
    settings = open_partitions.settings(member.group_id)
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=settings.record_lock_duration_ms,
        responses=_by_topic(broker, outcome),
        node_endpoints=_endpoints(broker, client, outcome),
    )
    return answered(response, request)


def _go_on(broker: Broker, member: SessionKey, epoch: int) -> None:
    sessions = broker.share_partitions.sessions
    if epoch == INITIAL_EPOCH:
        raise RefusedRequestError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.get(member)
    else:
        sessions.go_on(member, epoch)


def _by_topic(
    broker: Broker, outcome: dict[PartitionKey, Acknowledged]
) -> tuple[AcknowledgedShareTopic, ...]:
    topics: dict[bytes, list[AcknowledgedSharePartition]] = {}
    for (topic_id, index), (code, message) in outcome.items():
        leader_id, leader_epoch = leader_of(broker, topic_id, index, code)
        topics.setdefault(topic_id, []).append(
            AcknowledgedSharePartition(
                partition_index=index,
                error_code=code,
                error_message=message,
                current_leader=Leader(leader_id=leader_id, leader_epoch=leader_epoch),
            )
        )
    return tuple(
        AcknowledgedShareTopic(topic_id=uuid.UUID(bytes=topic_id), partitions=tuple(partitions))
        for topic_id, partitions in topics.items()
    )


def _endpoints(
    broker: Broker, client: Client, outcome: dict[PartitionKey, Acknowledged]
) -> tuple[NodeEndpoint, ...]:
    """Tell where all nodes are, if someone must learn who leads."""
    if not any(acknowledged.error_code in MOVED for acknowledged in outcome.values()):
        return ()
    reached = ((node, node.listener_like(client.listener)) for node in broker.nodes.up)
    return tuple(
        NodeEndpoint(
            node_id=node.node_id,
            host=listener.advertised_host,
            port=listener.advertised_port,
            rack=node.rack or None,
        )
        for node, listener in reached
    )
