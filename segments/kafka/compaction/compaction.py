"""
One pass over one partition: the last record of every key stays.

::

    compaction = Compaction(find_cleanable(partition, checkpoint, now_ms), now_ms, limits)
    for step in compaction.steps():       # work on files only: may run in a thread
        if step is not None:
            step.apply()                  # where the partition is used: changes the log
    compaction.end_offset                 # what the next pass gets as its checkpoint

First the keys of the dirty part are mapped to their last offsets. Then all segments up to there
are copied without the superseded records, in groups that together are no larger than one segment,
and each group is replaced by its copy.

Source: ``Cleaner`` (KIP-58, KIP-98, KIP-354, KIP-534).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from logstore.segments.kafka.compaction.batch_filter import (
    BatchFilter,
    CleaningRound,
    Tally,
    last_records,
)
from logstore.segments.kafka.compaction.cleanable import Cleanable, segments_between
from logstore.segments.kafka.compaction.cleaned_segment import CleanedSegment
from logstore.segments.kafka.compaction.cleaned_transactions import CleanedTransactions
from logstore.segments.kafka.compaction.offset_map import key_count_max
from logstore.segments.kafka.compaction.plain_scan import PlainScan
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import RELATIVE_OFFSET_MAX, KafkaSegment
from logstore.segments.kafka.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from logstore.segments.kafka.compaction.run_scan import RunScan


@attrs.frozen
class CompactionLimits:
    """How much memory the map of keys may take, as Kafka's ``log.cleaner.dedupe.buffer.*`` say."""

    buffer_bytes: int = 134217728
    load_factor: float = 0.9

    @property
    def key_count_max(self) -> int:
        """How many keys one pass maps."""
        return key_count_max(self.buffer_bytes, self.load_factor)


@attrs.frozen
class Replacement:
    """A copy that is ready to stand for the segments that it was made of."""

    partition: KafkaPartition
    old: list[KafkaSegment]
    new: KafkaSegment

    def apply(self) -> None:
        """Put it in their place; raises as :meth:`KafkaPartition.replace` does."""
        self.partition.replace(self.old, self.new)


class Compaction:
    """
    A pass, planned when it is made and done as far as :meth:`steps` was followed.

    `end_offset` is up to where the log is clean once all steps are done. With `is_dry` nothing is
    written and no step replaces anything. With `is_fast` compiled loops do the work, if numba is
    there; the outcome is the same to the byte.
    """

    def __init__(
        self,
        cleanable: Cleanable,
        now_ms: int,
        limits: CompactionLimits,
        *,
        is_dry: bool = False,
        is_fast: bool = False,
    ) -> None:
        partition = cleanable.partition
        self.partition = partition
        self.config: LogConfig = partition.config
        self.tally = Tally()
        self.bytes_mapped = 0
        self.end_offset = cleanable.first_dirty_offset
        self._is_dry = is_dry
        self._start = cleanable.first_dirty_offset
        self._bound = cleanable.first_uncleanable_offset
        self._now_ms = now_ms
        self._dirty = segments_between(partition, self._start, self._bound)
        self._segments = segments_between(partition, -1, self._bound)
        self._scan: PlainScan | RunScan = PlainScan(limits.key_count_max)
        self._is_fast = is_fast
        self._last_records = last_records(partition.producers)
        self._aborted: list[AbortedTransaction] = []
        if self._segments:
            first = self._segments[0].base_offset
            self._aborted = partition.aborted_transactions(first, self._bound)
        clean = segments_between(partition, -1, self._start)
        self._old_horizon_ms = 0
        if clean:
            modified_ms = partition.host.fs.modified_ms(clean[-1].path)
            self._old_horizon_ms = modified_ms - self.config.delete_retention_ms
        #: the copy that is being written
        self._cleaned: CleanedSegment | None = None

    def _new_scan(self, key_count_max: int) -> PlainScan | RunScan:
        """Return the fast way where it can be gone: it needs numba."""
        try:
            from logstore.segments.kafka.compaction.run_kernel import is_available
            from logstore.segments.kafka.compaction.run_scan import RunScan
        except ImportError:
            return PlainScan(key_count_max)
        if not is_available():
            return PlainScan(key_count_max)
        return RunScan(key_count_max, self._bound - self._start, self.partition.host.rng)

    @property
    def bytes_in_all(self) -> int:
        """How many bytes are to be read, those of the dirty part twice."""
        return sum(s.end_position for s in (*self._dirty, *self._segments))

    @property
    def bytes_done(self) -> int:
        """How many of them were read."""
        return self.bytes_mapped + self.tally.bytes_read

    @property
    def key_count(self) -> int:
        """How many keys the dirty part has."""
        return len(self._scan.offsets)

    def steps(self) -> Iterator[Replacement | None]:
        """
        Do the work, a slice at a time; what is yielded must be applied before the next one.

        Raises:
            CorruptEntryError, CorruptRecordError: a batch is damaged. What was not replaced yet
                stays as it is.
            OSError, WriteFailedError: the disk refused.

        """
        if self._is_fast:  # here, because it takes time to load
            self._scan = self._new_scan(self._scan.offsets.key_count_max)
        yield from self._map_keys()
        self.end_offset = self._scan.offsets.latest_offset + 1
        segments = [s for s in self._segments if s.base_offset < self.end_offset]
        cleaning = CleaningRound(
            self._scan.offsets,
            self._last_records,
            self._bound,
            self._now_ms,
            self.config.delete_retention_ms,
        )
        batches = BatchFilter(cleaning, CleanedTransactions(self._aborted, self._note_aborted))
        batches.tally = self.tally
        for group in grouped(segments, self.config, self._bound):
            yield from self._clean(group, batches)

    def abandon(self) -> None:
        """Remove the copy that is being written, if any, after steps that are not followed on."""
        if self._cleaned is not None:
            self._cleaned.remove()
            self._cleaned = None

    # the map

    def _map_keys(self) -> Iterator[None]:
        """Map the keys of the dirty part, or as many as there is room for."""
        transactions = CleanedTransactions(
            one for one in self._aborted if one.last_offset >= self._start
        )

        def is_wanted(batch: RecordBatch) -> bool:
            return not transactions.is_discarded(batch) and not batch.is_control

        for index, segment in enumerate(self._dirty):
            scan = self._scan.map_segment(segment, self._start, is_wanted)
            while True:
                try:
                    self.bytes_mapped += next(scan)
                except StopIteration as end:
                    if not end.value:
                        return  # the map is full
                    break
                yield None
            # The next segment may start behind a hole.
            is_last = index + 1 == len(self._dirty)
            following = self._bound if is_last else self._dirty[index + 1].base_offset
            self._scan.offsets.latest_offset = following - 1

    # the copies

    def _clean(
        self, group: list[KafkaSegment], batches: BatchFilter
    ) -> Iterator[Replacement | None]:
        """Copy what stays of a group of segments, and yield the copy in their place."""
        cleaned: CleanedSegment | None = None
        if not self._is_dry:
            cleaned = CleanedSegment(self.partition.files, group[0].base_offset)
        self._cleaned = cleaned
        fs = self.partition.host.fs
        for segment in group:
            batches.keeps_old_tombstones = fs.modified_ms(segment.path) > self._old_horizon_ms
            yield from self._scan.filter_segment(segment, batches, cleaned)
        if cleaned is not None:
            new = cleaned.finished(group)
            yield Replacement(self.partition, group, new)
            self._cleaned = None

    def _note_aborted(self, transaction: AbortedTransaction) -> None:
        if self._cleaned is not None:
            self._cleaned.note_aborted(transaction)


def compact(compaction: Compaction, progress: Callable[[int, int], None] | None = None) -> None:
    """
    Do all steps, here and now; `progress` is told (bytes done, bytes in all).

    Raises as :meth:`Compaction.steps` does; nothing half done stays behind.
    """
    try:
        for step in compaction.steps():
            if step is not None:
                step.apply()
            if progress is not None:
                progress(compaction.bytes_done, compaction.bytes_in_all)
    except BaseException:
        with suppress(OSError):  # a start removes it, too
            compaction.abandon()
        raise


def grouped(
    segments: Sequence[KafkaSegment], config: LogConfig, end_offset: int
) -> list[list[KafkaSegment]]:
    """
    Return the segments in groups that may become one segment each.

    Data and each index stay within the configured sizes, and offsets within 2^31-1. (Source:
    ``Cleaner.groupSegmentsBySize``; the last of `segments` ends at `end_offset` at most.)
    """
    groups: list[list[KafkaSegment]] = []
    limits = (config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes)
    sums = [0, 0, 0]
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        following = end_offset if is_last else segments[index + 1].base_offset
        sizes = (
            segment.end_position,
            segment.offset_index.size_bytes,
            segment.time_index.size_bytes,
        )
        fits = bool(groups) and all(
            total + size <= limit for total, size, limit in zip(sums, sizes, limits, strict=True)
        )
        if fits and sizes[0] and following - 1 - groups[-1][0].base_offset > RELATIVE_OFFSET_MAX:
            fits = False
        if fits:
            groups[-1].append(segment)
            sums = [total + size for total, size in zip(sums, sizes, strict=True)]
        else:
            groups.append([segment])
            sums = list(sizes)
    return groups
