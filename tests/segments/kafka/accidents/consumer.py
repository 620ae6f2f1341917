"""What a client makes of the bytes that a fetch gives it, at both isolation levels."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.errors import LogStoreError
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.control_record import ControlType, decode_marker
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import RecordBatch

#: less than most segments hold, so that fetches end inside of batches
FETCH_BYTES = 400


class StuckError(LogStoreError):
    """A consumer gets the same again and again."""


def fetched(partition: KafkaPartition) -> Iterator[RecordBatch]:
    """
    Yield every batch of the log as a read_uncommitted consumer gets it, from the log start on.

    Like a client it checks CRCs, and takes whole batches only.
    """
    offset = partition.start_offset
    while offset < partition.end_offset:
        extent = partition.read(offset, FETCH_BYTES)
        data = b"" if extent is None else extent.read()
        batches = list(iterate_entries(memoryview(data)))
        if not batches:  # a power loss may leave a hole at the end of a log, of unflushed records
            return
        yield from batches
        if batches[-1].next_offset <= offset:
            raise StuckError(f"a fetch from {offset} leads nowhere")
        offset = batches[-1].next_offset


def fetched_committed(partition: KafkaPartition) -> Iterator[RecordBatch]:
    """
    Yield the batches of data that a read_committed consumer hands on (``CompletedFetch``).

    It skips what the list of aborted transactions tells it to, up to the producer's ABORT marker.
    """
    offset, end = partition.start_offset, partition.last_stable_offset
    while offset < end:
        found = partition.read_committed(offset, FETCH_BYTES)
        data = b"" if found.extent is None else found.extent.read()
        batches = list(iterate_entries(memoryview(data)))
        if not batches:
            return
        waiting = sorted(found.aborted, key=lambda one: one.first_offset)
        skipped: set[int] = set()
        for batch in batches:
            while waiting and waiting[0].first_offset <= batch.last_offset:
                skipped.add(waiting.pop(0).producer_id)
            if batch.is_control:
                if is_abort(batch):
                    skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                yield batch
        if batches[-1].next_offset <= offset:
            raise StuckError(f"a committed fetch from {offset} leads nowhere")
        offset = batches[-1].next_offset


def is_abort(batch: RecordBatch) -> bool:
    """Tell whether a control batch says that a transaction is aborted."""
    (record,) = decode_records(batch.data)
    marker = decode_marker(record)
    return marker is not None and marker.type is ControlType.ABORT
