"""The time that a member has."""

from __future__ import annotations

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch
from tests.compat.kafka.share_reads.stage import ACCEPT, LOCK_MS, RELEASE, Stage


def timers(stage: Stage) -> int:
    """Return how many calls are pending beyond those of a broker at rest."""
    fresh = Stage()
    return _pending(stage) - _pending(fresh)


def _pending(stage: Stage) -> int:
    """Return how many calls are pending; cancelled ones are not."""
    heap = stage.broker.timers._heap  # pyright: ignore[reportPrivateUsage] # nobody else asks
    return sum(entry[2].is_pending for entry in heap)


def test_records_are_free_when_their_time_is_over() -> None:
    """Exactly then, and that is kept; whoever waits is told."""
    stage = Stage(5)
    told: list[object] = []
    stage.partition.on_append = told.append
    stage.partition.on_timeout = lambda: told.append("now")
    stage.acquire()
    stage.let_pass(LOCK_MS - 1)
    assert (stage.in_flight, told) == ("0-4 A has", [])
    stage.let_pass(1)
    assert stage.in_flight == "0-4 free"
    assert stage.persister.writes == [(0, 0, (StateBatch(0, 4, DeliveryState.AVAILABLE, 1),))]
    assert told == [stage.partition, "now"]
    assert stage.acquire(member="B") == "0-4*2"


def test_each_acquisition_has_its_own_time() -> None:
    """What was acquired later times out later."""
    stage = Stage(5, 5)
    stage.acquire(5)
    stage.let_pass(1000)
    stage.acquire(5)
    stage.let_pass(LOCK_MS - 1000)
    assert stage.in_flight == "0-4 free | 5-9 A has"


def test_what_was_acknowledged_does_not_time_out() -> None:
    """Of a batch that has split the rest does, and at the time that was."""
    stage = Stage(6)
    stage.acquire()
    stage.let_pass(1000)
    stage.say(1, 2, ACCEPT)
    stage.say(4, 4, RELEASE)
    assert stage.acquire(member="B") == "4*2"
    stage.let_pass(LOCK_MS - 1000)
    assert stage.in_flight == "0 free 1-2 done 3 free 4 B has*2 5 free"
    stage.let_pass(1000)
    assert stage.in_flight == "0 free 1-2 done 3 free 4 free*2 5 free"


def test_the_duration_is_that_of_the_group_now() -> None:
    """A changed setting counts for the next acquisition."""
    stage = Stage(5, 5)
    stage.acquire(5)
    stage.set(record_lock_duration_ms=1000)
    stage.acquire(5)
    stage.let_pass(1000)
    assert stage.in_flight == "0-4 A has | 5-9 free"


def test_after_the_last_delivery_there_is_none() -> None:
    """Records that time out for the last time are given up, and the start moves over them."""
    stage = Stage(3, 3, delivery_count_limit=2)
    stage.acquire(3)
    stage.acquire(3)
    stage.let_pass(LOCK_MS)
    assert stage.acquire() == "0-2*2 3-5*2"
    stage.say(4, 4, ACCEPT)
    stage.let_pass(LOCK_MS)
    assert (stage.in_flight, stage.bounds) == ("", (6, 6))


def test_time_is_over_even_if_that_cannot_be_kept() -> None:
    """The records are free all the same: after a restart they would be, too."""
    stage = Stage(3, delivery_count_limit=2)
    stage.persister.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.acquire()
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-2 free"
    stage.acquire()
    stage.let_pass(LOCK_MS)
    assert (stage.in_flight, stage.bounds) == ("", (3, 3))


def test_nobody_waits_for_a_lock_without_records() -> None:
    """Timers go as soon as all that they are for has come to an end."""
    stage = Stage(6, 6)
    stage.acquire(6)
    assert timers(stage) == 1
    stage.say(0, 4, ACCEPT, RELEASE, ACCEPT, ACCEPT, ACCEPT)
    assert timers(stage) == 1
    assert stage.acquire(1) == "1*2"
    assert timers(stage) == 2
    stage.say(5, 5, ACCEPT)
    assert timers(stage) == 1
    stage.partition.release("A")
    assert timers(stage) == 0


def test_nothing_times_out_behind_a_fence() -> None:
    """Who is fenced hands nothing out and writes nothing more."""
    stage = Stage(6, 6)
    stage.acquire(6)
    stage.say(1, 1, ACCEPT)
    writes = list(stage.persister.writes)
    stage.partition.fence()
    assert timers(stage) == 0
    stage.let_pass(LOCK_MS)
    assert stage.persister.writes == writes
    assert stage.acquire() == "full"
