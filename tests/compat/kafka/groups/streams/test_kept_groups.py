"""What a streams group leaves in the log, and what comes of it after a restart."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.records import encoded
from logstore.compat.kafka.groups.offsets_log import GroupRecord, GroupRecordError
from logstore.compat.kafka.groups.streams import records
from logstore.compat.kafka.groups.streams.tasks import HeldTasks
from logstore.segments.kafka.internal_topics.streams_group import EpochTaskIds
from tests.compat.kafka.groups.rehearsal import GROUP
from tests.compat.kafka.groups.streams.rehearsal import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    StreamsRehearsal,
    subtopology,
    topology,
)

DAY_MS = 86_400_000


def types_of(entries: list[GroupRecord]) -> list[tuple[int, bool]]:
    """Return the type of each record, and whether it is a tombstone."""
    return [(int.from_bytes(key[:2], "big"), value is None) for key, value in entries]


def test_the_records_of_a_join_are_kafkas() -> None:
    """Member, topology, epoch, target, its epoch, and what the member has, in this order."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    assert types_of(stage.log.records) == [(kind, False) for kind in (19, 23, 17, 21, 20, 22)]


def test_the_records_of_a_leave_are_kafkas() -> None:
    """Tombstones of all that the member had, and a new epoch."""
    stage = StreamsRehearsal({"t": 1})
    member = stage.member("A")
    count = len(stage.log.records)
    member.leave()
    gone = [(22, True), (21, True), (19, True), (17, False)]
    assert types_of(stage.log.records[count:]) == gone


def test_a_group_goes_on_after_a_restart() -> None:
    """Members have what they had and notice nothing, in the middle of a move too."""
    stage = StreamsRehearsal({"t": 6})
    first, second = stage.member("A"), stage.member("B")
    first.live()
    before = stage.content
    stage.restart()
    assert stage.content == before
    assert stage.streams_group.topology is not None
    epoch = stage.streams_group.epoch
    stage.rest(first, second)
    assert first.active | second.active == {f"0_{index}" for index in range(6)}
    assert stage.streams_group.epoch == epoch


def test_deadlines_count_anew_after_a_restart() -> None:
    """Who does not come back within a session's time, or does not let go, is out."""
    stage = StreamsRehearsal({"t": 6})
    stage.member("A")
    stage.member("B")
    stage.live("A", 2)
    stage.restart()
    stage.wait(SESSION_MS - 1)
    stage.live("A", 2)
    stage.wait(1)
    assert set(stage.streams_group.members) == {"A"}
    stage.wait(REBALANCE_MS - SESSION_MS - 1)
    stage.live("A", 2)
    stage.wait(1)
    assert stage.streams_group.is_empty


def test_a_new_group_is_assigned_after_a_restart_in_its_delay() -> None:
    """The delay is not on disk: the next heartbeat gets tasks."""
    stage = StreamsRehearsal({"t": 1}, settings={})
    member = stage.member("A")
    stage.restart()
    member.live()
    assert member.active == {"0_0"}


def test_a_deleted_group_is_gone_for_good() -> None:
    """Its records have tombstones, in Kafka's order, and its first delay ends with it."""
    stage = StreamsRehearsal({"t": 1}, settings={})
    member = stage.member("A")
    assert stage.groups.delete_group(GROUP) is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    count = len(stage.log.records)
    assert stage.groups.delete_group(GROUP) is ErrorCode.NONE
    assert types_of(stage.log.records[count:]) == [(20, True), (17, True), (23, True)]
    stage.wait(DELAY_MS)
    stage.restart()
    assert stage.groups.streams.groups == {}


def test_an_empty_group_lives_as_long_as_its_offsets() -> None:
    """What a member reads stays; a week after the commit of the last one all is gone."""
    stage = StreamsRehearsal({"t": 1})
    member = stage.member("A")
    stage.commit(member_id="A", generation_id=2)
    for _ in range(8 * 24 * 60 * 2):
        stage.wait(DAY_MS / (24 * 60 * 2))
        member.live()
    assert stage.fetched() == 7
    member.leave()
    stage.wait(DAY_MS)
    assert stage.groups.streams.groups == {}


def test_older_records_do_not_tell_epochs() -> None:
    """Then the tasks count as given in the member's epoch."""
    entry = EpochTaskIds(subtopology_id="0", partitions=(3, 4))
    copy = EpochTaskIds(subtopology_id="1", partitions=(0,))
    held = records.held_in((entry,), (copy,), (), 7)
    assert held == HeldTasks({"0": {3: 7, 4: 7}}, {"1": frozenset({0})})


def test_a_record_that_cannot_be_read_stops_the_start() -> None:
    """Nobody goes on with half a group."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    key, _ = stage.log.records[0]
    stage.log.append(GROUP, [(key, b"\0\0\xff")])
    with pytest.raises(GroupRecordError):
        stage.restart()


def test_a_topology_that_cannot_be_stops_the_start() -> None:
    """It is read as a record that cannot be read."""
    stage = StreamsRehearsal({"t": 1})
    told = topology(subtopology("0", "t"), subtopology("0", "u"))
    stage.log.append(GROUP, [encoded(records.topology(GROUP, told))])
    with pytest.raises(GroupRecordError):
        stage.restart()


def test_offsets_before_the_group_make_no_classic_one() -> None:
    """Offsets alone look like a simple consumer's group, until the group's own records come."""
    stage = StreamsRehearsal({"t": 1})
    stage.commit()
    stage.member("A")
    stage.restart()
    assert GROUP not in stage.groups.groups
    assert stage.fetched() == 7
