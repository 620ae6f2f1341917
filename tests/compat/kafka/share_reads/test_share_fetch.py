"""ShareFetch at a broker: sessions, records, waiting, and what ends a wait."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.segments.kafka.record import decode_records
from tests.compat.kafka.share_reads.member import Member, ShareStage, got, partition_of
from tests.compat.kafka.share_reads.share_requests import ACCEPT, REJECT, RELEASE, RENEW

LOCK_MS = 30_000


@pytest.mark.parametrize("version", [1, 2])
def test_records_come_as_they_are_stored(version: int) -> None:
    """Whole batches, which of their records the member has, and how long."""
    stage = ShareStage()
    stage.produce(3)
    stage.produce(2)
    answer = stage.member().fetch(0, stage.wanted, version=version)
    assert (answer.error_code, answer.throttle_time_ms) == (0, 0)
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert [topic.topic_id for topic in answer.responses] == [uuid.UUID(bytes=stage.topic_id)]
    assert got(answer) == "0-4"
    found = partition_of(answer)
    stored = stage.broker.topics["t"].partitions[0].read(0, 1 << 20)
    assert stored is not None
    assert found.records == stored.read()
    assert (found.error_code, found.acknowledge_error_code) == (0, 0)
    assert (found.current_leader.leader_id, answer.node_endpoints) == (0, ())


def test_only_batches_with_acquired_records_are_sent() -> None:
    """Batches behind and in front of them are not; inner ones are, and say nothing."""
    stage = ShareStage()
    for _ in range(5):
        stage.produce(3)
    member, other = stage.member(), stage.member("B")
    assert got(member.fetch(0, stage.wanted)) == "0-14"
    said = {(stage.topic_id, 0): [(4, 4, (RELEASE,)), (10, 10, (RELEASE,))]}
    assert member.acknowledge(1, said).error_code == 0
    answer = other.fetch(0, stage.wanted)
    assert got(answer) == "4-4*2 10-10*2"
    records = partition_of(answer).records
    bases: list[int] = []
    while records:
        size = 12 + int.from_bytes(records[8:12], "big")
        bases += [record.offset for record in decode_records(records[:size])]
        records = records[size:]
    assert bases == list(range(3, 12))


def test_acknowledgements_come_with_a_fetch() -> None:
    """They are applied first, so that what is released can be fetched at once."""
    stage = ShareStage()
    stage.produce(4)
    member = stage.member()
    member.fetch(0, stage.wanted)
    said = {(stage.topic_id, 0): [(0, 0, (ACCEPT,)), (1, 3, (RELEASE, REJECT, RELEASE))]}
    answer = member.fetch(1, said=said)
    assert got(answer) == "1-1*2 3-3*2"
    assert partition_of(answer).acknowledge_error_code == 0


def test_what_came_of_acknowledgements_is_told_by_partition() -> None:
    """An error in one does not concern the fetch, nor another."""
    stage = ShareStage(partitions=2)
    stage.produce(2, 0)
    stage.produce(2, 1)
    stage.open()
    member = stage.member()
    member.fetch(0, stage.wanted)
    nowhere = (bytes(15) + b"x", 0)
    said = {
        (stage.topic_id, 0): [(0, 1, (ACCEPT,))],
        (stage.topic_id, 1): [(5, 6, (ACCEPT,))],
        (stage.topic_id, 7): [(0, 0, (ACCEPT,))],
        nowhere: [(0, 0, (ACCEPT,))],
    }
    answer = member.fetch(1, said=said)
    codes = {
        (topic.topic_id.bytes, found.partition_index): found.acknowledge_error_code
        for topic in answer.responses
        for found in topic.partitions
    }
    assert codes == {
        (stage.topic_id, 0): 0,
        (stage.topic_id, 1): ErrorCode.INVALID_REQUEST,
        (stage.topic_id, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        nowhere: ErrorCode.UNKNOWN_TOPIC_ID,
    }


# requests that are refused as a whole


@pytest.mark.parametrize("member_id", ["", "m" * 37])
def test_a_member_has_an_id(member_id: str) -> None:
    """Of up to 36 characters."""
    stage = ShareStage()
    assert stage.member(member_id).fetch(0, stage.wanted).error_code == ErrorCode.INVALID_REQUEST
    assert stage.member("m" * 36).fetch(0, stage.wanted).error_code == 0


def test_a_request_names_a_group() -> None:
    """Null is none."""
    stage = ShareStage()
    member = Member(stage.broker, group_id=None)
    assert member.fetch(0, stage.wanted).error_code == ErrorCode.INVALID_REQUEST
    assert member.acknowledge(1, {}).error_code == ErrorCode.INVALID_REQUEST


def test_without_the_feature_there_are_no_share_groups() -> None:
    """35, and turned off it ends what is open."""
    stage = ShareStage()
    stage.produce(2)
    member = stage.member()
    member.fetch(0, stage.wanted)
    stage.broker.change_features({"share.version": 0})
    assert member.fetch(1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert member.acknowledge(1, {}).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (len(stage.broker.share_partitions), len(stage.broker.share_partitions.sessions)) == (
        0,
        0,
    )


def test_epochs_are_checked() -> None:
    """122 without a session, 123 at another epoch, of both requests."""
    stage = ShareStage()
    member = stage.member()
    for epoch in (1, -1):
        assert member.fetch(epoch).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert member.acknowledge(epoch, {}).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.fetch(0, stage.wanted)
    assert member.acknowledge(0, {}).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(1).error_code == 0
    assert member.acknowledge(2, {}).error_code == 0
    for wrong in (2, 4):
        assert member.fetch(wrong).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        answer = member.acknowledge(wrong, {})
        assert answer.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(3).error_code == 0


def test_the_first_request_speaks_of_no_records() -> None:
    """The member cannot have any."""
    stage = ShareStage()
    said = {(stage.topic_id, 0): [(0, 1, (ACCEPT,))]}
    assert stage.member().fetch(0, said=said).error_code == ErrorCode.INVALID_REQUEST


def test_too_many_sessions_are_told_late() -> None:
    """A client that is told at once would ask again at once."""
    stage = ShareStage(group_share_max_share_sessions=200)
    for number in range(200):
        stage.member(f"m{number}").fetch(0, stage.wanted)
    late = stage.member()
    late.send_fetch(0, stage.wanted, max_wait_ms=500)
    stage.let_pass(499)
    assert late.answer() is None
    stage.let_pass(1)
    answer = late.answer()
    assert answer is not None
    assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


# partitions that cannot be read


def test_what_is_not_there_is_told() -> None:
    """A topic by its id, a partition by its number, a state by the group."""
    stage = ShareStage()
    unknown = bytes(15) + b"x"
    other_id = stage.broker.create_topic("other", 1).topic_id
    member = stage.member()
    wanted = {unknown: [0], stage.topic_id: [0, 3], other_id: [0]}
    member.send_fetch(0, wanted, max_wait_ms=500)
    stage.let_pass(500)
    answer = member.answer()
    assert answer is not None
    codes = {
        (topic.topic_id.bytes, found.partition_index): found.error_code
        for topic in answer.responses
        for found in topic.partitions
    }
    assert codes == {
        (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        (stage.topic_id, 0): 0,
        (stage.topic_id, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (other_id, 0): ErrorCode.UNKNOWN_SERVER_ERROR,
    }


def test_where_nothing_can_be_read_nobody_waits() -> None:
    """With at least one that can, the errors are told with its records."""
    stage = ShareStage(partitions=2)
    other_id = stage.broker.create_topic("other", 1).topic_id
    member = stage.member()
    assert partition_of(member.fetch(0, {other_id: [0]}, max_wait_ms=500)).error_code == -1
    member.send_fetch(0, stage.wanted | {other_id: [0]})
    assert member.answer() is None
    stage.produce(1)
    answer = member.answer()
    assert answer is not None
    assert sorted(found.error_code for t in answer.responses for found in t.partitions) == [
        -1,
        0,
        0,
    ]


def test_a_state_that_comes_later_is_found() -> None:
    """A share-partition that did not open is tried again by the next fetch."""
    stage = ShareStage()
    other_id = stage.broker.create_topic("other", 1).topic_id
    stage.produce(2, topic="other")
    member = stage.member()
    assert partition_of(member.fetch(0, {other_id: [0]})).error_code == -1
    stage.initialize(other_id, 0)
    assert got(member.fetch(1)) == "0-1"


# an incremental answer


def test_later_answers_name_what_has_news() -> None:
    """Records, errors, or partitions that are new."""
    stage = ShareStage(partitions=3)
    member = stage.member()
    first = member.fetch(0, {stage.topic_id: [0, 1]})
    assert [len(topic.partitions) for topic in first.responses] == [2]
    assert member.fetch(1).responses == ()
    stage.produce(1, 1)
    assert partition_of(member.fetch(2)).partition_index == 1
    assert partition_of(member.fetch(3, {stage.topic_id: [2]})).partition_index == 2
    assert member.fetch(4).responses == ()
    stage.produce(1, 0)
    stage.produce(1, 2)
    assert partition_of(member.fetch(5, forgotten={stage.topic_id: [0]})).partition_index == 2


def test_each_fetch_begins_with_another_partition() -> None:
    """And who had records is served last, so that a limit of records does not starve one."""
    stage = ShareStage(partitions=3)
    for index in range(3):
        for _ in range(6):
            stage.produce(2, index)
    member = stage.member()
    member.fetch(0, stage.wanted, max_records=0)
    seen = [
        [found.partition_index for found in topic.partitions if found.acquired_records]
        for epoch in range(1, 7)
        for topic in member.fetch(epoch, max_records=2).responses
    ]
    assert seen == [[1], [1], [0], [1], [1], [2]]


# waiting


def test_an_append_answers() -> None:
    """A fetch that found nothing has what comes."""
    stage = ShareStage()
    member = stage.member()
    member.send_fetch(0, stage.wanted)
    assert member.answer() is None
    stage.produce(3)
    assert got(member.answer()) == "0-2"


def test_the_end_of_its_time_answers() -> None:
    """Exactly then, with what there is."""
    stage = ShareStage()
    member = stage.member()
    member.send_fetch(0, stage.wanted)
    stage.let_pass(499)
    assert member.answer() is None
    stage.let_pass(1)
    assert got(member.answer()) == ""


def test_too_little_is_given_when_the_time_is_over() -> None:
    """Less than the minimal bytes, and not before."""
    stage = ShareStage()
    member = stage.member()
    member.send_fetch(0, stage.wanted, min_bytes=1000)
    stage.produce(3)
    assert member.answer() is None
    stage.let_pass(500)
    assert got(member.answer()) == "0-2"


def test_released_records_answer() -> None:
    """Whoever waits gets what another gives back."""
    stage = ShareStage()
    stage.produce(3)
    member, other = stage.member(), stage.member("B")
    member.fetch(0, stage.wanted)
    other.send_fetch(0, stage.wanted)
    assert other.answer() is None
    member.acknowledge(1, {(stage.topic_id, 0): [(0, 2, (RELEASE,))]})
    assert got(other.answer()) == "0-2*2"


def test_records_that_time_out_answer() -> None:
    """At the moment when their time is over."""
    stage = ShareStage()
    stage.produce(3)
    member, other = stage.member(), stage.member("B")
    member.fetch(0, stage.wanted)
    other.send_fetch(0, stage.wanted, max_wait_ms=LOCK_MS + 1)
    stage.let_pass(LOCK_MS - 1)
    assert other.answer() is None
    stage.let_pass(1)
    assert got(other.answer()) == "0-2*2"


def test_room_for_more_answers() -> None:
    """A fetch that found all places taken goes on when some are free."""
    stage = ShareStage()
    stage.set({"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": "100"})
    stage.produce(100)
    stage.produce(5)
    member, other = stage.member(), stage.member("B")
    assert got(member.fetch(0, stage.wanted, max_records=100)) == "0-99"
    other.send_fetch(0, stage.wanted)
    assert other.answer() is None
    member.acknowledge(1, {(stage.topic_id, 0): [(0, 99, (ACCEPT,))]})
    assert got(other.answer()) == "100-104"


def test_only_one_of_those_who_wait_gets_a_record() -> None:
    """The first to come; the others wait on."""
    stage = ShareStage()
    members = [stage.member(name) for name in "ABC"]
    for member in members:
        member.send_fetch(0, stage.wanted)
    stage.produce(1)
    assert got(members[0].answer()) == "0-0"
    assert [member.answer() for member in members[1:]] == [None, None]
    stage.produce(1)
    assert got(members[1].answer()) == "1-1"


def test_nothing_is_left_of_a_wait() -> None:
    """Neither a timer nor a watch on the partition."""
    stage = ShareStage()
    due_ms = stage.broker.timers.next_due_ms()
    member = stage.member()
    member.send_fetch(0, stage.wanted)
    stage.let_pass(500)
    assert stage.broker.timers.next_due_ms() == due_ms
    assert stage.broker.topics["t"].partitions[0].on_append is None
    assert stage.broker.share_partitions.waiting == {}


# renewed locks


def test_who_renews_gets_no_records() -> None:
    """Reading them could take longer than the lock lasts (KIP-1222)."""
    stage = ShareStage()
    stage.produce(2)
    member = stage.member()
    member.fetch(0, stage.wanted)
    stage.produce(2)
    said = {(stage.topic_id, 0): [(0, 1, (RENEW,))]}
    nothing: dict[str, Any] = {
        "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": 1,
    }  # fmt: skip
    stage.let_pass(LOCK_MS - 1)
    answer = member.fetch(1, said=said, **nothing)
    assert (partition_of(answer).acknowledge_error_code, got(answer)) == (0, "")
    stage.let_pass(LOCK_MS - 1)
    assert got(member.fetch(2)) == "2-3"


@pytest.mark.parametrize("field", ["min_bytes", "max_bytes", "max_records", "max_wait_ms"])
def test_who_renews_must_not_want_anything(field: str) -> None:
    """42, before the session is looked at."""
    stage = ShareStage()
    nothing: dict[str, Any] = {
        "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": 1,
    }  # fmt: skip
    nothing[field] = 1
    answer = stage.member().fetch(0, stage.wanted, **nothing)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "is_renewal", "code"),
    [(2, 1, 0), (2, 0, ErrorCode.INVALID_REQUEST), (1, 0, ErrorCode.INVALID_REQUEST)],
)
def test_a_renewal_is_announced(version: int, is_renewal: int, code: int) -> None:
    """Version 1 does not know them."""
    stage = ShareStage()
    stage.produce(2)
    member = stage.member()
    member.fetch(0, stage.wanted)
    said = {(stage.topic_id, 0): [(0, 1, (RENEW,))]}
    answer = member.acknowledge(1, said, version=version, is_renew_ack=is_renewal)
    assert answer.responses[0].partitions[0].error_code == code


def test_record_limit_mode_is_kept() -> None:
    """Never more than were asked for."""
    stage = ShareStage()
    stage.produce(10)
    member = stage.member()
    answer = member.fetch(0, stage.wanted, max_records=3, share_acquire_mode=1)
    assert got(answer) == "0-2"
    assert got(member.fetch(1, max_records=3, share_acquire_mode=1)) == "3-5"
