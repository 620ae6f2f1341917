"""Offsets of consumer groups: who may commit and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.offsets_log import TransactionalProducer
from tests.compat.kafka.groups.consumer.rehearsal import SESSION_MS, ConsumerRehearsal
from tests.compat.kafka.groups.rehearsal import GROUP

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("A", 2, ErrorCode.NONE),
        ("A", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("A", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("B", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_commits_in_its_epoch(member_id: str, epoch: int, code: ErrorCode) -> None:
    """Everybody else is refused while there are members."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    assert stage.commit(member_id=member_id, generation_id=epoch) == {code}
    assert stage.fetched() == (7 if code is ErrorCode.NONE else None)


def test_an_empty_group_takes_commits_of_anyone() -> None:
    """Administrators set offsets, without an epoch."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t").leave()
    assert stage.commit() == {ErrorCode.NONE}
    assert stage.commit(member_id="A", generation_id=2) == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_a_member_that_is_behind_commits_what_it_still_has() -> None:
    """Partitions that it was given in its old epoch or before count; others do not (KIP-1251)."""
    stage = ConsumerRehearsal({"t": 2, "u": 1})
    consumer = stage.consumer("A", "t")
    consumer.beat(subscribed_topic_names=frozenset({"t", "u"}))
    assert consumer.epoch == 3
    behind: dict[str, Any] = {"member_id": "A", "generation_id": 2}
    assert stage.commit(("t", 0), ("t", 1), **behind) == {ErrorCode.NONE}
    assert stage.commit(("t", 0), ("u", 0), **behind) == {ErrorCode.STALE_MEMBER_EPOCH}
    assert stage.commit(("t", 0), ("gone", 0), **behind) == {ErrorCode.STALE_MEMBER_EPOCH}


def test_old_requests_know_no_epochs() -> None:
    """A member that commits with a version from before KIP-848 is refused."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    refused = stage.commit(member_id="A", generation_id=2, knows_epochs=False)
    assert refused == {ErrorCode.UNSUPPORTED_VERSION}


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        ("A", 2, ErrorCode.NONE),
        ("A", 0, ErrorCode.ILLEGAL_GENERATION),
        ("B", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.NONE),
    ],
)
def test_commits_in_transactions(member_id: str, epoch: int, code: ErrorCode) -> None:
    """A producer that does not say who reads is let in; a wrong epoch has its older name there."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    producer = TransactionalProducer(1, 0)
    answer = stage.commit(
        member_id=member_id, generation_id=epoch, producer=producer, knows_epochs=False
    )
    assert answer == {code}


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        (None, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
        ("A", 2, ErrorCode.NONE),
        ("A", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("B", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_ask(member_id: str | None, epoch: int, code: ErrorCode) -> None:
    """Who says that it is a member must be one, in its epoch."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    assert stage.groups.others.fetch_error(GROUP, member_id, epoch) is code
    assert stage.groups.others.fetch_error("other", member_id, epoch) is ErrorCode.NONE


def test_offsets_survive_a_restart_and_a_change_of_kind() -> None:
    """They belong to the name, not to the kind of group that has it."""
    stage = ConsumerRehearsal({"t": 1})
    stage.commit()
    assert list(stage.groups.groups) == [GROUP]
    consumer = stage.consumer("A", "t")
    assert (list(stage.groups.groups), stage.fetched()) == ([], 7)
    stage.restart()
    assert (list(stage.groups.groups), stage.fetched()) == ([], 7)
    consumer.leave()
    classic = stage.join()
    stage.wait(SESSION_MS)
    assert classic.done
    assert (stage.groups.consumers.groups, stage.fetched()) == ({}, 7)
    stage.restart()
    assert (stage.groups.consumers.groups, stage.fetched()) == ({}, 7)


def test_offsets_expire() -> None:
    """Those of topics that nobody reads go after their time, and the empty group with the last."""
    stage = ConsumerRehearsal({"t": 1, "u": 1})
    consumer = stage.consumer("A", "t")
    mine: dict[str, Any] = {"member_id": "A", "generation_id": 2}
    stage.commit(("t", 0), ("u", 0), **mine)
    stage.clock.advance(8 * DAY_MS)
    stage.groups.expire()
    assert (stage.fetched(("t", 0)), stage.fetched(("u", 0))) == (7, None)
    consumer.leave()
    stage.groups.expire()
    assert stage.groups.consumers.groups == {}


def test_offsets_of_what_is_read_cannot_be_deleted() -> None:
    """Others of the group can, while it has members too."""
    stage = ConsumerRehearsal({"t": 1, "u": 1})
    stage.consumer("A", "t")
    stage.commit(("t", 0), ("u", 0), member_id="A", generation_id=2)
    error, codes = stage.groups.delete_offsets(GROUP, [("t", 0), ("u", 0)])
    assert error is ErrorCode.NONE
    assert codes == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): ErrorCode.NONE}
