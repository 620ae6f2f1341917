"""Guards of share groups (KIP-932): members' heartbeats, and groups described."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.apis.api_76_share_group_heartbeat import can_be_member_id
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.messages import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from logstore.compat.kafka.security.guards.own_messages import DescribeGuard, HeartbeatGuard


def _refused_heartbeat(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=code, error_message=None, member_id=None, member_epoch=0,
        heartbeat_interval_ms=0, assignment=None,
    )  # fmt: skip


def _subscribed(asked: ShareGroupHeartbeatRequest) -> tuple[str, ...]:
    if not can_be_member_id(asked.member_id):
        return ()  # the handler's to refuse
    return asked.subscribed_topic_names or ()


def _refused_group(group_id: str, code: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code, error_message=message, group_id=group_id, group_state="",
        group_epoch=0, assignment_epoch=0, assignor_name="", members=(),
    )  # fmt: skip


def _assigned(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for one in member.assignment.topic_partitions:
            yield one.topic_name


share_group_heartbeat = HeartbeatGuard(
    ShareGroupHeartbeatRequest, _refused_heartbeat, _subscribed, serves_share_groups
)
share_group_describe = DescribeGuard(
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    _refused_group,
    _assigned,
    "The group has described topic(s) that the client is not authorized to describe.",
    serves_share_groups,
)
