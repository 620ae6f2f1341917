"""
One partition as one share group reads it.

``acquire`` hands records out, ``acknowledge`` and ``release`` end their deliveries, and so does a
lock that times out. What ended is written to the persister before it counts; only after a timeout
it counts all the same, as in Kafka. The start moves on its own once all in front is final, and is
written with the next change.

Source: ``SharePartition``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.aborted_batches import aborted_batches
from logstore.compat.kafka.share_reads.acknowledgement import Acknowledgement, AcknowledgementBatch
from logstore.compat.kafka.share_reads.acquisition import (
    AcquiredRecords,
    Acquirer,
    Acquisition,
    NewLock,
)
from logstore.compat.kafka.share_reads.in_flight_batch import InFlightBatch
from logstore.compat.kafka.share_reads.in_flight_records import InFlightRecords
from logstore.compat.kafka.share_reads.in_flight_state import (
    AcquisitionLock,
    InFlightState,
    RecordState,
)
from logstore.compat.kafka.share_reads.offset_reset import reset_offset
from logstore.compat.kafka.share_reads.transitions import Transitions
from logstore.compat.kafka.share_state.persister import (
    UNINITIALIZED_OFFSET,
    Outcome,
    Persister,
    SharePartitionKey,
    SharePartitionState,
)
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
    from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatches
    from logstore.compat.waiting import Timers
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.transaction_index import AbortedTransaction

AnswerT = TypeVar("AnswerT")
_log = logging.getLogger(__name__)
#: what clients are told if the persister says so; -1 for everything else
_TOLD = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


class SharePartition:
    """
    The records of one partition that one share group has in flight, and what is kept of them.

    `on_append` is called when there may be more to acquire, though nothing was appended: it is
    what :class:`~logstore.compat.kafka.readers.Readers` listen to.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        log: KafkaPartition,
        persister: Persister,
        settings: Callable[[], ShareGroupSettings],
        timers: Timers,
    ) -> None:
        self.key = key
        self.log = log
        self.topic, self.index = log.topic, log.index
        self.leader_epoch = log.leader_epoch
        self.state_epoch = 0
        self.records = InFlightRecords()
        #: nothing is acquired any more; whoever asks again gets another one
        self.is_fenced = False
        self.on_append: Callable[[SharePartition], None] | None = None
        #: called when a timeout has made records available: nobody's request did
        self.on_timeout: Callable[[], None] | None = None
        self._persister = persister
        self._settings = settings
        self._timers = timers

    def initialize(self) -> None:
        """
        Go on where the group has stopped, or start where it wants to.

        Raises:
            RefusedRequestError: the state cannot be read, or there is none.

        """
        state = self._ask(lambda: self._persister.read(self.key, self.leader_epoch))
        self._check(state)
        start_offset = state.start_offset
        if start_offset == UNINITIALIZED_OFFSET:
            start_offset = reset_offset(
                self._settings().auto_offset_reset, self.log, self._timers.clock.wall_ms()
            )
        self.state_epoch = state.state_epoch
        self.records = InFlightRecords(start_offset)
        self.records.load(self._kept_batches(state, start_offset))

    def _kept_batches(
        self, state: SharePartitionState, start_offset: int
    ) -> Iterator[InFlightBatch]:
        for kept in state.state_batches:
            if kept.first_offset < start_offset or kept.last_offset < kept.first_offset:
                _log.error("%s has a state batch that cannot be: %s", self, kept)
                raise RefusedRequestError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Failed to initialize the share partition {self}",
                )
            found = InFlightState(RecordState(kept.delivery_state), kept.delivery_count)
            yield InFlightBatch(kept.first_offset, kept.last_offset, found)

    def fence(self) -> None:
        """Hand nothing out any more, and forget who has what."""
        self.is_fenced = True
        for batch in self.records.batches.values():
            for run in batch.runs():
                run.state.lock(None)
        self._tell()

    # acquiring

    def next_fetch_offset(self) -> int | None:
        """Return from where on to read for an acquisition; None if nothing can be acquired now."""
        if self.is_fenced:
            return None
        offset = self.records.next_fetch_offset()
        if offset == self.records.end_offset + 1:
            is_full = self.records.count >= self._settings().partition_max_record_locks
            return None if is_full else offset
        return offset

    def acquire(
        self,
        acquirer: Acquirer,
        fetch_offset: int,
        fetched: FetchedBatches,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> list[AcquiredRecords]:
        """
        Hand out records of what was read from `fetch_offset` on; return which.

        Those of `aborted` transactions are nobody's: they are archived instead.
        """
        records, settings = self.records, self._settings()
        if self.is_fenced or acquirer.record_count_max <= 0:
            return []
        if fetched.last_offset < records.start_offset:
            return []
        record_count_max, last_offset = self._room(
            acquirer.record_count_max, fetch_offset, fetched.last_offset, settings
        )
        if record_count_max <= 0:
            return []
        base_offset = fetched.base_offset
        if base_offset > fetch_offset:  # nothing is stored in between
            self._pass_over_hole(fetch_offset, base_offset)
        first_offset = base_offset
        floor = records.floor(base_offset)
        if floor is None:
            first_offset = max(base_offset, records.start_offset)
        elif floor.last_offset >= base_offset:
            first_offset = floor.first_offset
        limit = settings.delivery_count_limit
        new_lock = self._lock_for(settings.record_lock_duration_ms)
        acquisition = Acquisition(records, acquirer, fetched, limit, new_lock)
        acquisition.run(first_offset, last_offset, record_count_max)
        if not aborted:
            return acquisition.acquired
        return self._without_aborted(acquisition.acquired, fetched, aborted)

    def _pass_over_hole(self, first_offset: int, end_offset: int) -> None:
        """Archive what compaction has removed since it was in flight; there is no gap there."""
        records = self.records
        window = records.gap_window
        if window is not None and window.start_offset < end_offset:
            records.gap_read_up_to(end_offset)
        if records.archive(first_offset, end_offset - 1, RecordState.AVAILABLE, counts=True):
            records.advance_start()

    def _room(
        self, wanted: int, fetch_offset: int, last_offset: int, settings: ShareGroupSettings
    ) -> tuple[int, int]:
        """Return how many records can be acquired, and up to which offset."""
        records = self.records
        room = min(wanted, settings.partition_max_record_locks - records.count)
        if room <= 0 and fetch_offset <= records.end_offset:
            # As many as can be are in flight: some of those may be available again.
            room = min(wanted, records.end_offset - fetch_offset + 1)
            last_offset = min(last_offset, records.end_offset)
        return room, last_offset

    def _without_aborted(
        self,
        acquired: list[AcquiredRecords],
        fetched: FetchedBatches,
        aborted: Sequence[AbortedTransaction],
    ) -> list[AcquiredRecords]:
        """Archive what was acquired of aborted transactions; nobody will acknowledge it."""
        for batch in aborted_batches(fetched, aborted):
            first_offset, last_offset = batch.base_offset, batch.last_offset
            left: list[AcquiredRecords] = []
            for some in acquired:
                start = max(some.first_offset, first_offset)
                end = min(some.last_offset, last_offset)
                if start > end:
                    left.append(some)
                    continue
                self.records.archive(start, end, RecordState.ACQUIRED, counts=True)
                if some.first_offset < start:
                    left.append(some._replace(last_offset=start - 1))
                if some.last_offset > end:
                    left.append(some._replace(first_offset=end + 1))
            acquired = left
        self.records.advance_start()
        return acquired

    # ends of deliveries

    def acknowledge(self, member_id: str, batches: Sequence[AcknowledgementBatch]) -> None:
        """
        End deliveries as their member says, or give it more time; all or nothing.

        Raises:
            RefusedRequestError: the member does not have what it speaks of, or the persister
                refused.

        """
        settings = self._settings()
        transitions = Transitions(self.records, settings.delivery_count_limit)
        acknowledgement = Acknowledgement(
            self.records,
            member_id,
            transitions,
            self._lock_for(settings.record_lock_duration_ms),
            can_renew=settings.renew_acknowledge_enable,
        )
        try:
            for batch in batches:
                acknowledgement.apply(batch)
        except RefusedRequestError:
            transitions.roll_back()
            raise
        self._keep(transitions)

    def release(self, member_id: str) -> None:
        """
        Take back all that a member has: it is gone.

        Raises:
            RefusedRequestError: the persister refused.

        """
        transitions = Transitions(self.records, self._settings().delivery_count_limit)
        for batch in self.records.batches.values():
            self._end_deliveries(batch, transitions, member_id=member_id)
        self._keep(transitions)

    def _time_out(self, lock: AcquisitionLock) -> None:
        """Take back what was not acknowledged in time."""
        transitions = Transitions(self.records, self._settings().delivery_count_limit)
        for batch in self.records.reaching_into(lock.first_offset, lock.last_offset):
            self._end_deliveries(batch, transitions, lock=lock)
        if not transitions:
            return
        try:
            self._write(transitions)
        except RefusedRequestError as error:  # its time is over all the same
            _log.warning("%s: what timed out is not kept: %s", self, error)
        transitions.commit()
        self.records.advance_start()
        self._tell()
        if self.on_timeout is not None:
            self.on_timeout()

    def _end_deliveries(
        self,
        batch: InFlightBatch,
        transitions: Transitions,
        *,
        member_id: str | None = None,
        lock: AcquisitionLock | None = None,
    ) -> None:
        """Make available again what a member has of a batch, or what waits for a lock."""

        def is_meant(state: InFlightState) -> bool:
            if state.state is not RecordState.ACQUIRED:
                return False
            return state.member_id == member_id if lock is None else state.is_locked_by(lock)

        start_offset = self.records.start_offset
        if not batch.is_split and is_meant(batch.whole) and batch.is_cut_by(start_offset):
            batch.split()
        for run in batch.runs():
            if is_meant(run.state):
                is_gone = run.last_offset < start_offset
                state = RecordState.ARCHIVED if is_gone else RecordState.AVAILABLE
                transitions.conclude(run, state)

    def move_start(self, log_start_offset: int) -> None:
        """Follow the start of the log: what lies below it is not delivered again."""
        self.records.move_start(log_start_offset)

    # keeping

    def _keep(self, transitions: Transitions) -> None:
        """Write what has changed; from then on it counts."""
        if transitions:
            try:
                self._write(transitions)
            except RefusedRequestError:
                transitions.roll_back()
                raise
            transitions.commit()
            self.records.advance_start()
        self._tell()

    def _write(self, transitions: Transitions) -> None:
        outcome = self._ask(
            lambda: self._persister.write(
                self.key,
                state_epoch=self.state_epoch,
                leader_epoch=self.leader_epoch,
                start_offset=self.records.start_offset,
                delivery_complete_count=self.records.delivery_complete_count,
                state_batches=transitions.state_batches(),
            )
        )
        self._check(outcome)

    def _ask(self, ask: Callable[[], AnswerT]) -> AnswerT:
        try:
            return ask()
        except (LogStoreError, OSError) as error:
            _log.error("%s: %s", self, error)
            raise RefusedRequestError(code_of(error), str(error)) from error

    def _check(self, answer: Outcome | SharePartitionState) -> None:
        if answer.error_code is not ErrorCode.NONE:
            raise RefusedRequestError(
                _TOLD.get(answer.error_code, ErrorCode.UNKNOWN_SERVER_ERROR), answer.error_message
            )

    def _lock_for(self, duration_ms: int) -> NewLock:
        def new_lock(first_offset: int, last_offset: int) -> AcquisitionLock:
            return AcquisitionLock(
                self._timers, duration_ms, first_offset, last_offset, self._time_out
            )

        return new_lock

    def _tell(self) -> None:
        """Let those know who wait for something to acquire."""
        if self.on_append is not None:
            self.on_append(self)

    def __str__(self) -> str:
        return f"{self.key.group_id}-{self.topic}-{self.index}"
