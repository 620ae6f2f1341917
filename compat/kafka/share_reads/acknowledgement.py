"""
What a member says of records that it has acquired.

Source: ``SharePartition.acknowledge`` and what it calls; the sentences are Kafka's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acquisition import NewLock
from logstore.compat.kafka.share_reads.in_flight_batch import InFlightBatch
from logstore.compat.kafka.share_reads.in_flight_records import InFlightRecords
from logstore.compat.kafka.share_reads.in_flight_state import NOBODY, RecordState, Run
from logstore.compat.kafka.share_reads.transitions import Transitions


class AcknowledgeType(IntEnum):
    """What is said of a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class AcknowledgementBatch(NamedTuple):
    """Offsets, the last included, and one type for all of them or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]

    def type_of(self, offset: int) -> AcknowledgeType:
        """Return what is said of one offset."""
        types = self.types
        return AcknowledgeType(types[0] if len(types) == 1 else types[offset - self.first_offset])


class Acknowledgement:
    """Applies one member's acknowledgements; nothing of it is kept yet."""

    def __init__(
        self,
        records: InFlightRecords,
        member_id: str,
        transitions: Transitions,
        new_lock: NewLock,
        *,
        can_renew: bool,
    ) -> None:
        self._records = records
        self._member_id = member_id
        self._transitions = transitions
        self._new_lock = new_lock
        self._can_renew = can_renew

    def apply(self, acknowledged: AcknowledgementBatch) -> None:
        """
        End the deliveries that a batch speaks of, or give more time for them.

        Raises:
            RefusedRequestError: 121 for what the member does not have, 42 for what nobody has.

        """
        if not all(
            AcknowledgeType.GAP <= kind <= AcknowledgeType.RENEW for kind in acknowledged.types
        ):
            types = ", ".join(map(str, acknowledged.types))
            raise RefusedRequestError(
                ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: [{types}]"
            )
        start_offset = self._records.start_offset
        if acknowledged.last_offset < start_offset:
            return
        for batch in self._spoken_of(acknowledged):
            if batch.last_offset < start_offset:
                continue
            if not batch.is_split:
                self._check_owner(batch)
            is_whole = (
                len(acknowledged.types) == 1
                and batch.is_within(acknowledged.first_offset, acknowledged.last_offset)
                and not batch.is_cut_by(start_offset)
            )
            if not is_whole and not batch.is_split:
                if batch.whole.state is not RecordState.ACQUIRED:
                    raise _invalid(
                        "The batch cannot be acknowledged. The subset batch is not in the acquired "
                        "state."
                    )
                batch.split()
            if batch.is_split:
                self._apply_to_offsets(acknowledged, batch)
            else:
                self._apply_to_whole(acknowledged, batch)

    def _spoken_of(self, acknowledged: AcknowledgementBatch) -> list[InFlightBatch]:
        records = self._records
        first_offset, last_offset, _ = acknowledged
        floor = records.floor(first_offset)
        if floor is None and first_offset < records.start_offset <= last_offset:
            floor = records.floor(records.start_offset)
        if floor is None:
            raise _invalid(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        batches = records.starting_in(floor.first_offset, last_offset)
        for what, offset in (("first", first_offset), ("last", last_offset)):
            if batches[-1].last_offset < offset:
                raise RefusedRequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {what} offset in request is past acquired "
                    "records.",
                )
        return batches

    def _check_owner(self, batch: InFlightBatch) -> None:
        member_id = batch.whole.member_id
        if member_id == NOBODY:
            raise _invalid(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if member_id != self._member_id:
            raise _invalid("Member is not the owner of batch record")

    def _apply_to_whole(self, acknowledged: AcknowledgementBatch, batch: InFlightBatch) -> None:
        kind = acknowledged.type_of(acknowledged.first_offset)
        run = Run(batch.first_offset, batch.last_offset, batch.whole)
        if run.state.state is not RecordState.ACQUIRED:
            raise _invalid(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        self._end(run, kind)

    def _apply_to_offsets(self, acknowledged: AcknowledgementBatch, batch: InFlightBatch) -> None:
        first_offset = max(acknowledged.first_offset, self._records.start_offset)
        renewed: list[Run] = []
        for run in batch.runs(first_offset, acknowledged.last_offset):
            if run.state.state is not RecordState.ACQUIRED:
                raise _invalid("The offset cannot be acknowledged. The offset is not acquired.")
            if run.state.member_id != self._member_id:
                raise _invalid("Member is not the owner of offset")
            kind = acknowledged.type_of(run.first_offset)
            if kind is AcknowledgeType.RENEW:
                self._check_renewal()
                renewed.append(run)
            else:
                self._end(run, kind)
        if renewed:
            lock = self._new_lock(renewed[0].first_offset, renewed[-1].last_offset)
            for run in renewed:
                run.state.lock(lock)

    def _end(self, run: Run, kind: AcknowledgeType) -> None:
        if kind is not AcknowledgeType.RENEW:
            self._transitions.conclude(run, _STATES[kind])
            return
        self._check_renewal()
        run.state.lock(self._new_lock(run.first_offset, run.last_offset))

    def _check_renewal(self) -> None:
        if not self._can_renew:
            raise _invalid("Renewing acquisition locks is not enabled for the group.")


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_RECORD_STATE, message)
