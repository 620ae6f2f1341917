"""Guards of KIP-848 groups."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.authorized_operations import NOT_ASKED
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)
from logstore.compat.kafka.groups.modern.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.security.guards.own_messages import DescribeGuard, HeartbeatGuard


def _refused_heartbeat(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=None, member_id=None, member_epoch=0,
        heartbeat_interval_ms=0, assignment=None,
    )  # fmt: skip


def _subscribed(asked: ConsumerGroupHeartbeatRequest) -> tuple[str, ...]:
    return asked.subscribed_topic_names or ()


def _refused_group(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code, error_message=message, group_id=group_id, group_state="",
        group_epoch=0, assignment_epoch=0, assignor_name="", members=(),
        authorized_operations=NOT_ASKED,
    )  # fmt: skip


def _assigned(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for one in assignment.topic_partitions:
                yield one.topic_name


consumer_group_heartbeat = HeartbeatGuard(
    ConsumerGroupHeartbeatRequest, _refused_heartbeat, _subscribed, serves_consumer_groups
)
consumer_group_describe = DescribeGuard(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    _refused_group,
    _assigned,
    "The group has described topic(s) that the client is not authorized to describe.",
    serves_consumer_groups,
)
