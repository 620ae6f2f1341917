"""What a member says of records, and what becomes of them."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch
from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch
from tests.compat.kafka.share_reads.stage import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    Stage,
)

INVALID_STATE, INVALID_REQUEST = ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST


def refused(stage: Stage, first: int, last: int, *types: int, member: str = "A") -> ErrorCode:
    """Return why an acknowledgement is refused; it must not have changed anything."""
    before = stage.in_flight, stage.bounds, list(stage.persister.writes)
    with pytest.raises(RefusedRequestError) as refusal:
        stage.say(first, last, *types, member=member)
    states = stage.in_flight.replace(" | ", " "), stage.bounds, stage.persister.writes
    assert states == (before[0].replace(" | ", " "), *before[1:])
    stage.check_count()
    return refusal.value.code


@pytest.mark.parametrize("kind", [ACCEPT, REJECT, GAP])
def test_what_is_final_leaves(kind: int) -> None:
    """A batch of which all is accepted, rejected or a gap is in flight no more."""
    stage = Stage(5)
    stage.acquire()
    stage.say(0, 4, kind)
    assert (stage.in_flight, stage.bounds) == ("", (5, 5))
    assert stage.acquire() == "nothing"


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (ACCEPT, DeliveryState.ACKNOWLEDGED),
        (REJECT, DeliveryState.ARCHIVED),
        (GAP, DeliveryState.ARCHIVED),
        (RELEASE, DeliveryState.AVAILABLE),
    ],
)
def test_what_changed_is_kept(kind: int, kept: DeliveryState) -> None:
    """The persister is told of the batch, where all starts, and how many wait for others."""
    stage = Stage(5)
    stage.acquire()
    stage.say(0, 4, kind)
    count = 0 if kind == RELEASE else 5
    assert stage.persister.writes == [(0, count, (StateBatch(0, 4, kept, 1),))]


def test_neighbours_that_are_alike_are_kept_as_one() -> None:
    """Offset by offset acknowledged, and told in three batches."""
    stage = Stage(6)
    stage.acquire()
    stage.say(0, 5, RELEASE, RELEASE, ACCEPT, ACCEPT, ACCEPT, REJECT)
    done, gone = DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED
    assert stage.persister.writes == [
        (
            0,
            4,
            (
                StateBatch(0, 1, DeliveryState.AVAILABLE, 1),
                StateBatch(2, 4, done, 1),
                StateBatch(5, 5, gone, 1),
            ),
        )
    ]


def test_a_part_of_a_batch_is_acknowledged() -> None:
    """The batch splits; the start moves over what is final in front."""
    stage = Stage(5)
    stage.acquire()
    stage.say(1, 2, ACCEPT)
    assert (stage.in_flight, stage.bounds) == ("0 A has 1-2 done 3-4 A has", (0, 4))
    stage.say(0, 0, ACCEPT)
    assert stage.bounds == (3, 4)
    stage.check_count()


def test_the_start_waits_for_the_first_record() -> None:
    """Whole batches leave as soon as all in front of them is final, and not before."""
    stage = Stage(3, 3, 3)
    for _ in range(3):
        stage.acquire(3)
    stage.say(3, 5, ACCEPT)
    stage.say(6, 8, REJECT)
    assert (stage.in_flight, stage.bounds) == ("0-2 A has | 3-5 done | 6-8 gone", (0, 8))
    assert stage.partition.records.delivery_complete_count == 6
    stage.say(0, 2, RELEASE)
    assert stage.in_flight == "0-2 free | 3-5 done | 6-8 gone"
    assert stage.acquire() == "0-2*2"
    stage.say(0, 2, ACCEPT)
    assert (stage.in_flight, stage.bounds) == ("", (9, 9))


def test_several_batches_are_acknowledged_at_once() -> None:
    """One range over batches in flight, and several ranges in one request."""
    stage = Stage(3, 3, 3)
    for _ in range(3):
        stage.acquire(3)
    stage.say(1, 7, ACCEPT)
    assert stage.in_flight == "0 A has 1-2 done | 3-5 done | 6-7 done 8 A has"
    stage.partition.acknowledge(
        "A",
        [AcknowledgementBatch(0, 0, (ACCEPT,)), AcknowledgementBatch(8, 8, (RELEASE,))],
    )
    assert (stage.in_flight, stage.bounds) == ("6-7 done 8 free", (8, 8))


def test_what_lies_below_the_start_is_passed_over() -> None:
    """A late acknowledgement of what is final already is no error, if all of it is."""
    stage = Stage(5, 5)
    stage.acquire(5)
    stage.acquire(5)
    stage.say(0, 4, ACCEPT)
    stage.say(0, 4, ACCEPT)
    assert stage.bounds == (5, 9)


def test_what_another_member_has_is_refused() -> None:
    """Batches and offsets belong to who acquired them."""
    stage = Stage(5, 5)
    stage.acquire(5)
    stage.acquire(5, member="B")
    assert refused(stage, 0, 4, ACCEPT, member="B") is INVALID_STATE
    assert refused(stage, 5, 6, ACCEPT) is INVALID_STATE
    stage.say(6, 6, RELEASE, member="B")
    assert refused(stage, 5, 5, ACCEPT) is INVALID_STATE


def test_what_nobody_has_is_refused() -> None:
    """Once released or accepted, records cannot be acknowledged again."""
    stage = Stage(4, 4)
    stage.acquire(4)
    stage.acquire(4)
    stage.say(4, 7, RELEASE)
    assert refused(stage, 4, 7, ACCEPT) is INVALID_STATE
    assert refused(stage, 4, 5, ACCEPT) is INVALID_STATE
    stage.say(2, 2, ACCEPT)
    assert refused(stage, 2, 2, ACCEPT) is INVALID_STATE
    assert refused(stage, 0, 3, ACCEPT) is INVALID_STATE


def test_what_was_never_delivered_is_refused() -> None:
    """Past the end it is a bad request, as in Kafka; with nothing in flight the state is bad."""
    stage = Stage(4, 4)
    assert refused(stage, 0, 3, ACCEPT) is INVALID_STATE
    stage.acquire(4)
    assert refused(stage, 4, 5, ACCEPT) is INVALID_REQUEST
    assert refused(stage, 2, 4, ACCEPT) is INVALID_REQUEST
    stage.say(0, 3, ACCEPT)
    assert refused(stage, 2, 5, ACCEPT) is INVALID_STATE


@pytest.mark.parametrize("kind", [-1, 5])
def test_types_that_are_none_are_refused(kind: int) -> None:
    """There are five of them."""
    stage = Stage(4)
    stage.acquire()
    assert refused(stage, 0, 3, kind) is INVALID_REQUEST


def test_all_or_nothing() -> None:
    """If one of several batches is refused, the others are taken back."""
    stage = Stage(3, 3)
    stage.acquire(3)
    stage.acquire(3, member="B")
    batches = [AcknowledgementBatch(0, 1, (ACCEPT,)), AcknowledgementBatch(3, 5, (ACCEPT,))]
    with pytest.raises(RefusedRequestError):
        stage.partition.acknowledge("A", batches)
    assert stage.in_flight == "0-2 A has | 3-5 B has"
    assert stage.persister.writes == []
    stage.check_count()


@pytest.mark.parametrize("types", [(ACCEPT,), (ACCEPT, RELEASE, REJECT)])
def test_what_cannot_be_kept_is_taken_back(types: tuple[int, ...]) -> None:
    """The member has its records still, and their time runs on."""
    stage = Stage(3)
    stage.acquire()
    stage.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused(stage, 0, 2, *types) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.in_flight == "0-2 A has"
    stage.persister.refusal = None
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-2 free"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_clients_are_told_of_the_persister(said: ErrorCode, told: ErrorCode) -> None:
    """Its codes are translated, as in Kafka."""
    stage = Stage(3)
    stage.acquire()
    stage.persister.refusal = said
    assert refused(stage, 0, 2, ACCEPT) is told


# the end of a member


def test_what_a_member_has_is_given_back() -> None:
    """Of batches and offsets that others have nothing is."""
    stage = Stage(4, 4, 4)
    stage.acquire(4)
    stage.acquire(4, member="B")
    stage.acquire(4)
    stage.say(1, 1, ACCEPT)
    stage.partition.release("A")
    assert stage.in_flight == "0 free 1 done 2-3 free | 4-7 B has | 8-11 free"
    assert [write[2] for write in stage.persister.writes[1:]] == [
        (
            StateBatch(0, 0, DeliveryState.AVAILABLE, 1),
            StateBatch(2, 3, DeliveryState.AVAILABLE, 1),
            StateBatch(8, 11, DeliveryState.AVAILABLE, 1),
        )
    ]


def test_what_is_given_back_counts_as_delivered() -> None:
    """After the last delivery it is not delivered again."""
    stage = Stage(3, delivery_count_limit=2)
    for _ in range(2):
        stage.acquire()
        stage.partition.release("A")
    assert (stage.in_flight, stage.bounds) == ("", (3, 3))


def test_nothing_is_kept_for_who_has_nothing() -> None:
    """A member that has no records is released without a write."""
    stage = Stage(3)
    stage.acquire()
    stage.partition.release("B")
    assert stage.persister.writes == []


def test_a_release_that_cannot_be_kept_is_taken_back() -> None:
    """The locks see to it then."""
    stage = Stage(3)
    stage.acquire()
    stage.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(RefusedRequestError):
        stage.partition.release("A")
    assert stage.in_flight == "0-2 A has"
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-2 free"


# renewed locks


def test_a_renewed_lock_begins_anew() -> None:
    """A batch is the member's for another full time; nothing is written."""
    stage = Stage(3)
    stage.acquire()
    stage.let_pass(LOCK_MS - 1)
    stage.say(0, 2, RENEW)
    stage.let_pass(LOCK_MS - 1)
    assert stage.in_flight == "0-2 A has"
    assert stage.persister.writes == []
    stage.let_pass(1)
    assert stage.in_flight == "0-2 free"


def test_single_offsets_are_renewed() -> None:
    """The others time out when they would have."""
    stage = Stage(5)
    stage.acquire()
    stage.let_pass(LOCK_MS - 1)
    stage.say(0, 4, RELEASE, RENEW, RENEW, ACCEPT, RENEW)
    stage.say(2, 2, ACCEPT)
    stage.let_pass(1)
    assert stage.in_flight == "0 free 1 A has 2-3 done 4 A has"
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-1 free 2-3 done 4 free"


def test_what_timed_out_cannot_be_renewed() -> None:
    """It is nobody's, or another's."""
    stage = Stage(3)
    stage.acquire()
    stage.let_pass(LOCK_MS)
    assert refused(stage, 0, 2, RENEW) is INVALID_STATE


def test_a_group_may_forbid_renewals() -> None:
    """Then it is as if nobody had the records; the lock goes on as it was."""
    stage = Stage(3, renew_acknowledge_enable=False)
    stage.acquire()
    assert refused(stage, 0, 2, RENEW) is INVALID_STATE
    assert refused(stage, 1, 1, RENEW) is INVALID_STATE
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-2 free"
