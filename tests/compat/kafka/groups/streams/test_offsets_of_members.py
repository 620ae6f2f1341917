"""Offsets of streams groups: who may commit, ask and forget."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.offsets_log import TransactionalProducer
from tests.compat.kafka.groups.rehearsal import GROUP
from tests.compat.kafka.groups.streams.rehearsal import StreamsRehearsal

PRODUCER = TransactionalProducer(1, 0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "A", "generation_id": 2}, ErrorCode.NONE),
        ({"member_id": "A", "generation_id": 3}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "A", "generation_id": 1}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "B", "generation_id": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        (
            {"member_id": "A", "generation_id": 2, "knows_epochs": False},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ({"producer": PRODUCER}, ErrorCode.NONE),
        ({"producer": PRODUCER, "member_id": "A", "generation_id": 2}, ErrorCode.NONE),
        (
            {"producer": PRODUCER, "member_id": "A", "generation_id": 9},
            ErrorCode.ILLEGAL_GENERATION,
        ),
    ],
)
def test_a_member_commits_in_its_epoch(fields: dict[str, Any], code: ErrorCode) -> None:
    """Everybody else is refused while there are members; in a transaction by another word."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    assert stage.commit(**fields) == {code}


def test_a_member_commits_for_the_tasks_that_it_was_given_before() -> None:
    """In an older epoch too, while it gives them back too; not for newer ones, nor other topics."""
    stage = StreamsRehearsal({"t": 2})
    first, second = stage.member("A"), stage.member("B")
    stage.rest(first, second)
    (mine,) = (int(task[2:]) for task in first.active)
    (other,) = (int(task[2:]) for task in second.active)
    old: dict[str, Any] = {"member_id": "A", "generation_id": 2}
    assert stage.commit(("t", mine), **old) == {ErrorCode.NONE}
    for partition in (("t", other), ("u", mine)):
        assert stage.commit(partition, **old) == {ErrorCode.STALE_MEMBER_EPOCH}
    newer: dict[str, Any] = {"member_id": "B", "generation_id": 2}
    assert stage.commit(("t", other), **newer) == {ErrorCode.STALE_MEMBER_EPOCH}


def test_an_empty_group_takes_commits_of_anyone() -> None:
    """Administrators set offsets, without an epoch."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A").leave()
    assert stage.commit() == {ErrorCode.NONE}
    assert stage.commit(member_id="A", generation_id=2) == {ErrorCode.UNKNOWN_MEMBER_ID}


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        ("A", 2, ErrorCode.NONE),
        ("A", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("B", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_ask(member_id: str | None, epoch: int, code: ErrorCode) -> None:
    """A member in its epoch, and whoever claims nothing."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    assert stage.groups.others.fetch_error(GROUP, member_id, epoch) is code


def test_offsets_of_topics_that_are_read_stay() -> None:
    """Others can be forgotten while there are members, all once there are none."""
    stage = StreamsRehearsal({"t": 1})
    member = stage.member("A")
    stage.commit(("t", 0), ("u", 0), member_id="A", generation_id=2)
    both = [("t", 0), ("u", 0)]
    error, codes = stage.groups.delete_offsets(GROUP, both)
    assert error is ErrorCode.NONE
    assert codes == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): ErrorCode.NONE}
    member.leave()
    assert stage.groups.delete_offsets(GROUP, both)[1][("t", 0)] is ErrorCode.NONE
