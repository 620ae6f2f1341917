"""The door: restarts, administration, and a coordinator that does not serve."""

from __future__ import annotations

import random

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.groups.exchange import Joined, MemberIdentity
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    GroupMetadata,
    GroupMetadataKey,
    GroupRecordError,
    OffsetCommitKey,
    decode_group_metadata_value,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from logstore.compat.kafka.groups.states import GroupState
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    GROUP,
    SESSION_MS,
    Rehearsal,
    answer_to,
)

NONE = ErrorCode.NONE
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
CHECK_MS = 600_000


# restarts


def test_offsets_survive_a_restart() -> None:
    """What was committed is there again, and so is what was forgotten not."""
    stage = Rehearsal()
    stage.commit(("t", 0), ("t", 1), offset=1)
    stage.commit(("t", 1), offset=2)
    stage.groups.delete_offsets(GROUP, [("t", 0)])
    before = stage.groups.fetch_offsets(GROUP, None)
    stage.restart()
    assert stage.groups.fetch_offsets(GROUP, None) == before
    assert (stage.fetched(("t", 0)), stage.fetched(("t", 1))) == (None, 2)


def test_a_stable_group_goes_on_after_a_restart() -> None:
    """Members, generation, leader and shares are back; a heartbeat in time is all that it takes."""
    stage = Rehearsal()
    leader, follower = stage.stable()
    before = stage.groups.describe(GROUP)
    stage.restart()
    assert stage.groups.describe(GROUP) == before
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(leader) is NONE
    assert stage.heartbeat(follower) is NONE
    assert answer_to(stage.sync(follower)).assignment == follower.member_id.encode()
    assert stage.group.roster.leader_id == leader.member_id
    assert stage.commit(member_id=leader.member_id, generation_id=1) == {NONE}


def test_members_that_do_not_come_back_after_a_restart_are_removed() -> None:
    """Reloaded members have one session time to give a sign of life."""
    stage = Rehearsal()
    stage.stable()
    stage.restart()
    stage.wait(SESSION_MS)
    assert stage.state() is GroupState.EMPTY


def test_a_group_that_was_rebalancing_is_back_in_its_last_generation() -> None:
    """A rebalance leaves no record, so after a crash the members meet the generation before it."""
    stage = Rehearsal()
    first, _ = stage.stable()
    stage.join()
    stage.restart()
    assert (stage.state(), stage.group.generation_id) == (GroupState.STABLE, 1)
    assert stage.heartbeat(first) is NONE


def test_a_deleted_group_stays_deleted() -> None:
    """Tombstones of group and offsets outlive the restart."""
    stage = Rehearsal()
    (member,) = stage.stable(1)
    stage.commit(member_id=member.member_id, generation_id=1)
    stage.leave(member.member_id)
    assert stage.groups.delete_group(GROUP) is NONE
    assert stage.held() == set()
    stage.restart()
    assert stage.groups.groups == {}


def test_an_old_group_record_is_understood() -> None:
    """Version 0 had no rebalance timeout and no time of its own: defaults take their place."""
    stage = Rehearsal()
    stage.stable(1)
    key, value = stage.log.records[-1]
    kept = decode_group_metadata_value(value or b"")
    stage.log.records = [(key, encode_group_metadata_value(kept, version=0))]
    stage.restart()
    (member,) = stage.group.roster
    assert member.rebalance_timeout_ms == member.session_timeout_ms == SESSION_MS
    assert stage.group.state_since_ms == -1


def test_records_of_other_kinds_are_passed_over() -> None:
    """Keys of KIP-848 groups in the log neither stop the loading nor make groups."""
    stage = Rehearsal()
    stage.log.records = [(b"\0\3\0\1x", b"\0\0\0\0\0\2\0"), (b"\0\5\0\1x\0\1m", None)]
    stage.restart()
    assert stage.groups.groups == {}


def test_damage_in_the_log_is_not_passed_over() -> None:
    """A record of ours that cannot be read stops the loading: offsets must not vanish silently."""
    stage = Rehearsal()
    stage.commit()
    key, value = stage.log.records[0]
    stage.log.records = [(key, (value or b"")[:-3])]
    with pytest.raises(GroupRecordError, match="wanted at byte"):
        stage.restart()


# describing and listing


def test_a_stable_group_is_described_in_full() -> None:
    """Protocol, metadata and shares of a stable group are shown."""
    stage = Rehearsal()
    leader, _ = stage.stable()
    group = stage.groups.describe(GROUP)
    assert (group.state, group.protocol_type, group.protocol_name) == (
        GroupState.STABLE,
        "consumer",
        "range",
    )
    told = [one.member_id for one in leader.members]
    assert [one.member_id for one in group.members] == told
    assert [one.assignment for one in group.members] == [one.encode() for one in told]
    assert {(one.client_id, one.client_host) for one in group.members} == {("client", "/127.0.0.1")}
    assert all(one.metadata for one in group.members)


def test_a_rebalancing_group_is_described_without_metadata() -> None:
    """While members come together, neither protocol nor metadata are shown."""
    stage = Rehearsal()
    stage.stable()
    stage.join()
    group = stage.groups.describe(GROUP)
    assert (group.state, group.protocol_name) == (GroupState.PREPARING_REBALANCE, "")
    assert [one.metadata for one in group.members] == [b"", b"", b""]


def test_an_unknown_group_is_described_as_dead() -> None:
    """A group that is not there is dead and cannot be found."""
    group = Rehearsal().groups.describe(GROUP)
    assert (group.state, group.error_code) == (GroupState.DEAD, ErrorCode.GROUP_ID_NOT_FOUND)


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {GROUP, "simple"}),
        (["stable"], [], {GROUP}),
        ([" EMPTY "], [], {"simple"}),
        (["Empty", "Stable"], ["Classic"], {GROUP, "simple"}),
        (["Asleep"], [], set[str]()),
        ([], ["consumer"], set[str]()),
    ],
)
def test_lists_can_be_filtered(states: list[str], types: list[str], expected: set[str]) -> None:
    """States and types are compared without regard to case; what is unknown matches nothing."""
    stage = Rehearsal()
    stage.stable()
    stage.commit(group_id="simple")
    error, groups = stage.groups.list_groups(states, types)
    assert error is NONE
    assert {group.group_id for group in groups} == expected


# not serving


def test_a_loading_coordinator_refuses_but_keeps_members_calm() -> None:
    """While loading, heartbeats are fine, syncs start over, and everything else is told to wait."""
    stage = Rehearsal()
    (member,) = stage.stable(1)
    stage.groups.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.heartbeat(member) is NONE
    assert answer_to(stage.sync(member)).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert answer_to(stage.join()).error_code is loading
    assert stage.commit() == {loading}
    assert stage.groups.fetch_offsets(GROUP, None) == (loading, {})
    assert stage.groups.leave(GROUP, [MemberIdentity("x")]) == (loading, [])
    assert stage.groups.describe(GROUP).error_code is loading
    assert stage.groups.list_groups() == (loading, [])
    assert stage.groups.delete_group(GROUP) is loading
    assert stage.groups.delete_offsets(GROUP, []) == (loading, {})


def test_a_new_coordinator_loads_before_it_serves() -> None:
    """Until the log has been read, nobody is let in."""
    stage = Rehearsal()
    stage.commit()
    coordinator = GroupCoordinator(GroupConfig(), stage.timers, random.Random(1), stage.log)
    assert coordinator.fetch_offsets(GROUP, None)[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.load()
    assert coordinator.fetch_offsets(GROUP, None)[0] is NONE


def test_closing_tells_everyone_who_waits() -> None:
    """Joins and syncs that wait are answered with NOT_COORDINATOR, and no timer is left behind."""
    stage = Rehearsal()
    joins = [stage.join(), stage.join()]
    stage.wait(COMPANY_MS)
    follower = answer_to(joins[1])
    syncing = stage.sync(follower)
    joining = stage.join(group_id="others")
    stage.groups.close()
    assert answer_to(syncing).error_code is ErrorCode.NOT_COORDINATOR
    assert answer_to(joining).error_code is ErrorCode.NOT_COORDINATOR
    assert stage.commit() == {ErrorCode.NOT_COORDINATOR}
    assert stage.timers.next_due_ms() is None


def test_an_answer_may_bring_the_next_request_in_at_once() -> None:
    """A client that syncs from within its join's answer meets a group in one piece."""
    stage = Rehearsal(group_initial_rebalance_delay_ms=1)
    shares: list[bytes] = []

    def join_and_sync_at_once() -> None:
        def joined(answer: Joined) -> None:
            assignments = {one.member_id: b"share" for one in answer.members}
            stage.sync(answer, assignments).then(lambda synced: shares.append(synced.assignment))

        stage.join().then(joined)

    for _ in range(3):
        join_and_sync_at_once()
    stage.wait(COMPANY_MS)
    assert shares == [b"share"] * 3
    assert stage.state() is GroupState.STABLE


def test_an_empty_group_id_is_only_good_for_offsets() -> None:
    """Membership needs a name; offsets of the empty name are still accepted from old clients."""
    groups = Rehearsal().groups
    assert groups.heartbeat("", "m", None, 1) is ErrorCode.INVALID_GROUP_ID
    assert groups.leave("", [MemberIdentity("m")]) == (ErrorCode.INVALID_GROUP_ID, [])
    offsets = {("t", 0): CommittedOffset(1, 0)}
    assert groups.commit_offsets(Commit("", offsets)) == {("t", 0): NONE}


def test_a_restored_group_may_be_an_empty_one() -> None:
    """A record without members is an empty group that has had generations."""
    stage = Rehearsal()
    record = GroupMetadata("consumer", 8, state_since_ms=5)
    stage.log.records = [
        (encode_group_metadata_key(GroupMetadataKey(GROUP)), encode_group_metadata_value(record)),
        (
            encode_offset_commit_key(OffsetCommitKey(GROUP, "t", 0)),
            encode_offset_commit_value(CommittedOffset(1, 2)),
        ),
    ]
    stage.restart()
    assert (stage.state(), stage.group.generation_id) == (GroupState.EMPTY, 8)
    assert stage.group.protocol_type == "consumer"
    join = stage.join()
    stage.wait(COMPANY_MS)
    assert answer_to(join).generation_id == 9
