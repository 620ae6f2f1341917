"""Where a share-partition starts, what it keeps, and what happens to its log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch
from tests.compat.kafka.share_reads.stage import ACCEPT, LOCK_MS, RELEASE, Stage

FREE, DONE, GONE = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED


def keep(stage: Stage, start: int, batches: Sequence[tuple[int, int, DeliveryState, int]]) -> None:
    """Have the persister know this, and open the share-partition anew."""
    stage.persister.initialize(stage.key, 1, start)
    stage.persister.write(
        stage.key,
        state_epoch=1,
        leader_epoch=0,
        start_offset=start,
        delivery_complete_count=0,
        state_batches=[StateBatch(*one) for one in batches],
    )
    stage.persister.writes.clear()
    stage.open()


# where it starts


def test_it_starts_where_it_is_told_to() -> None:
    """A start that was given counts, whatever the group's setting."""
    stage = Stage(10, kept_from=4, auto_offset_reset="latest")
    assert stage.acquire() == "4-9"
    assert stage.bounds == (4, 9)


def test_earliest_is_the_start_of_the_log() -> None:
    """Records that were deleted are no part of it."""
    stage = Stage(5, 5)
    stage.log.delete_records(7)
    stage.open()
    assert stage.acquire() == "7-9"


def test_latest_is_the_end_of_the_log() -> None:
    """Only what comes later is delivered."""
    stage = Stage(5, auto_offset_reset="latest")
    assert stage.acquire() == "nothing"
    stage.append(2)
    assert stage.acquire() == "5-6"


@pytest.mark.parametrize(
    ("duration", "start"),
    [
        ("PT1M", 10),
        ("PT120S", 5),
        ("PT119.5S", 10),
        ("PT1H1M", 5),
        ("PT1H2M", 0),
        ("P1DT1H", 0),
        ("P2D", 0),
        ("PT59M", 5),
    ],
)
def test_a_duration_goes_back_in_time(duration: str, start: int) -> None:
    """The first record that is as young as that."""
    stage = Stage()
    for delay_ms in (3_600_000, 90_000, 30_000):
        stage.append(5)
        stage.host.clock.advance(delay_ms)
    stage.set(auto_offset_reset=f"by_duration:{duration}")
    stage.open()
    assert stage.bounds == (start, start)


def test_a_duration_without_records_is_refused() -> None:
    """As in Kafka: there is no offset of that time."""
    stage = Stage(5)
    stage.host.clock.advance(10_000)
    stage.set(auto_offset_reset="by_duration:PT1S")
    with pytest.raises(RefusedRequestError) as refusal:
        stage.open()
    assert refusal.value.code is ErrorCode.OFFSET_NOT_AVAILABLE


def test_without_a_state_it_does_not_open() -> None:
    """The group coordinator has to initialise it first."""
    stage = Stage(5)
    stage.persister.delete(stage.key)
    with pytest.raises(RefusedRequestError) as refusal:
        stage.open()
    assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("batch", [(2, 5, DONE, 1), (6, 5, DONE, 1)])
def test_a_state_that_cannot_be_is_refused(batch: tuple[int, int, DeliveryState, int]) -> None:
    """Batches below the start, or of less than no records."""
    stage = Stage(10)
    state = stage.persister.read(stage.key, 0)
    stage.persister.answer = state._replace(start_offset=3, state_batches=(StateBatch(*batch),))
    with pytest.raises(RefusedRequestError) as refusal:
        stage.open()
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


# what it goes on with


def test_it_goes_on_where_it_stopped() -> None:
    """What was acquired is free again; what is final, and how often was delivered, is known."""
    stage = Stage(4, 4, 4)
    stage.acquire(4)
    stage.acquire(4)
    stage.say(0, 3, ACCEPT, RELEASE, ACCEPT, ACCEPT)
    stage.open()
    assert stage.bounds == (1, 3)
    assert stage.in_flight == "1 free | 2-3 done"
    stage.check_count()
    assert stage.acquire(member="B") == "1*2 4-11"


def test_what_is_final_in_front_is_passed_over() -> None:
    """The start moves on at once."""
    stage = Stage(10)
    keep(stage, 0, [(0, 4, DONE, 1), (5, 5, GONE, 2), (6, 7, FREE, 2)])
    assert (stage.in_flight, stage.bounds) == ("6-7 free*2", (6, 7))
    assert stage.acquire() == "6-7*3 8-9"


def test_gaps_in_what_was_kept_are_delivered_again() -> None:
    """Of those offsets nothing was kept: they were acquired, and nobody acknowledged them."""
    stage = Stage(10, 10, 10)
    keep(stage, 0, [(5, 9, DONE, 1), (15, 24, DONE, 1)])
    assert stage.bounds == (0, 24)
    assert stage.acquire() == "0-4 10-14 25-29"
    stage.say(0, 4, ACCEPT)
    stage.say(10, 14, ACCEPT)
    stage.say(25, 29, ACCEPT)
    assert stage.bounds == (30, 30)
    stage.check_count()


def test_a_gap_is_read_piece_by_piece() -> None:
    """The start waits for it, however small the reads are."""
    stage = Stage(5, 5, 5, 5)
    keep(stage, 0, [(0, 2, DONE, 1), (15, 17, DONE, 1)])
    assert stage.bounds == (3, 17)
    assert stage.acquire(1, bytes_max=1) == "3-4"
    stage.say(3, 4, ACCEPT)
    assert stage.bounds == (5, 17)
    assert [stage.acquire(1, bytes_max=1) for _ in range(4)] == ["5-9", "10-14", "18-19", "nothing"]


def test_a_gap_without_records_is_passed_over() -> None:
    """Kafka would read it for ever: nothing in it can be acquired."""
    stage = Stage()
    keep(stage, 0, [])
    stage.append(30)
    keep(stage, 0, [(0, 2, DONE, 1), (10, 12, DONE, 1)])
    assert stage.partition.next_fetch_offset() == 3
    assert stage.acquire_of([(10, 12)], 3) == ""
    assert stage.partition.next_fetch_offset() == 13


# the start of the log


def test_deleted_records_are_not_delivered_again() -> None:
    """Free ones are given up at once; the start follows the log's."""
    stage = Stage(5, 5, 5)
    for _ in range(3):
        stage.acquire(5)
    stage.say(0, 4, RELEASE)
    stage.say(10, 14, ACCEPT)
    stage.partition.move_start(7)
    assert stage.bounds == (7, 14)
    assert stage.in_flight == "0-4 gone | 5-9 A has | 10-14 done"
    stage.check_count()
    assert stage.acquire() == "nothing"


def test_deleted_records_that_somebody_has_are_given_up_later() -> None:
    """When their time is over, or the member gives them back."""
    for is_member_gone in (False, True):
        stage = Stage(5, 5)
        stage.acquire(5)
        stage.acquire(5)
        stage.partition.move_start(7)
        if is_member_gone:
            stage.partition.release("A")
        else:
            stage.let_pass(LOCK_MS)
        assert (stage.in_flight, stage.bounds) == ("5-6 gone 7-9 free", (7, 9))
        stage.check_count()


def test_acknowledging_deleted_records_is_no_error() -> None:
    """Those below the start are passed over until their time is over; the others count."""
    stage = Stage(5, 5)
    stage.acquire()
    stage.partition.move_start(3)
    stage.say(0, 9, ACCEPT)
    assert (stage.in_flight, stage.bounds) == ("0-2 A has 3-9 done", (3, 9))
    stage.let_pass(LOCK_MS)
    assert (stage.in_flight, stage.bounds) == ("", (10, 10))


def test_the_log_may_start_behind_all_that_is_in_flight() -> None:
    """Then there is nothing left, and what comes next is what the log has."""
    stage = Stage(5, 5, 5)
    stage.acquire(5)
    stage.partition.move_start(12)
    assert stage.bounds == (12, 12)
    assert stage.partition.next_fetch_offset() == 12
    stage.let_pass(LOCK_MS)
    assert (stage.in_flight, stage.bounds) == ("", (12, 12))
    assert stage.acquire() == "12-14"
    stage.check_count()


def test_the_start_does_not_go_back() -> None:
    """A log that starts in front of all changes nothing."""
    stage = Stage(5, 5, kept_from=5)
    stage.partition.move_start(2)
    assert stage.bounds == (5, 5)


def test_a_gap_that_was_deleted_is_not_read() -> None:
    """Kafka would try for ever."""
    stage = Stage(30)
    keep(stage, 0, [(0, 2, DONE, 1), (10, 12, DONE, 1), (20, 25, DONE, 1)])
    stage.partition.move_start(18)
    assert stage.partition.next_fetch_offset() == 18
    stage.partition.move_start(22)
    assert stage.partition.next_fetch_offset() == 26


# the state's epoch


def test_a_state_that_begins_anew_fences() -> None:
    """Writes of another epoch are refused; the next one to open reads the new state."""
    stage = Stage(5)
    stage.acquire()
    stage.persister.initialize(stage.key, 2, 3)
    with pytest.raises(RefusedRequestError) as refusal:
        stage.say(0, 4, ACCEPT)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    stage.open()
    assert stage.acquire() == "3-4"
    stage.say(3, 4, ACCEPT)
    assert stage.bounds == (5, 5)
