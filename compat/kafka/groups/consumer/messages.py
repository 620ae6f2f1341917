"""
The messages of ConsumerGroupHeartbeat (68) and ConsumerGroupDescribe (69).

The library that has the other messages does not know these. Source: ``ConsumerGroup*.json``.
"""

from __future__ import annotations

import uuid
from typing import Annotated, TypeVar, cast

import attrs

from logstore.compat.connection import Chunk
from logstore.compat.kafka.authorized_operations import NOT_ASKED
from logstore.compat.kafka.framing import MalformedRequestError, framed
from logstore.compat.kafka.registry import RawRequest
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    encode_message,
)
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from logstore.segments.kafka.internal_topics.schema import Held, Int8, Int16, Int32, Message

MessageT = TypeVar("MessageT", bound=Message)


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatRequest(Message):
    """A member joins, lives or leaves; null is what has not changed."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_id: str
    member_id: str
    member_epoch: Int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, Held(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartition, ...] | None = None


@attrs.frozen(kw_only=True)
class HeartbeatAssignment(Message):
    """What a member may read."""

    topic_partitions: tuple[TopicPartition, ...]


@attrs.frozen(kw_only=True)
class ConsumerGroupHeartbeatResponse(Message):
    """Where a member stands."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    member_id: str | None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: HeartbeatAssignment | None


@attrs.frozen(kw_only=True)
class ConsumerGroupDescribeRequest(Message):
    """Which groups to describe."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    group_ids: tuple[str, ...]
    include_authorized_operations: Int8


@attrs.frozen(kw_only=True)
class DescribedPartitions(Message):
    """Partitions of one topic."""

    topic_id: uuid.UUID
    topic_name: str
    partitions: tuple[Int32, ...]


@attrs.frozen(kw_only=True)
class DescribedAssignment(Message):
    """What a member has, or shall have."""

    topic_partitions: tuple[DescribedPartitions, ...]


@attrs.frozen(kw_only=True)
class DescribedMember(Message):
    """A member; `member_type` is 0 for the classic protocol, 1 for that of KIP-848."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: Annotated[Int8, Held(1, is_ignorable=True)] = -1


@attrs.frozen(kw_only=True)
class DescribedGroup(Message):
    """A group with its members."""

    error_code: Int16
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: str
    members: tuple[DescribedMember, ...]
    authorized_operations: Int32 = NOT_ASKED


@attrs.frozen(kw_only=True)
class ConsumerGroupDescribeResponse(Message):
    """The groups in the order of the request."""

    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]


def read_request(kind: type[MessageT], request: RawRequest) -> MessageT:
    """
    Return a request as a message.

    Raises:
        MalformedRequestError: it cannot be read.

    """
    try:
        found = decode_message(kind, bytes(request.data), request.version, request.position)
        _check_text(attrs.astuple(found))
    except (MessageError, UnicodeEncodeError) as error:
        raise MalformedRequestError(f"{kind.__name__}: {error}") from error
    return found


def _check_text(value: object) -> None:
    """Refuse text that is no UTF-8: it has come as lone surrogates, which nobody could read."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, tuple):
        for part in cast("tuple[object, ...]", value):
            _check_text(part)


def answered(message: Message, request: RawRequest) -> list[Chunk]:
    """Return the frame that answers a request."""
    body = encode_message(message, request.version)
    return [framed(request.correlation_id, body, has_tags=request.is_flexible)]
