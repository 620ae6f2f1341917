"""
Batches of aborted transactions, which members of a read_committed group never see.

Source: ``SharePartition.fetchAbortedTransactionRecordBatches``.
"""

from __future__ import annotations

from collections.abc import Sequence

from logstore.compat.kafka.share_reads.fetched_batches import FetchedBatch, FetchedBatches
from logstore.segments.kafka.control_record import decode_marker
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import MAGIC
from logstore.segments.kafka.transaction_index import AbortedTransaction


def aborted_batches(
    fetched: FetchedBatches, aborted: Sequence[AbortedTransaction]
) -> list[FetchedBatch]:
    """Return the batches that belong to one of the transactions, in order; markers do not."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
    producers: set[int] = set()
    found: list[FetchedBatch] = []
    for batch in fetched.batches:
        header = fetched.header(batch)
        if header.magic < MAGIC or header.producer_id < 0:
            continue
        while waiting and waiting[0].first_offset <= batch.last_offset:
            producers.add(waiting.pop(0).producer_id)
        if header.is_control:
            if _is_abort(fetched.data(batch)):
                producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in producers:
            found.append(batch)
    return found


def _is_abort(batch: bytes) -> bool:
    """Tell whether a control batch is the marker that ends an aborted transaction."""
    marker = next((decode_marker(record) for record in decode_records(batch)), None)
    return marker is not None and marker.is_abort
