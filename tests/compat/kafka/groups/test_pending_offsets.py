"""Offsets of open transactions, and what becomes of them."""

from __future__ import annotations

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    OffsetCommitKey,
    TransactionalProducer,
)
from logstore.compat.kafka.groups.pending_offsets import PendingOffsets
from logstore.compat.kafka.transactions.markers import Marker
from tests.compat.kafka.groups.rehearsal import GROUP, Rehearsal

KEY = OffsetCommitKey("g", "t", 0)
WEEK_MS = 604_800_000


def at(offset: int) -> CommittedOffset:
    """Return an offset to commit."""
    return CommittedOffset(offset, commit_timestamp_ms=0)


def test_an_offset_counts_from_the_commit_of_its_producer_on() -> None:
    """The end of another producer, or in another partition of the log, does not matter."""
    pending = PendingOffsets()
    pending.put(3, 7, KEY, at(5))
    assert pending.end(3, 8, is_commit=True) == pending.end(4, 7, is_commit=True) == []
    assert pending.is_held("g", ("t", 0))
    assert pending.end(3, 7, is_commit=True) == [(KEY, at(5))]
    assert not pending.is_held("g", ("t", 0))
    assert pending.end(3, 7, is_commit=True) == []


def test_an_aborted_offset_never_counts() -> None:
    """And holds nobody back any more."""
    pending = PendingOffsets()
    pending.put(0, 7, KEY, at(5))
    assert pending.end(0, 7, is_commit=False) == []
    assert list(pending.of_group("g")) == []


def test_what_was_written_later_is_not_undone() -> None:
    """By a commit outside transactions, or by another transaction that has ended meanwhile."""
    pending = PendingOffsets()
    pending.put(0, 7, KEY, at(5))
    pending.overtake(KEY)
    assert pending.is_held("g", ("t", 0))
    assert pending.end(0, 7, is_commit=True) == []
    pending.put(0, 7, KEY, at(1))
    pending.put(0, 8, KEY, at(2))
    assert pending.end(0, 8, is_commit=True) == [(KEY, at(2))]
    assert pending.end(0, 7, is_commit=True) == []
    pending.put(0, 7, KEY, at(1))
    pending.put(0, 8, KEY, at(2))
    assert pending.end(0, 7, is_commit=True) == [(KEY, at(1))]
    assert pending.end(0, 8, is_commit=True) == [(KEY, at(2))]


def test_a_second_commit_in_the_transaction_replaces_the_first() -> None:
    """Also where a commit outside of it came in between."""
    pending = PendingOffsets()
    pending.put(0, 7, KEY, at(5))
    pending.overtake(KEY)
    pending.put(0, 7, KEY, at(6))
    assert pending.end(0, 7, is_commit=True) == [(KEY, at(6))]


def test_a_tombstone_takes_everything_away() -> None:
    """Of all producers, for this partition only."""
    pending = PendingOffsets()
    other = OffsetCommitKey("g", "t", 1)
    for producer_id in (7, 8):
        pending.put(0, producer_id, KEY, at(5))
    pending.put(0, 7, other, at(6))
    assert pending.keys_of_topic("t", [0, 1, 2]) == [KEY, other]
    pending.remove(KEY)
    assert list(pending.of_group("g")) == [("t", 1)]
    assert pending.end(0, 8, is_commit=True) == []
    assert pending.end(0, 7, is_commit=True) == [(other, at(6))]


class TestCoordinator:
    """The group coordinator's side."""

    def commit(self, stage: Rehearsal, offset: int, **fields: object) -> ErrorCode:
        """Commit an offset of t-0 in the transaction of producer 7."""
        commit = Commit(
            GROUP, {("t", 0): at(offset)}, producer=TransactionalProducer(7, 0), **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        (error,) = stage.groups.commit_offsets(commit).values()
        return error

    def end(self, stage: Rehearsal, *, is_commit: bool) -> None:
        """End the transaction of producer 7."""
        stage.groups.end_transaction(0, Marker(7, 0, is_commit, 0, 0))

    def test_an_empty_group_lives_as_long_as_the_transaction(self) -> None:
        """Expiry leaves alone what a transaction may change, and the group with it."""
        stage = Rehearsal()
        assert self.commit(stage, 4) is ErrorCode.NONE
        stage.wait(2 * WEEK_MS)
        assert GROUP in stage.groups.groups
        assert stage.groups.unstable(GROUP, [("t", 0), ("t", 1)]) == {("t", 0)}
        self.end(stage, is_commit=True)
        assert stage.fetched() == 4
        stage.wait(2 * WEEK_MS)
        assert GROUP not in stage.groups.groups

    def test_producers_are_let_in_where_consumers_are_not(self) -> None:
        """Without a generation while the group has members, which commits outside may not."""
        stage = Rehearsal()
        stage.join()
        stage.wait(10_000)
        assert self.commit(stage, 4) is ErrorCode.NONE
        assert self.commit(stage, 4, generation_id=99, member_id="m") is (
            ErrorCode.UNKNOWN_MEMBER_ID
        )

    def test_a_generation_of_an_unknown_group_is_illegal(self) -> None:
        """Where a commit outside transactions is told that there is no such group."""
        stage = Rehearsal()
        assert self.commit(stage, 4, generation_id=3) is ErrorCode.ILLEGAL_GENERATION

    def test_a_full_disk_keeps_nothing(self) -> None:
        """Neither a pending offset nor the end of a transaction."""
        stage = Rehearsal()
        stage.log.is_full = True
        assert self.commit(stage, 4) is ErrorCode.NOT_COORDINATOR
        assert stage.groups.unstable(GROUP, [("t", 0)]) == frozenset()

    def test_a_restart_replays_the_same(self) -> None:
        """Pending stays pending, what was committed counts, what was aborted does not."""
        stage = Rehearsal()
        self.commit(stage, 4)
        stage.restart()
        assert stage.groups.unstable(GROUP, [("t", 0)]) == {("t", 0)}
        self.end(stage, is_commit=True)
        self.commit(stage, 9)
        self.end(stage, is_commit=False)
        stage.restart()
        assert stage.fetched() == 4
        assert stage.groups.unstable(GROUP, [("t", 0)]) == frozenset()

    def test_a_deleted_topic_takes_pending_offsets_with_it(self) -> None:
        """The end of the transaction does not bring them back."""
        stage = Rehearsal()
        self.commit(stage, 4)
        stage.groups.forget_partitions("t", [0])
        self.end(stage, is_commit=True)
        assert stage.fetched() is None
