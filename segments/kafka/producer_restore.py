"""
Where a partition's producer state comes from at a start: a snapshot, and the log behind it.

Source: ``UnifiedLog.rebuildProducerState``, ``ProducerStateManager.truncateAndReload``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable

from logstore.errors import CorruptEntryError
from logstore.host import FileSystem
from logstore.segments.kafka.producer_snapshot import list_snapshots, snapshot_name
from logstore.segments.kafka.record import CorruptRecordError
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.span import Span

_log = logging.getLogger(__name__)


def replay_producers(
    segments: Iterable[KafkaSegment],
    start_offset: int,
    end_offset: int,
    note: Callable[[RecordBatch], None],
) -> None:
    """
    Call `note` with every batch of a producer in ``[start_offset, end_offset)``.

    As in Kafka no CRC is looked at: a log must open although the disk lost a byte of it, and
    whoever reads that byte will know.
    """
    for segment in segments:
        if segment.next_offset <= start_offset:
            continue
        try:
            for batch in segment.entries(segment.locate(start_offset), is_checked=False):
                if batch.base_offset >= end_offset:
                    return
                if batch.producer_id >= 0 and batch.base_offset >= start_offset:
                    note(batch)
        except (CorruptEntryError, CorruptRecordError) as error:
            _log.warning("%s: %s; its producers are not known from there on", segment.path, error)


def prune_snapshots(
    fs: FileSystem, directory: str, span: Span, segment_offsets: Container[int], active_offset: int
) -> None:
    """
    Remove producer snapshots that tell of another history, or that no start will ever need.

    Kept, within the log's `span`, are those of its segments and the newest of the others; the one
    at the very end even if the log is empty, which Kafka lets go.
    """
    offsets = list_snapshots(fs, directory)
    strays = [offset for offset in offsets if offset not in segment_offsets]
    if strays and strays[-1] >= active_offset:
        strays.pop()
    for offset in offsets:
        is_inside = span.start < offset <= span.end or offset == span.end
        if offset in strays or not is_inside:
            fs.remove(f"{directory}/{snapshot_name(offset)}")
