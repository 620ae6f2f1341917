"""Committed offsets: who may commit, what is kept for how long, what can be deleted."""

from __future__ import annotations

import uuid
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.exchange import GroupProtocol, ListedGroup
from logstore.compat.kafka.groups.memory_offsets_log import MemoryOffsetsLog
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    GroupRecord,
    OffsetCommitKey,
    TransactionalProducer,
    decode_key,
    decode_offset_commit_value,
)
from logstore.compat.kafka.groups.states import GroupState
from logstore.errors import RejectedAppendError
from tests.compat.kafka.groups.rehearsal import (
    COMPANY_MS,
    GROUP,
    SESSION_MS,
    Rehearsal,
    answer_to,
)

NONE = ErrorCode.NONE
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
CHECK_MS = 600_000


# committing and fetching


def test_a_simple_consumer_needs_no_membership() -> None:
    """A commit without a generation creates a group that has offsets and no record of its own."""
    stage = Rehearsal()
    assert stage.commit(("t", 0), ("t", 1), offset=5) == {NONE}
    assert stage.fetched(("t", 1)) == 5
    assert stage.groups.list_groups()[1] == [ListedGroup(GROUP, "", GroupState.EMPTY, "classic")]
    assert stage.held() == {1}


def test_a_partition_without_a_commit_has_none() -> None:
    """Fetching what nobody has committed is no error, in known and unknown groups alike."""
    stage = Rehearsal()
    stage.commit(("t", 0))
    assert stage.fetched(("t", 1)) is None
    error, offsets = stage.groups.fetch_offsets("strangers", [("t", 0)])
    assert (error, offsets) == (NONE, {("t", 0): None})
    assert stage.groups.fetch_offsets("strangers", None) == (NONE, {})


def test_everything_that_a_group_has_can_be_fetched_at_once() -> None:
    """Without a list of partitions, all of the group's offsets come, the latest of each."""
    stage = Rehearsal()
    stage.commit(("t", 0), offset=1)
    stage.commit(("t", 0), ("u", 3), offset=2)
    stage.commit(("v", 0), group_id="others")
    _, offsets = stage.groups.fetch_offsets(GROUP, None)
    assert {key: one.offset for key, one in offsets.items() if one} == {("t", 0): 2, ("u", 3): 2}


def test_a_commit_is_in_the_log_as_it_is_told() -> None:
    """Offset, time, leader epoch, metadata and topic id are all kept."""
    stage = Rehearsal()
    topic_id = uuid.UUID(int=77)
    committed = CommittedOffset(9, 5, leader_epoch=4, metadata="note", topic_id=topic_id)
    stage.groups.commit_offsets(Commit(GROUP, {("t", 2): committed}))
    ((key, value),) = stage.log.records
    assert decode_key(key) == OffsetCommitKey(GROUP, "t", 2)
    assert decode_offset_commit_value(value or b"") == CommittedOffset(
        9, 5, leader_epoch=4, metadata="note", topic_id=topic_id
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1, "member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1, "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_of_the_wrong_kind(fields: dict[str, Any], expected: ErrorCode) -> None:
    """A group with members takes offsets only from them, and only in the current generation."""
    stage = Rehearsal()
    member, _ = stage.stable()
    if "member_id" not in fields and fields.get("generation_id") not in (None, 1):
        fields = fields | {"member_id": member.member_id}
    assert stage.commit(**fields) == {expected}
    assert stage.fetched() is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (GroupState.STABLE, ErrorCode.NONE),
        (GroupState.PREPARING_REBALANCE, ErrorCode.NONE),
        (GroupState.COMPLETING_REBALANCE, ErrorCode.REBALANCE_IN_PROGRESS),
        (GroupState.DEAD, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_commits_of_members_by_state(state: GroupState, expected: ErrorCode) -> None:
    """A member may save its work before it rejoins, but not between its join and its sync."""
    stage = Rehearsal()
    member, _ = stage.stable()
    stage.group.state = state
    answer = stage.commit(member_id=member.member_id, generation_id=1)
    assert answer == {expected}


@pytest.mark.parametrize(
    ("generation", "expected"), [(-1, ErrorCode.NONE), (0, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_commits_to_an_unknown_group(generation: int, expected: ErrorCode) -> None:
    """Only who claims no generation can commit to a group that is not there."""
    stage = Rehearsal()
    assert stage.commit(generation_id=generation) == {expected}
    assert (GROUP in stage.groups.groups) is (expected is NONE)


def test_an_empty_group_takes_commits_from_administrators_only() -> None:
    """Without members, a commit without generation is fine and one of a former member is not."""
    stage = Rehearsal()
    (member,) = stage.stable(1)
    stage.leave(member.member_id)
    assert stage.commit(offset=3) == {NONE}
    former = stage.commit(offset=4, member_id=member.member_id, generation_id=1)
    assert former == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert stage.fetched() == 3


def test_a_commit_is_a_sign_of_life() -> None:
    """A member that commits often enough needs no heartbeat."""
    stage = Rehearsal()
    (member,) = stage.stable(1)
    for _ in range(5):
        stage.wait(SESSION_MS - 1)
        assert stage.commit(member_id=member.member_id, generation_id=1) == {NONE}
    assert stage.state() is GroupState.STABLE


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("x" * 10, ErrorCode.NONE),
        ("x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("é" * 10, ErrorCode.NONE),
        ("😀" * 5, ErrorCode.NONE),
        ("😀" * 5 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_as_java_does(metadata: str, expected: ErrorCode) -> None:
    """The limit counts UTF-16 units, neither characters nor bytes."""
    stage = Rehearsal(offset_metadata_max_size=10)
    assert stage.commit(metadata=metadata) == {expected}
    assert (stage.fetched() is not None) is (expected is NONE)


def test_too_much_metadata_hurts_only_its_own_partition() -> None:
    """The other partitions of the same commit are kept."""
    stage = Rehearsal(offset_metadata_max_size=3)
    long = CommittedOffset(1, 0, metadata="long")
    short = CommittedOffset(2, 0, metadata="ok")
    codes = stage.groups.commit_offsets(Commit(GROUP, {("t", 0): long, ("t", 1): short}))
    assert codes == {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE, ("t", 1): NONE}
    assert (stage.fetched(("t", 0)), stage.fetched(("t", 1))) == (None, 2)


def test_a_simple_consumer_has_a_group_whatever_is_kept() -> None:
    """Whoever commits without a generation begins a group, with nothing in it if nothing fits."""
    stage = Rehearsal(offset_metadata_max_size=3)
    long = {("t", 0): CommittedOffset(1, 0, metadata="long")}
    assert stage.groups.commit_offsets(Commit(GROUP, long)) == {
        ("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE
    }
    member = Commit(GROUP, {("t", 0): CommittedOffset(1, 0)}, "member", generation_id=1)
    assert set(stage.groups.commit_offsets(member).values()) == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_a_commit_that_cannot_be_written_is_not_told_as_kept() -> None:
    """With a full disk the old offset stays and the client is told to look elsewhere."""
    stage = Rehearsal()
    stage.commit(offset=1)
    stage.log.is_full = True
    assert stage.commit(offset=2) == {ErrorCode.NOT_COORDINATOR}
    assert stage.fetched() == 1
    stage.restart()
    assert stage.fetched() == 1


class PickyLog(MemoryOffsetsLog):
    """A log that finds fault with every record, as a too small ``max.message.bytes`` would."""

    def append(
        self,
        group_id: str,
        records: list[GroupRecord],
        producer: TransactionalProducer | None = None,
    ) -> None:
        """Refuse the records for themselves."""
        del producer
        raise RejectedAppendError(f"{len(records)} records of {group_id} are too large")


def test_a_record_that_is_refused_for_itself_is_the_servers_fault() -> None:
    """Another coordinator would refuse it too, so the client is not sent to look for one."""
    stage = Rehearsal(PickyLog())
    assert stage.commit() == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert answer_to(stage.join()).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.groups.groups == {}


# expiry


def test_offsets_of_simple_consumers_expire_by_their_commit() -> None:
    """Each offset lives for the retention time from its own commit; then the group goes too."""
    stage = Rehearsal()
    stage.commit(("t", 0))
    stage.wait(DAY_MS)
    stage.commit(("t", 1))
    stage.wait(WEEK_MS - DAY_MS - 1)
    assert stage.fetched(("t", 0)) is not None
    stage.wait(CHECK_MS)
    assert (stage.fetched(("t", 0)), stage.fetched(("t", 1))) == (None, 7)
    stage.wait(DAY_MS)
    assert stage.groups.groups == {}
    assert stage.held() == set()


def test_offsets_of_an_empty_group_expire_by_its_emptiness() -> None:
    """However old they are, the offsets of a consumer group live on from when it became empty."""
    stage = Rehearsal()
    (member,) = stage.stable(1, session_timeout_ms=1_800_000)
    stage.commit(member_id=member.member_id, generation_id=1)
    for _ in range(int(8 * DAY_MS / CHECK_MS)):
        stage.wait(CHECK_MS)
        stage.heartbeat(member)
    stage.leave(member.member_id)
    stage.wait(WEEK_MS - CHECK_MS)
    assert stage.fetched() == 7
    stage.wait(2 * CHECK_MS)
    assert stage.groups.groups == {}


def test_a_reading_group_loses_only_what_it_does_not_read() -> None:
    """In a stable group, offsets of topics that nobody is subscribed to expire by their commit."""
    stage = Rehearsal()
    (member,) = stage.stable(1, topics=("t",), session_timeout_ms=1_800_000)
    stage.commit(("t", 0), ("old", 0), member_id=member.member_id, generation_id=1)
    for _ in range(int(WEEK_MS / CHECK_MS) + 2):
        stage.wait(CHECK_MS)
        stage.heartbeat(member)
    assert stage.fetched(("t", 0)) == 7
    assert stage.fetched(("old", 0)) is None
    assert stage.state() is GroupState.STABLE


def test_a_group_of_another_kind_keeps_everything_while_it_lives() -> None:
    """What the members of a group that is not of consumers read is not known, so all stays."""
    stage = Rehearsal()
    (member,) = stage.stable(1, protocol_type="connect", session_timeout_ms=1_800_000)
    stage.commit(("old", 0), member_id=member.member_id, generation_id=1)
    for _ in range(int(WEEK_MS / CHECK_MS) + 2):
        stage.wait(CHECK_MS)
        stage.heartbeat(member)
    assert stage.fetched(("old", 0)) == 7


@pytest.mark.parametrize("retention_ms", [0, DAY_MS, 2 * WEEK_MS])
def test_a_commit_may_choose_its_own_retention(retention_ms: int) -> None:
    """A retention time of the request counts instead of the broker's, shorter or longer."""
    stage = Rehearsal()
    stage.commit(retention_ms=retention_ms)
    stage.restart()
    stage.wait(max(retention_ms - CHECK_MS, 0))
    assert stage.fetched() == 7
    stage.wait(2 * CHECK_MS)
    assert stage.groups.groups == {}


def test_an_expiry_that_cannot_be_written_is_tried_again() -> None:
    """Nothing is forgotten in memory that the log still has."""
    stage = Rehearsal()
    stage.commit(retention_ms=0)
    stage.log.is_full = True
    stage.wait(CHECK_MS)
    assert stage.fetched() == 7
    stage.log.is_full = False
    stage.wait(CHECK_MS)
    assert stage.groups.groups == {}


# deleting


def test_only_empty_groups_can_be_deleted() -> None:
    """Unknown groups are told so, groups with members are in use, empty ones go."""
    stage = Rehearsal()
    assert stage.groups.delete_group(GROUP) is ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = stage.stable(1)
    assert stage.groups.delete_group(GROUP) is ErrorCode.NON_EMPTY_GROUP
    stage.join()
    assert stage.groups.delete_group(GROUP) is ErrorCode.NON_EMPTY_GROUP
    stage.wait(COMPANY_MS * 10)
    stage.leave(member.member_id)
    assert stage.state() is GroupState.EMPTY
    assert stage.groups.delete_group(GROUP) is NONE
    assert stage.groups.groups == {}


def test_a_group_is_not_deleted_while_that_cannot_be_written() -> None:
    """A deletion that a restart would undo is refused."""
    stage = Rehearsal()
    stage.commit()
    stage.log.is_full = True
    assert stage.groups.delete_group(GROUP) is ErrorCode.NOT_COORDINATOR
    assert stage.fetched() == 7


def test_offsets_in_use_cannot_be_deleted() -> None:
    """A subscribed topic's offsets stay; others go; ones that are not there are gone already."""
    stage = Rehearsal()
    (member,) = stage.stable(1, topics=("t",))
    stage.commit(("t", 0), ("old", 0), member_id=member.member_id, generation_id=1)
    error, codes = stage.groups.delete_offsets(GROUP, [("t", 0), ("old", 0), ("never", 5)])
    assert error is NONE
    assert codes == {
        ("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("old", 0): NONE,
        ("never", 5): NONE,
    }
    assert (stage.fetched(("t", 0)), stage.fetched(("old", 0))) == (7, None)


def test_offsets_are_not_deleted_while_that_cannot_be_written() -> None:
    """With a full disk the whole request fails, and the offsets are still there."""
    stage = Rehearsal()
    stage.commit()
    stage.log.is_full = True
    assert stage.groups.delete_offsets(GROUP, [("t", 0)]) == (ErrorCode.NOT_COORDINATOR, {})
    assert stage.fetched() == 7


@pytest.mark.parametrize(
    ("group_id", "protocol_type", "expected"),
    [
        ("", "consumer", ErrorCode.INVALID_GROUP_ID),
        ("strangers", "consumer", ErrorCode.GROUP_ID_NOT_FOUND),
        (GROUP, "connect", ErrorCode.NON_EMPTY_GROUP),
        (GROUP, "consumer", ErrorCode.NONE),
    ],
)
def test_whose_offsets_can_be_deleted(
    group_id: str, protocol_type: str, expected: ErrorCode
) -> None:
    """A group whose subscriptions cannot be read must be empty first."""
    stage = Rehearsal()
    stage.stable(1, protocol_type=protocol_type)
    error, codes = stage.groups.delete_offsets(group_id, [("old", 0)])
    assert error is expected
    assert codes == ({("old", 0): NONE} if expected is NONE else {})


def test_a_consumer_group_with_unreadable_subscriptions_might_read_anything() -> None:
    """If one member's metadata is not a subscription, no topic counts as free."""
    stage = Rehearsal()
    join = stage.asked_join()
    join = attrs.evolve(join, protocols=(GroupProtocol("range", b"\0\1\0\0"),))
    stage.groups.join(join)
    stage.wait(COMPANY_MS)
    _, codes = stage.groups.delete_offsets(GROUP, [("old", 0)])
    assert codes == {("old", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_offsets_of_deleted_partitions_are_forgotten() -> None:
    """When partitions go, all groups forget what they had committed there, and only there."""
    stage = Rehearsal()
    stage.commit(("t", 0), ("t", 1), ("u", 0))
    stage.commit(("t", 0), group_id="others")
    stage.groups.forget_partitions("t", [0, 1])
    stage.restart()
    assert list(stage.groups.fetch_offsets(GROUP, None)[1]) == [("u", 0)]
    assert stage.groups.fetch_offsets("others", None)[1] == {}
