"""
What one share fetch acquires of one share-partition.

Records that were never delivered become batches of what is in flight, cut where batches of the log
end. Of those that are available again a batch is taken whole if the fetch has all of it. Otherwise
it splits, and so it does as soon as records were delivered half as often as is allowed: the closer
they are to their last delivery, the fewer are handed out together, and in the end each one alone,
so that one record that nobody can process does not take its neighbours with it.

In record-limit mode (KIP-1206) there are never more records than were asked for; otherwise the last
batch of the log is whole.

Source: ``SharePartition.acquire`` and what it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatches
from logstore.compat.kafka.share_reads.in_flight_batch import InFlightBatch
from logstore.compat.kafka.share_reads.in_flight_records import InFlightRecords
from logstore.compat.kafka.share_reads.in_flight_state import (
    AcquisitionLock,
    InFlightState,
    RecordState,
)

#: fewer deliveries than this make nobody careful
_THROTTLE_COUNT_MIN = 2
#: with so few deliveries allowed, a last one is nothing special
_ISOLATION_LIMIT_MIN = 2


class Acquirer(NamedTuple):
    """Who wants records, and how many; `batch_size` is how many shall be acknowledged together."""

    member_id: str
    record_count_max: int
    batch_size: int
    is_record_limit: bool = False


class AcquiredRecords(NamedTuple):
    """Neighbouring offsets, the last included, that a member has got for the n-th time."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def offset_count(self) -> int:
        """How many offsets there are."""
        return self.last_offset - self.first_offset + 1


#: (first offset, last offset) -> the lock that whoever acquires them gets
NewLock = Callable[[int, int], AcquisitionLock]


class Acquisition:
    """One go through what was fetched; :attr:`acquired` is what came of it."""

    def __init__(
        self,
        records: InFlightRecords,
        acquirer: Acquirer,
        fetched: FetchedBatches,
        delivery_count_limit: int,
        new_lock: NewLock,
    ) -> None:
        self.records = records
        self.acquirer = acquirer
        self.fetched = fetched
        self.delivery_count_limit = delivery_count_limit
        self.throttle_count = max(_THROTTLE_COUNT_MIN, -(-delivery_count_limit // 2))
        self.new_lock = new_lock
        self.acquired: list[AcquiredRecords] = []
        self.count = 0
        self._count_max = 0
        self._last_offset = 0

    def run(self, first_offset: int, last_offset: int, record_count_max: int) -> None:
        """Acquire up to so many of what was fetched, between these offsets."""
        self._count_max, self._last_offset = record_count_max, last_offset
        known = self.records.starting_in(min(self.fetched.base_offset, first_offset), last_offset)
        if not known:
            self._acquire_new(first_offset, last_offset)
            return
        gap_offset = first_offset
        for batch in known:
            if self._left <= 0:
                break
            if self.records.gap_window is not None:
                if gap_offset < batch.first_offset:
                    self._acquire_new(gap_offset, batch.first_offset - 1)
                gap_offset = batch.last_offset + 1
                if self._left <= 0:
                    break
            if not self._acquire_known(batch):
                self._count_max = 0
                break
        if self._left > 0 and known[-1].last_offset < last_offset:
            self._acquire_new(known[-1].last_offset + 1, last_offset)
        if self.acquired:
            self.records.gap_read_up_to(self.acquired[-1].last_offset + 1)

    @property
    def _left(self) -> int:
        return self._count_max - self.count

    def _take(self, first_offset: int, last_offset: int, delivery_count: int) -> None:
        self.acquired.append(AcquiredRecords(first_offset, last_offset, delivery_count))
        self.count += last_offset - first_offset + 1

    # for the first time

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """Acquire offsets that were never delivered, of batches of the log as a rule whole ones."""
        records, left = self.records, self._left
        if not records.batches:
            first_offset = max(first_offset, records.end_offset)
        if left < last_offset - first_offset + 1:
            whole_offset = self.fetched.end_of_batch(first_offset + left - 1)
            # Behind a gap stands what is in flight already, wherever batches of the log end.
            is_bounded = records.gap_window is not None and whole_offset > last_offset
            last_offset = last_offset if is_bounded else whole_offset
        is_too_much = last_offset - first_offset + 1 > left
        if self.acquirer.is_record_limit and is_too_much:
            self._acquire_in_part(first_offset, last_offset, left)
        elif self.acquirer.is_record_limit:
            self._add(first_offset, last_offset)
        else:
            self._add_in_pieces(first_offset, last_offset)
        records.gap_read_up_to(self.acquired[-1].last_offset + 1)

    def _acquire_in_part(self, first_offset: int, last_offset: int, count: int) -> None:
        """Take in a batch of the log whole, and acquire so many of its records."""
        taken_offset = first_offset + count - 1
        lock = self.new_lock(first_offset, taken_offset)
        self.records.add(
            InFlightBatch.acquired_in_part(first_offset, last_offset, self.acquirer.member_id, lock)
        )
        self.records.may_be_available = True
        self._take(first_offset, taken_offset, 1)

    def _add_in_pieces(self, first_offset: int, last_offset: int) -> None:
        """Acquire all, in pieces that end with batches of the log and have the wanted size."""
        size = self.acquirer.batch_size
        if last_offset - first_offset + 1 > size:
            for batch in self.fetched.batches:
                if batch.base_offset > last_offset:
                    break
                count = batch.base_offset - first_offset
                if count > 0 and count >= size:
                    self._add(first_offset, batch.base_offset - 1)
                    first_offset = batch.base_offset
                elif count >= size:  # Kafka, too, tells who wants less than one of an empty piece
                    self._take(first_offset, first_offset - 1, 1)
        self._add(first_offset, last_offset)

    def _add(self, first_offset: int, last_offset: int) -> None:
        lock = self.new_lock(first_offset, last_offset)
        state = InFlightState(RecordState.ACQUIRED, 1, self.acquirer.member_id, lock)
        self.records.add(InFlightBatch(first_offset, last_offset, state))
        self._take(first_offset, last_offset, 1)

    # again

    def _acquire_known(self, batch: InFlightBatch) -> bool:
        """Acquire what is available of a batch in flight; tell whether there may be more."""
        is_throttled = self._is_throttled(batch)
        if is_throttled and self.count > 0:
            return False  # the next fetch has them for itself
        is_whole = batch.is_within(self.fetched.base_offset, self._last_offset)
        is_too_much = self.acquirer.is_record_limit and batch.offset_count > self._left
        if is_whole and not (batch.is_split or is_too_much or is_throttled):
            self._acquire_whole(batch)
            return True
        if not batch.is_split:
            if batch.whole.state is not RecordState.AVAILABLE:
                return True
            batch.split()
        return not (self._acquire_offsets(batch) and is_throttled)

    def _acquire_whole(self, batch: InFlightBatch) -> None:
        state = batch.whole
        if state.state is not RecordState.AVAILABLE:
            return
        first_offset, last_offset = batch.first_offset, batch.last_offset
        state.acquire(self.acquirer.member_id, self.new_lock(first_offset, last_offset))
        self._take(first_offset, last_offset, state.delivery_count)

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Tell whether something that could be acquired was delivered rather often."""
        return any(
            run.state.delivery_count >= self.throttle_count
            for run in batch.runs(self.fetched.base_offset, self._last_offset)
            if run.state.state is RecordState.AVAILABLE
        )

    def _acquire_offsets(self, batch: InFlightBatch) -> bool:
        """Acquire offsets of a batch one by one; tell whether there were any."""
        limit, left = self.delivery_count_limit, self._left
        can_isolate = limit > _ISOLATION_LIMIT_MIN
        taken: list[tuple[int, InFlightState]] = []
        careful_count: int | None = None
        for offset, _, state in batch.runs(self.fetched.base_offset, self._last_offset):
            if state.state is not RecordState.AVAILABLE:
                continue
            delivered = state.delivery_count
            if can_isolate and delivered == limit - 1 and taken:
                break
            if delivered >= self.throttle_count and careful_count is None:
                shift = delivered - self.throttle_count + 1
                careful_count = max(1, batch.offset_count >> shift)
            taken.append((offset, state))
            if can_isolate and delivered + 1 == limit:
                break
            if self.acquirer.is_record_limit and len(taken) == left:
                break
            if len(taken) == careful_count:
                break
        if taken:
            self._lock_offsets(taken)
        return bool(taken)

    def _lock_offsets(self, taken: list[tuple[int, InFlightState]]) -> None:
        """Acquire these offsets with one lock, and tell of neighbours together."""
        first_offset, first = taken[0]
        last_offset, count = first_offset, first.delivery_count + 1
        lock = self.new_lock(first_offset, taken[-1][0])
        for offset, state in taken:
            state.acquire(self.acquirer.member_id, lock)
            if offset > last_offset + 1 or state.delivery_count != count:
                self._take(first_offset, last_offset, count)
                first_offset, count = offset, state.delivery_count
            last_offset = offset
        self._take(first_offset, last_offset, count)
