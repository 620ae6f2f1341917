"""
A consumer group as the classic group that it becomes.

Everyone who is left speaks the classic protocol. They keep their ids, what they say about
themselves and what they shall have; the group's epoch is the generation.

Source: ``GroupMetadataManager.convertToClassicGroup``, ``ClassicGroup.fromConsumerGroup``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.exchange import GroupProtocol
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.migration.embedded_protocol import SchemaError, assignment_for
from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.kafka.groups.subscription import CONSUMER_PROTOCOL_TYPE
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.refused_request import RefusedRequestError


def may_downgrade(left: Collection[ConsumerMember], config: GroupConfig) -> bool:
    """Tell whether a consumer group of these members becomes a classic one; an empty one stays."""
    return (
        config.consumer_migration_policy.may_downgrade
        and 0 < len(left) <= config.group_max_size
        and all(member.is_classic for member in left)
    )


def downgraded(
    group: ConsumerGroup,
    left: Iterable[ConsumerMember],
    cluster: Cluster,
    surroundings: Surroundings,
) -> Group:
    """
    Return the classic group that `left` are in from now on: stable. Sessions are not started yet.

    One of them may take the place of a static member of the group, and takes over its target.

    Raises:
        RefusedRequestError: 69 or -1, somebody cannot be told what it shall have.

    """
    classic = Group(group.group_id, surroundings)
    classic.generation_id = group.epoch
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    members = {one.member_id: one for one in left}
    in_order = [one.member_id for one in group.in_order() if one.member_id in members]
    for member_id in dict.fromkeys((*in_order, *members)):  # the first one leads
        classic.roster.add(_member(members[member_id]))
    if not classic.roster.supports_one_of(
        protocol.name for one in classic.roster for protocol in one.protocols
    ):
        raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    name = classic.protocol_name = classic.roster.choose_protocol()
    try:
        for member in classic.roster:
            target = group.target_of(members[member.member_id])
            member.assignment = assignment_for(target, member.metadata_for(name), cluster)
    except SchemaError as error:
        raise RefusedRequestError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot downgrade the classic group {group.group_id}: {error}.",
        ) from error
    classic.state = GroupState.STABLE
    classic.note_subscriptions()
    return classic


def _member(one: ConsumerMember) -> Member:
    assert one.classic is not None, f"{one.member_id} speaks the classic protocol"
    return Member(
        member_id=one.member_id,
        group_instance_id=one.instance_id,
        client_id=one.client_id,
        client_host=one.client_host,
        session_timeout_ms=one.classic.session_timeout_ms,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        protocols=tuple(
            GroupProtocol(protocol.name, protocol.metadata)
            for protocol in one.classic.supported_protocols
        ),
    )
