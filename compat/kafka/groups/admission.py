"""
Who may join a group, under which id, and whether that means a rebalance.

===========================  ======================================================================
who comes                    what happens
===========================  ======================================================================
nobody knows it              gets an id; must come back with it if its request is new enough
a new static member          gets an id and is in at once
a static member, restarted   takes over its old place; the old id is fenced
one that was given an id     is in
a member, again              preparing: waits; completing: told the generation if nothing changed;
                             stable: told too, unless it leads or has changed, then rebalance
===========================  ======================================================================

Source: ``GroupMetadataManager.classicGroupJoinToClassicGroup`` and what it calls.
"""

from __future__ import annotations

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import NO_MEMBER_ID, Join, Joined
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.waiting import Later


def admit(group: Group, join: Join, later: Later[Joined]) -> None:
    """Let a member join, or tell it why not; `later` is answered now or when the join ends."""
    if not _has_room(group, join.member_id):
        group.rebalance.remove(join.member_id)
        _refuse(group, later, NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif group.state is GroupState.DEAD:
        _refuse(group, later, join.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif not group.supports(join.protocol_type, [protocol.name for protocol in join.protocols]):
        _refuse(group, later, join.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif join.member_id == NO_MEMBER_ID:
        _admit_new(group, join, later)
    elif join.member_id in group.roster.pending_joins:
        _admit_expected(group, join, later)
    else:
        _admit_again(group, join, later)


def _has_room(group: Group, member_id: str) -> bool:
    size_max = group.surroundings.config.group_max_size
    roster = group.roster
    if group.state is GroupState.PREPARING_REBALANCE:
        # Those who wait are counted, not those who were there: if the setting has become smaller,
        # the last ones to come back stay outside.
        is_waiting = member_id in roster and roster[member_id].awaiting_join is not None
        return is_waiting or roster.awaiting_join_count < size_max
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member_id in roster or len(roster) < size_max
    return True


def _admit_new(group: Group, join: Join, later: Later[Joined]) -> None:
    if join.group_instance_id is not None:
        member_id = group.surroundings.new_member_id(join.group_instance_id)
        old_member_id = group.roster.member_id_of(join.group_instance_id)
        if old_member_id is None:
            _add(group, join, member_id, later)
        else:
            _replace(group, join, group.roster[old_member_id], member_id, later)
        return
    member_id = group.surroundings.new_member_id(join.client_id)
    if join.must_know_member_id:
        group.rebalance.expect_join(member_id, join.session_timeout_ms)
        _refuse(group, later, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    else:
        _add(group, join, member_id, later)


def _admit_expected(group: Group, join: Join, later: Later[Joined]) -> None:
    if join.group_instance_id is not None:
        # Only dynamic members are ever sent back for an id: this client mixes up two lives. Kafka
        # stumbles over it and answers so.
        _refuse(group, later, NO_MEMBER_ID, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    _add(group, join, join.member_id, later)


def _admit_again(group: Group, join: Join, later: Later[Joined]) -> None:
    error = group.roster.check(join.member_id, join.group_instance_id)
    if error is not ErrorCode.NONE:
        _refuse(group, later, join.member_id, error)
        return
    member = group.roster[join.member_id]
    has_changed = member.protocols != join.protocols
    # A leader that joins again asks for a new assignment: topics may have got more partitions.
    is_calling = group.state is GroupState.STABLE and group.roster.leader_id == member.member_id
    if group.state is GroupState.PREPARING_REBALANCE or has_changed or is_calling:
        _wait_for_next_generation(member, join, later)
        group.rebalance.start_or_complete(f"{member.member_id} joins again: {join.reason}")
    else:
        group.surroundings.answers.put(later, group.generation_for(member))


def _add(group: Group, join: Join, member_id: str, later: Later[Joined]) -> None:
    member = Member(
        member_id=member_id,
        group_instance_id=join.group_instance_id,
        client_id=join.client_id,
        client_host=join.client_host,
        session_timeout_ms=join.session_timeout_ms,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        protocols=join.protocols,
        is_new=True,
        awaiting_join=later,
    )
    if not len(group.roster):
        group.protocol_type = join.protocol_type
    group.rebalance.add(member)
    group.rebalance.start_or_complete(f"{member_id} joins: {join.reason}")


def _wait_for_next_generation(member: Member, join: Join, later: Later[Joined]) -> None:
    member.protocols = join.protocols
    member.rebalance_timeout_ms = join.rebalance_timeout_ms
    member.session_timeout_ms = join.session_timeout_ms
    member.awaiting_join = later


def _replace(
    group: Group, join: Join, member: Member, member_id: str, later: Later[Joined]
) -> None:
    """Give a restarted static member its place; rebalance only if the protocol must change."""
    before = attrs.evolve(member)
    old_leader_id = group.roster.leader_id
    group.rebalance.end_waiting(member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
    group.roster.rename(member, member_id)
    member.is_new = False
    group.rebalance.reset_session(member)
    _wait_for_next_generation(member, join, later)
    reason = f"{join.group_instance_id} is back as {member_id}: {join.reason}"
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be sharing out to the old id right now.
        group.rebalance.start(reason)
    elif group.state is not GroupState.STABLE or group.would_change_protocol():
        group.rebalance.start_or_complete(reason)
    else:
        member.awaiting_join = None
        _keep_place(group, join, member, before, old_leader_id, later)


def _keep_place(
    group: Group,
    join: Join,
    member: Member,
    before: Member,
    old_leader_id: str | None,
    later: Later[Joined],
) -> None:
    error = group.store({one.member_id: one.assignment for one in group.roster})
    if error is not ErrorCode.NONE:
        group.roster.rename(member, before.member_id)
        member.protocols = before.protocols
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.session_timeout_ms = before.session_timeout_ms
        group.rebalance.reset_session(member)
        _refuse(group, later, NO_MEMBER_ID, error)
        return
    generation = group.generation_for(member)
    if join.can_skip_assignment:
        is_leader = group.roster.leader_id == member.member_id
        generation = attrs.evolve(generation, can_skip_assignment=is_leader)
    else:
        # An older client that finds itself leading would share out anew, and nobody would ask
        # for its share; told the old id, it takes itself for a follower.
        generation = attrs.evolve(generation, leader_id=old_leader_id or NO_MEMBER_ID, members=())
    group.surroundings.answers.put(later, generation)


def _refuse(group: Group, later: Later[Joined], member_id: str, error: ErrorCode) -> None:
    group.surroundings.answers.put(later, Joined(error, member_id))
