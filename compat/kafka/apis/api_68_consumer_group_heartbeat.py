"""
ConsumerGroupHeartbeat (68): versions 0-1. All that a member of a KIP-848 group ever sends.

* epoch 0 joins, -1 leaves, -2 is a static member that will come back
* the answer tells the epoch, when to come again and, if it has changed, what may be read now
* 35 where a directory of before 4.0, or ``group.coordinator.rebalance.protocols``, has no groups
  of this kind
* 42 contradicts itself; 112 no such assignor; 81 the group is full
* 69 no such group, or a classic one that cannot become one of this kind; else it does, with all
  its members, and becomes classic again once only members of the classic protocol are left
* 25 no such member; 110 it must give up everything and join again; 111, 82 static members
* v1: patterns of topic names (128 for one that is none); members make up their ids themselves

Read and written by messages of our own: the library does not have these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.exchange import ConsumerHeartbeat, HeartbeatAnswer
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logstore.compat.kafka.groups.modern.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.groups.modern.messages import HeartbeatAssignment
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_FIRST_WITH_IDS_OF_CLIENTS = 1


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Note that a member lives, and tell it what it may read."""
    asked = read_request(ConsumerGroupHeartbeatRequest, request)
    if not serves_consumer_groups(broker):
        return answered(_response(HeartbeatAnswer(ErrorCode.UNSUPPORTED_VERSION)), request)
    names, partitions = asked.subscribed_topic_names, asked.topic_partitions
    beat = ConsumerHeartbeat(
        group_id=asked.group_id,
        member_id=asked.member_id,
        member_epoch=asked.member_epoch,
        client_id=client.client_id,
        # Java prints an address as name/number, and the name of a peer is not looked up.
        client_host=f"/{client.host}",
        instance_id=asked.instance_id,
        rack_id=asked.rack_id,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else frozenset(names),
        subscribed_topic_regex=asked.subscribed_topic_regex,
        server_assignor=asked.server_assignor,
        owned=None
        if partitions is None
        else frozenset((one.topic_id, index) for one in partitions for index in one.partitions),
        needs_member_id=request.version >= _FIRST_WITH_IDS_OF_CLIENTS,
        may_see=_may_see(broker, client),
    )
    return answered(_response(broker.groups.consumers.heartbeat(beat)), request)


def _may_see(broker: Broker, client: Client) -> Callable[[str], bool] | None:
    """Return what tells whether a client may see a topic; None if it may see all of them."""
    authorizer = broker.authorizer
    if authorizer is None:
        return None

    from logstore.compat.kafka.security.acl import Operation, ResourceType

    return lambda name: authorizer.allows(
        client, Operation.DESCRIBE, ResourceType.TOPIC, name, is_logged=False
    )


def _response(answer: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if answer.assignment is not None:
        assignment = HeartbeatAssignment(
            topic_partitions=tuple(
                TopicPartition(topic_id=topic_id, partitions=tuple(sorted(indexes)))
                for topic_id, indexes in answer.assignment.items()
            )
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=answer.error_code,
        error_message=answer.error_message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )
