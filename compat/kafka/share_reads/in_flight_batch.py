"""Records that were first delivered together: one state for all, until their ways part."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.compat.kafka.share_reads.in_flight_state import (
    AcquisitionLock,
    InFlightState,
    RecordState,
    Run,
)


class InFlightBatch:
    """
    A run of offsets, the last included, that stands together in what is in flight.

    It never gets other bounds; once split it stays so.
    """

    __slots__ = ("_offsets", "_whole", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self._whole: InFlightState | None = state
        self._offsets: list[InFlightState] = []

    @classmethod
    def acquired_in_part(
        cls, first_offset: int, last_offset: int, member_id: str, lock: AcquisitionLock
    ) -> InFlightBatch:
        """Return a batch of which a member has what `lock` covers; the rest nobody had yet."""
        taken = InFlightState(RecordState.ACQUIRED, 1, member_id, lock)
        batch = cls(first_offset, last_offset, taken)
        batch.split()
        for run in batch.runs(lock.last_offset + 1):
            run.state.lock(None)
            batch._offsets[run.first_offset - first_offset] = InFlightState(
                RecordState.AVAILABLE, 0
            )
        return batch

    @property
    def is_split(self) -> bool:
        """Tell whether each offset has a state of its own."""
        return self._whole is None

    @property
    def whole(self) -> InFlightState:
        """The state of all."""
        assert self._whole is not None, "each offset has a state of its own"
        return self._whole

    @property
    def offset_count(self) -> int:
        """How many offsets there are."""
        return self.last_offset - self.first_offset + 1

    def split(self) -> None:
        """Give each offset a state of its own, the one that all had; the lock is the same."""
        whole = self._whole
        if whole is None:
            return
        self._whole = None
        self._offsets = [whole.copy() for _ in range(self.offset_count)]
        whole.lock(None)

    def runs(self, first_offset: int = 0, last_offset: int | None = None) -> Iterator[Run]:
        """Yield what shares a state: the whole batch, or each offset between these two."""
        if self._whole is not None:
            yield Run(self.first_offset, self.last_offset, self._whole)
            return
        start = max(first_offset, self.first_offset)
        end = self.last_offset if last_offset is None else min(last_offset, self.last_offset)
        offsets = self._offsets
        base = self.first_offset
        for offset in range(start, end + 1):
            yield Run(offset, offset, offsets[offset - base])

    def state_at(self, offset: int) -> InFlightState:
        """Return what became of one offset."""
        return self._offsets[offset - self.first_offset] if self._whole is None else self._whole

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Tell whether no offset lies outside of these two."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def is_cut_by(self, start_offset: int) -> bool:
        """Tell whether a part of it lies below `start_offset`, and a part does not."""
        return self.first_offset < start_offset <= self.last_offset

    def __repr__(self) -> str:
        states = repr(self._whole) if self._whole is not None else repr(self._offsets)
        return f"[{self.first_offset}, {self.last_offset}] {states}"
