"""
A classic group as the consumer group that it becomes.

Members keep their ids, what they say about themselves and what they have: it is at once what they
shall have, in an epoch that is the group's generation. Whoever waited for the next generation is
told to join again, also where it then turns out that the group cannot become one.

Source: ``GroupMetadataManager.convertToConsumerGroup``, ``ConsumerGroup.fromClassicGroup``.
"""

from __future__ import annotations

import uuid

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup, names_wanted
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.exchange import GroupProtocol
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.migration.embedded_protocol import (
    SchemaError,
    assignment_in,
    known_partitions,
    subscription_in,
)
from logstore.compat.kafka.groups.modern.cluster import Cluster, metadata_hash, shapes_of
from logstore.compat.kafka.groups.modern.group import TopicIdPartition
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.codec import MessageError
from logstore.segments.kafka.internal_topics.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
)

#: classic groups do not tell when their assignment was made
_TIMESTAMP_MS = 0


@attrs.frozen
class Upgrade:
    """The consumer group that a classic one becomes, and the records that it is made of."""

    group: ConsumerGroup
    records: list[GroupChange]


def upgraded(classic: Group, cluster: Cluster, config: GroupConfig) -> Upgrade:
    """
    Return the consumer group that a classic group with members becomes; it is not written yet.

    Nothing has changed so far but that nobody waits for the next generation any more.

    Raises:
        RefusedRequestError: 69 or -1, it cannot become one.

    """
    _check(classic, config)
    for one in classic.roster:
        classic.rebalance.end_waiting(one, ErrorCode.REBALANCE_IN_PROGRESS, one.member_id)
    members = _members(classic, cluster)
    changes = _records(classic, members, cluster)
    group = ConsumerGroup(classic.group_id)
    for change in changes:
        group.apply(change)
    return Upgrade(group, changes)


def classic_metadata(
    session_timeout_ms: int, protocols: tuple[GroupProtocol, ...]
) -> ClassicMemberMetadata:
    """Return what a consumer group keeps of what a member says in the classic protocol."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=tuple(
            ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
            for protocol in protocols
        ),
    )


def _check(classic: Group, config: GroupConfig) -> None:
    if not config.consumer_migration_policy.may_upgrade:
        raise _refused(classic, "online upgrade is disabled.")
    if not classic.is_of_consumers:
        raise _refused(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.roster) > config.consumer_group_max_size:
        raise _refused(classic, "the group size exceeds the consumer group maximum size.")


def _members(classic: Group, cluster: Cluster) -> list[ConsumerMember]:
    name = classic.protocol_name
    members: list[ConsumerMember] = []
    owned: set[TopicIdPartition] = set()
    for one in classic.roster.in_order():
        if name is None or name not in {protocol.name for protocol in one.protocols}:
            # The first generation has not begun, or one has joined since that cannot follow the
            # protocol of this one. Kafka stumbles over it.
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            member, partitions = _member(classic, one, name, cluster)
        except SchemaError as error:
            raise _refused(classic, "the embedded consumer protocol is malformed.") from error
        except MessageError as error:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        if owned & partitions:
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        owned |= partitions
        members.append(member)
    return members


def _member(
    classic: Group, one: Member, protocol_name: str, cluster: Cluster
) -> tuple[ConsumerMember, frozenset[TopicIdPartition]]:
    assignment = assignment_in(one.assignment)
    if assignment.user_data:
        raise _refused(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        )
    subscription = subscription_in(one.metadata_for(protocol_name))
    partitions = known_partitions(assignment.assigned_partitions, cluster)
    epoch = classic.generation_id
    assigned: dict[uuid.UUID, dict[int, int]] = {}
    for topic_id, index in sorted(partitions):
        assigned.setdefault(topic_id, {})[index] = epoch
    member = ConsumerMember(
        member_id=one.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=one.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned=assigned,
        classic=classic_metadata(one.session_timeout_ms, one.protocols),
    )
    return member, partitions


def _records(classic: Group, members: list[ConsumerMember], cluster: Cluster) -> list[GroupChange]:
    group_id, epoch = classic.group_id, classic.generation_id
    hashed = metadata_hash(shapes_of(cluster, names_wanted(members, {})))
    targets = [
        {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
        for member in members
    ]
    return [
        *(records.member_metadata(group_id, member) for member in members),
        records.group_epoch(group_id, epoch, hashed),
        *(
            records.target(group_id, member.member_id, target)
            for member, target in zip(members, targets, strict=True)
        ),
        records.KIND.assigned_in(group_id, epoch, _TIMESTAMP_MS),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def _refused(classic: Group, reason: str) -> RefusedRequestError:
    return RefusedRequestError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}",
    )
