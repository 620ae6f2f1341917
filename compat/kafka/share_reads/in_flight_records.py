"""
All that a share-partition has in flight.

From the first record without a last word to the last one that was ever delivered::

    start_offset                                        end_offset
         |                                                   |
    ack  | ack  avail  acq  acq  ack  arch   acq  acq   acq  |   never delivered
         +---------------- batches, by first offset ---------+

Whole batches leave in front as soon as all in them is final. Without batches both offsets are that
of the next record to deliver.

Source: what ``SharePartition`` keeps in ``cachedState``, ``startOffset`` and ``endOffset``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sortedcontainers import SortedDict

from logstore.compat.kafka.share_reads.in_flight_batch import InFlightBatch
from logstore.compat.kafka.share_reads.in_flight_state import RecordState


class GapWindow(NamedTuple):
    """
    Offsets that were delivered before a restart, and of whom nothing was kept.

    From `start_offset` on, what is missing between batches must be read again; so it is for as long
    as the share-partition still ends at `end_offset`.
    """

    start_offset: int
    end_offset: int


class InFlightRecords:
    """The batches of one share-partition, where they start and end, and what to read next."""

    def __init__(self, offset: int = 0) -> None:
        self.batches: SortedDict[int, InFlightBatch] = SortedDict()
        self.start_offset = offset
        self.end_offset = offset
        #: how many from the start on are final, and wait for some in front of them
        self.delivery_complete_count = 0
        #: some batch may have records to deliver again
        self.may_be_available = False
        self._gap_window: GapWindow | None = None

    # what there is

    @property
    def count(self) -> int:
        """How many offsets are in flight, holes between records among them."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def gap_window(self) -> GapWindow | None:
        """The window if there is one and the end has not moved on."""
        window = self._gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def last_batch(self) -> InFlightBatch | None:
        """Return the batch behind all others."""
        return self.batches.peekitem(-1)[1] if self.batches else None

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that does not start behind `offset`; it may end before it."""
        index = self.batches.bisect_right(offset)
        return self.batches.peekitem(index - 1)[1] if index else None

    def starting_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that start at one of these offsets, in order."""
        return [self.batches[key] for key in self.batches.irange(first_offset, last_offset)]

    def reaching_into(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that have one of these offsets, in order."""
        floor = self.floor(first_offset)
        if floor is not None and floor.last_offset >= first_offset:
            first_offset = floor.first_offset
        return self.starting_in(first_offset, last_offset)

    def in_flight_part(self, first_offset: int, last_offset: int) -> int:
        """Return how many of these offsets do not lie below the start."""
        return max(last_offset - max(first_offset, self.start_offset) + 1, 0)

    # what comes next

    def next_fetch_offset(self) -> int:
        """Return from where on records must be read to deliver more."""
        last = self.last_batch()
        if last is None or self.start_offset > last.last_offset:
            self.may_be_available = False
            return self.end_offset
        offset = self._first_available() if self.may_be_available else None
        if offset is None:
            self.may_be_available = False
            return self.end_offset + 1
        return offset

    def _first_available(self) -> int | None:
        window = self.gap_window
        gap_offset = -1 if window is None else window.start_offset
        for first_offset, batch in self.batches.items():
            if window is not None:
                if first_offset > gap_offset:
                    return gap_offset
                gap_offset = max(gap_offset, batch.last_offset + 1)
            for run in batch.runs():
                if run.state.state is RecordState.AVAILABLE:
                    return run.first_offset
        return None

    # growing

    def load(self, batches: Iterable[InFlightBatch]) -> None:
        """Take over what was kept: batches from the start on, in order, perhaps with gaps."""
        expected, gap_offset = self.start_offset, None
        for batch in batches:
            if gap_offset is None and batch.first_offset > expected:
                gap_offset = expected
            expected = batch.last_offset + 1
            self.batches[batch.first_offset] = batch
            if batch.whole.state.is_final:
                self.delivery_complete_count += batch.offset_count
        if not self.batches:
            return
        self.may_be_available = True
        self.end_offset = expected - 1
        if gap_offset is not None:
            self._gap_window = GapWindow(gap_offset, self.end_offset)
        self.advance_start()

    def add(self, batch: InFlightBatch) -> None:
        """Take in a batch that was never delivered before."""
        self.batches[batch.first_offset] = batch
        if self.batches.peekitem(0)[0] == batch.first_offset:
            self.start_offset = batch.first_offset
        self.end_offset = max(self.end_offset, batch.last_offset)

    def gap_read_up_to(self, offset: int) -> None:
        """Take note that what lies below `offset` is in batches now, or is nowhere."""
        window = self._gap_window
        if window is None:
            return
        if window.end_offset == self.end_offset and offset <= window.end_offset:
            self._gap_window = window._replace(start_offset=offset)
        else:
            self._gap_window = None

    # shrinking

    def advance_start(self) -> bool:
        """Move the start over all that is final, and forget whole batches; tell if it moved."""
        done_offset, count = self._final_in_front()
        if done_offset is None:
            return False
        last = self.last_batch()
        assert last is not None, "something in front is final"
        if done_offset == last.last_offset:
            self.start_offset = self.end_offset = max(self.start_offset, done_offset + 1)
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        start = done_offset + 1
        inside = self.floor(done_offset)
        if inside is not None and inside.last_offset == done_offset:
            start = self.batches.peekitem(self.batches.bisect_right(done_offset))[0]
            if self.gap_window is not None:
                start = min(start, self.gap_window.start_offset)
        has_moved = start > self.start_offset
        self.start_offset = max(self.start_offset, start)
        self.delivery_complete_count -= count
        while self.batches.peekitem(0)[1].last_offset <= done_offset:
            self.batches.popitem(0)
            has_moved = True
        return has_moved

    def _final_in_front(self) -> tuple[int | None, int]:
        """
        Return the last offset before which all is final, and how many of those are in flight.

        Kafka stops for good where nothing is stored from the start to the first batch, as after a
        compaction; only a gap that must still be read is a reason to.
        """
        done_offset, count = None, 0
        window = self.gap_window
        for batch in self.batches.values():
            if window is not None and batch.last_offset >= window.start_offset:
                break
            for run in batch.runs():
                if not run.state.state.is_final:
                    return done_offset, count
                done_offset = run.last_offset
                count += self.in_flight_part(run.first_offset, run.last_offset)
        return done_offset, count

    def move_start(self, log_start_offset: int) -> None:
        """Follow the start of the log, below which records were deleted."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        window = self.gap_window
        if window is not None and window.start_offset < log_start_offset:
            self.gap_read_up_to(log_start_offset)  # or it would be read for ever, as in Kafka
        gone = self._final_below(log_start_offset)
        self.archive(self.start_offset, log_start_offset - 1, RecordState.AVAILABLE)
        self.start_offset = log_start_offset
        self.delivery_complete_count -= gone
        self.end_offset = max(self.end_offset, log_start_offset)

    def _final_below(self, offset: int) -> int:
        count = 0
        for batch in self.batches.values():
            if batch.first_offset >= offset:
                break
            for run in batch.runs():
                if run.state.state.is_final:
                    last_offset = min(run.last_offset, offset - 1)
                    count += self.in_flight_part(run.first_offset, last_offset)
        return count

    def archive(
        self, first_offset: int, last_offset: int, former: RecordState, *, counts: bool = False
    ) -> bool:
        """
        Archive what of these offsets is in the state `former`; tell whether there was any.

        With `counts` they add to those that are final; who moves the start over them needs no sum.
        """
        is_any = False
        for batch in self.reaching_into(first_offset, last_offset):
            if not batch.is_within(first_offset, last_offset) and not batch.is_split:
                if batch.whole.state is not former:
                    continue
                batch.split()
            for run in batch.runs(first_offset, last_offset):
                if run.state.state is former:
                    run.state.archive()
                    is_any = True
                    if counts:
                        self.delivery_complete_count += self.in_flight_part(*run[:2])
        if is_any:
            self.may_be_available = True
        return is_any
