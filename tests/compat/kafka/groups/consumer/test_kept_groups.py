"""What a group leaves in the log, and what comes of it after a restart."""

from __future__ import annotations

import uuid

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer import records
from logstore.compat.kafka.groups.consumer.group import ConsumerGroup
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.modern.member import MemberState
from logstore.compat.kafka.groups.modern.records import encoded
from logstore.compat.kafka.groups.offsets_log import GroupRecord, GroupRecordError
from logstore.segments.kafka.internal_topics.consumer_group import EpochTopicPartitions
from tests.compat.kafka.groups.consumer.rehearsal import (
    REBALANCE_MS,
    SESSION_MS,
    ConsumerRehearsal,
    topic_id,
)
from tests.compat.kafka.groups.rehearsal import GROUP


def types_of(entries: list[GroupRecord]) -> list[tuple[int, bool]]:
    """Return the type of each record, and whether it is a tombstone."""
    return [(int.from_bytes(key[:2], "big"), value is None) for key, value in entries]


def test_the_records_of_a_join_are_kafkas() -> None:
    """Member, epoch, target, its epoch, and what the member has, in this order."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    assert types_of(stage.log.records) == [(kind, False) for kind in (5, 3, 7, 6, 8)]


def test_the_records_of_a_leave_are_kafkas() -> None:
    """Tombstones of all that the member had, and a new epoch."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    count = len(stage.log.records)
    consumer.leave()
    gone = [(8, True), (7, True), (5, True), (3, False)]
    assert types_of(stage.log.records[count:]) == gone


def test_a_group_goes_on_after_a_restart() -> None:
    """Members have what they had and notice nothing, in the middle of a move too."""
    stage = ConsumerRehearsal({"t": 6})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t", instance_id="i")
    first.beat()
    before = stage.content
    stage.restart()
    assert stage.content == before
    stage.settle(first, second)
    assert first.has("t") | second.has("t") == set(range(6))
    assert stage.consumer_group.static_member("i") is not None
    assert stage.consumer_group.epoch == 3


def test_deadlines_count_anew_after_a_restart() -> None:
    """Who does not come back within a session's time, or does not let go, is out."""
    stage = ConsumerRehearsal({"t": 6})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    first.beat()
    stage.restart()
    for _ in range(4):
        stage.wait(REBALANCE_MS / 4 + 1)
        stage.beat("A", 2)
        second.beat()
    assert list(stage.consumer_group.members) == ["B"]
    stage.restart()
    stage.wait(SESSION_MS + 1)
    assert stage.consumer_group.is_empty


def test_a_deleted_group_is_gone_for_good() -> None:
    """Only an empty one can be deleted; its tombstones take all of it away."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t", subscribed_topic_regex="t.*")
    stage.commit(member_id="A", generation_id=2)
    assert stage.groups.delete_group(GROUP) is ErrorCode.NON_EMPTY_GROUP
    consumer.leave()
    assert stage.groups.delete_group(GROUP) is ErrorCode.NONE
    assert stage.groups.delete_group(GROUP) is ErrorCode.GROUP_ID_NOT_FOUND
    stage.restart()
    assert stage.groups.consumers.groups == {}
    assert stage.fetched() is None


def test_a_member_may_be_read_in_any_order() -> None:
    """Compaction keeps the last record of each key, in the order in which these were written."""
    stage = ConsumerRehearsal({"t": 3})
    first, second = stage.consumer("A", "t"), stage.consumer("B", "t")
    stage.settle(first, second)
    first.beat(subscribed_topic_names=frozenset({"t", "u"}))
    stage.settle(first, second)
    before = stage.content
    last = dict(stage.log.records)
    order = sorted(last, key=lambda key: max(
        number for number, (one, _) in enumerate(stage.log.records) if one == key
    ))  # fmt: skip
    stage.log.records = [(key, last[key]) for key in order]
    stage.restart()
    found = stage.content
    assert {one.member_id: one for one in found["members"]} == {
        one.member_id: one for one in before["members"]
    }
    assert found["targets"] == before["targets"]
    assert stage.consumer_group.state is ConsumerGroupState.STABLE


def test_records_of_older_releases() -> None:
    """Partitions without epochs count as given in the member's; old views of topics go away."""
    entry = EpochTopicPartitions(topic_id=topic_id("t"), partitions=(0, 2))
    assert records.held_in((entry,), 7) == {topic_id("t"): {0: 7, 2: 7}}
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    stage.consumer_group.has_partition_metadata = True
    consumer.beat(subscribed_topic_names=frozenset({"t", "u"}))
    assert (4, True) in types_of(stage.log.records)


def test_a_state_of_a_newer_release() -> None:
    """A member in a state that nobody knows here must give everything up and join again."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    group = stage.consumer_group
    member = attrs.evolve(group.members["A"], state=MemberState.UNKNOWN)
    group.apply(records.current_assignment(GROUP, member))
    assert group.members["A"].state is MemberState.UNKNOWN
    assert consumer.beat().error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert consumer.join().error_code is ErrorCode.NONE
    assert consumer.has("t") == {0}


def test_a_record_that_cannot_be_read() -> None:
    """A broker that would forget members must not start."""
    stage = ConsumerRehearsal({"t": 1})
    stage.consumer("A", "t")
    key, value = stage.log.records[0]
    assert value is not None
    stage.log.records = [(key, value[:5])]
    with pytest.raises(GroupRecordError, match="Error reading byte array"):
        stage.restart()


def test_tombstones_of_what_is_not_there() -> None:
    """After compaction they may come alone, and mean nothing."""
    stage = ConsumerRehearsal({})
    dead = records.no_group("gone", ["A"], ["a.*"])
    stage.log.records = [encoded(record) for record in dead]
    stage.restart()
    assert stage.groups.consumers.groups == {}


def test_a_partition_has_one_owner() -> None:
    """Who has let go of it no longer counts, whatever order the records come in."""
    group = ConsumerGroup(GROUP)
    partition = (uuid.UUID(int=1), 0)
    held = {partition[0]: {0: 1}}
    for name in "AB":
        group.apply(records.current_assignment(GROUP, ConsumerMember(name, assigned=held)))
    group.apply(records.current_assignment(GROUP, ConsumerMember("A")))
    assert group.owner_of(partition) == "B"
    group.apply(records.KIND.no_member(GROUP, "B")[0])
    assert group.owner_of(partition) is None
