"""Static members keep their place while they are away."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from tests.compat.kafka.groups.consumer.rehearsal import SESSION_MS, ConsumerRehearsal


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
