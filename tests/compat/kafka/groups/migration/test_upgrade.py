"""A classic group becomes a consumer group when somebody joins it as one."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.states import ConsumerGroupState
from logstore.compat.kafka.groups.exchange import GroupProtocol
from logstore.compat.kafka.groups.migration.policy import MigrationPolicy
from logstore.compat.kafka.groups.offsets_log import GroupRecord
from logstore.compat.kafka.groups.states import GroupState
from logstore.segments.kafka.internal_topics.consumer_group import ClassicProtocol
from tests.compat.kafka.groups.consumer.rehearsal import topic_id
from tests.compat.kafka.groups.migration.rehearsal import (
    REBALANCING,
    ClassicConsumer,
    MigrationRehearsal,
    assignment,
    subscription,
)
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    answer_to,
)

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
CANNOT = f"Cannot upgrade classic group {GROUP} to consumer group because "


def types_of(records: list[GroupRecord]) -> list[tuple[int, bool]]:
    """Return the type of each record, and whether it is a tombstone."""
    return [(int.from_bytes(key[:2], "big"), value is None) for key, value in records]


def test_members_keep_what_they_are_and_have() -> None:
    """Ids, timeouts, subscriptions and protocols; their partitions are theirs in their epoch."""
    stage = MigrationRehearsal({"t": 4})
    one, two = stage.classic({0, 1}, {2, 3}, names=("range", "sticky"))
    new = stage.consumer("N", "t")
    assert (new.answer.error_code, new.epoch, new.owned) == (ErrorCode.NONE, 2, frozenset())
    assert GROUP not in stage.groups.groups
    group = stage.consumer_group
    assert group.members.keys() == {one.member_id, two.member_id, "N"}
    member = group.members[two.member_id]
    assert (member.member_epoch, member.previous_member_epoch) == (1, 1)
    assert member.assigned == {topic_id("t"): {2: 1, 3: 1}}
    assert member.subscribed_topic_names == {"t"}
    assert (member.rebalance_timeout_ms, member.client_id) == (REBALANCE_MS, "client")
    assert member.classic is not None
    assert member.classic.session_timeout_ms == SESSION_MS
    assert member.classic.supported_protocols == tuple(
        ClassicProtocol(name=name, metadata=subscription("t")) for name in ("range", "sticky")
    )
    assert not group.members["N"].is_classic
    assert group.state is ConsumerGroupState.RECONCILING


def test_the_records_of_an_upgrade_are_kafkas() -> None:
    """The classic group goes, its members, epochs, targets and partitions come; then the joiner."""
    stage = MigrationRehearsal({"t": 4})
    stage.classic({0, 1}, {2, 3})
    count = len(stage.log.records)
    stage.consumer("N", "t")
    found = types_of(stage.log.records[count:])
    converted = [5, 5, 3, 7, 7, 6, 8, 8]
    assert found[:9] == [(2, True), *((kind, False) for kind in converted)]
    assert found[9:11] == [(5, False), (3, False)]
    assert found[-2:] == [(6, False), (8, False)]
    assert not any(is_gone for _, is_gone in found[1:])


def test_a_restart_finds_the_same_group() -> None:
    """Members of both protocols go on where they were."""
    stage = MigrationRehearsal({"t": 4})
    one, two = stage.classic({0, 1}, {2, 3})
    new = stage.consumer("N", "t")
    before = stage.content
    stage.restart()
    assert GROUP not in stage.groups.groups
    assert stage.content == before
    stage.calm(one, two, new)
    assert sorted([*one.owned, *two.owned, *new.has("t")]) == [0, 1, 2, 3]


def test_a_full_disk_changes_nothing() -> None:
    """The group stays classic, and those who are in it notice nothing."""
    stage = MigrationRehearsal({"t": 4})
    (one,) = stage.classic({0, 1})
    stage.log.is_full = True
    new = stage.consumer("N", "t")
    assert new.answer.error_code is ErrorCode.NOT_COORDINATOR
    assert (stage.state(), one.beat()) == (GroupState.STABLE, ErrorCode.NONE)
    assert stage.groups.consumer_groups == {}
    stage.log.is_full = False
    assert new.join().error_code is ErrorCode.NONE


def test_who_waits_for_a_generation_is_told_to_join_again() -> None:
    """The classic rebalance that goes on is over."""
    stage = MigrationRehearsal({"t": 4})
    one, _ = stage.classic({0, 1}, {2, 3})
    one.send_join(protocols=(GroupProtocol("range", subscription("t", "u")),))
    assert stage.state() is GroupState.PREPARING_REBALANCE
    stage.consumer("N", "t")
    assert one.joins[-1].error_code is REBALANCING
    stage.wait(SESSION_MS - 1)
    assert len(stage.consumer_group.members) == 3
    stage.wait(2)
    assert list(stage.consumer_group.members) == ["N"]


def test_who_waits_for_its_share_is_told_to_join_again() -> None:
    """It has nothing yet, and gets it from the coordinator."""
    stage = MigrationRehearsal({"t": 2})
    member = ClassicConsumer(stage)
    other = ClassicConsumer(stage)
    member.send_join()
    other.send_join()
    stage.wait(COMPANY_MS)
    other.send_sync()
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    new = stage.consumer("N", "t")
    assert other.syncs[-1].error_code is REBALANCING
    stage.calm(member, other, new)
    assert sorted([*member.owned, *other.owned, *new.has("t")]) == [0, 1]


def test_the_rack_and_old_subscriptions_are_read() -> None:
    """Each version of a subscription tells what it can."""
    stage = MigrationRehearsal({"t": 2})
    old, new = ClassicConsumer(stage), ClassicConsumer(stage)
    old.send_join(protocols=(GroupProtocol("range", subscription("t", version=0)),))
    new.send_join(protocols=(GroupProtocol("range", subscription("t", rack="r")),))
    stage.wait(COMPANY_MS)
    assert stage.consumer("N", "t").answer.error_code is ErrorCode.NONE
    members = stage.consumer_group.members
    assert (members[old.member_id].rack_id, members[new.member_id].rack_id) == (None, "r")


def test_a_static_member_comes_back_with_the_other_protocol() -> None:
    """It has its place in the group that its return converts."""
    stage = MigrationRehearsal({"t": 4})
    (one,) = stage.classic({0, 1, 2, 3}, instance="i")
    new = stage.consumer("N", "t", instance_id="i")
    assert (list(stage.consumer_group.members), new.has("t")) == (["N"], {0, 1, 2, 3})
    assert stage.groups.heartbeat(GROUP, one.member_id, None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert one.beat() is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("policy", list(MigrationPolicy))
def test_an_empty_group_may_always_change(policy: MigrationPolicy) -> None:
    """Also that of a simple consumer, of which there are only offsets; these stay."""
    stage = MigrationRehearsal({"t": 1}, consumer_migration_policy=policy)
    assert stage.commit() == {ErrorCode.NONE}
    new = stage.consumer("N", "t")
    assert (new.answer.error_code, stage.fetched()) == (ErrorCode.NONE, 7)
    new.leave()
    (one,) = stage.classic({0})
    stage.restart()
    assert (stage.state(), one.beat(), stage.fetched()) == (GroupState.STABLE, ErrorCode.NONE, 7)
    one.leave()
    assert new.join().error_code is ErrorCode.NONE


def test_an_empty_group_changes_in_one_write() -> None:
    """Tombstones of the one and the record of the other kind are written together or not at all."""
    stage = MigrationRehearsal({"t": 1})
    stage.consumer("N", "t").leave()
    stage.log.is_full = True
    assert answer_to(stage.join()).error_code is ErrorCode.NOT_COORDINATOR
    assert stage.consumer_group.is_empty
    stage.log.is_full = False
    count = len(stage.log.records)
    stage.join()
    assert types_of(stage.log.records[count:]) == [(6, True), (4, True), (3, True), (2, False)]
    assert stage.groups.consumer_groups == {}


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_a_policy_may_forbid_it(policy: MigrationPolicy) -> None:
    """Then a group with members stays classic."""
    stage = MigrationRehearsal({"t": 4}, consumer_migration_policy=policy)
    (one,) = stage.classic({0})
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (
        NOT_FOUND, f"{CANNOT}online upgrade is disabled.",
    )  # fmt: skip
    assert one.beat() is ErrorCode.NONE


def test_a_group_that_is_too_large() -> None:
    """It is refused as a whole; one that is only full refuses the newcomer."""
    stage = MigrationRehearsal({"t": 4}, consumer_group_max_size=1)
    one, two = stage.classic({0}, {1})
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (
        NOT_FOUND, f"{CANNOT}the group size exceeds the consumer group maximum size.",
    )  # fmt: skip
    one.leave()
    two.send_join()
    assert stage.consumer("N", "t").answer.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.state() is GroupState.COMPLETING_REBALANCE


def test_a_group_of_others_than_consumers() -> None:
    """Nobody can read what they say about themselves."""
    stage = MigrationRehearsal({"t": 4})
    stage.stable(protocol_type="connect")
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (
        NOT_FOUND, f"{CANNOT}the group does not use the consumer embedded protocol.",
    )  # fmt: skip


CUSTOM = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
    "default assignor before re-attempting the upgrade."
)
MALFORMED = "the embedded consumer protocol is malformed."
#: over a list of more items than there are bytes, and says no more
STUMBLES = None


@pytest.mark.parametrize(
    ("share", "code", "reason"),
    [
        (assignment({0}, user_data=b"x"), NOT_FOUND, CUSTOM),
        (assignment({0}, user_data=b""), ErrorCode.NONE, None),
        (b"mine", NOT_FOUND, MALFORMED),
        (b"garbage", ErrorCode.UNKNOWN_SERVER_ERROR, STUMBLES),
        (b"\xff\xff", NOT_FOUND, MALFORMED),
        (b"\0", NOT_FOUND, MALFORMED),
        (b"", ErrorCode.NONE, None),
        # a version that is not known yet, and a topic that is not there
        (b"\x7f" + assignment({0})[1:], ErrorCode.NONE, None),
        (assignment({0}, topic="gone"), ErrorCode.NONE, None),
    ],
)
def test_assignments_that_others_have_made(
    share: bytes, code: ErrorCode, reason: str | None
) -> None:
    """The broker must be able to read them, and nothing of them may get lost."""
    stage = MigrationRehearsal({"t": 4})
    member = ClassicConsumer(stage)
    member.send_join()
    stage.wait(COMPANY_MS)
    stage.sync(member.joins[-1], {member.member_id: share})
    answer = stage.consumer("N", "t").answer
    expected = None if reason is None else CANNOT + reason
    assert (answer.error_code, answer.error_message) == (code, expected)


@pytest.mark.parametrize("metadata", [b"", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\1\0"])
def test_subscriptions_that_cannot_be_read(metadata: bytes) -> None:
    """They are none of the consumers' protocol."""
    stage = MigrationRehearsal({"t": 4})
    member = ClassicConsumer(stage)
    member.send_join(protocols=(GroupProtocol("range", metadata),))
    stage.wait(COMPANY_MS)
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (NOT_FOUND, CANNOT + MALFORMED)


@pytest.mark.parametrize("rest", [b"\0\0\0\1\0\1", b"\0\0\0\1\xff\xff", b"\xff" * 4, b"\1" * 5])
def test_subscriptions_that_kafka_stumbles_over(rest: bytes) -> None:
    """Text that is longer than what is left, none at all, a list without or with too many items."""
    stage = MigrationRehearsal({"t": 4})
    member = ClassicConsumer(stage)
    member.send_join(protocols=(GroupProtocol("range", b"\0\0" + rest),))
    stage.wait(COMPANY_MS)
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_what_kafka_stumbles_over() -> None:
    """A group before its first generation, and one partition given to two members."""
    stage = MigrationRehearsal({"t": 4})
    member = ClassicConsumer(stage)
    member.send_join()
    answer = stage.consumer("N", "t").answer
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert member.joins[-1].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    twice = MigrationRehearsal({"t": 4})
    twice.classic({0, 1}, {1, 2})
    assert twice.consumer("N", "t").answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert twice.state() is GroupState.STABLE


def test_who_waits_is_called_again_by_an_upgrade_that_fails() -> None:
    """Joins and syncs that wait are answered with 27, under the id that the member has."""
    stage = MigrationRehearsal({"t": 4})
    leader, other = (ClassicConsumer(stage) for _ in "ab")
    broken = (GroupProtocol("range", b""),)
    leader.send_join(protocols=broken)
    other.send_join(protocols=broken)
    stage.wait(COMPANY_MS)
    other.send_sync()
    assert stage.consumer("N", "t").answer.error_code is NOT_FOUND
    assert [one.error_code for one in other.syncs] == [REBALANCING]
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    other.send_join(protocols=(GroupProtocol("range", b"\0"),))
    assert stage.consumer("N", "t").answer.error_code is NOT_FOUND
    told = other.joins[-1]
    assert (told.error_code, told.member_id) == (REBALANCING, other.member_id)


def test_who_waits_goes_on_waiting_where_an_upgrade_is_forbidden() -> None:
    """It is refused before anybody is called again."""
    stage = MigrationRehearsal({"t": 4}, consumer_migration_policy=MigrationPolicy.DOWNGRADE)
    member = ClassicConsumer(stage)
    member.send_join()
    assert stage.consumer("N", "t").answer.error_code is NOT_FOUND
    assert member.joins == []


@pytest.mark.parametrize("changes", [{}, {"member_epoch": 1}])
def test_only_one_who_joins_converts(changes: dict[str, Any]) -> None:
    """Another heartbeat is told that this is no consumer group."""
    stage = MigrationRehearsal({"t": 4})
    stage.classic({0})
    answer = stage.beat("N", changes.get("member_epoch", 2))
    assert answer.error_code is NOT_FOUND
    assert answer.error_message == f"Group {GROUP} is not a consumer group."


def test_names_of_policies() -> None:
    """They may be capitalised in any way; what is none forbids everything."""
    assert MigrationPolicy.of("Upgrade") is MigrationPolicy.UPGRADE
    assert MigrationPolicy.of("x") is MigrationPolicy.DISABLED
