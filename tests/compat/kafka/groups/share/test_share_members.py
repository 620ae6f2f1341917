"""Members of share groups join, share partitions, are fenced, and lapse."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from logstore.compat.kafka.emulation.release import Emulation
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.messages import ShareGroupHeartbeatResponse
from tests.compat.kafka.groups.share.share_conversation import ShareConversation, given

JOIN: dict[str, Any] = {"subscribed_topic_names": ("t",)}


def joined(conversation: ShareConversation, member: str = "A", group: str = "g") -> int:
    """Let a member join, and ask again once partitions are assigned; return its epoch."""
    answer = conversation.share_beat(group, member, 0, **JOIN)
    assert answer.error_code == 0, answer
    conversation.pause()
    return conversation.share_beat(group, member, answer.member_epoch).member_epoch


def outcome(answer: ShareGroupHeartbeatResponse) -> tuple[int, str | None]:
    """Return code and message."""
    return answer.error_code, answer.error_message


def test_a_member_reads_everything_once_states_have_begun() -> None:
    """The first heartbeat begins the states; a later one gives the partitions, a third nothing."""
    conversation = ShareConversation()
    topic = conversation.made("t", 3)
    first = conversation.share_beat("g", "A", 0, **JOIN)
    assert (given(first), first.member_epoch, first.heartbeat_interval_ms) == ({}, 2, 5000)
    conversation.pause()
    second = conversation.share_beat("g", "A", 2)
    assert (given(second), second.member_epoch) == ({topic: (0, 1, 2)}, 3)
    third = conversation.share_beat("g", "A", 3)
    assert (third.assignment, third.member_epoch) == (None, 3)
    assert given(conversation.share_beat("g", "A", 3, **JOIN)) == {topic: (0, 1, 2)}
    (described,) = conversation.describe_share("g")
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    (member,) = described.members
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == (
        "test", "/127.0.0.1", ("t",),
    )  # fmt: skip
    (has,) = member.assignment.topic_partitions
    assert (has.topic_name, has.partitions) == ("t", (0, 1, 2))


def test_assignments_are_not_worked_out_more_often_than_set() -> None:
    """Within a second of an assignment members are in its epoch, with what it gives them."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    conversation.share_beat("g", "A", 0, **JOIN)
    early = conversation.share_beat("g", "B", 0, **JOIN)
    assert (given(early), early.member_epoch) == ({}, 2)
    assert (conversation.group().epoch, conversation.group().assignment_epoch) == (3, 2)
    at_once = ShareConversation({"group.share.assignment.interval.ms": "0"})
    topic = at_once.made("t", 1)
    at_once.share_beat("g", "A", 0, **JOIN)
    assert given(at_once.share_beat("g", "B", 0, **JOIN)) == {topic: (0,)}


@pytest.mark.parametrize(("release", "is_at_once"), [("4.2", True), ("4.3", False)])
def test_before_4_3_assignments_are_worked_out_at_once(release: str, *, is_at_once: bool) -> None:
    """A member is given its partitions as it joins, not a heartbeat of five seconds later."""
    conversation = ShareConversation(Emulation.of(release).settings({}))
    topic = conversation.made("t", 1)
    conversation.share_beat("g", "A", 0, **JOIN)
    late = conversation.share_beat("g", "B", 0, **JOIN)
    assert given(late) == ({topic: (0,)} if is_at_once else {})


def test_two_members_read_the_same_partition() -> None:
    """Partitions are for as many as it takes: two members of one partition both have it."""
    conversation = ShareConversation()
    topic = conversation.made("t", 1)
    epoch = joined(conversation)
    joined(conversation, "B")
    answer = conversation.share_beat("g", "A", epoch, **JOIN)
    assert given(answer) == {topic: (0,)}
    assert given(conversation.share_beat("g", "B", 0, **JOIN)) == {topic: (0,)}


def test_another_subscription_brings_other_partitions() -> None:
    """Who subscribes to something else gets that, once its states have begun."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    other = conversation.made("u", 2)
    epoch = joined(conversation)
    changed = conversation.share_beat("g", "A", epoch, subscribed_topic_names=("u", "none"))
    assert given(changed) == {}
    conversation.pause()
    assert given(conversation.share_beat("g", "A", changed.member_epoch)) == {other: (0, 1)}


def test_new_partitions_are_assigned_and_those_of_a_gone_topic_are_not() -> None:
    """A topic grows: its new partitions begin and are given. It goes: nobody has it any more."""
    conversation = ShareConversation()
    topic = conversation.made("t", 1)
    epoch = joined(conversation)
    conversation.broker.add_partitions(conversation.broker.topics["t"], 3)
    grown = conversation.share_beat("g", "A", epoch)
    assert grown.member_epoch == epoch, "an assignment was just made"
    conversation.pause()
    assert given(conversation.share_beat("g", "A", epoch)) == {topic: (0, 1, 2)}
    epoch = conversation.group().members["A"].member_epoch
    conversation.broker.delete_topic(conversation.broker.topics["t"])
    conversation.pause()
    assert given(conversation.share_beat("g", "A", epoch)) == {}
    assert conversation.starts("g").topics == ()
    assert conversation.state_record_count() == 6, "each state has its tombstone"


@pytest.mark.parametrize(
    ("group", "member", "epoch", "fields", "message"),
    [
        ("g", "", 0, JOIN, None),
        ("g", "A" * 37, 0, JOIN, None),
        ("g", " \t", 0, JOIN, "MemberId can't be empty."),
        ("", "A", 0, JOIN, "GroupId can't be empty."),
        (" ", "A", 0, JOIN, "GroupId can't be empty."),
        ("g", "A", 0, JOIN | {"rack_id": " "}, "RackId can't be empty."),
        ("g", "A", 0, JOIN | {"rack_id": ""}, "RackId can't be empty."),
        ("g", "A", 0, {}, "SubscribedTopicNames must be set in first request."),
        (
            "g", "A", 0, {"subscribed_topic_names": ()},
            "SubscribedTopicNames must be set in first request.",
        ),
        ("g", "A", -2, {}, "MemberEpoch is invalid."),
    ],
)  # fmt: skip
def test_what_contradicts_itself(
    group: str, member: str, epoch: int, fields: dict[str, Any], message: str | None
) -> None:
    """Such a heartbeat is an invalid request, and brings no group into being."""
    conversation = ShareConversation()
    answer = conversation.share_beat(group, member, epoch, **fields)
    assert outcome(answer) == (ErrorCode.INVALID_REQUEST, message)
    assert conversation.broker.groups.share_groups == {}


def test_who_is_not_there() -> None:
    """Groups and members that nobody knows are told apart."""
    conversation = ShareConversation()
    unknown_group, unknown_member = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID
    assert outcome(conversation.share_beat("g", "A", 1)) == (
        unknown_group, "Share group g not found.",
    )  # fmt: skip
    assert outcome(conversation.share_beat("g", "A", -1)) == (unknown_group, "Group g not found.")
    conversation.made("t", 1)
    joined(conversation)
    for epoch in (1, -1):
        assert outcome(conversation.share_beat("g", "B", epoch)) == (
            unknown_member, "Member B is not a member of group g.",
        )  # fmt: skip


def test_epochs_that_are_not_the_members() -> None:
    """The epoch before the current one is an answer that got lost; any other is fenced."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    assert joined(conversation) == 3
    assert conversation.share_beat("g", "A", 2).error_code == 0
    code, greater = outcome(conversation.share_beat("g", "A", 4))
    assert code == ErrorCode.FENCED_MEMBER_EPOCH
    assert greater is not None
    assert "greater member epoch (4)" in greater
    _, smaller = outcome(conversation.share_beat("g", "A", 1))
    assert smaller is not None
    assert "smaller member epoch (1)" in smaller
    assert "does not match the previous member epoch (2)" in smaller


def test_a_full_group_takes_nobody_else() -> None:
    """Who is in stays in; who is not has to wait until somebody goes."""
    conversation = ShareConversation({"group.share.max.size": "1"})
    conversation.made("t", 1)
    epoch = joined(conversation)
    answer = conversation.share_beat("g", "B", 0, **JOIN)
    assert outcome(answer) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )
    assert conversation.share_beat("g", "A", epoch).error_code == 0
    assert conversation.share_beat("g", "A", -1).error_code == 0
    assert conversation.share_beat("g", "B", 0, **JOIN).error_code == 0


def test_a_member_that_leaves_or_lapses_is_gone() -> None:
    """Both leave the same records; the group stays, without members."""
    for leaves in (True, False):
        conversation = ShareConversation()
        conversation.made("t", 1)
        joined(conversation)
        if leaves:
            answer = conversation.share_beat("g", "A", -1)
            assert (answer.member_id, answer.member_epoch, answer.assignment) == ("A", -1, None)
        else:
            conversation.pause(44_999)
            assert conversation.group().members
            conversation.pause(1)
        assert conversation.group().members == {}
        *_, current, target, member, epoch = conversation.changes()
        kinds = [one.record_type for one in (current, target, member, epoch)]
        assert kinds == [
            records.KIND.current,
            records.KIND.target,
            records.KIND.member,
            records.KIND.epoch,
        ]
        assert [one.value for one in (current, target, member)] == [None, None, None]
        (described,) = conversation.describe_share("g")
        assert (described.group_state, described.group_epoch, described.members) == ("Empty", 4, ())


def test_a_group_can_have_other_times() -> None:
    """Session and interval are the group's own, within the broker's bounds."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    settings = {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "7000"}
    conversation.broker.store.metadata.change_resource(32, "g", settings)
    assert conversation.share_beat("g", "A", 0, **JOIN).heartbeat_interval_ms == 7000
    conversation.pause(49_999)
    assert conversation.group().members
    conversation.pause(1)
    assert conversation.group().members == {}


def test_a_lapse_that_the_disk_refuses_is_tried_again() -> None:
    """The member stays until its end can be written."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    joined(conversation)
    conversation.host.fs.faults.fail_next("write", errno.EIO)
    conversation.pause(45_000)
    assert conversation.group().members
    conversation.restart()
    conversation.pause(45_000)
    assert conversation.group().members == {}


def test_a_heartbeat_that_the_disk_refuses_changes_nothing() -> None:
    """The member is not in, and looks for another coordinator."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    joined(conversation)
    conversation.host.fs.faults.fail_next("write", errno.EIO)
    answer = conversation.share_beat("g", "B", 0, **JOIN)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert list(conversation.group().members) == ["A"]


def test_a_group_is_there_again_after_a_restart() -> None:
    """Members, epochs, assignments and states come out of the log; members have a session left."""
    conversation = ShareConversation()
    topic = conversation.made("t", 2)
    epoch = joined(conversation)
    before = conversation.describe_share("g"), conversation.group().state_partitions
    conversation.restart()
    after = conversation.describe_share("g"), conversation.group().state_partitions
    assert after[0] == before[0]
    assert after[1] is not None
    assert before[1] is not None
    assert set(after[1].initialized) == set(before[1].initialized) == {topic}
    assert conversation.share_beat("g", "A", epoch).member_epoch == epoch
    conversation.pause(45_000)
    assert conversation.group().members == {}


def test_states_whose_beginning_was_cut_short_begin_later() -> None:
    """What stands as being begun, and is not, is begun again after half a minute."""
    conversation = ShareConversation()
    topic = conversation.made("t", 1)
    conversation.share_beat("g", "A", 0, **JOIN)
    group = conversation.group()
    assert group.state_partitions is not None
    cut = group.state_partitions.without_topics([topic])
    begun = group.state_partitions.initialized
    conversation.broker.groups.shares.states.commit(group, cut.with_initializing(begun))
    conversation.restart()
    conversation.share_beat("g", "A", 2)
    assert conversation.group().state_partitions == cut.with_initializing(
        {topic: begun[topic]._replace(since_ms=conversation.host.clock.wall_ms())}
    )
    conversation.pause(30_000)
    conversation.share_beat("g", "A", 2)
    states = conversation.group().state_partitions
    assert states is not None
    assert (set(states.initializing), set(states.initialized)) == (set(), {topic})


def test_states_that_cannot_begin_are_begun_with_the_next_heartbeat() -> None:
    """If the share coordinator's disk refuses, nothing counts as begun."""
    conversation = ShareConversation({"share.coordinator.state.topic.num.partitions": "1"})
    topic = conversation.made("t", 1)
    answer = conversation.share_beat("g", "A", 0, subscribed_topic_names=("none",))
    key = "g:AAAAAAAAAAAAAAAAAAAAAA:0"
    conversation.ask("FindCoordinator", 6, key_type=2, coordinator_keys=[key])
    conversation.host.fs.faults.fail_next("write", errno.EIO, path="*/__share_group_state-0/*")
    epoch = answer.member_epoch
    answer = conversation.share_beat("g", "A", epoch, **JOIN)
    assert answer.error_code == 0
    states = conversation.group().state_partitions
    assert states is not None
    assert (dict(states.initializing), dict(states.initialized)) == ({}, {})
    conversation.share_beat("g", "A", answer.member_epoch)
    states = conversation.group().state_partitions
    assert states is not None
    assert set(states.initialized) == {topic}


def test_where_the_cluster_has_no_share_groups() -> None:
    """Without ``share.version`` every API of share groups is unsupported."""
    conversation = ShareConversation()
    conversation.made("t", 1)
    conversation.broker.change_features({"share.version": 0})
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert outcome(conversation.share_beat("g", "A", 0, **JOIN)) == (unsupported, None)
    assert [one.error_code for one in conversation.describe_share("g")] == [unsupported]
    assert conversation.starts("g").error_code == unsupported
    text = "The version of API is not supported."
    for answer in (conversation.alter("g", {"t": {0: 0}}), conversation.forget("g", "t")):
        assert (answer.error_code, answer.error_message) == (unsupported, text)
    assert conversation.broker.groups.share_groups == {}
