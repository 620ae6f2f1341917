"""Who may join, under which id, and what it means for the group."""

from __future__ import annotations

import re
from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import Joined, MemberIdentity
from logstore.compat.kafka.groups.offsets_log import decode_group_metadata_value
from logstore.compat.kafka.groups.states import GroupState
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    GROUP,
    SESSION_MS,
    Rehearsal,
    answer_to,
)

UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def stable_static(stage: Rehearsal, *instances: str, **changes: Any) -> list[Joined]:
    """Bring a new group of static members to stability; the first one leads."""
    joins = [stage.join(instance=instance, **changes) for instance in instances]
    stage.wait(COMPANY_MS)
    members = [answer_to(join) for join in joins]
    shares = {member.member_id: member.member_id.encode() for member in members}
    for number, member in enumerate(members):
        stage.sync(member, {} if number else shares)
    assert stage.state() is GroupState.STABLE
    return members


# ids


def test_a_newcomer_is_sent_back_with_an_id_of_its_own() -> None:
    """Since JoinGroup 4 a new member must come back with the id ``<client>-<uuid>`` it is given."""
    stage = Rehearsal()
    told = answer_to(stage.join(must_know_member_id=True))
    assert told.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert re.fullmatch(f"client-{UUID4}", told.member_id)
    assert (told.generation_id, told.leader_id, told.members) == (-1, "", ())
    assert stage.state() is GroupState.EMPTY
    joined = stage.join(told.member_id)
    stage.wait(COMPANY_MS)
    assert answer_to(joined).member_id == told.member_id


def test_older_requests_are_in_at_once() -> None:
    """Before JoinGroup 4 the id comes with the generation."""
    stage = Rehearsal()
    join = stage.join(must_know_member_id=False)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    stage.wait(COMPANY_MS)
    assert re.fullmatch(f"client-{UUID4}", answer_to(join).member_id)


def test_a_static_member_is_in_at_once() -> None:
    """A static member is told the id ``<instance>-<uuid>`` with its generation."""
    stage = Rehearsal()
    join = stage.join(instance="rack-7", must_know_member_id=True)
    stage.wait(COMPANY_MS)
    assert re.fullmatch(f"rack-7-{UUID4}", answer_to(join).member_id)


def test_ids_differ() -> None:
    """No two members get the same id."""
    stage = Rehearsal()
    ids = {answer_to(stage.join(must_know_member_id=True)).member_id for _ in range(50)}
    assert len(ids) == 50


def test_an_expected_id_cannot_become_static() -> None:
    """An id that a dynamic member was given does not open the door for an instance id."""
    stage = Rehearsal()
    told = answer_to(stage.join(must_know_member_id=True))
    answer = answer_to(stage.join(told.member_id, instance="i"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")


# refusals


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "client-1"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"session_timeout_ms": 6_000}, None),
        ({"session_timeout_ms": 1_800_000}, None),
    ],
)
def test_refusals_of_a_new_group(changes: dict[str, Any], expected: ErrorCode | None) -> None:
    """What is wrong with a join in itself is told at once; at the limits it is still right."""
    join = Rehearsal().join(**changes)
    if expected is None:
        assert not join.done
    else:
        answer = answer_to(join)
        assert answer.error_code is expected
        assert answer.member_id == changes.get("member_id", "")
        assert answer.generation_id == -1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "client-1"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "client-1", "instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"names": ("other", "range")}, None),
    ],
)
def test_refusals_of_a_stable_group(changes: dict[str, Any], expected: ErrorCode | None) -> None:
    """A member must fit to those who are there, and be known if it says so."""
    stage = Rehearsal()
    stage.stable()
    join = stage.join(**changes)
    if expected is None:
        assert not join.done
    else:
        assert answer_to(join).error_code is expected
        assert stage.state() is GroupState.STABLE


def test_a_full_group_takes_nobody_else() -> None:
    """Newcomers to a group of the largest size are refused, its members are not."""
    stage = Rehearsal(group_max_size=2)
    first, second = stage.stable()
    assert answer_to(stage.join()).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    again = stage.join(first.member_id)
    stage.join(second.member_id)
    assert answer_to(again).error_code is ErrorCode.NONE


def test_a_group_that_has_become_too_large_shrinks_by_the_last_to_rejoin() -> None:
    """While members come together, those who wait are counted: the last one stays outside."""
    stage = Rehearsal()
    members = stage.stable(3)
    stage.settings["group_max_size"] = 2
    stage.restart()
    assert stage.state() is GroupState.PREPARING_REBALANCE
    joins = [stage.join(member.member_id) for member in members]
    answer = answer_to(joins[2])
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    stage.wait(SESSION_MS * 6)
    assert [answer_to(join).generation_id for join in joins[:2]] == [2, 2]


def test_a_group_that_cannot_be_written_is_not_created() -> None:
    """A new group is in the log before it is there; a full disk is told as NOT_COORDINATOR."""
    stage = Rehearsal()
    stage.log.is_full = True
    assert answer_to(stage.join()).error_code is ErrorCode.NOT_COORDINATOR
    assert stage.groups.groups == {}


def test_a_new_group_is_written_empty() -> None:
    """The first record of a group has generation 0 and nobody in it."""
    stage = Rehearsal()
    stage.join()
    ((_, value),) = stage.log.records
    kept = decode_group_metadata_value(value or b"")
    assert (kept.generation_id, kept.protocol_type, kept.members) == (0, "", ())
    assert kept.state_since_ms == stage.clock.wall_ms()


# protocols


@pytest.mark.parametrize(
    ("votes", "chosen"),
    [
        ([("a", "b"), ("b", "a"), ("b", "a")], "b"),
        ([("a", "b"), ("b",)], "b"),
        ([("x", "a", "b"), ("y", "b", "a"), ("b", "a")], "b"),
        ([("a", "b"), ("b", "a")], "a"),
        ([("b", "a"), ("a", "b")], "a"),
        ([("range", "sticky"), ("sticky", "range")], "sticky"),
        ([("roundrobin", "range"), ("range", "roundrobin")], "range"),
    ],
)
def test_the_protocol_is_what_most_like_of_what_all_can(
    votes: list[tuple[str, ...]], chosen: str
) -> None:
    """Each member votes for its favourite among the common ones; Java's map breaks a tie."""
    stage = Rehearsal()
    joins = [stage.join(names=names) for names in votes]
    stage.wait(COMPANY_MS)
    assert {answer_to(join).protocol_name for join in joins} == {chosen}


# members that join again


def test_a_repeated_join_after_a_lost_answer_is_told_the_generation() -> None:
    """Between join and sync an unchanged member gets the same generation, the leader its list."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    leader, follower = (answer_to(join) for join in joins)
    assert answer_to(stage.join(leader.member_id)) == leader
    assert answer_to(stage.join(follower.member_id)) == follower
    assert stage.state() is GroupState.COMPLETING_REBALANCE


@pytest.mark.parametrize(
    ("who", "changes", "rebalances"),
    [
        (0, {}, True),
        (1, {}, False),
        (1, {"topics": ("t", "u")}, True),
        (1, {"names": ("range", "sticky")}, True),
    ],
)
def test_joining_a_stable_group_again(who: int, changes: dict[str, Any], rebalances: bool) -> None:
    """A leader's join, or a follower's with news, starts a rebalance; else nothing happens."""
    stage = Rehearsal()
    members = stage.stable()
    join = stage.join(members[who].member_id, **changes)
    if rebalances:
        assert not join.done
        assert stage.state() is GroupState.PREPARING_REBALANCE
    else:
        assert answer_to(join) == members[who]
        assert stage.state() is GroupState.STABLE


# static members


def test_a_restarted_static_follower_takes_its_place_without_a_rebalance() -> None:
    """It gets a new id, its old share and no rebalance; the log knows the new id."""
    stage = Rehearsal()
    _, follower = stable_static(stage, "a", "b")
    back = answer_to(stage.join(instance="b"))
    assert back.error_code is ErrorCode.NONE
    assert (back.generation_id, back.can_skip_assignment) == (1, False)
    assert back.member_id != follower.member_id
    assert answer_to(stage.sync(back)).assignment == follower.member_id.encode()
    assert stage.state() is GroupState.STABLE
    kept = decode_group_metadata_value(stage.log.records[-1][1] or b"")
    assert back.member_id in {member.member_id for member in kept.members}
    assert follower.member_id not in {member.member_id for member in kept.members}


def test_a_restarted_static_leader_is_told_to_skip_the_assignment() -> None:
    """Since JoinGroup 9 it learns that it leads, sees the members, and shares nothing out."""
    stage = Rehearsal()
    leader, _ = stable_static(stage, "a", "b")
    back = answer_to(stage.join(instance="a"))
    assert back.leader_id == back.member_id != leader.member_id
    assert back.can_skip_assignment
    assert len(back.members) == 2
    assert answer_to(stage.sync(back)).assignment == leader.member_id.encode()


def test_an_older_static_leader_is_not_told_that_it_leads() -> None:
    """Before JoinGroup 9 it hears its old id as the leader's, or it would share out alone."""
    stage = Rehearsal()
    leader, _ = stable_static(stage, "a", "b")
    back = answer_to(stage.join(instance="a", can_skip_assignment=False))
    assert (back.leader_id, back.members) == (leader.member_id, ())
    assert not back.can_skip_assignment
    assert stage.group.roster.leader_id == back.member_id


def test_the_replaced_id_is_fenced() -> None:
    """Whoever still uses the old id of an instance hears that it has been replaced."""
    stage = Rehearsal()
    old, _ = stable_static(stage, "a", "b")
    stage.join(instance="a")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat(old, "a") is fenced
    assert answer_to(stage.sync(old, group_instance_id="a")).error_code is fenced
    assert answer_to(stage.join(old.member_id, instance="a")).error_code is fenced
    assert stage.commit(member_id=old.member_id, group_instance_id="a", generation_id=1) == {fenced}
    left = stage.groups.leave(GROUP, [MemberIdentity(old.member_id, "a")])[1]
    assert [one.error_code for one in left] == [fenced]


def test_the_replaced_ones_waiting_requests_are_fenced() -> None:
    """A second start of an instance ends the join that the first one waits for."""
    stage = Rehearsal()
    first = stage.join(instance="a")
    second = stage.join(instance="a")
    answer = answer_to(first)
    assert answer.error_code is ErrorCode.FENCED_INSTANCE_ID
    stage.wait(COMPANY_MS)
    assert answer_to(second).generation_id == 1
    assert len(stage.group.roster) == 1


def test_a_static_member_with_another_favourite_makes_a_rebalance() -> None:
    """If its return changes the protocol of the group, its old place is of no use."""
    stage = Rehearsal()
    names = ("a", "b")
    joins = [stage.join(instance=one, names=names) for one in ("x", "y")]
    stage.wait(COMPANY_MS)
    leader, _ = (answer_to(join) for join in joins)
    stage.sync(leader, {})
    join = stage.join(instance="y", names=("b",))
    assert not join.done
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_a_static_member_that_returns_during_the_sync_makes_a_rebalance() -> None:
    """The leader may be sharing out to the old id, so everyone starts over."""
    stage = Rehearsal()
    joins = [stage.join(instance=one) for one in ("x", "y")]
    stage.wait(COMPANY_MS)
    leader, _ = (answer_to(join) for join in joins)
    back = stage.join(instance="y")
    late = stage.sync(leader, {})
    assert answer_to(late).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    stage.join(leader.member_id, instance="x")
    assert answer_to(back).generation_id == 2


def test_static_members_may_miss_a_rebalance() -> None:
    """A static member that does not rejoin in time is kept until its session is over."""
    stage = Rehearsal()
    leader, late = stable_static(stage, "a", "b", rebalance_timeout_ms=7_000)
    rejoined = stage.join(leader.member_id, instance="a", rebalance_timeout_ms=7_000)
    stage.wait(6_999)
    assert not rejoined.done
    stage.wait(1)
    assert answer_to(rejoined).generation_id == 2
    assert late.member_id in stage.group.roster
    assert stage.heartbeat(late, "b") is ErrorCode.ILLEGAL_GENERATION
    back = answer_to(stage.join(late.member_id, instance="b", rebalance_timeout_ms=7_000))
    assert back.generation_id == 2


def test_a_static_leader_that_misses_a_rebalance_loses_the_lead() -> None:
    """Its place is kept, but one that is there must share out."""
    stage = Rehearsal()
    leader, follower = stable_static(stage, "a", "b", rebalance_timeout_ms=7_000)
    rejoined = stage.join(
        follower.member_id, instance="b", topics=("u",), rebalance_timeout_ms=7_000
    )
    stage.wait(7_000)
    answer = answer_to(rejoined)
    assert answer.leader_id == follower.member_id
    assert {one.member_id for one in answer.members} == {leader.member_id, follower.member_id}


def test_a_join_that_no_static_member_joins_is_waited_for_once_more() -> None:
    """With nobody there to lead, the group waits on until the sessions are over."""
    stage = Rehearsal()
    stable_static(stage, "a", "b", rebalance_timeout_ms=4_000)
    stage.group.rebalance.start("an administrator wants it")
    stage.wait(7_000)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert len(stage.group.roster) == 2
    stage.wait(SESSION_MS)
    assert (stage.state(), stage.group.generation_id) == (GroupState.EMPTY, 2)


def test_an_instance_can_be_removed_by_name() -> None:
    """Administrators remove a static member without knowing its id; unknown names are told."""
    stage = Rehearsal()
    stable_static(stage, "a", "b")
    _, left = stage.groups.leave(GROUP, [MemberIdentity("", "b"), MemberIdentity("", "c")])
    assert [one.error_code for one in left] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert stage.group.roster.member_id_of("b") is None
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_a_return_that_cannot_be_written_changes_nothing() -> None:
    """If the new id cannot be kept, the old one stays valid."""
    stage = Rehearsal()
    _, follower = stable_static(stage, "a", "b")
    stage.log.is_full = True
    answer = answer_to(stage.join(instance="b", topics=("u",)))
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert stage.heartbeat(follower, "b") is ErrorCode.NONE
    assert answer_to(stage.sync(follower)).assignment == follower.member_id.encode()
