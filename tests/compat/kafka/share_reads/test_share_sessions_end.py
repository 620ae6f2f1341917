"""What happens when members, connections, groups, topics, leaders and brokers come to their end."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.leaders import move_leaders
from logstore.compat.kafka.security.listener import Listener
from logstore.compat.kafka.share_reads.share_sessions import PartitionKey
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from tests.compat.kafka.share_reads.member import ShareStage, got, partition_of
from tests.compat.kafka.share_reads.share_requests import ACCEPT, RELEASE


def test_a_closed_session_gives_back_what_its_member_has() -> None:
    """By either request; acknowledgements in it count first."""
    for close in ("fetch", "acknowledge"):
        stage = ShareStage()
        stage.produce(4)
        member, other = stage.member(), stage.member("B")
        member.fetch(0, stage.wanted)
        other.send_fetch(0, stage.wanted)
        said = {(stage.topic_id, 0): [(0, 1, (ACCEPT,))]}
        if close == "fetch":
            answer = member.fetch(-1, said=said)
            assert partition_of(answer).acknowledge_error_code == 0
        else:
            assert member.acknowledge(-1, said).responses[0].partitions[0].error_code == 0
        assert got(other.answer()) == "2-3*2"
        assert member.fetch(1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_closed_session_fetches_nothing() -> None:
    """Its last answer is about acknowledgements."""
    stage = ShareStage()
    member = stage.member()
    member.fetch(0, stage.wanted)
    stage.produce(4)
    assert member.fetch(-1).responses == ()


def test_a_lost_connection_ends_its_session() -> None:
    """What the member has is given back at once."""
    stage = ShareStage()
    stage.produce(3)
    member, other = stage.member(), stage.member("B")
    member.fetch(0, stage.wanted)
    other.send_fetch(0, stage.wanted)
    member.connection.lost()
    assert got(other.answer()) == "0-2*2"


def test_a_lost_connection_does_not_end_a_session_of_another() -> None:
    """A member may have come again by another connection before the old one was missed."""
    stage = ShareStage()
    stage.produce(3)
    old, new = stage.member(), stage.member()
    old.fetch(0, stage.wanted)
    new.fetch(0, stage.wanted)
    old.connection.lost()
    assert new.acknowledge(1, {(stage.topic_id, 0): [(0, 2, (ACCEPT,))]}).error_code == 0


def test_who_is_gone_gets_no_records() -> None:
    """A fetch that waits ends with its connection."""
    stage = ShareStage()
    member, other = stage.member(), stage.member("B")
    other.fetch(0, stage.wanted)
    member.send_fetch(0, stage.wanted)
    member.connection.lost()
    stage.produce(2)
    assert got(other.fetch(1)) == "0-1"


def test_with_the_last_member_goes_what_is_open() -> None:
    """The state is read anew by the next one: an administrator may have changed it."""
    stage = ShareStage()
    stage.produce(6)
    member = stage.member()
    member.fetch(0, stage.wanted)
    member.acknowledge(-1, {(stage.topic_id, 0): [(0, 5, (ACCEPT,))]})
    member.connection.lost()
    assert len(stage.broker.share_partitions) == 0
    key = SharePartitionKey("g", stage.topic_id, 0)
    assert stage.broker.share_state.initialize(key, 2, 4).error_code == 0
    assert got(stage.member().fetch(0, stage.wanted)) == "4-5"


def test_a_state_that_begins_anew_fences_who_reads() -> None:
    """6 to who acknowledges, and who leads, by his own listener; the next fetch reads it anew."""
    stage = ShareStage()
    stage.produce(6)
    member = stage.member()
    member.fetch(0, stage.wanted)
    inside = Listener("INSIDE", advertised_host="inside", advertised_port=7)
    stage.broker.listeners.append(inside)
    member.connection.client.listener = inside
    stage.initialize(stage.topic_id, 0, epoch=2)
    said = {(stage.topic_id, 0): [(0, 5, (ACCEPT,))]}
    answer = member.acknowledge(1, said)
    found = answer.responses[0].partitions[0]
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.current_leader.leader_id == stage.broker.node_id
    assert [(node.host, node.port) for node in answer.node_endpoints] == [("inside", 7)]
    assert got(member.fetch(2)) == "0-5"


def test_a_state_that_is_gone_is_told() -> None:
    """As when the group was deleted: -1, and the members keep what they have until it times out."""
    stage = ShareStage()
    stage.produce(6)
    member = stage.member()
    member.fetch(0, stage.wanted)
    stage.broker.share_state.delete(SharePartitionKey("g", stage.topic_id, 0))
    said = {(stage.topic_id, 0): [(0, 5, (ACCEPT,))]}
    found = member.acknowledge(1, said).responses[0].partitions[0]
    assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert found.error_message == "Write operation on uninitialized share partition not allowed."
    member.acknowledge(-1, {})
    member.connection.lost()
    stopped = partition_of(stage.member().fetch(0, stage.wanted))
    assert stopped.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_deleted_topic_is_told() -> None:
    """Who waits is answered when the time is over, and then told of it."""
    stage = ShareStage()
    stage.produce(2)
    member, other = stage.member(), stage.member("B")
    member.fetch(0, stage.wanted)
    other.send_fetch(0, stage.wanted)
    stage.broker.delete_topic(stage.broker.topics["t"])
    said = {(stage.topic_id, 0): [(0, 1, (ACCEPT,))]}
    code = member.acknowledge(1, said).responses[0].partitions[0].error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_ID
    assert partition_of(member.fetch(2)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert len(stage.broker.share_partitions) == 0
    stage.let_pass(500)
    answer = other.answer()
    assert answer is not None
    assert answer.responses == ()


def test_a_topic_of_the_same_name_is_another() -> None:
    """Its records have nothing to do with those of the deleted one."""
    stage = ShareStage()
    stage.produce(5)
    stage.member().fetch(0, stage.wanted)
    stage.broker.delete_topic(stage.broker.topics["t"])
    topic_id = stage.create("t")
    stage.produce(2)
    assert got(stage.member("B").fetch(0, {topic_id: [0]})) == "0-1"


def test_a_topic_that_grows_has_partitions_to_read() -> None:
    """As soon as the group has a state of them."""
    stage = ShareStage()
    member = stage.member()
    member.fetch(0, stage.wanted)
    stage.broker.add_partitions(stage.broker.topics["t"], 2)
    stage.initialize(stage.topic_id, 1)
    stage.produce(3, 1)
    assert got(member.fetch(1, {stage.topic_id: [1]})) == "0-2"


def test_a_leader_that_moved_knows_nothing() -> None:
    """3 to who acknowledges what the last one handed out; it is free, and the count goes on."""
    stage = ShareStage()
    stage.produce(4)
    member = stage.member()
    member.fetch(0, stage.wanted)
    member.acknowledge(1, {(stage.topic_id, 0): [(0, 0, (RELEASE,))]})
    move_leaders(stage.broker, "t")
    answer = member.acknowledge(2, {(stage.topic_id, 0): [(1, 3, (ACCEPT,))]})
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert got(member.fetch(3)) == "0-0*2 1-3"


def test_deleted_records_are_passed_over() -> None:
    """The fetch that learns of it gives nothing, and the next one what is left."""
    stage = ShareStage()
    stage.produce(5)
    stage.produce(5)
    member = stage.member()
    member.fetch(0, stage.wanted, max_records=0)
    stage.broker.share_partitions.opened("g", PartitionKey(stage.topic_id, 0))
    stage.broker.topics["t"].partitions[0].delete_records(5)
    assert got(member.fetch(1)) == "nothing"
    assert got(member.fetch(2)) == "5-9"


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_restart_forgets_who_has_what(loses_power: bool) -> None:
    """What is final stays so, and what was acquired is free; sessions begin anew."""
    stage = ShareStage()
    stage.produce(6)
    member = stage.member()
    member.fetch(0, stage.wanted)
    said = {(stage.topic_id, 0): [(0, 1, (ACCEPT,)), (3, 3, (ACCEPT,)), (4, 4, (RELEASE,))]}
    assert member.acknowledge(1, said).error_code == 0
    if loses_power:
        for partition in stage.broker.store.partitions():
            partition.flush()
    stage.restart(loses_power=loses_power)
    member = stage.member()
    assert member.fetch(2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert got(member.fetch(0, stage.wanted)) == "2-2 4-4*2 5-5"


def test_records_that_a_power_loss_took_are_not_known() -> None:
    """Others get their offsets, and are delivered, whatever was said of those that are lost."""
    stage = ShareStage()
    stage.produce(4)
    stage.broker.topics["t"].partitions[0].flush()
    stage.produce(4)
    member = stage.member()
    member.fetch(0, stage.wanted)
    member.acknowledge(1, {(stage.topic_id, 0): [(0, 7, (ACCEPT,))]})
    for partition in stage.broker.store.partitions():
        if partition.topic != "t":
            partition.flush()
    stage.restart(loses_power=True)
    assert stage.broker.topics["t"].partitions[0].end_offset == 4
    stage.produce(3)
    member = stage.member()
    assert got(member.fetch(0, stage.wanted)) == "4-6"
    assert member.acknowledge(1, {(stage.topic_id, 0): [(4, 4, (ACCEPT,))]}).error_code == 0
    stage.restart()
    stage.produce(1)
    assert got(stage.member().fetch(0, stage.wanted)) == "5-7"
