"""
ConsumerGroupDescribe (69): versions 0-1. KIP-848 groups as they stand.

* each member with what it has, what it is to give back too, and what it shall have; topics that
  are gone are left out
* 35 as for ConsumerGroupHeartbeat
* 69, with a message, for groups that are not there or of another kind; 24 for an empty name
* v1: whether a member speaks the classic protocol (KIP-1099)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    DescribedMember,
)
from logstore.compat.kafka.groups.modern.broker_cluster import serves_consumer_groups
from logstore.compat.kafka.groups.modern.describing import (
    described_assignment,
    described_groups,
    operations_for,
    refuse_unserved,
)
from logstore.compat.kafka.groups.modern.group import NO_TARGET, Target
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_CLASSIC, _CONSUMER = 0, 1


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return groups as they stand."""
    del client
    asked = read_request(ConsumerGroupDescribeRequest, request)

    def describe(group_id: str) -> DescribedGroup:
        if not serves_consumer_groups(broker):
            refuse_unserved()
        group = broker.groups.consumers.described(group_id)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=broker.groups.consumers.assignor_of(group),
            members=tuple(
                _member(broker, group.members[one], group.targets.get(one, NO_TARGET))
                for one in members_in_timeline_order(group.members)
            ),
            authorized_operations=operations_for(asked),
        )

    groups = described_groups(asked, DescribedGroup, describe)
    return answered(ConsumerGroupDescribeResponse(groups=groups), request)


def _member(broker: Broker, member: ConsumerMember, target: Target) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=described_assignment(broker, member.has()),
        target_assignment=described_assignment(broker, target),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )
