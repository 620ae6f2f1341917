"""
Which transactions a compaction has passed, so that it knows when a marker may go.

Data of an aborted transaction goes at once. A marker stays as long as any data of its transaction
was seen in the log; a later pass, that sees the marker alone, may remove it. The aborted
transactions whose markers stay make up the cleaned segment's transaction index.

Source: ``CleanedTransactionMetadata``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logstore.segments.kafka.control_record import ControlType, control_type
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.transaction_index import AbortedTransaction


class CleanedTransactions:
    """
    Follows the transactions through the batches of a log, in order.

    `aborted` are all aborted transactions that reach into those batches. `retain` is told of each
    one whose marker stays because data of it was there.
    """

    def __init__(
        self,
        aborted: Iterable[AbortedTransaction],
        retain: Callable[[AbortedTransaction], None] | None = None,
    ) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._retain = retain
        #: aborted transactions under way by producer, and whether data of them was seen
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()

    def is_discarded(self, batch: RecordBatch) -> bool:
        """Take note of the next batch; tell whether it is a marker without data, or aborted."""
        self._reach(batch.last_offset)
        if batch.is_control:
            return self._passes_marker(batch)
        if not batch.is_transactional:
            return False
        found = self._aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._aborted[batch.producer_id] = (found[0], True)
        return True

    def _reach(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= offset:
            transaction = coming.pop()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))

    def _passes_marker(self, batch: RecordBatch) -> bool:
        if batch.record_count == 0:
            return True  # an earlier pass has emptied it
        kind = control_type(decode_records(batch.data)[0])
        if kind is ControlType.ABORT:
            transaction, has_data = self._aborted.pop(batch.producer_id, (None, False))
            if transaction is None or not has_data:
                return True
            if self._retain is not None:
                self._retain(transaction)
            return False
        if kind is ControlType.COMMIT:
            if batch.producer_id not in self._committed:
                return True
            self._committed.discard(batch.producer_id)
        return False
