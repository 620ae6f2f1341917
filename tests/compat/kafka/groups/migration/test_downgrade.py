"""A consumer group becomes a classic one when all that are left speak the classic protocol."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.exchange import GroupProtocol, MemberIdentity
from logstore.compat.kafka.groups.migration.policy import MigrationPolicy
from logstore.compat.kafka.groups.states import GroupState
from tests.compat.kafka.groups.consumer.rehearsal import REBALANCE_MS as MEMBER_REBALANCE_MS
from tests.compat.kafka.groups.consumer.rehearsal import SESSION_MS as NEW_SESSION_MS
from tests.compat.kafka.groups.consumer.rehearsal import Consumer
from tests.compat.kafka.groups.migration.rehearsal import (
    REBALANCING,
    ClassicConsumer,
    MigrationRehearsal,
    assignment,
    subscription,
)
from tests.compat.kafka.groups.migration.test_upgrade import types_of
from tests.compat.kafka.groups.rehearsal import COMPANY_MS, GROUP, SESSION_MS


def both(
    stage: MigrationRehearsal, instance: str | None = None
) -> tuple[ClassicConsumer, ClassicConsumer, Consumer]:
    """Return two classic members and a new one, each with two of six partitions."""
    one, two = stage.classic({0, 1, 2}, {3, 4, 5})
    new = stage.consumer("N", "t", instance_id=instance)
    stage.calm(one, two, new)
    assert [len(has) for has in (one.owned, two.owned, new.owned)] == [2, 2, 2]
    return one, two, new


def test_the_last_of_the_new_protocol_leaves() -> None:
    """The group is classic, in the generation that was its epoch, and everybody joins again."""
    stage = MigrationRehearsal({"t": 6})
    one, two, new = both(stage)
    epoch = stage.consumer_group.epoch
    assert new.leave().error_code is ErrorCode.NONE
    assert stage.groups.consumer_groups == {}
    assert (stage.state(), stage.group.generation_id) == (GroupState.PREPARING_REBALANCE, epoch)
    assert [one.beat(), two.beat()] == [REBALANCING, REBALANCING]
    members = {member.member_id: member for member in stage.group.roster}
    assert members.keys() == {one.member_id, two.member_id}
    assert members[one.member_id].assignment == assignment(one.owned)
    assert members[one.member_id].session_timeout_ms == SESSION_MS
    stage.share_out([one, two], [{0, 1, 2}, {3, 4, 5}])
    assert (one.generation, one.owned, two.owned) == (epoch + 1, {0, 1, 2}, {3, 4, 5})
    assert new.beat().error_code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("others", "leader"), [((), "second"), (("third", "fourth", "fifth"), "first")]
)
def test_the_first_in_kafkas_table_leads(others: tuple[str, ...], leader: str) -> None:
    """Not who came first; the table stays as large as it was with all its members."""
    stage = MigrationRehearsal({"t": 6})
    new = stage.consumer("N", "t")
    members = [ClassicConsumer(stage, member_id=one) for one in ("first", "second", *others)]
    for member in members:
        member.join()
    for member in members[2:]:
        member.leave()
    new.leave()
    assert stage.group.roster.leader_id == leader


def test_the_records_of_a_downgrade_are_kafkas() -> None:
    """Everything of the consumer group goes, also of who leaves; then comes the classic group."""
    stage = MigrationRehearsal({"t": 6})
    _, _, new = both(stage)
    count = len(stage.log.records)
    new.leave()
    kinds = [8, 8, 8, 7, 7, 7, 6, 5, 5, 5, 4, 3]
    found = types_of(stage.log.records[count:])
    assert found == [*((kind, True) for kind in kinds), (2, False)]


def test_a_restart_finds_the_classic_group() -> None:
    """Stable, as one that was never told of the rebalance; members go on in its generation."""
    stage = MigrationRehearsal({"t": 6})
    one, two, new = both(stage)
    stage.commit(member_id="N", generation_id=new.epoch)
    new.leave()
    stage.restart()
    assert stage.groups.consumer_groups == {}
    assert (stage.state(), stage.fetched()) == (GroupState.STABLE, 7)
    assert [one.beat(), two.beat()] == [ErrorCode.NONE, ErrorCode.NONE]
    had = set(one.owned)
    assert one.sync().error_code is ErrorCode.NONE
    assert (one.owned, stage.group.subscribed_topics) == (had, frozenset({"t"}))


def test_a_full_disk_keeps_the_group_what_it_is() -> None:
    """One who cannot leave is in; one whose session ends is tried again."""
    stage = MigrationRehearsal({"t": 6})
    one, two, new = both(stage)
    stage.log.is_full = True
    assert stage.beat("N", -1).error_code is ErrorCode.NOT_COORDINATOR
    assert len(stage.consumer_group.members) == 3
    assert new.beat().error_code is ErrorCode.NONE
    for turn in range(8):
        stage.wait(NEW_SESSION_MS / 8 + 1)
        one.beat()
        two.beat()
        stage.log.is_full = turn < 7
    stage.wait(1000)
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_the_last_of_the_new_protocol_is_taken_out() -> None:
    """LeaveGroup may name it too."""
    stage = MigrationRehearsal({"t": 6})
    both(stage)
    stage.groups.leave(GROUP, [MemberIdentity("N")])
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_the_session_of_the_last_of_the_new_protocol_ends() -> None:
    """It has left without a word."""
    stage = MigrationRehearsal({"t": 6})
    one, two, _ = both(stage)
    for _ in range(10):
        assert (one.beat(), two.beat()) == (ErrorCode.NONE, ErrorCode.NONE)
        stage.wait(NEW_SESSION_MS / 10 + 1)
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_the_last_of_the_new_protocol_gives_nothing_back() -> None:
    """It lives, but keeps what others wait for."""
    stage = MigrationRehearsal({"t": 6})
    one, two, _ = both(stage)
    three = ClassicConsumer(stage)
    three.join()
    three.sync()
    for _ in range(10):
        for classic in (one, two, three):
            classic.go_on()
        stage.beat("N", stage.consumer_group.members["N"].member_epoch)
        stage.wait(MEMBER_REBALANCE_MS / 10 + 1)
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_classic_members_lapse_in_the_classic_group() -> None:
    """Their sessions count from the downgrade on, and nothing else does any more."""
    stage = MigrationRehearsal({"t": 6})
    one, two, new = both(stage)
    one.join()
    new.leave()
    stage.wait(SESSION_MS - 1)
    assert len(stage.group.roster) == 2
    stage.share_out([one, two], [{0}, {1}])
    for _ in range(40):
        stage.wait(SESSION_MS / 4)
        assert (one.beat(), two.beat()) == (ErrorCode.NONE, ErrorCode.NONE)


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL])
def test_who_stays_a_consumer_group(policy: MigrationPolicy) -> None:
    """By the policy, or because another one of the new protocol is in it."""
    stage = MigrationRehearsal({"t": 6}, consumer_migration_policy=policy)
    one, two, new = both(stage)
    if policy is MigrationPolicy.BIDIRECTIONAL:
        stage.consumer("M", "t")
    epoch = stage.consumer_group.epoch
    new.leave()
    assert stage.consumer_group.state is ConsumerGroupState.ASSIGNING
    assert (stage.consumer_group.epoch, "N" in stage.consumer_group.members) == (epoch + 1, False)
    stage.restart()
    assert {one.member_id, two.member_id} <= set(stage.consumer_group.members)


def test_classic_groups_have_a_size_too() -> None:
    """A consumer group with more members stays one until it is small enough."""
    stage = MigrationRehearsal({"t": 6}, group_max_size=1)
    new = stage.consumer("N", "t")
    members = [ClassicConsumer(stage) for _ in range(2)]
    for member in members:
        member.join()
        member.sync()
    new.leave()
    assert len(stage.consumer_group.members) == 2
    assert members[0].leave().error_code is ErrorCode.NONE
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert [one.member_id for one in stage.group.roster] == [members[1].member_id]


def test_an_empty_group_stays_what_it_is() -> None:
    """Nobody is left to speak the classic protocol."""
    stage = MigrationRehearsal({"t": 6})
    new = stage.consumer("N", "t")
    (classic,) = [ClassicConsumer(stage)]
    classic.join()
    left = stage.leave("N", classic.member_id)
    assert [one.error_code for one in left] == [ErrorCode.NONE, ErrorCode.NONE]
    assert stage.consumer_group.is_empty
    assert new.join().error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (b"", "Buffer underflow while parsing consumer protocol's header"),
        (b"\xff\xff", "Unsupported assignment version: -1"),
    ],
)
def test_a_protocol_that_cannot_be_read(metadata: bytes, reason: str) -> None:
    """Only the first of a member's is looked at before; then the last one cannot leave."""
    stage = MigrationRehearsal({"t": 1})
    new = stage.consumer("N", "t")
    for names in (("range", "sticky"), ("sticky",)):
        protocols = tuple(
            GroupProtocol(name, subscription("t") if name == names[0] else metadata)
            for name in names
        )
        joined = ClassicConsumer(stage).join(protocols=protocols)
        assert joined.error_code is ErrorCode.NONE
    answer = new.leave()
    assert answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Cannot downgrade the classic group {GROUP}: {reason}."
    assert "N" in stage.consumer_group.members


# static members, who do not say that they leave


def test_a_static_member_comes_back_with_the_classic_protocol() -> None:
    """The group is classic at once and stable: nobody's assignment has changed."""
    stage = MigrationRehearsal({"t": 6})
    one, two, new = both(stage, instance="i")
    stage.settle(new)
    had, epoch = new.has("t"), stage.consumer_group.epoch
    back = ClassicConsumer(stage, instance="i")
    count = len(stage.log.records)
    assert back.join().generation_id == epoch
    assert (stage.state(), stage.group.generation_id) == (GroupState.STABLE, epoch)
    assert len(stage.group.roster) == 3
    assert [member.beat() for member in (one, two, back)] == [ErrorCode.NONE] * 3
    back.sync()
    assert back.owned == had
    found = types_of(stage.log.records[count:])
    replaced = [(8, True), (7, True), (5, True), (5, False), (7, False), (8, False)]
    told = [(5, False), (8, False)]
    dead = [8, 8, 8, 7, 7, 7, 6, 5, 5, 5, 4, 3]
    assert found == [*replaced, *told, *((kind, True) for kind in dead), (2, False)]
    before = attrs.asdict(stage.group.described())
    stage.restart()
    assert stage.groups.consumer_groups == {}
    assert attrs.asdict(stage.group.described()) == before


def test_a_static_member_that_wants_something_else() -> None:
    """Then the assignment is out of date, and the classic group rebalances."""
    stage = MigrationRehearsal({"t": 6, "u": 1})
    one, two, _ = both(stage, instance="i")
    back = ClassicConsumer(stage, instance="i", topics=("t", "u"))
    assert back.join().generation_id == 0
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert back.sync().error_code is ErrorCode.ILLEGAL_GENERATION
    stage.share_out([one, two, back], [{0, 1}, {2, 3}, {4, 5}])
    assert back.owned == {4, 5}


def test_a_static_member_alone() -> None:
    """It makes the group classic by its return, in whichever way it was in."""
    stage = MigrationRehearsal({"t": 1})
    new = stage.consumer("N", "t", instance_id="i")
    new.leave(-2)
    back = ClassicConsumer(stage, instance="i")
    assert back.join().error_code is ErrorCode.NONE
    assert (back.sync().error_code, back.owned) == (ErrorCode.NONE, {0})
    assert stage.state() is GroupState.STABLE
    again = stage.consumer("M", "t", instance_id="i")
    assert (again.answer.error_code, again.has("t")) == (ErrorCode.NONE, {0})
    assert list(stage.consumer_group.members) == ["M"]


@pytest.mark.parametrize(
    "settings", [{"consumer_migration_policy": MigrationPolicy.UPGRADE}, {"group_max_size": 2}]
)
def test_a_static_member_that_comes_back_into_a_consumer_group(settings: dict[str, Any]) -> None:
    """Where the group may not become classic, it is one of its classic members."""
    stage = MigrationRehearsal({"t": 6}, **settings)
    one, two, new = both(stage, instance="i")
    stage.settle(new)
    back = ClassicConsumer(stage, instance="i", is_cooperative=True)
    assert back.join().error_code is ErrorCode.NONE
    assert len(stage.consumer_group.members) == 3
    back.sync()
    stage.calm(one, two, back)
    assert back.owned == new.has("t")


def test_a_static_member_and_a_full_disk() -> None:
    """Nothing has happened."""
    stage = MigrationRehearsal({"t": 6})
    _, _, new = both(stage, instance="i")
    stage.log.is_full = True
    assert ClassicConsumer(stage, instance="i").join().error_code is ErrorCode.NOT_COORDINATOR
    assert new.beat().error_code is ErrorCode.NONE


def test_a_rolling_upgrade_and_back() -> None:
    """One consumer after the other changes its protocol; everything is always shared out."""
    stage = MigrationRehearsal({"t": 6})
    olds = stage.classic({0, 1, 2}, {3, 4, 5})
    news = [stage.consumer(f"N{number}", "t") for number in range(2)]
    for old in olds:
        old.leave()
        stage.calm(*news, *[one for one in olds if one.member_id in stage.consumer_group.members])
    assert sorted(index for one in news for index in one.has("t")) == list(range(6))
    again = [ClassicConsumer(stage) for _ in range(2)]
    for one in again:
        one.join()
        one.sync()
    stage.calm(*news, *again)
    for new in news:
        new.leave()
    for one in again:
        one.send_join()
    stage.wait(COMPANY_MS)
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    assert all(one.joins[-1].error_code is ErrorCode.NONE for one in again)
