"""
ShareGroupDescribe (77): version 1. Share groups as they stand.

* each member with what it may read; topics that are gone are left out
* 35 as for ShareGroupHeartbeat
* 69, with a message, for groups that are not there or of another kind; 24 for an empty name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.groups.modern.describing import (
    described_assignment,
    described_groups,
    operations_for,
    refuse_unserved,
)
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order, names_in_order
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.group import ASSIGNOR
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


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return groups as they stand."""
    del client
    asked = read_request(ShareGroupDescribeRequest, request)

    def describe(group_id: str) -> DescribedGroup:
        if not serves_share_groups(broker):
            refuse_unserved()
        group = broker.groups.shares.described(group_id)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=ASSIGNOR,
            members=tuple(
                _member(broker, group.members[one])
                for one in members_in_timeline_order(group.members)
            ),
            authorized_operations=operations_for(asked),
        )

    groups = described_groups(asked, DescribedGroup, describe)
    return answered(ShareGroupDescribeResponse(groups=groups), request)


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
