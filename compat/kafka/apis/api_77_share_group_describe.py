"""
ShareGroupDescribe (77): version 1. Share groups as they stand.

* each member with what it may read; topics that are gone are left out
* 35 as for ShareGroupHeartbeat
* 69, with a message, for groups that are not there or of another kind; 24 for an empty name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.described_assignment import described_assignment
from logstore.compat.kafka.groups.consumer.hash_order import names_in_order
from logstore.compat.kafka.groups.consumer.messages import answered, read_request
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.exchange import DescribedShareGroup
from logstore.compat.kafka.groups.share.member import ShareMember
from logstore.compat.kafka.groups.share.messages import (
    DescribedGroup,
    DescribedMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_OPERATIONS = bit_field(GROUP_OPERATIONS)


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return groups as they stand."""
    del client
    asked = read_request(ShareGroupDescribeRequest, request)
    has_operations = bool(asked.include_authorized_operations)
    groups = tuple(
        _group(broker, _described(broker, group_id), has_operations=has_operations)
        for group_id in asked.group_ids
    )
    return answered(ShareGroupDescribeResponse(groups=groups), request)


def _described(broker: Broker, group_id: str) -> DescribedShareGroup:
    if not serves_share_groups(broker):
        return DescribedShareGroup(group_id, ErrorCode.UNSUPPORTED_VERSION)
    return broker.groups.shares.describe(group_id)


def _group(broker: Broker, group: DescribedShareGroup, *, has_operations: bool) -> DescribedGroup:
    is_there = group.error_code is ErrorCode.NONE
    return DescribedGroup(
        error_code=group.error_code,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.state.value if is_there else "",
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=tuple(_member(broker, one) for one in group.members),
        authorized_operations=_OPERATIONS if has_operations and is_there else NOT_ASKED,
    )


def _member(broker: Broker, member: ShareMember) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(names_in_order(member.subscribed_topic_names)),
        assignment=described_assignment(broker, member.assigned),
    )
