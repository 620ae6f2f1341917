"""
Who speaks: the member that a heartbeat comes from, a new one, or one that takes another's place.

============================  =====================================================================
who comes                     what happens
============================  =====================================================================
epoch 0, nobody knows it      is in, with nothing yet
epoch 0, a member             begins anew with what it has
its epoch                     goes on
the epoch before              goes on if it has nothing that it should not: an answer got lost
another epoch                 110: must give up everything and come back with epoch 0
epoch 0, an instance away     takes over its place under a new id
epoch 0, an instance here     111: the old one must leave or lapse first
an instance under another id  82
============================  =====================================================================

Source: ``getOrMaybeSubscribeDynamicConsumerGroupMember`` and its static twin.
"""

from __future__ import annotations

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.exchange import ConsumerHeartbeat
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.modern.member import JOINING, LEAVING_FOR_A_WHILE
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.refused_request import RefusedRequestError


@attrs.frozen
class Newcomer:
    """Who speaks; `records` put it in the place of `replaced`, if it takes one over."""

    member: ConsumerMember
    replaced: ConsumerMember | None = None
    records: tuple[GroupChange, ...] = ()


def member_of(group: ConsumerGroup, beat: ConsumerHeartbeat) -> Newcomer:
    """
    Return the member that a heartbeat comes from.

    Raises:
        RefusedRequestError: 25, 82, 110 or 111, with the reason.

    """
    is_joining = beat.member_epoch == JOINING
    if beat.instance_id is not None:
        return _static_member(group, beat) if not is_joining else _static_newcomer(group, beat)
    if is_joining and beat.member_id not in group.members:
        return Newcomer(ConsumerMember(beat.member_id))
    member = group.member(beat.member_id)
    _check_epoch(group, member, beat)
    return Newcomer(member)


def _static_newcomer(group: ConsumerGroup, beat: ConsumerHeartbeat) -> Newcomer:
    before = group.static_member(beat.instance_id)
    if before is None:
        member = group.members.get(beat.member_id)
        return Newcomer(ConsumerMember(beat.member_id) if member is None else member)
    if not before.is_classic and before.member_epoch != LEAVING_FOR_A_WHILE:
        raise RefusedRequestError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the "
            f"group because the instance id is owned by {before.member_id} member.",
        )
    return replacing(group, before, beat.member_id)


def replacing(group: ConsumerGroup, before: ConsumerMember, member_id: str) -> Newcomer:
    """Return a member under a new id in the place of an old one, with what that one had."""
    member = attrs.evolve(
        before, member_id=member_id, member_epoch=JOINING, previous_member_epoch=JOINING
    )
    group_id = group.group_id
    return Newcomer(
        member,
        before,
        (
            *records.KIND.no_member(group_id, before.member_id),
            records.member_metadata(group_id, member),
            records.target(group_id, member_id, group.target_of(before)),
            records.current_assignment(group_id, member),
        ),
    )


def _static_member(group: ConsumerGroup, beat: ConsumerHeartbeat) -> Newcomer:
    member = static_member(group, beat.instance_id, beat.member_id)
    _check_epoch(group, member, beat)
    return Newcomer(member)


def static_member(group: ConsumerGroup, instance_id: str | None, member_id: str) -> ConsumerMember:
    """
    Return the member that an instance is under its current id.

    Raises:
        RefusedRequestError: 25 or 82, with the reason.

    """
    member = group.static_member(instance_id)
    if member is None:
        raise RefusedRequestError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown."
        )
    if member.member_id != member_id:
        raise RefusedRequestError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_epoch(group: ConsumerGroup, member: ConsumerMember, beat: ConsumerHeartbeat) -> None:
    epoch = beat.member_epoch
    if epoch in (JOINING, member.member_epoch):
        return
    is_behind = epoch == member.previous_member_epoch < member.member_epoch
    if not (is_behind and _has_only_its_own(member, beat)):
        raise group.fenced(member, epoch)


def _has_only_its_own(member: ConsumerMember, beat: ConsumerHeartbeat) -> bool:
    if beat.owned is None:
        return False
    return all(index in member.assigned.get(topic_id, {}) for topic_id, index in beat.owned)
