"""Guards of KIP-848 groups, whose messages are the house's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import RESPONSE_PREFIX
from logstore.compat.kafka.groups.consumer.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
    answered,
    read_request,
)
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_GROUP, _TOPIC = ResourceType.GROUP, ResourceType.TOPIC
_UNSEEN = "The group has described topic(s) that the client is not authorized to describe."


def heartbeat(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """To read the group, and to describe each topic that is subscribed to by name."""
    asked = read_request(ConsumerGroupHeartbeatRequest, raw)
    assert api.handle_raw is not None
    if serves_consumer_groups(broker):
        if not authorizer.allows(client, Operation.READ, _GROUP, asked.group_id):
            return answered(_refused_heartbeat(REFUSALS[_GROUP][0]), raw)
        names = asked.subscribed_topic_names or ()
        if not all(authorizer.allows(client, Operation.DESCRIBE, _TOPIC, name) for name in names):
            return answered(_refused_heartbeat(REFUSALS[_TOPIC][0]), raw)
    return api.handle_raw(broker, client, raw)


def _refused_heartbeat(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=None, member_id=None, member_epoch=0,
        heartbeat_interval_ms=0, assignment=None,
    )  # fmt: skip


def describe(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """To describe each group, and all topics that its members have."""
    assert api.handle_raw is not None
    if not serves_consumer_groups(broker):
        return api.handle_raw(broker, client, raw)
    asked = read_request(ConsumerGroupDescribeRequest, raw)
    allowed = [
        one for one in asked.group_ids
        if authorizer.allows(client, Operation.DESCRIBE, _GROUP, one)
    ]  # fmt: skip
    refused = [one for one in asked.group_ids if one not in allowed]
    body = encode_message(attrs.evolve(asked, group_ids=tuple(allowed)), raw.version)
    chunks = api.handle_raw(
        broker, client, raw._replace(data=memoryview(bytearray(body)), position=0)
    )
    assert isinstance(chunks, list), "it is answered at once"
    frame = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
    served = decode_message(
        ConsumerGroupDescribeResponse, frame, raw.version, RESPONSE_PREFIX.size + 1
    )
    described = [
        _seen(authorizer, client, one, has_operations=bool(asked.include_authorized_operations))
        for one in served.groups
    ]
    denied = [_refused(one, REFUSALS[_GROUP][0], None) for one in refused]
    return answered(ConsumerGroupDescribeResponse(groups=(*denied, *described)), raw)


def _seen(
    authorizer: Authorizer, client: Client, group: DescribedGroup, *, has_operations: bool
) -> DescribedGroup:
    """Return a group as the client may see it."""
    names = {
        one.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for one in assignment.topic_partitions
    }
    if not all(authorizer.allows(client, Operation.DESCRIBE, _TOPIC, name) for name in names):
        return _refused(group.group_id, REFUSALS[_TOPIC][0], _UNSEEN)
    if not has_operations or group.error_code:
        return group
    operations = frozenset(
        operation
        for operation in GROUP_OPERATIONS
        if authorizer.allows(client, Operation(operation), _GROUP, group.group_id, is_logged=False)
    )
    return attrs.evolve(group, authorized_operations=bit_field(operations))


def _refused(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code, error_message=message, group_id=group_id, group_state="",
        group_epoch=0, assignment_epoch=0, assignor_name="", members=(),
        authorized_operations=NOT_ASKED,
    )  # fmt: skip
