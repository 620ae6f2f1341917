"""Consumers of the classic protocol in a consumer group: JoinGroup, SyncGroup and Heartbeat."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.member import ConsumerMember
from logstore.compat.kafka.groups.consumer.records import member_metadata
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.exchange import GroupProtocol, Synced
from logstore.compat.kafka.groups.migration.policy import MigrationPolicy
from logstore.compat.kafka.groups.modern.member import MemberState
from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.offsets_log import TransactionalProducer
from logstore.segments.kafka.internal_topics.codec import decode_version, decode_versioned
from logstore.segments.kafka.internal_topics.consumer_group import ClassicMemberMetadata
from logstore.segments.kafka.internal_topics.consumer_protocol import ConsumerProtocolAssignment
from logstore.segments.kafka.kafka_uuid import uuid_from_text
from tests.compat.kafka.groups.migration.rehearsal import (
    REBALANCING,
    ClassicConsumer,
    MigrationRehearsal,
    assignment,
    subscription,
)
from tests.compat.kafka.groups.rehearsal import GROUP, REBALANCE_MS, SESSION_MS

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
INCONSISTENT = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def mixed(**settings: Any) -> tuple[MigrationRehearsal, ClassicConsumer]:
    """Return a consumer group: N has one partition of two, and a classic member the other."""
    stage = MigrationRehearsal({"t": 2, "u": 1}, **settings)
    new = stage.consumer("N", "t")
    classic = ClassicConsumer(stage)
    classic.join()
    classic.sync()
    stage.calm(new, classic)
    assert (len(new.owned), len(classic.owned)) == (1, 1)
    return stage, classic


def test_an_eager_member_gives_up_all_and_gets_its_part() -> None:
    """It is told to join again, says that it has nothing, and has its new part at once."""
    stage = MigrationRehearsal({"t": 3})
    (one,) = stage.classic({0, 1, 2})
    new = stage.consumer("N", "t")
    assert (one.beat(), one.generation) == (REBALANCING, 1)
    joined = one.join()
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 2)
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert (joined.leader_id, joined.members) == ("", ())
    one.sync()
    new.beat()
    assert (len(one.owned), one.owned | new.has("t")) == (2, {0, 1, 2})
    assert one.beat() is ErrorCode.NONE
    assert stage.consumer_group.state is ConsumerGroupState.STABLE


def test_a_cooperative_member_gives_back_only_what_it_must() -> None:
    """It stays in its epoch until it has, and is told so; nobody has it before."""
    stage = MigrationRehearsal({"t": 3})
    (one,) = stage.classic({0, 1, 2}, is_cooperative=True)
    new = stage.consumer("N", "t")
    one.beat()
    assert one.join().generation_id == 1
    assert stage.consumer_group.members[one.member_id].state is MemberState.UNREVOKED_PARTITIONS
    assert one.sync().error_code is ErrorCode.NONE
    assert len(one.owned) == 2
    new.beat()
    assert new.owned == frozenset()
    assert one.beat() is REBALANCING
    assert one.join().generation_id == 2
    one.sync()
    new.beat()
    assert one.owned | new.has("t") == {0, 1, 2}


def test_one_that_waits_is_told_once_its_part_is_free() -> None:
    """Before that another join would bring it nothing."""
    stage = MigrationRehearsal({"t": 2})
    new = stage.consumer("N", "t")
    one = ClassicConsumer(stage)
    one.join()
    one.sync()
    assert (one.owned, one.beat()) == (set(), ErrorCode.NONE)
    new.beat()
    assert one.beat() is ErrorCode.NONE
    new.beat()
    assert one.beat() is REBALANCING
    one.join()
    one.sync()
    assert len(one.owned) == 1


def test_a_new_member_gets_an_id_first_if_it_knows_about_that() -> None:
    """Any id that it comes with then is good."""
    stage, _ = mixed()
    one = ClassicConsumer(stage)
    sent_back = one.join(must_know_member_id=True)
    assert sent_back.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert len(uuid_from_text(sent_back.member_id)) == 16
    assert sent_back.member_id not in stage.consumer_group.members
    joined = one.join(must_know_member_id=True, member_id=sent_back.member_id)
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, sent_back.member_id)
    assert ClassicConsumer(stage).join(member_id="any").member_id == "any"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"protocol_type": "connect"}, INCONSISTENT),
        ({"protocols": ()}, INCONSISTENT),
        ({"protocols": (GroupProtocol("other", subscription("t")),)}, INCONSISTENT),
        ({"protocols": (GroupProtocol("range", b"\0"),)}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"group_instance_id": "i", "member_id": "x"}, UNKNOWN),
    ],
)
def test_joins_that_are_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    """A member must have a protocol in common with the other classic ones, and be readable."""
    stage, classic = mixed()
    before = len(stage.log.records)
    assert ClassicConsumer(stage).join(**changes).error_code is code
    assert len(stage.log.records) == before
    assert classic.beat() is ErrorCode.NONE


def test_a_full_group() -> None:
    """Members may join again, nobody else."""
    stage, classic = mixed(consumer_group_max_size=2)
    refused = ClassicConsumer(stage).join()
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert classic.join().error_code is ErrorCode.NONE


def test_a_full_disk() -> None:
    """A join that changes something changes nothing."""
    stage, classic = mixed()
    stage.log.is_full = True
    refused = classic.join(protocols=(GroupProtocol("range", subscription("t", "u")),))
    assert refused.error_code is ErrorCode.NOT_COORDINATOR
    assert classic.beat() is ErrorCode.NONE
    assert stage.consumer_group.members[classic.member_id].subscribed_topic_names == {"t"}


def test_nobody_joins_where_nothing_migrates() -> None:
    """Neither new members nor such as are in."""
    stage = MigrationRehearsal({"t": 2}, consumer_migration_policy=MigrationPolicy.DISABLED)
    stage.consumer("N", "t", instance_id="i")
    for instance in (None, "j", "i"):
        joined = ClassicConsumer(stage, instance=instance).join()
        assert (joined.error_code, joined.member_id) == (INCONSISTENT, "")


def test_the_version_of_an_assignment_is_the_members() -> None:
    """It is the one of the subscription that it joined with."""
    _, classic = mixed()
    for version in (0, 1, 2, 3):
        classic.join(protocols=(GroupProtocol("range", subscription("t", version=version)),))
        synced = classic.sync()
        assert decode_version(synced.assignment) == version
    classic.join(protocols=(GroupProtocol("range", b"\x01\0" + subscription("t")[2:]),))
    assert classic.sync().assignment == assignment(classic.owned)


def test_a_sync_says_what_it_was_asked() -> None:
    """Old requests name no protocol."""
    _, classic = mixed()
    synced = classic.sync(protocol_type=None, protocol_name=None)
    assert synced == Synced(ErrorCode.NONE, assignment(classic.owned))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x"}, UNKNOWN),
        ({"member_id": "N"}, UNKNOWN),
        ({"group_instance_id": "i"}, UNKNOWN),
        ({"group_id": "x"}, UNKNOWN),
        ({"protocol_type": "connect"}, INCONSISTENT),
        ({"protocol_name": "other"}, INCONSISTENT),
    ],
)
def test_syncs_that_are_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    """A member must be known, speak the classic protocol, and be in its epoch."""
    _, classic = mixed()
    assert classic.sync(**changes) == Synced(code)


def test_a_sync_that_comes_too_late() -> None:
    """There is a new target already: the member must join again, and in time."""
    stage, classic = mixed()
    stage.consumer("M", "t", "u")
    assert classic.sync() == Synced(REBALANCING)
    for _ in range(8):
        stage.wait(REBALANCE_MS / 8 + 1)
        classic.beat()
        stage.beat("N", stage.consumer_group.members["N"].member_epoch)
        stage.beat("M", stage.consumer_group.members["M"].member_epoch)
    assert classic.member_id not in stage.consumer_group.members


def test_heartbeats_that_are_refused() -> None:
    """As syncs are."""
    stage, classic = mixed()
    member_id, generation = classic.member_id, classic.generation
    beat = stage.groups.heartbeat
    assert beat(GROUP, member_id, None, generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert beat(GROUP, "x", None, generation) is UNKNOWN
    assert beat(GROUP, "N", None, generation) is UNKNOWN
    assert beat(GROUP, member_id, "i", generation) is UNKNOWN
    assert beat("x", member_id, None, generation) is UNKNOWN


def test_topics_are_told_as_kafka_walks_them() -> None:
    """By the hashes of their ids, not by their names."""
    stage = MigrationRehearsal({"a": 1, "b": 1, "c": 1})
    stage.consumer("N", "none")
    classic = ClassicConsumer(stage, topics=("a", "b", "c"))
    classic.join()
    given = decode_versioned(ConsumerProtocolAssignment, classic.sync().assignment)[1]
    assert [one.topic for one in given.assigned_partitions] == ["c", "b", "a"]


def test_a_static_member_keeps_its_place() -> None:
    """Under a new id it has what it had; the old one is fenced."""
    stage = MigrationRehearsal({"t": 2})
    new = stage.consumer("N", "t")
    old = ClassicConsumer(stage, instance="i")
    old.join()
    old.sync()
    stage.calm(new, old)
    back = ClassicConsumer(stage, instance="i", is_cooperative=True)
    assert back.join().generation_id == old.generation
    back.sync()
    assert (back.owned, back.member_id) != (set(), old.member_id)
    assert back.owned == old.owned
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert (old.beat(), old.sync().error_code, old.join().error_code) == (fenced, fenced, fenced)
    assert back.join(member_id=back.member_id).error_code is ErrorCode.NONE
    stage.restart()
    assert back.beat() is ErrorCode.NONE


def test_a_static_member_changes_its_protocol_and_its_pattern_goes() -> None:
    """Classic members have no patterns; others of the new protocol keep the group what it is."""
    stage = MigrationRehearsal({"t": 2})
    stage.consumer("N", "t")
    stage.consumer("P", subscribed_topic_regex="t.*", instance_id="i")
    assert set(stage.consumer_group.regexes) == {"t.*"}
    one = ClassicConsumer(stage, instance="i")
    assert one.join().error_code is ErrorCode.NONE
    member = stage.consumer_group.members[one.member_id]
    assert (member.subscribed_topic_regex, member.subscribed_topic_names) == ("", frozenset({"t"}))
    assert stage.consumer_group.regexes == {}
    assert sorted(stage.consumer_group.members) == sorted(["N", one.member_id])


def test_a_session_is_as_long_as_the_member_says() -> None:
    """Heartbeats, joins and syncs renew it."""
    stage, classic = mixed()
    for speak in (classic.beat, classic.join, classic.sync, lambda: None):
        stage.wait(SESSION_MS - 1)
        assert classic.member_id in stage.consumer_group.members
        speak()
    stage.wait(2)
    assert list(stage.consumer_group.members) == ["N"]


def test_one_that_does_not_sync_is_out() -> None:
    """It lives, but has not asked for what it was given."""
    stage, classic = mixed()
    classic.join()
    for _ in range(8):
        stage.wait(REBALANCE_MS / 8 + 1)
        classic.beat()
        stage.beat("N", stage.consumer_group.members["N"].member_epoch)
    assert list(stage.consumer_group.members) == ["N"]


@pytest.mark.parametrize("is_back", [True, False])
def test_one_that_is_told_to_join_must_do_so(is_back: bool) -> None:
    """It has its rebalance timeout for it."""
    stage, classic = mixed()
    second = stage.consumer("M", "t")
    assert classic.beat() is REBALANCING
    for turn in range(8):
        stage.wait(REBALANCE_MS / 8 + 1)
        if is_back and not turn:
            classic.join()
            classic.sync()
        classic.beat()
        stage.beat("N", stage.consumer_group.members["N"].member_epoch)
        second.beat()
    assert (classic.member_id in stage.consumer_group.members) is is_back


def test_a_classic_member_that_must_give_back_has_no_deadline_of_its_own() -> None:
    """Only those of joins and syncs count: Kafka has no other for them."""
    stage = MigrationRehearsal({"t": 2})
    (one,) = stage.classic({0, 1}, is_cooperative=True)
    stage.consumer("N", "t")
    one.beat()
    one.join()
    one.sync()
    for _ in range(8):
        stage.wait(REBALANCE_MS / 8 + 1)
        stage.groups.heartbeat(GROUP, one.member_id, None, 9)
        stage.beat("N", 2)
        if one.member_id in stage.consumer_group.members:
            one.sync()
    assert one.member_id in stage.consumer_group.members


def test_a_member_that_takes_up_the_new_protocol() -> None:
    """Under its own id it goes on with what it has, and the classic requests know it no more."""
    stage, classic = mixed()
    had = set(classic.owned)
    stage.consumer("M", "t")
    assert classic.beat() is REBALANCING
    new = stage.consumer(classic.member_id, "t")
    assert new.answer.error_code is ErrorCode.NONE
    assert new.has("t") <= had
    assert classic.beat() is UNKNOWN
    assert not stage.consumer_group.members[classic.member_id].is_classic


def test_who_may_commit_and_fetch() -> None:
    """A classic member in its generation, or for what it was given before (KIP-1251)."""
    stage, classic = mixed()
    (index,) = classic.owned
    fields: dict[str, Any] = {"member_id": classic.member_id, "knows_epochs": False}
    epoch = classic.generation
    illegal = {ErrorCode.ILLEGAL_GENERATION}
    assert stage.commit(("t", index), generation_id=epoch, **fields) == {ErrorCode.NONE}
    assert stage.commit(("t", index), generation_id=epoch + 1, **fields) == illegal
    stage.consumer("M", "u")
    classic.beat()
    classic.is_cooperative = True
    classic.join()
    assert stage.commit(("t", index), generation_id=epoch, **fields) == {ErrorCode.NONE}
    assert stage.commit(("t", 1 - index), generation_id=epoch, **fields) == illegal
    producer = TransactionalProducer(1, 0)
    behind = stage.commit(("t", 1 - index), generation_id=epoch, producer=producer, **fields)
    assert behind == illegal
    fetch_error = stage.groups.others.fetch_error
    assert fetch_error(GROUP, classic.member_id, epoch) is ErrorCode.ILLEGAL_GENERATION
    assert fetch_error(GROUP, classic.member_id, classic.generation) is ErrorCode.NONE


def test_members_that_old_releases_have_written() -> None:
    """Their records are read as those of classic members without a protocol; these cannot speak."""
    stage, _ = mixed()
    nobody = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
    old: GroupChange = member_metadata(GROUP, ConsumerMember("O", classic=nobody))
    stage.consumer_group.apply(old)
    found = stage.groups.heartbeat(GROUP, "O", None, 0)
    assert found is ErrorCode.UNKNOWN_SERVER_ERROR
