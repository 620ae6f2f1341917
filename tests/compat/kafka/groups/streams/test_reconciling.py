"""Tasks move from member to member: given back first, and never twice in one process."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order
from logstore.compat.kafka.groups.streams.member import StreamsMember
from logstore.compat.kafka.groups.streams.reconciliation import Reconciliation
from logstore.compat.kafka.groups.streams.states import MemberState
from logstore.compat.kafka.groups.streams.task_owners import TaskOwners
from logstore.compat.kafka.groups.streams.tasks import HeldTasks, TargetTasks
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import Endpoint
from tests.compat.kafka.groups.rehearsal import GROUP
from tests.compat.kafka.groups.streams.rehearsal import (
    PLAIN,
    Member,
    StreamsRehearsal,
    internal,
    subtopology,
    topology,
)

STATEFUL = topology(subtopology("0", "t", state_changelog_topics=(internal("log"),)))


def stage_with_copies(count: int = 1) -> StreamsRehearsal:
    """Return a stage on which stateful tasks have standbys."""
    stage = StreamsRehearsal({"t": 2, "log": 2})
    stage.cluster.group_settings[GROUP] = {"streams.num.standby.replicas": str(count)}
    return stage


def test_a_task_moves_once_it_is_given_back() -> None:
    """The old owner is told first; the new one is in the epoch, and waits."""
    stage = StreamsRehearsal({"t": 2})
    first, second = stage.member("A"), stage.member("B")
    assert (second.epoch, second.active) == (3, set())
    first.take(stage.live("A", 2))
    assert (first.epoch, len(first.active)) == (2, 1)
    second.live()
    assert second.active == set()
    first.live()
    second.live()
    assert (first.epoch, second.epoch) == (3, 3)
    assert first.active | second.active == {"0_0", "0_1"}


def test_who_has_let_go_at_once_is_at_once_in_the_new_epoch() -> None:
    """A member that says it has nothing of what it would have to give back need not wait."""
    stage = StreamsRehearsal({"t": 2})
    stage.member("A")
    stage.member("B")
    answer = stage.live("A", 2, active={}, standby={}, warmup={})
    assert answer.member_epoch == 3


def test_a_process_has_a_task_once() -> None:
    """Standbys go to other processes than the active task; if there are none there are fewer."""
    stage = stage_with_copies()
    first = stage.member("A", STATEFUL, "p")
    alone = stage.member("B", STATEFUL, "p")
    stage.rest(first, alone)
    assert first.active | alone.active == {"0_0", "0_1"}
    assert first.standby == alone.standby == set()
    third = stage.member("C", STATEFUL, "q")
    stage.rest(first, alone, third)
    for member in (first, alone, third):
        assert member.active.isdisjoint(member.standby)
    assert (first.standby | alone.standby).isdisjoint(first.active | alone.active)
    assert len(first.standby) + len(alone.standby) + len(third.standby) == 2


def test_a_standby_takes_over() -> None:
    """Whoever has a copy of the state gets the active task when its owner goes."""
    stage = stage_with_copies()
    members = {name: stage.member(name, STATEFUL) for name in ("A", "B", "C")}
    stage.rest(*members.values())
    owner = next(one for one in members.values() if "0_0" in one.active)
    copier = next(one for one in members.values() if "0_0" in one.standby)
    owner.leave()
    rest = [one for one in members.values() if one is not owner]
    stage.rest(*rest)
    assert "0_0" in copier.active
    assert "0_0" not in copier.standby


def test_another_number_of_copies_is_another_epoch() -> None:
    """As soon as somebody lives after the setting has changed."""
    stage = stage_with_copies(0)
    members = [stage.member(name, STATEFUL) for name in ("A", "B")]
    stage.rest(*members)
    epoch = stage.streams_group.epoch
    stage.cluster.group_settings[GROUP] = {"streams.num.standby.replicas": "1"}
    stage.rest(*members)
    assert stage.streams_group.epoch == epoch + 1
    assert stage.streams_group.assignment_configs == {"num.standby.replicas": "1"}
    assert {len(member.standby) for member in members} == {1}


def test_active_tasks_wait_for_the_copy_in_their_process() -> None:
    """And a copy for the active task: both would use the same directory."""
    owners = TaskOwners()
    copy = HeldTasks({}, {"0": frozenset({0})})
    owners.add(StreamsMember("other", process_id="p", assigned=copy))
    member = StreamsMember("m", process_id="p")
    target = TargetTasks({"0": frozenset({0, 1})})
    after = Reconciliation(target, 5, None, owners).next_of(member)
    assert after.state is MemberState.UNRELEASED_TASKS
    assert (after.member_epoch, after.assigned.active) == (5, {"0": {1: 5}})
    owners.add(StreamsMember("busy", process_id="q", assigned=HeldTasks({"1": {0: 2}})))
    wanted = TargetTasks({"1": frozenset({0})}, {"1": frozenset({0})})
    for process_id, standby in (("q", {}), ("r", {"1": frozenset({0})})):
        member = StreamsMember("m", process_id=process_id)
        after = Reconciliation(wanted, 5, None, owners).next_of(member)
        assert (after.assigned.active, after.assigned.standby) == ({}, standby)


def test_a_member_that_gives_back_twice_counts_epochs_as_kafka_does() -> None:
    """The target has changed while it gave back: it is one epoch on, and gives back more."""
    held = HeldTasks({"0": {0: 1, 1: 1}})
    member = StreamsMember(
        "m", 2, previous_member_epoch=1, state=MemberState.UNREVOKED_TASKS, process_id="p",
        assigned=held, pending_revocation=HeldTasks({"0": {2: 1}}),
    )  # fmt: skip
    has = TargetTasks({"0": frozenset({0, 1})})
    step = Reconciliation(TargetTasks({"0": frozenset({0})}), 9, has, TaskOwners())
    after = step.next_of(member)
    assert (after.member_epoch, after.previous_member_epoch) == (3, 2)
    assert after.state is MemberState.UNREVOKED_TASKS
    assert after.pending_revocation.active == {"0": {1: 1}}


@pytest.mark.parametrize("owned", [None, TargetTasks({"0": frozenset({0})})])
def test_a_state_of_a_newer_broker_is_left_with_empty_hands(owned: TargetTasks | None) -> None:
    """Whoever has tasks must give them up and join again."""
    member = StreamsMember("m", 2, state=MemberState.of(99))
    assert member.state is MemberState.UNKNOWN
    with pytest.raises(RefusedRequestError) as refused:
        Reconciliation(TargetTasks(), 3, owned, TaskOwners()).next_of(member)
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    after = Reconciliation(TargetTasks(), 3, TargetTasks(), TaskOwners()).next_of(member)
    assert (after.state, after.member_epoch) == (MemberState.STABLE, 3)


def endpoint_of(member: Member) -> dict[str, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return the active partitions by host, as a member was told last."""
    told = member.answer.endpoints
    assert told is not None
    return {one.endpoint.host: one.active for one in told}


def test_members_are_told_where_tasks_can_be_asked_for() -> None:
    """Once an epoch, which grows whenever a member with an endpoint gets other tasks."""
    stage = StreamsRehearsal({"t": 3, "u": 1})
    told = topology(subtopology("0", "t", "u"))
    here, there = Endpoint(host="here", port=1), Endpoint(host="there", port=2)
    first = Member(stage, "A")
    first.take(stage.joins("A", told, user_endpoint=here))
    assert endpoint_of(first) == {"here": (("t", (0, 1, 2)), ("u", (0,)))}
    assert first.answer.endpoint_epoch == 0  # of a group that did not exist when it was asked
    assert first.live(endpoint_epoch=0).endpoints is None
    second = Member(stage, "B")
    second.take(stage.joins("B", told, user_endpoint=there))
    assert second.answer.endpoint_epoch == 1
    assert set(endpoint_of(second)) == {"here", "there"}
    assert first.live(endpoint_epoch=2).endpoint_epoch == 2
    assert first.answer.endpoints is None
    first.live(endpoint_epoch=0)
    assert {host: len(dict(it).get("t", ())) for host, it in endpoint_of(first).items()} == {
        "here": 2, "there": 0,
    }  # fmt: skip


def test_an_endpoint_without_topics_is_kafkas_error() -> None:
    """It cannot be worked out which partitions are there: -1, and no group comes to be."""
    stage = StreamsRehearsal({})
    answer = stage.joins("A", PLAIN, user_endpoint=Endpoint(host="h", port=1), endpoint_epoch=-1)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.groups.streams.groups == {}


def test_endpoints_come_in_the_order_of_kafkas_table() -> None:
    """And that of who asks comes last."""
    stage = StreamsRehearsal({"t": 1})
    for name in "DACB":
        stage.joins(name, PLAIN, user_endpoint=Endpoint(host=name, port=1))
    answer = stage.live("C", stage.streams_group.members["C"].member_epoch)
    assert answer.endpoints is not None
    assert [one.endpoint.host for one in answer.endpoints] == [
        *(name for name in members_in_timeline_order("DACB") if name != "C"), "C",
    ]  # fmt: skip


def test_what_a_topology_comes_to_is_kept_with_a_refusal() -> None:
    """A member has an endpoint and the topics are gone: -1, and the group is not ready."""
    stage = StreamsRehearsal({"t": 1})
    stage.joins("A", PLAIN, user_endpoint=Endpoint(host="h", port=1))
    del stage.cluster.topics["t"]
    answer = stage.live("A", 2, endpoint_epoch=-1)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    configured = stage.streams_group.configured
    assert configured is not None
    assert configured.subtopologies is None


@pytest.mark.parametrize(("epoch_is_told", "code"), [(False, -1), (True, 0)])
def test_who_names_a_subtopology_twice_is_refused(epoch_is_told: bool, code: int) -> None:
    """As in Kafka only where it matters what the member has."""
    stage = StreamsRehearsal({"t": 2})
    first = stage.member("A")
    if not epoch_is_told:
        stage.member("B")
    epoch = first.epoch
    answer = stage.live(
        "A", epoch, active={"0": frozenset((0, 1))}, standby={}, warmup={}, names_twice=True
    )
    assert answer.error_code == code
