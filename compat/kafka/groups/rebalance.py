"""
How the generations of a group follow each other.

::

               first join                  all have joined, or time is up
    Empty -------------------> Preparing -----------------------------------> Completing
      ^                         |     ^                                        |      |
      '-- nobody has come back -'     |--- join, leave, lapse, late sync ------'      |
                                      '--- join, leave, lapse ----- Stable <----------'
                                                                     the leader shares out
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import (
    NO_MEMBER_ID,
    Joined,
    Left,
    MemberIdentity,
    Sync,
    Synced,
)
from logstore.compat.kafka.groups.member import Member
from logstore.compat.kafka.groups.states import GroupState
from logstore.compat.waiting import Later, Timer

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.group import Group

_LOG = logging.getLogger(__name__)


class Rebalance:
    """
    Moves one group from state to state: on requests of its members, and when time is up.

    The group is written to the log when its work is shared out and when it becomes empty.
    Source: the classic part of ``GroupMetadataManager``.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self._surroundings = group.surroundings
        #: somebody came during the first wait, which is therefore extended
        self._has_new_member = False
        self._join_timer: Timer | None = None
        self._sync_timer: Timer | None = None

    # what members ask

    def sync(self, sync: Sync, later: Later[Synced]) -> None:
        """Answer with the member's share, as soon as the leader has handed the shares in."""
        group = self.group
        error = self._sync_error(sync)
        if error is not ErrorCode.NONE:
            self._surroundings.answers.put(later, Synced(error))
            return
        member = group.roster[sync.member_id]
        group.roster.pending_syncs.discard(member.member_id)
        if not group.roster.pending_syncs:
            _cancel(self._sync_timer)
        if group.state is GroupState.STABLE:
            self._surroundings.answers.put(later, group.share_of(member))
            return
        member.awaiting_sync = later
        if group.roster.leader_id == member.member_id:
            self._share_out(sync.assignments)

    def heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """Note that a member is alive; tell it whether it must join again."""
        group = self.group
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.roster.check(member_id, group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self.reset_session(group.roster[member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def note_commit(self, member_id: str) -> None:
        """Take a commit as a sign of life, as Kafka does outside of a sync."""
        if self.group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self.reset_session(self.group.roster[member_id])

    def leave(self, identities: Sequence[MemberIdentity]) -> list[Left]:
        """Remove members, then rebalance once for all of them."""
        left = [Left(identity, self._leave(identity)) for identity in identities]
        has_changed = any(one.error_code is ErrorCode.NONE for one in left)
        if has_changed and self.group.state is not GroupState.EMPTY:
            self.start_or_complete("members have left")
        return left

    # what is done with members

    def add(self, member: Member) -> None:
        """Take a member in that waits for its first generation."""
        self.group.roster.add(member)
        if self.group.is_first_rebalance:
            self._has_new_member = True
        self.reset_session(member, self._surroundings.config.new_member_join_timeout_ms)

    def remove(self, member_id: str) -> None:
        """Take a member out and tell its waiting requests that it is not known any more."""
        member = self.group.roster.remove(member_id)
        if member is not None:
            self.end_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID)

    def end_waiting(self, member: Member, error: ErrorCode, told_member_id: str) -> None:
        """Answer whatever a member still waits for with an error."""
        if member.awaiting_join is not None:
            self._surroundings.answers.put(member.awaiting_join, Joined(error, told_member_id))
            member.awaiting_join = None
        if member.awaiting_sync is not None:
            self._surroundings.answers.put(member.awaiting_sync, Synced(error))
            member.awaiting_sync = None

    def expect_join(self, member_id: str, timeout_ms: int) -> None:
        """Keep an id for a new member that was told to come back with it."""
        self.group.roster.pending_joins[member_id] = self._surroundings.after(
            timeout_ms, lambda: self._end_pending(member_id)
        )

    def reset_session(self, member: Member, timeout_ms: int | None = None) -> None:
        """
        Expect the next sign of life within the session timeout from now.

        Signs of life are frequent, lapses are rare: a timer that is due before the session ends is
        left alone, and looks again when it fires.
        """
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.session_end_ms = self._surroundings.monotonic_ms() + delay_ms
        timer = member.session_timer
        if timer is None or not timer.is_pending or timer.due_ms > member.session_end_ms:
            _cancel(timer)
            self._watch(member, delay_ms)

    # the steps

    def start_sessions(self) -> None:
        """Expect a sign of life of every member from now on; called once after loading."""
        for member in self.group.roster:
            self.reset_session(member)
        if len(self.group.roster) > self._surroundings.config.group_max_size:
            self.start("there are more members than the setting allows now")

    def start_or_complete(self, reason: str) -> None:
        """Start a rebalance, or end the one that was only waiting for this."""
        if self.group.state is not GroupState.PREPARING_REBALANCE:
            self.start(reason)
        elif not self.group.is_first_rebalance:
            self._complete_if_nobody_is_missing()

    def start(self, reason: str) -> None:
        """Call everyone together; the first time, wait a little for others to show up."""
        group = self.group
        _LOG.info(
            "group %s: rebalance after generation %d: %s",
            group.group_id,
            group.generation_id,
            reason,
        )
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._tell_shares(ErrorCode.REBALANCE_IN_PROGRESS)
        group.roster.pending_syncs.clear()
        _cancel(self._sync_timer)
        group.move_to(GroupState.PREPARING_REBALANCE)
        if group.is_first_rebalance:
            delay_ms = self._surroundings.config.group_initial_rebalance_delay_ms
            self._wait_for_more(delay_ms, max(group.roster.rebalance_timeout_ms - delay_ms, 0))
        elif group.roster.has_all_joined:
            self._complete()
        else:
            self._complete_in(group.roster.rebalance_timeout_ms)

    def die(self, error: ErrorCode) -> None:
        """End for good: no timer fires any more, and whoever waits is told `error`."""
        roster = self.group.roster
        self.group.move_to(GroupState.DEAD)
        _cancel(self._join_timer)
        _cancel(self._sync_timer)
        for member_id in list(roster.pending_joins):
            roster.drop_pending(member_id)
        for member in roster:
            _cancel(member.session_timer)
            self.end_waiting(member, error, member.member_id)

    def _wait_for_more(self, delay_ms: int, rest_ms: int) -> None:
        if delay_ms == 0:
            self._complete()
            return
        self._join_timer = self._surroundings.after(
            delay_ms, lambda: self._end_first_wait(delay_ms, rest_ms)
        )

    def _end_first_wait(self, waited_ms: int, rest_ms: int) -> None:
        if not self._has_new_member or rest_ms == 0:
            self._complete()
            return
        self._has_new_member = False
        delay_ms = self._surroundings.config.group_initial_rebalance_delay_ms
        self._wait_for_more(min(delay_ms, rest_ms), max(rest_ms - waited_ms, 0))

    def _complete_in(self, delay_ms: int) -> None:
        _cancel(self._join_timer)
        self._join_timer = self._surroundings.after(delay_ms, self._complete)

    def _complete_if_nobody_is_missing(self) -> None:
        is_rebalancing = self.group.state is GroupState.PREPARING_REBALANCE
        if is_rebalancing and self.group.roster.has_all_joined:
            self._complete()

    def _complete(self) -> None:
        roster = self.group.roster
        _cancel(self._join_timer)
        self._has_new_member = False
        for member in roster:
            if member.awaiting_join is None and not member.is_static:
                self.remove(member.member_id)
        if not roster.elect_joined_leader() and len(roster):
            # Only static members are left, and none has come: they get time once more.
            self._complete_in(roster.rebalance_timeout_ms)
            return
        self.group.generation_id += 1
        if len(roster):
            self._start_generation()
        else:
            self._become_empty()

    def _start_generation(self) -> None:
        group = self.group
        group.protocol_name = group.roster.choose_protocol()
        group.note_subscriptions()
        group.move_to(GroupState.COMPLETING_REBALANCE)
        for member in group.roster:
            if member.awaiting_join is not None:
                generation = group.generation_for(member)
                self._surroundings.answers.put(member.awaiting_join, generation)
                member.awaiting_join = None
            member.is_new = False
            self.reset_session(member)
            group.roster.pending_syncs.add(member.member_id)
        if self._surroundings.gives_up_on_syncs:
            self._sync_timer = self._surroundings.after(
                group.roster.rebalance_timeout_ms, self._end_waiting_for_syncs
            )

    def _become_empty(self) -> None:
        group = self.group
        group.protocol_name = None
        group.note_subscriptions()
        group.move_to(GroupState.EMPTY)
        # If this cannot be written, a restart brings the last generation back for a session time.
        group.store({})

    def _end_waiting_for_syncs(self) -> None:
        late = sorted(self.group.roster.pending_syncs)
        if late:
            for member_id in late:
                self.remove(member_id)
            self.start(f"no sync came from {', '.join(late)}")

    def _share_out(self, assignments: Mapping[str, bytes]) -> None:
        group = self.group
        shares = {one.member_id: assignments.get(one.member_id, b"") for one in group.roster}
        error = group.store(shares)
        if error is not ErrorCode.NONE:
            self._tell_shares(error)
            self.start("the shares could not be stored")
            return
        for member in group.roster:
            member.assignment = shares[member.member_id]
        self._tell_shares(ErrorCode.NONE)
        group.move_to(GroupState.STABLE)

    def _tell_shares(self, error: ErrorCode) -> None:
        for member in self.group.roster:
            if error is not ErrorCode.NONE:
                member.assignment = b""
            if member.awaiting_sync is not None:
                answer = Synced(error) if error else self.group.share_of(member)
                self._surroundings.answers.put(member.awaiting_sync, answer)
                member.awaiting_sync = None
                # Its session may have run out while it waited, and was excused.
                self.reset_session(member)

    def _sync_error(self, sync: Sync) -> ErrorCode:
        group = self.group
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = group.roster.check(sync.member_id, sync.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if sync.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if sync.protocol_type not in (None, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if sync.protocol_name not in (None, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _leave(self, identity: MemberIdentity) -> ErrorCode:
        roster = self.group.roster
        member_id = identity.member_id
        if member_id == NO_MEMBER_ID:
            # An administrator knows the instance, not the id that it has at the moment.
            member_id = roster.member_id_of(identity.group_instance_id) or NO_MEMBER_ID
        if member_id not in roster.pending_joins:
            error = roster.check(member_id, identity.group_instance_id)
            if error is not ErrorCode.NONE:
                return error
        self.remove(member_id)
        return ErrorCode.NONE

    def _end_pending(self, member_id: str) -> None:
        self.remove(member_id)
        self._complete_if_nobody_is_missing()

    def _watch(self, member: Member, delay_ms: float) -> None:
        member.session_timer = self._surroundings.after(
            delay_ms, lambda: self._look_at_session(member)
        )

    def _look_at_session(self, member: Member) -> None:
        rest_ms = member.session_end_ms - self._surroundings.monotonic_ms()
        if rest_ms > 0:
            self._watch(member, rest_ms)
        elif not member.is_excused:
            self._end_session(member)

    def _end_session(self, member: Member) -> None:
        _LOG.info("group %s: no sign of life from %s", self.group.group_id, member.member_id)
        self.remove(member.member_id)
        if self.group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.start(f"the session of {member.member_id} has lapsed")
        else:
            self._complete_if_nobody_is_missing()


def _cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
