"""What a share fetch acquires."""

from __future__ import annotations

import pytest

from tests.compat.kafka.share_reads.stage import ACCEPT, GAP, LOCK_MS, REJECT, RELEASE, Stage


def test_what_was_never_delivered_is_one_batch_in_flight() -> None:
    """All that was fetched, and may be acquired, is acquired together."""
    stage = Stage(5, 5)
    assert stage.acquire() == "0-9"
    assert (stage.in_flight, stage.bounds) == ("0-9 A has", (0, 9))
    assert stage.acquire() == "nothing"


@pytest.mark.parametrize(("count_max", "got"), [(1, "0-4"), (5, "0-4"), (6, "0-9"), (11, "0-14")])
def test_the_last_batch_of_the_log_is_whole(count_max: int, got: str) -> None:
    """A limit in the middle of a batch takes all of that batch."""
    assert Stage(5, 5, 5).acquire(count_max) == got


def test_nothing_is_acquired_where_nothing_is_wanted() -> None:
    """A limit of no records leaves all as it is."""
    stage = Stage(5)
    assert stage.acquire(0) == ""
    assert stage.in_flight == ""


def test_pieces_have_the_wanted_size_and_end_with_batches_of_the_log() -> None:
    """Of many batches one in flight has at least `batch_size` records, but for the last one."""
    stage = Stage(3, 3, 3, 3, 3)
    assert stage.acquire(batch_size=5) == "0-5 6-11 12-14"
    assert stage.in_flight == "0-5 A has | 6-11 A has | 12-14 A has"


def test_a_batch_of_the_log_is_not_cut_for_the_wanted_size() -> None:
    """One large batch stays one."""
    assert Stage(20).acquire(batch_size=5) == "0-19"


@pytest.mark.parametrize("batch_size", [0, -1])
def test_who_wants_pieces_of_nothing_is_told_of_one(batch_size: int) -> None:
    """As by Kafka: it has no records, and stands before the first that has."""
    stage = Stage(3, 3)
    assert stage.acquire(batch_size=batch_size) == "0--1 0-2 3-5"
    assert stage.in_flight == "0-2 A has | 3-5 A has"


def test_two_members_get_different_records() -> None:
    """Who comes second gets what comes next."""
    stage = Stage(5, 5)
    assert stage.acquire(5) == "0-4"
    assert stage.acquire(5, member="B") == "5-9"
    assert stage.in_flight == "0-4 A has | 5-9 B has"


def test_what_was_released_is_delivered_again() -> None:
    """Released records are next, before what was never delivered, and count one more."""
    stage = Stage(5, 5, 5)
    stage.acquire(10)
    stage.say(0, 9, RELEASE)
    assert stage.partition.next_fetch_offset() == 0
    assert stage.acquire(member="B") == "0-9*2 10-14"
    assert stage.in_flight == "0-9 B has*2 | 10-14 B has"


def test_single_offsets_are_delivered_again() -> None:
    """A batch of which only some was released splits; neighbours are told together."""
    stage = Stage(10)
    stage.acquire()
    stage.say(2, 3, RELEASE)
    stage.say(6, 6, RELEASE)
    assert stage.in_flight == "0-1 A has 2-3 free 4-5 A has 6 free 7-9 A has"
    assert stage.acquire(member="B") == "2-3*2 6*2"


def test_what_is_read_from_the_middle_of_a_batch_is_acquired_as_it_stands() -> None:
    """The log gives the whole batch; what is acknowledged in front stays so."""
    stage = Stage(10)
    stage.acquire()
    stage.say(0, 9, ACCEPT, ACCEPT, REJECT, GAP, *[RELEASE] * 6)
    assert stage.bounds == (4, 9)
    assert stage.acquire(member="B") == "4-9*2"


def test_an_offset_with_another_count_is_told_apart() -> None:
    """Neighbours that were delivered differently often are not one run."""
    stage = Stage(6, delivery_count_limit=10)
    stage.acquire()
    stage.say(0, 2, RELEASE)
    stage.acquire()
    stage.say(0, 5, RELEASE, RELEASE, RELEASE, RELEASE, RELEASE, RELEASE)
    assert stage.acquire() == "0-2*3 3-5*2"


def test_no_more_is_in_flight_than_may_be() -> None:
    """The limit may be exceeded by a batch of the log, and then nothing new is acquired."""
    stage = Stage(40, 40, 40, 40, partition_max_record_locks=100)
    assert stage.acquire() == "0-119"
    assert stage.acquire() == "full"
    stage.say(0, 79, ACCEPT)
    assert stage.bounds == (80, 119)
    assert stage.acquire() == "120-159"


def test_what_is_free_is_delivered_again_where_all_is_in_flight() -> None:
    """At the limit only what is between what others have can be acquired."""
    stage = Stage(50, 50, 50, partition_max_record_locks=100)
    stage.acquire()
    stage.say(20, 29, RELEASE)
    assert stage.acquire(member="B") == "20-29*2"
    assert stage.acquire(member="B") == "full"


def test_a_changed_limit_counts_at_once() -> None:
    """More may be in flight as soon as the setting says so."""
    stage = Stage(50, 50, 50, partition_max_record_locks=100)
    stage.acquire()
    assert stage.acquire() == "full"
    stage.set(partition_max_record_locks=101)
    assert stage.acquire() == "100-149"


# record-limit mode


def test_a_limit_of_records_is_kept() -> None:
    """There are never more than were asked for; the rest of the batch is free, and was not had."""
    stage = Stage(10)
    assert stage.acquire(4, limit=True) == "0-3"
    assert stage.in_flight == "0-3 A has 4-9 free*0"
    assert stage.acquire(4, member="B", limit=True) == "4-7"
    assert stage.acquire(4, limit=True) == "8-9"
    assert stage.acquire(4, limit=True) == "nothing"


def test_a_limit_that_is_not_reached_takes_all() -> None:
    """Fewer records than asked for are one batch in flight, as in the other mode."""
    stage = Stage(3, 3)
    assert stage.acquire(10, limit=True) == "0-5"
    assert stage.in_flight == "0-5 A has"


def test_a_limit_counts_over_batches_in_flight() -> None:
    """What is delivered again and what is new together are no more than were asked for."""
    stage = Stage(4, 4, 4)
    stage.acquire(4)
    stage.say(0, 3, RELEASE)
    assert stage.acquire(6, limit=True) == "0-3*2 4-5"
    assert stage.acquire(1, limit=True) == "6"


def test_a_batch_that_is_too_large_for_a_limit_splits() -> None:
    """Of a batch that is free as a whole only so many are acquired."""
    stage = Stage(6)
    stage.acquire()
    stage.say(0, 5, RELEASE)
    assert stage.acquire(2, limit=True) == "0-1*2"
    assert stage.acquire(100, member="B") == "2-5*2"


# the last deliveries


def test_the_closer_to_the_last_delivery_the_fewer_together() -> None:
    """From half of the deliveries on they are halved, and the last one is for each alone."""
    stage = Stage(8, delivery_count_limit=6)
    told: list[str] = []
    while not told or told[-1] != "nothing":
        told.append(stage.acquire())
        for run in _had(stage):
            stage.say(*run, RELEASE)
    assert told == [
        "0-7", "0-7*2", "0-7*3",
        "0-3*4", "0-1*5", "0*6", "1*6", "2-3*5", "2*6", "3*6",
        "4-7*4", "4-5*5", "4*6", "5*6", "6-7*5", "6*6", "7*6",
        "nothing",
    ]  # fmt: skip
    assert stage.bounds == (8, 8)


def _had(stage: Stage) -> list[tuple[int, int]]:
    return [
        (run.first_offset, run.last_offset)
        for batch in stage.partition.records.batches.values()
        for run in batch.runs()
        if run.state.member_id
    ]


def test_with_two_deliveries_none_is_for_each_alone() -> None:
    """A limit of two leaves no room for care."""
    stage = Stage(4, delivery_count_limit=2)
    stage.acquire()
    stage.say(0, 3, RELEASE)
    assert stage.acquire() == "0-3*2"
    stage.say(0, 3, RELEASE)
    assert (stage.acquire(), stage.bounds) == ("nothing", (4, 4))


def test_what_was_delivered_often_does_not_come_with_others() -> None:
    """A careful delivery ends an acquisition, and waits if others are in it already."""
    stage = Stage(2, 2, 2, delivery_count_limit=4)
    stage.acquire(2)
    stage.say(0, 1, RELEASE)
    assert stage.acquire(2) == "0-1*2"
    stage.acquire(2)
    stage.say(0, 3, RELEASE)
    assert stage.acquire() == "0*3"
    assert stage.acquire() == "1*3"
    assert stage.acquire() == "2-3*2 4-5"


def test_a_lower_limit_counts_when_a_delivery_ends() -> None:
    """Records that were delivered often enough by then are not delivered again."""
    stage = Stage(3)
    for _ in range(2):
        stage.acquire()
        stage.say(0, 2, RELEASE)
    assert stage.acquire() == "0-2*3"
    stage.set(delivery_count_limit=2)
    stage.let_pass(LOCK_MS)
    assert (stage.in_flight, stage.bounds) == ("", (3, 3))


# what the log does not have any more


def test_compacted_records_that_were_in_flight_are_given_up() -> None:
    """What is free, and is not found in the log any more, is nobody's; and nobody waits for it."""
    stage = Stage(4, 4, 4)
    stage.acquire(4)
    stage.acquire(4)
    stage.acquire(4)
    stage.say(0, 11, RELEASE)
    assert stage.acquire_of([(8, 11)], 0) == "8-11*2"
    assert (stage.in_flight, stage.bounds) == ("8-11 A has*2", (8, 11))
    stage.check_count()


def test_a_hole_between_batches_is_acquired_with_them() -> None:
    """Offsets without records are the client's to tell, which calls them gaps."""
    stage = Stage()
    assert stage.acquire_of([(0, 4), (9, 12)], 0) == "0-12"
    stage.say(0, 12, *[ACCEPT] * 5, *[GAP] * 4, *[ACCEPT] * 4)
    assert stage.bounds == (13, 13)


def test_a_hole_in_front_is_passed_over() -> None:
    """The first batch may start above what was asked for."""
    stage = Stage()
    assert stage.acquire_of([(7, 9)], 0) == "7-9"
    assert stage.bounds == (7, 9)
