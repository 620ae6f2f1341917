"""The way through a segment batch by batch: needs nothing but Python, and knows every format."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from logstore.segments.kafka.compaction.batch_filter import BatchFilter
from logstore.segments.kafka.compaction.cleaned_segment import CleanedSegment
from logstore.segments.kafka.compaction.offset_map import OffsetMap
from logstore.segments.kafka.compaction.record_spans import batch_body, find_records
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import MAGIC, RecordBatch
from logstore.segments.kafka.segment import KafkaSegment

_SLICE_BYTES = 1024 * 1024


class PlainScan:
    """Maps keys and filters records of one segment after the other, in slices of a mebibyte."""

    def __init__(self, key_count_max: int) -> None:
        self.offsets = OffsetMap(key_count_max)

    def map_segment(
        self, segment: KafkaSegment, start: int, is_wanted: Callable[[RecordBatch], bool]
    ) -> Generator[int, None, bool]:
        """
        Map the keys from offset `start` on of the batches that `is_wanted`.

        Yields how many bytes were read; returns False once the map is full.
        """
        size_bytes = 0
        for batch in segment.entries(segment.offset_index.lookup(start)[1]):
            if is_wanted(batch) and not put_keys(self.offsets, batch, start):
                return False
            if batch.last_offset >= start:
                self.offsets.latest_offset = batch.last_offset
            size_bytes += batch.size_bytes
            if size_bytes >= _SLICE_BYTES:
                yield size_bytes
                size_bytes = 0
        yield size_bytes
        return True

    def filter_segment(
        self, segment: KafkaSegment, batches: BatchFilter, cleaned: CleanedSegment | None
    ) -> Iterator[None]:
        """Copy what stays of a segment into `cleaned`."""
        slice_end = batches.tally.bytes_read + _SLICE_BYTES
        for batch in segment.entries():
            kept = batches.filtered(batch)
            if kept is not None and cleaned is not None:
                cleaned.add(kept)
            if batches.tally.bytes_read >= slice_end:
                slice_end = batches.tally.bytes_read + _SLICE_BYTES
                yield None


def put_keys(offsets: OffsetMap, batch: RecordBatch, start: int) -> bool:
    """Map the keys of one batch from offset `start` on; False once the map is full."""
    for key, offset in _keys(batch):
        if key is not None and offset >= start and not offsets.put(key, offset):
            return False
    return True


def _keys(batch: RecordBatch) -> Iterator[tuple[bytes | None, int]]:
    if batch.magic < MAGIC:
        for record in decode_records(batch.data):
            yield record.key, record.offset
        return
    for span in find_records(batch, batch_body(batch)):
        yield span.key, span.offset
