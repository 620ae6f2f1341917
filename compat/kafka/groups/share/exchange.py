"""What members and administrators ask of share groups and are told, without a wire version."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.group import Target


class ShareHeartbeat(NamedTuple):
    """A member joins, lives, or leaves; None is what has not changed since the last one."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    subscribed_topic_names: frozenset[str] | None = None


class ShareHeartbeatAnswer(NamedTuple):
    """Where the member stands now; an `assignment` only if it must be told."""

    error_code: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Target | None = None


class PartitionStart(NamedTuple):
    """Where a group starts in a partition, and how many records it has not done yet."""

    partition: int
    start_offset: int = -1
    leader_epoch: int = 0
    lag: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class TopicStarts(NamedTuple):
    """Where a group starts in the partitions of a topic."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionStart, ...]


class PartitionAltered(NamedTuple):
    """How the change of one partition's start went."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class TopicAltered(NamedTuple):
    """How the change of a topic's starts went."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionAltered, ...]


class TopicDeleted(NamedTuple):
    """How the deletion of what is known of a topic went."""

    name: str
    topic_id: uuid.UUID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
