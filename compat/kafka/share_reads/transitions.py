"""
Changes of what is in flight that count once they are kept, and are taken back if they are not.

Source: ``SharePartition.rollbackOrProcessStateUpdates``.
"""

from __future__ import annotations

from typing import NamedTuple

from logstore.compat.kafka.share_reads.in_flight_records import InFlightRecords
from logstore.compat.kafka.share_reads.in_flight_state import RecordState, Run
from logstore.compat.kafka.share_state.persister import DeliveryState, StateBatch


class _Transition(NamedTuple):
    run: Run
    former_member_id: str
    #: how many records have become final by it
    final_count: int


class Transitions:
    """The ends of some deliveries."""

    def __init__(self, records: InFlightRecords, delivery_count_limit: int) -> None:
        self._records = records
        self._delivery_count_limit = delivery_count_limit
        self._done: list[_Transition] = []

    def __bool__(self) -> bool:
        return bool(self._done)

    def conclude(self, run: Run, state: RecordState) -> None:
        """End the delivery of acquired records."""
        former = run.state.member_id
        run.state.conclude(state, self._delivery_count_limit)
        count = 0
        if run.state.state.is_final:
            count = self._records.in_flight_part(run.first_offset, run.last_offset)
            self._records.delivery_complete_count += count
        self._done.append(_Transition(run, former, count))

    def state_batches(self) -> list[StateBatch]:
        """Return what is to be kept; neighbours that are alike are one."""
        batches: list[StateBatch] = []
        for first_offset, last_offset, state in (entry.run for entry in self._done):
            kept = DeliveryState(state.state)
            previous = batches[-1] if batches else None
            if (
                previous is not None
                and previous.last_offset + 1 == first_offset
                and previous.delivery_state is kept
                and previous.delivery_count == state.delivery_count
            ):
                batches[-1] = previous._replace(last_offset=last_offset)
            else:
                batches.append(StateBatch(first_offset, last_offset, kept, state.delivery_count))
        return batches

    def commit(self) -> None:
        """Let go of the locks: nobody has the records any more."""
        for run, _, _ in self._done:
            run.state.lock(None)
            if run.state.state is RecordState.AVAILABLE:
                self._records.may_be_available = True

    def roll_back(self) -> None:
        """Give the records back to those who had them; their time runs on."""
        for run, former, count in self._done:
            run.state.state, run.state.member_id = RecordState.ACQUIRED, former
            self._records.delivery_complete_count -= count
        self._done.clear()
