"""What a share fetch acquires."""

from __future__ import annotations

from tests.compat.kafka.share_reads.stage import ACCEPT, LOCK_MS, RELEASE, Stage


def test_what_was_never_delivered_is_acquired_batch_by_batch() -> None:
    """All that was fetched is one acquisition and one batch in flight."""
    stage = Stage(5, 5)
    assert stage.acquire() == "0-9"
    assert stage.in_flight == "0-9 acq A"
    assert stage.bounds == (0, 9)
    assert stage.acquire() == "nothing"


def test_the_last_batch_of_the_log_is_whole() -> None:
    """A limit in the middle of a batch takes all of that batch."""
    stage = Stage(5, 5, 5)
    assert stage.acquire(7) == "0-9"
    assert stage.acquire(1) == "10-14"


def test_released() -> None:
    """again"""
    stage = Stage(5, 5, 5)
    stage.acquire()
    stage.say(0, 14, RELEASE)
    assert stage.acquire(member="B") == "0-14*2"
    stage.let_pass(LOCK_MS)
    assert stage.in_flight == "0-14 avai*2"
