"""Static members keep their place while they are away."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.exchange import MemberIdentity
from tests.compat.kafka.groups.consumer.rehearsal import SESSION_MS, ConsumerRehearsal
from tests.compat.kafka.groups.rehearsal import GROUP


def test_one_that_comes_back_has_what_it_had() -> None:
    """After a leave for a while nobody else gets its partitions; a new id takes them over."""
    stage = ConsumerRehearsal({"t": 4})
    away = stage.consumer("A", "t", instance_id="i")
    other = stage.consumer("B", "t")
    stage.settle(away, other)
    had, epoch = away.owned, stage.consumer_group.epoch
    answer = away.leave(-2)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, -2)
    stage.settle(other)
    assert len(other.owned) == 2
    back = stage.consumer("C", "t", instance_id="i")
    assert (back.owned, back.epoch) == (had, epoch)
    assert sorted(stage.consumer_group.members) == ["B", "C"]
    assert stage.beat("A", epoch, instance_id="i").error_code is ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("A", epoch).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_comes_back_and_wants_something_else() -> None:
    """It has its place, and the group works out anew who shall have what."""
    stage = ConsumerRehearsal({"t": 2, "u": 2})
    away = stage.consumer("A", "t", instance_id="i")
    away.leave(-2)
    back = stage.consumer("C", "u", instance_id="i")
    stage.settle(back)
    assert (back.has("t"), back.has("u")) == (set(), {0, 1})
    assert back.epoch == 3


def test_one_that_stays_away_lapses() -> None:
    """Its place is kept for a session's time."""
    stage = ConsumerRehearsal({"t": 2})
    away = stage.consumer("A", "t", instance_id="i")
    away.leave(-2)
    stage.wait(SESSION_MS + 1)
    assert stage.consumer_group.is_empty


def test_an_instance_is_one_member() -> None:
    """While it is there nobody else can be it."""
    stage = ConsumerRehearsal({"t": 2})
    here = stage.consumer("A", "t", instance_id="i")
    late = stage.consumer("B", "t", instance_id="i")
    assert late.answer.error_code is ErrorCode.UNRELEASED_INSTANCE_ID
    here.leave()
    assert late.join().error_code is ErrorCode.NONE
    assert late.has("t") == {0, 1}


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_an_instance_that_nobody_knows(epoch: int) -> None:
    """It is no member."""
    stage = ConsumerRehearsal({"t": 2})
    stage.consumer("A", "t")
    assert stage.beat("A", epoch, instance_id="i").error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_that_leaves_under_another_id() -> None:
    """It is fenced, and stays in."""
    stage = ConsumerRehearsal({"t": 2})
    stage.consumer("A", "t", instance_id="i")
    assert stage.beat("B", -1, instance_id="i").error_code is ErrorCode.FENCED_INSTANCE_ID
    assert list(stage.consumer_group.members) == ["A"]


def test_members_are_taken_out_by_name() -> None:
    """LeaveGroup takes an instance without its member id, with it, and a member id alone."""
    stage = ConsumerRehearsal({"t": 4})
    for name in "ABCD":
        stage.consumer(name, "t", instance_id=f"i{name}")
    epoch = stage.consumer_group.epoch
    error, left = stage.groups.leave(
        GROUP, [MemberIdentity("", "iA"), MemberIdentity("B", "iB"), MemberIdentity("C")]
    )
    assert (error, {one.error_code for one in left}) == (ErrorCode.NONE, {ErrorCode.NONE})
    assert list(stage.consumer_group.members) == ["D"]
    assert stage.consumer_group.epoch == epoch + 1, "once for all of them"
    assert stage.beat("A", epoch).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_cannot_be_taken_out() -> None:
    """Whoever is not there, or is somebody else by now, is told so; nothing changes."""
    stage = ConsumerRehearsal({"t": 4})
    stage.consumer("A", "t", instance_id="i")
    epoch = stage.consumer_group.epoch
    named = [MemberIdentity("B", "i"), MemberIdentity("", "none"), MemberIdentity("C")]
    error, left = stage.groups.leave(GROUP, named)
    assert error is ErrorCode.NONE
    assert [(one.identity, one.error_code) for one in left] == [
        (named[0], ErrorCode.FENCED_INSTANCE_ID),
        (named[1], ErrorCode.UNKNOWN_MEMBER_ID),
        (named[2], ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert list(stage.consumer_group.members) == ["A"]
    assert stage.consumer_group.epoch == epoch


def test_a_full_disk_keeps_members_in() -> None:
    """Whoever could not be taken out is told why."""
    stage = ConsumerRehearsal({"t": 4})
    stage.consumer("A", "t")
    stage.log.is_full = True
    _, left = stage.groups.leave(GROUP, [MemberIdentity("A"), MemberIdentity("B")])
    assert [one.error_code for one in left] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(stage.consumer_group.members) == ["A"]
