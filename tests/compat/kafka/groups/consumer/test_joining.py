"""Members come, live and go: epochs, and what is told about them."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.refused_request import RefusedRequestError
from tests.compat.kafka.groups.consumer.rehearsal import (
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerRehearsal,
    topic_id,
)
from tests.compat.kafka.groups.rehearsal import GROUP

FULL: dict[str, Any] = {
    "rebalance_timeout_ms": REBALANCE_MS,
    "subscribed_topic_names": frozenset({"t"}),
    "owned": frozenset(),
}


def test_the_first_member_gets_everything() -> None:
    """It is in epoch 2 at once, and told how often to come."""
    stage = ConsumerRehearsal({"t": 3, "other": 2})
    consumer = stage.consumer("A", "t")
    answer = consumer.answer
    assert (answer.error_code, answer.member_id) == (ErrorCode.NONE, "A")
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, INTERVAL_MS)
    assert answer.assignment == {topic_id("t"): frozenset({0, 1, 2})}
    assert stage.consumer_group.state is ConsumerGroupState.STABLE


@pytest.mark.parametrize(
    ("own", "bounds", "expected"),
    [("70000", {}, 15_000), ("7000", {"min": 8000}, 8000), ("7000", {"max": 6000}, 6000)],
)
def test_the_brokers_bounds_win(own: str, bounds: dict[str, int], expected: int) -> None:
    """Also those that came after a group had its setting."""
    stage = ConsumerRehearsal({"t": 1})
    stage.cluster.group_settings[GROUP] = {"consumer.heartbeat.interval.ms": own}
    for limit, value in bounds.items():
        stage.cluster.broker_settings[f"group.consumer.{limit}.heartbeat.interval.ms"] = value
    assert stage.consumer("A", "t").answer.heartbeat_interval_ms == expected


def test_what_has_not_changed_is_not_told() -> None:
    """Heartbeats of a group at rest write nothing and are answered without partitions."""
    stage = ConsumerRehearsal({"t": 3})
    consumer = stage.consumer("A", "t")
    count = len(stage.log.entries)
    answer = consumer.beat(owned=consumer.owned)
    assert (answer.member_epoch, answer.assignment) == (2, None)
    assert len(stage.log.entries) == count


def test_a_full_request_is_answered_in_full() -> None:
    """After an error a member says all again, and is told all again."""
    stage = ConsumerRehearsal({"t": 2})
    consumer = stage.consumer("A", "t")
    answer = consumer.beat(**FULL | {"owned": consumer.owned})
    assert answer.assignment == {topic_id("t"): frozenset({0, 1})}


def test_a_member_without_an_id_gets_one() -> None:
    """In version 0 the coordinator makes ids up, 22 characters long."""
    stage = ConsumerRehearsal({"t": 1})
    first = stage.beat("", 0, needs_member_id=False, **FULL)
    second = stage.beat("", 0, needs_member_id=False, **FULL)
    assert first.member_id is not None
    assert (first.error_code, len(first.member_id)) == (ErrorCode.NONE, 22)
    assert first.member_id != second.member_id


@pytest.mark.parametrize(
    ("epoch", "changes", "code", "words"),
    [
        (0, {"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId"),
        (0, {"member_id": ""}, ErrorCode.INVALID_REQUEST, "MemberId"),
        (1, {"member_id": "", "needs_member_id": False}, ErrorCode.INVALID_REQUEST, "MemberId"),
        (0, {"instance_id": ""}, ErrorCode.INVALID_REQUEST, "InstanceId"),
        (0, {"instance_id": " "}, ErrorCode.INVALID_REQUEST, "InstanceId"),
        (0, {"rack_id": "\n"}, ErrorCode.INVALID_REQUEST, "RackId"),
        (0, {"group_id": " "}, ErrorCode.INVALID_REQUEST, "GroupId"),
        (0, {"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId"),
        (0, {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs"),
        (0, {"owned": None}, ErrorCode.INVALID_REQUEST, "TopicPartitions"),
        (0, {"owned": frozenset({(topic_id("t"), 0)})}, ErrorCode.INVALID_REQUEST, "must be empty"),
        (0, {"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST, "must be non-null"),
        (-2, {}, ErrorCode.INVALID_REQUEST, "InstanceId"),
        (-3, {}, ErrorCode.INVALID_REQUEST, "MemberEpoch"),
        (0, {"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR, "uniform, range"),
    ],
)
def test_a_heartbeat_that_contradicts_itself(
    epoch: int, changes: dict[str, Any], code: ErrorCode, words: str
) -> None:
    """It is refused with the reason, and no group comes of it."""
    stage = ConsumerRehearsal({"t": 1})
    answer = stage.beat("A", epoch, **FULL | changes)
    assert answer.error_code is code
    assert words in (answer.error_message or "")
    assert stage.groups.consumers.groups == {}
    assert stage.log.entries == []


def test_nobody_lives_in_a_group_that_is_not_there() -> None:
    """Only epoch 0 makes a group."""
    stage = ConsumerRehearsal({"t": 1})
    for epoch in (1, -1):
        assert stage.beat("A", epoch).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_nobody_lives_in_a_group_without_joining() -> None:
    """An id that was never in, or is no more, is unknown."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    assert stage.beat("B", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.beat("B", -1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    consumer.leave()
    assert stage.beat("A", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("epoch", [5, 2])
def test_a_wrong_epoch_is_fenced(epoch: int) -> None:
    """Who is ahead or behind must give everything up, and may come back with epoch 0."""
    stage = ConsumerRehearsal({"t": 2})
    consumer = stage.consumer("A", "t")
    consumer.beat(subscribed_topic_names=frozenset({"t", "u"}))
    assert consumer.epoch == 3
    consumer.beat(subscribed_topic_names=frozenset({"t"}))
    answer = stage.beat("A", epoch, owned=consumer.owned)
    assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    back = consumer.join()
    assert (back.error_code, back.member_epoch) == (ErrorCode.NONE, 4)
    assert consumer.has("t") == {0, 1}


def test_an_answer_may_get_lost() -> None:
    """The epoch before is taken from a member that has no more than it should."""
    stage = ConsumerRehearsal({"t": 2, "u": 1})
    consumer = stage.consumer("A", "t")
    stage.beat("A", 2, subscribed_topic_names=frozenset({"t", "u"}))
    assert stage.beat("A", 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert stage.beat("A", 2, owned=frozenset({(topic_id("x"), 0)})).error_code is (
        ErrorCode.FENCED_MEMBER_EPOCH
    )
    again = stage.beat("A", 2, **FULL | {"owned": consumer.owned})
    assert again.error_code is ErrorCode.NONE


def test_a_group_has_room_for_so_many() -> None:
    """One member too many is refused; those who are in go on."""
    stage = ConsumerRehearsal({"t": 2}, consumer_group_max_size=1)
    consumer = stage.consumer("A", "t")
    assert stage.beat("B", 0, **FULL).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert consumer.beat().error_code is ErrorCode.NONE


def test_a_silent_member_lapses() -> None:
    """Without a heartbeat within the session time it is out, and the others get its partitions."""
    stage = ConsumerRehearsal({"t": 4})
    silent, alive = stage.consumer("A", "t"), stage.consumer("B", "t")
    stage.settle(silent, alive)
    for _ in range(10):
        stage.wait(SESSION_MS / 10 + 1)
        alive.beat()
    stage.settle(alive)
    assert alive.has("t") == {0, 1, 2, 3}
    assert silent.beat().error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_in() -> None:
    """Each one renews the session."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    for _ in range(5):
        stage.wait(SESSION_MS - 1)
        assert consumer.beat().error_code is ErrorCode.NONE


def test_the_last_one_leaves_an_empty_group() -> None:
    """A leave is answered with its epoch; the group stays, for its offsets."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    answer = consumer.leave()
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, -1)
    assert stage.consumer_group.state is ConsumerGroupState.EMPTY
    assert stage.consumer_group.epoch == 3


def test_a_disk_that_refuses_changes_nothing() -> None:
    """What is not written does not hold: the member is told to look for another coordinator."""
    stage = ConsumerRehearsal({"t": 2})
    consumer = stage.consumer("A", "t")
    stage.log.is_full = True
    assert stage.beat("B", 0, **FULL).error_code is ErrorCode.NOT_COORDINATOR
    assert list(stage.consumer_group.members) == ["A"]
    assert stage.beat("C", 0, group_id="new", **FULL).error_code is ErrorCode.NOT_COORDINATOR
    assert list(stage.groups.consumers.groups) == [GROUP]
    stage.log.is_full = False
    assert consumer.beat().member_epoch == 2


def test_what_was_written_and_not_flushed_holds() -> None:
    """
    Whose request it was is refused, and the next coordinator finds its records: so must this one.

    Otherwise two members would have the same partition, one of them by either coordinator.
    """
    stage = ConsumerRehearsal({"t": 2})
    stage.log.is_failing = True
    assert stage.consumer("B", "t").answer.error_code is ErrorCode.NOT_COORDINATOR
    stage.log.is_failing = False
    consumer = stage.consumer("A", "t")
    assert consumer.has("t") == set(), "B has both"
    before = stage.content
    assert [one.member_id for one in before["members"]] == ["B", "A"]
    stage.restart()
    assert stage.content == before


def test_a_member_that_was_refused_is_expected_to_live() -> None:
    """It is in the log, so it is in the group; and it is out of both if it does not come again."""
    stage = ConsumerRehearsal({"t": 2})
    stage.log.is_failing = True
    stage.consumer("A", "t")
    stage.log.is_failing = False
    stage.wait(SESSION_MS + 1)
    assert stage.consumer_group.is_empty


def test_a_lapse_that_cannot_be_written_comes_later() -> None:
    """A member whose time is up while the disk refuses is out once it does not."""
    stage = ConsumerRehearsal({"t": 2})
    stage.consumer("A", "t")
    stage.log.is_full = True
    stage.wait(SESSION_MS + 1)
    assert list(stage.consumer_group.members) == ["A"]
    stage.log.is_full = False
    stage.wait(1000)
    assert stage.consumer_group.is_empty


def test_a_coordinator_that_has_closed() -> None:
    """Everybody is told to look for another one, and no timer fires any more."""
    stage = ConsumerRehearsal({"t": 1})
    consumer = stage.consumer("A", "t")
    stage.groups.close()
    assert consumer.beat().error_code is ErrorCode.NOT_COORDINATOR
    stage.wait(10 * SESSION_MS)
    with pytest.raises(RefusedRequestError) as refused:
        stage.groups.consumers.described(GROUP)
    assert refused.value.code is ErrorCode.NOT_COORDINATOR
