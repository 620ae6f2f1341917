"""Members come and go: epochs, deadlines, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.streams.states import StatusCode, StreamsGroupState
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import KeyValue
from tests.compat.kafka.groups.rehearsal import GROUP, answer_to
from tests.compat.kafka.groups.streams.rehearsal import (
    DELAY_MS,
    INTERVAL_MS,
    NO_DELAY,
    PLAIN,
    REBALANCE_MS,
    SESSION_MS,
    StreamsRehearsal,
    codes_of,
    subtopology,
    topology,
)

DELAYED = [StatusCode.ASSIGNMENT_DELAYED]


def test_the_first_member_gets_every_task() -> None:
    """It is in the second epoch, and told all tasks and when to come again."""
    stage = StreamsRehearsal({"t": 3})
    member = stage.member("A")
    answer = member.answer
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "A", 2)
    assert answer.heartbeat_interval_ms == INTERVAL_MS
    assert member.active == {"0_0", "0_1", "0_2"}
    assert (answer.statuses, answer.missing) == ((), {})
    assert stage.streams_group.state is StreamsGroupState.STABLE


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    """And is told no tasks again, unless the member joins once more."""
    stage = StreamsRehearsal({"t": 3})
    stage.member("A")
    count = len(stage.log.records)
    assert stage.live("A", 2).tasks is None
    again = stage.joins("A")
    assert again.tasks is not None
    assert again.member_epoch == 2
    assert len(stage.log.records) == count


def test_what_a_member_says_anew_makes_a_new_epoch() -> None:
    """Everything that it says is kept, and the group's epoch grows with each change."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    tags = (KeyValue(key="zone", value="z"),)
    stage.live("A", 2, rack_id="r", rebalance_timeout_ms=7, process_id="p", client_tags=tags)
    member = stage.streams_group.members["A"]
    assert (member.rack_id, member.rebalance_timeout_ms, member.process_id) == ("r", 7, "p")
    assert member.client_tags == {"zone": "z"}
    assert stage.streams_group.epoch == 3
    assert stage.live("A", 3, rack_id="r").member_epoch == 3


def test_a_new_group_waits_for_its_members() -> None:
    """Whoever comes within the delay gets its share of the first assignment, and no task before."""
    stage = StreamsRehearsal({"t": 2}, settings={})
    first, second = stage.member("A"), stage.member("B")
    assert codes_of(first.answer) == codes_of(second.answer) == DELAYED
    assert (first.epoch, second.epoch, first.active) == (1, 1, set())
    assert codes_of(first.live()) == DELAYED
    stage.wait(DELAY_MS)
    assert stage.streams_group.assignment_epoch == 3
    stage.rest(first, second)
    assert first.active | second.active == {"0_0", "0_1"}
    assert len(first.active) == 1


def test_a_member_that_is_alone_and_silent_gets_its_tasks_later() -> None:
    """As in Kafka nobody has held the topics against the topology yet when the delay is over."""
    stage = StreamsRehearsal({"t": 2}, settings={})
    member = stage.member("A")
    stage.wait(DELAY_MS)
    assert stage.streams_group.assignment_epoch == 1
    member.live()
    assert member.active == {"0_0", "0_1"}


def test_between_two_assignments_passes_some_time() -> None:
    """Members are told that they wait, and keep what they have."""
    interval = {"group.streams.assignment.interval.ms": 1000}
    stage = StreamsRehearsal({"t": 2}, settings=NO_DELAY | interval)
    first, second = stage.member("A"), stage.member("B")
    assert codes_of(second.answer) == DELAYED
    assert second.answer.statuses[0].detail.endswith("assignment interval.")
    first.live()
    assert first.active == {"0_0", "0_1"}
    stage.wait(1000)
    stage.rest(first, second)
    assert len(first.active) == len(second.active) == 1


@pytest.mark.parametrize(
    ("own", "bounds", "expected"),
    [("70000", {}, 15_000), ("7000", {"min": 8000}, 8000), ("7000", {"max": 6000}, 6000)],
)
def test_the_brokers_bounds_win(own: str, bounds: dict[str, int], expected: int) -> None:
    """Also those that came after a group had its setting."""
    stage = StreamsRehearsal({"t": 1})
    stage.cluster.group_settings[GROUP] = {"streams.heartbeat.interval.ms": own}
    for limit, value in bounds.items():
        stage.cluster.broker_settings[f"group.streams.{limit}.heartbeat.interval.ms"] = value
    assert stage.member("A").answer.heartbeat_interval_ms == expected


def test_settings_of_the_group_win() -> None:
    """A group may have a heartbeat interval, a session timeout and a delay of its own."""
    stage = StreamsRehearsal({"t": 1})
    stage.cluster.group_settings[GROUP] = {
        "streams.heartbeat.interval.ms": "7000",
        "streams.session.timeout.ms": "50000",
        "streams.initial.rebalance.delay.ms": "100",
    }
    member = stage.member("A")
    assert member.answer.heartbeat_interval_ms == 7000
    assert codes_of(member.answer) == DELAYED
    stage.wait(SESSION_MS + 1)
    assert "A" in stage.streams_group.members
    stage.wait(5000)
    assert stage.streams_group.is_empty


def test_a_silent_member_is_out_after_its_session() -> None:
    """The others get what it had, with their next heartbeats."""
    stage = StreamsRehearsal({"t": 2})
    first, second = stage.member("A"), stage.member("B")
    stage.rest(first, second)
    stage.wait(SESSION_MS - 1)
    first.live()
    stage.wait(1)
    assert set(stage.streams_group.members) == {"A"}
    first.live()
    assert first.active == {"0_0", "0_1"}
    assert second.live().error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_back_in_time_is_out() -> None:
    """Though it goes on to say that it lives."""
    stage = StreamsRehearsal({"t": 2})
    stage.member("A")
    stage.member("B")
    assert stage.live("A", 2).tasks is not None
    for _ in range(2):
        stage.wait(REBALANCE_MS / 2)
        stage.live("A", 2)
        stage.live("B", 3)
    assert set(stage.streams_group.members) == {"B"}


def test_giving_back_stops_the_clock() -> None:
    """A member that has done what it was told to is not put out for it."""
    stage = StreamsRehearsal({"t": 2})
    first, second = stage.member("A"), stage.member("B")
    stage.rest(first, second)
    for _ in range(4):
        stage.wait(REBALANCE_MS / 2)
        first.live()
        second.live()
    assert set(stage.streams_group.members) == {"A", "B"}


def test_a_member_leaves() -> None:
    """An empty group keeps its epochs and its topology for the next member."""
    stage = StreamsRehearsal({"t": 2})
    answer = stage.member("A").leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "A", -1)
    assert stage.streams_group.state is StreamsGroupState.EMPTY
    assert stage.streams_group.epoch == 3
    assert stage.live("A", -1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    member = stage.member("B")
    assert (member.epoch, member.active) == (4, {"0_0", "0_1"})


def test_a_full_group_takes_nobody() -> None:
    """As in Kafka not even a member of its own that joins once more."""
    stage = StreamsRehearsal({"t": 1}, settings=NO_DELAY | {"group.streams.max.size": 1})
    stage.member("A")
    for name in ("A", "B"):
        assert stage.joins(name).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.live("A", 2).error_code is ErrorCode.NONE


@pytest.mark.parametrize(("epoch", "word"), [(5, "greater"), (1, "smaller")])
def test_a_wrong_epoch_is_fenced(epoch: int, word: str) -> None:
    """The member must give up everything and join again."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    answer = stage.live("A", epoch)
    assert answer.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert word in (answer.error_message or "")


def test_a_lost_answer_is_given_again() -> None:
    """A member in the epoch before may go on if it has nothing that is not its own."""
    stage = StreamsRehearsal({"t": 2})
    stage.member("A")
    stage.live("A", 2, rack_id="r")
    none: dict[str, Any] = {"standby": {}, "warmup": {}}
    assert stage.live("A", 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    for partitions, code in (({0, 1}, ErrorCode.NONE), ({7}, ErrorCode.FENCED_MEMBER_EPOCH)):
        active = {"0": frozenset(partitions)}
        assert stage.live("A", 2, active=active, **none).error_code is code
    strange = {"x": frozenset({0})}
    assert stage.live("A", 2, active=strange, **none).error_code is ErrorCode.FENCED_MEMBER_EPOCH


def test_nothing_changes_if_the_disk_refuses() -> None:
    """Who joins is told to look for another coordinator, and is not in the group."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    stage.log.is_full = True
    assert stage.joins("B").error_code is ErrorCode.NOT_COORDINATOR
    assert set(stage.streams_group.members) == {"A"}
    stage.log.is_full = False
    assert stage.joins("B").error_code is ErrorCode.NONE


def test_who_lapses_is_removed_once_the_disk_takes_it() -> None:
    """It is tried again."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    stage.log.is_full = True
    stage.wait(SESSION_MS)
    assert not stage.streams_group.is_empty
    stage.log.is_full = False
    stage.wait(1000)
    assert stage.streams_group.is_empty


def test_the_first_assignment_is_made_once_the_disk_takes_it() -> None:
    """It is tried again."""
    stage = StreamsRehearsal({"t": 1}, settings={})
    member = stage.member("A")
    member.live()
    stage.log.is_full = True
    stage.wait(DELAY_MS)
    assert stage.streams_group.assignment_epoch == 1
    stage.log.is_full = False
    stage.wait(1000)
    assert stage.streams_group.assignment_epoch == 2


def test_an_empty_classic_group_becomes_a_streams_group() -> None:
    """Its offsets stay; one with members is refused, as is one that nobody joins."""
    stage = StreamsRehearsal({"t": 1})
    stage.commit()
    refused = stage.live("A", 1)
    assert refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == f"Group {GROUP} is not a streams group."
    assert stage.member("A").epoch == 2
    assert GROUP not in stage.groups.groups
    assert stage.fetched() == 7


def test_a_classic_group_with_members_stays_one() -> None:
    """The join is refused, and nothing is written."""
    stage = StreamsRehearsal({"t": 1})
    stage.stable(1)
    count = len(stage.log.records)
    assert stage.joins("A").error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert len(stage.log.records) == count


def test_an_empty_streams_group_becomes_a_classic_one() -> None:
    """With members it refuses those of the classic protocol: 23."""
    stage = StreamsRehearsal({"t": 1})
    member = stage.member("A")
    refused = answer_to(stage.join())
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    stage.stable(1)
    assert GROUP not in stage.groups.streams.groups
    stage.restart()
    assert GROUP in stage.groups.groups


def test_groups_of_other_kinds_are_told_apart() -> None:
    """A consumer group is no streams group, and the other way round."""
    stage = StreamsRehearsal({"t": 1})
    stage.member("A")
    full: dict[str, Any] = {
        "rebalance_timeout_ms": 1,
        "owned": frozenset(),
        "subscribed_topic_names": {"t"},
    }
    for epoch in (0, 1):
        answer = stage.beat("A", epoch, **full)
        assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == f"Group {GROUP} is not a consumer group."
    with pytest.raises(RefusedRequestError, match=f"^Group {GROUP} is not a consumer group.$"):
        stage.groups.consumers.described(GROUP)


def test_topologies_are_not_updated() -> None:
    """Another topology of the same or a later epoch is refused; an older one is told so."""
    stage = StreamsRehearsal({"t": 1, "u": 1})
    stage.member("A", topology(subtopology("0", "t"), epoch=2))
    other = subtopology("0", "u")
    for epoch in (2, 3):
        answer = stage.joins("B", topology(other, epoch=epoch))
        assert answer.error_code is ErrorCode.INVALID_REQUEST
    stale = stage.joins("B", topology(other, epoch=1))
    assert codes_of(stale) == [StatusCode.STALE_TOPOLOGY]
    assert stage.streams_group.topology is not None
    assert set(stage.streams_group.topology.reader_of) == {"t"}


def test_a_shutdown_is_told_to_everybody() -> None:
    """By the name of who asked for it first, until the group is empty."""
    stage = StreamsRehearsal({"t": 2})
    first, second = stage.member("A"), stage.member("B")
    first.live(shuts_down_application=True)
    second.live(shuts_down_application=True)
    assert codes_of(second.answer) == [StatusCode.SHUTDOWN_APPLICATION]
    assert "member A encountered" in second.answer.statuses[0].detail
    first.leave()
    assert codes_of(second.live()) == [StatusCode.SHUTDOWN_APPLICATION]
    second.leave()
    assert stage.member("A", PLAIN).answer.statuses == ()
