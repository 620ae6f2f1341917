"""How generations follow each other: waits, sessions, sharing out, and what goes to the log."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import Joined, MemberIdentity, Synced
from logstore.compat.kafka.groups.offsets_log import decode_group_metadata_value
from logstore.compat.kafka.groups.states import GroupState
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    DELAY_MS,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Rehearsal,
    answer_to,
)


def test_the_first_join_waits_for_company() -> None:
    """A new group waits for the initial delay, and so gets all early members into generation 1."""
    stage = Rehearsal()
    first = stage.join()
    stage.wait(DELAY_MS - 1)
    assert not first.done
    assert stage.state() is GroupState.PREPARING_REBALANCE
    stage.wait(1)
    joined = answer_to(first)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.leader_id == joined.member_id
    assert stage.state() is GroupState.COMPLETING_REBALANCE


def test_every_newcomer_extends_the_first_wait() -> None:
    """Each initial delay in which somebody came is followed by another one."""
    stage = Rehearsal()
    joins = [stage.join()]
    for _ in range(3):
        stage.wait(DELAY_MS - 1)
        joins.append(stage.join())
        stage.wait(1)
    assert not any(join.done for join in joins)
    stage.wait(DELAY_MS)
    assert [answer_to(join).generation_id for join in joins] == [1, 1, 1, 1]


def test_the_first_wait_ends_with_the_rebalance_timeout() -> None:
    """However many come, the first join is over after the rebalance timeout of the first one."""
    stage = Rehearsal()
    first = stage.join(rebalance_timeout_ms=2 * DELAY_MS + 500)
    for _ in range(3):
        stage.wait(2_000)
        stage.join(rebalance_timeout_ms=2 * DELAY_MS + 500)
    assert not first.done
    stage.wait(500)
    assert answer_to(first).generation_id == 1


def test_without_a_delay_the_first_join_is_answered_at_once() -> None:
    """A delay of 0, which tests want, costs not even a timer."""
    stage = Rehearsal(group_initial_rebalance_delay_ms=0)
    assert answer_to(stage.join()).generation_id == 1


def test_only_the_leader_sees_the_members() -> None:
    """The leader gets everyone's metadata in the chosen protocol, the others an empty list."""
    stage = Rehearsal()
    joins = [stage.join(names=("range", "sticky")), stage.join(names=("sticky", "range"))]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    assert {member.member_id for member in leader.members} == {
        leader.member_id,
        follower.member_id,
    }
    assert follower.members == ()
    assert follower.leader_id == leader.member_id


def test_a_follower_waits_for_the_leaders_shares() -> None:
    """Syncs of followers are answered when the leader's has come, each with its own share."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    waiting = stage.sync(follower)
    assert not waiting.done
    own = stage.sync(leader, {leader.member_id: b"L", follower.member_id: b"F"})
    assert answer_to(own).assignment == b"L"
    share = answer_to(waiting)
    assert (share.error_code, share.assignment) == (ErrorCode.NONE, b"F")
    assert (share.protocol_type, share.protocol_name) == ("consumer", "range")
    assert stage.state() is GroupState.STABLE


def test_a_member_that_the_leader_forgot_gets_an_empty_share() -> None:
    """No share is not an error: such a member has nothing to do in this generation."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    stage.sync(leader, {leader.member_id: b"L"})
    assert answer_to(stage.sync(follower)).assignment == b""


def test_a_stable_group_repeats_its_shares() -> None:
    """A sync in a stable group, for instance after a lost answer, is answered at once."""
    stage = Rehearsal()
    member = stable_leader(stage)
    assert answer_to(stage.sync(member)).assignment == member.member_id.encode()


def stable_leader(stage: Rehearsal) -> Joined:
    """Bring a group of one to stability and return its member."""
    return stage.stable(1)[0]


def test_a_newcomer_calls_everyone_together() -> None:
    """A join in a stable group starts a rebalance; heartbeats tell the others to join again."""
    stage = Rehearsal()
    first, second = stage.stable()
    newcomer = stage.join()
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    again = stage.join(first.member_id)
    assert not newcomer.done
    last = stage.join(second.member_id)
    generations = [answer_to(join).generation_id for join in (newcomer, again, last)]
    assert generations == [2, 2, 2]


def test_whoever_does_not_come_back_is_left_behind() -> None:
    """Dynamic members have the longest rebalance timeout of all to rejoin; then they are out."""
    stage = Rehearsal()
    first, second = stage.stable()
    stage.join()
    again = stage.join(first.member_id)
    for _ in range(int(REBALANCE_MS / SESSION_MS) * 2):
        stage.wait(SESSION_MS / 2 - 1)
        stage.heartbeat(second)
    assert not again.done
    stage.wait(SESSION_MS)
    assert answer_to(again).generation_id == 2
    assert stage.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(stage.group.roster) == 2


def test_the_leadership_passes_on_when_the_leader_stays_away() -> None:
    """If the leader does not rejoin in time, one that did leads the next generation."""
    stage = Rehearsal()
    leader, follower = stage.stable()
    rejoined = stage.join(follower.member_id, topics=("t", "u"))
    for _ in range(int(REBALANCE_MS / SESSION_MS) * 2):
        assert not rejoined.done
        assert stage.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
        stage.wait(SESSION_MS / 2)
    assert answer_to(rejoined).leader_id == follower.member_id
    assert stage.heartbeat(leader) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_loses_its_session() -> None:
    """No sign of life for the session timeout removes a member and starts a rebalance."""
    stage = Rehearsal()
    first, second = stage.stable()
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(first) is ErrorCode.NONE
    stage.wait(1)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_group_is_empty_when_the_last_session_is_gone() -> None:
    """An empty group has a generation more, no protocol and no leader, and says so in the log."""
    stage = Rehearsal()
    stage.stable()
    stage.wait(SESSION_MS)
    assert (stage.state(), stage.group.generation_id) == (GroupState.EMPTY, 2)
    kept = decode_group_metadata_value(stage.log.records[-1][1] or b"")
    assert (kept.generation_id, kept.members) == (2, ())
    assert (kept.protocol_type, kept.protocol_name, kept.leader_id) == ("consumer", None, None)


def test_waiting_members_need_no_heartbeat() -> None:
    """A member that waits for the others' join keeps its place however long that takes."""
    stage = Rehearsal()
    first, second = stage.stable()
    waiting = stage.join(first.member_id)
    for _ in range(8):
        stage.wait(SESSION_MS * 0.7)
        assert stage.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not waiting.done
    assert len(stage.group.roster) == 2


def test_a_newcomer_does_not_wait_for_ever() -> None:
    """A new member whose first join does not end within five minutes is told to start over."""
    stage = Rehearsal()
    (first,) = stage.stable(1, rebalance_timeout_ms=600_000)
    newcomer = stage.join()
    for _ in range(60):
        stage.wait(4_999)
        assert stage.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not newcomer.done
    stage.wait(1_000)
    answer = answer_to(newcomer)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_an_id_that_is_not_used_holds_the_join_up_for_a_session_only() -> None:
    """The join waits for members that were sent back for an id, but not beyond their session."""
    stage = Rehearsal()
    (first,) = stage.stable(1)
    pending = answer_to(stage.join(must_know_member_id=True))
    assert pending.error_code is ErrorCode.MEMBER_ID_REQUIRED
    rejoined = stage.join(first.member_id)
    assert not rejoined.done
    stage.wait(SESSION_MS - 1)
    assert not rejoined.done
    stage.wait(1)
    assert answer_to(rejoined).generation_id == 2
    assert answer_to(stage.join(pending.member_id)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_never_sync_are_dropped() -> None:
    """Who has joined but not synced within the rebalance timeout is removed; the others rejoin."""
    stage = Rehearsal()
    joins = [stage.join(session_timeout_ms=1_800_000) for _ in range(2)]
    stage.wait(COMPANY_MS)
    leader, late = (answer_to(join) for join in joins)
    stage.sync(leader, {leader.member_id: b"L"})
    assert stage.state() is GroupState.STABLE
    stage.wait(REBALANCE_MS)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(late) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_sync_late_where_nobody_is_given_up() -> None:
    """As before 2.8: only the session says how long a member that has joined may wait."""
    stage = Rehearsal()
    stage.groups.surroundings.gives_up_on_syncs = False
    joined = stage.join(session_timeout_ms=1_800_000)
    stage.wait(COMPANY_MS)
    leader = answer_to(joined)
    stage.wait(REBALANCE_MS)
    synced = answer_to(stage.sync(leader, {leader.member_id: b"L"}))
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"L")


def test_a_join_during_the_sync_starts_over() -> None:
    """Followers that wait for shares are sent into the next rebalance when somebody comes."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    waiting = stage.sync(follower)
    stage.join()
    assert answer_to(waiting).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    late = stage.sync(leader, {leader.member_id: b"L"})
    assert answer_to(late).error_code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leave_ends_the_wait_for_the_one_who_left() -> None:
    """A rebalance that waits only for a member that leaves is over with its leave."""
    stage = Rehearsal()
    first, second = stage.stable()
    rejoined = stage.join(first.member_id)
    assert [one.error_code for one in stage.leave(second.member_id)] == [ErrorCode.NONE]
    assert answer_to(rejoined).generation_id == 2


def test_one_leave_of_several_makes_one_rebalance() -> None:
    """All members of a leave request are removed before the rebalance; errors are told each."""
    stage = Rehearsal()
    first, second, third = stage.stable(3)
    left = stage.leave(first.member_id, "nobody", second.member_id)
    assert [one.error_code for one in left] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert stage.group.generation_id == 1
    assert answer_to(stage.join(third.member_id)).generation_id == 2


def test_the_last_one_out_leaves_an_empty_group() -> None:
    """When the last member leaves, the group is empty at once."""
    stage = Rehearsal()
    member = stable_leader(stage)
    stage.leave(member.member_id)
    assert stage.state() is GroupState.EMPTY
    assert stage.heartbeat(member) is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_ends_a_waiting_join() -> None:
    """A member that leaves from elsewhere while its join waits is told that it is not known."""
    stage = Rehearsal()
    first, second = stage.stable()
    waiting = stage.join(first.member_id)
    stage.leave(first.member_id)
    assert answer_to(waiting).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_ends_a_waiting_sync() -> None:
    """A follower that an administrator removes while it waits for its share is told so."""
    stage = Rehearsal()
    joins = [stage.join(instance="a"), stage.join(instance="b")]
    stage.wait(COMPANY_MS)
    follower = answer_to(joins[1])
    waiting = stage.sync(follower)
    stage.groups.leave(GROUP, [MemberIdentity("", "b")])
    assert answer_to(waiting).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unused_id_can_be_given_back() -> None:
    """Leaving with an id that was handed out but never used is fine."""
    stage = Rehearsal()
    pending = answer_to(stage.join(must_know_member_id=True))
    assert stage.leave(pending.member_id)[0].error_code is ErrorCode.NONE
    assert stage.state() is GroupState.EMPTY
    assert answer_to(stage.join(pending.member_id)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_shares_are_in_the_log_before_anyone_has_them() -> None:
    """If the shares cannot be written nobody gets one, and the members start over."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    waiting = stage.sync(follower)
    stage.log.is_full = True
    refused = stage.sync(leader, {leader.member_id: b"L", follower.member_id: b"F"})
    assert answer_to(refused).error_code is ErrorCode.NOT_COORDINATOR
    assert answer_to(waiting) == Synced(ErrorCode.NOT_COORDINATOR)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    stage.log.is_full = False
    again = [stage.join(one.member_id) for one in (leader, follower)]
    assert [answer_to(join).generation_id for join in again] == [2, 2]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (GroupState.STABLE, ErrorCode.NONE),
        (GroupState.COMPLETING_REBALANCE, ErrorCode.NONE),
        (GroupState.PREPARING_REBALANCE, ErrorCode.REBALANCE_IN_PROGRESS),
        (GroupState.DEAD, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_heartbeats_by_state(state: GroupState, expected: ErrorCode) -> None:
    """What a member of the current generation hears depends on the state alone."""
    stage = Rehearsal()
    member = stable_leader(stage)
    stage.group.state = state
    assert stage.heartbeat(member) is expected
