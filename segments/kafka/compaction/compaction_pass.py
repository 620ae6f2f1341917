"""
The work of a pass on files, without the partition that they belong to.

First the keys of the dirty part are mapped to their last offsets. Then all segments up to there
are copied without the superseded records, in groups that together are no larger than one segment.

Source: ``Cleaner`` (KIP-58, KIP-98, KIP-354, KIP-534).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.segments.kafka.compaction.batch_filter import BatchFilter, CleaningRound, Tally
from logstore.segments.kafka.compaction.cleaned_segment import CleanedSegment
from logstore.segments.kafka.compaction.cleaned_transactions import CleanedTransactions
from logstore.segments.kafka.compaction.compaction_plan import CompactionPlan
from logstore.segments.kafka.compaction.plain_scan import PlainScan
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.indexed_segment import RELATIVE_OFFSET_MAX
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.segments.kafka.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from logstore.segments.kafka.compaction.run_scan import RunScan


@attrs.frozen
class Copy:
    """A copy that is ready, durable and called ``.cleaned``, and what it was made of."""

    old: list[KafkaSegment]
    new: KafkaSegment


class CompactionPass:
    """
    A pass as planned, over `segments` by base offset, done as far as :meth:`steps` was followed.

    `end_offset` is up to where the log is clean once all steps are done. With `is_dry` nothing is
    written and no step has a copy. With `is_fast` compiled loops do the work, if numba is there;
    the outcome is the same to the byte.
    """

    def __init__(
        self,
        plan: CompactionPlan,
        files: SegmentFiles,
        segments: Mapping[int, KafkaSegment],
        *,
        is_dry: bool = False,
        is_fast: bool = False,
    ) -> None:
        self.plan = plan
        self.tally = Tally()
        self.bytes_mapped = 0
        self.end_offset: int = plan.start
        self._files = files
        self._is_dry = is_dry
        self._is_fast = is_fast
        self._dirty = [segments[base] for base in plan.dirty]
        self._segments = [segments[base] for base in plan.segments]
        self._scan: PlainScan | RunScan = PlainScan(plan.key_count_max)
        #: the copy that is being written
        self._cleaned: CleanedSegment | None = None

    def _new_scan(self, key_count_max: int) -> PlainScan | RunScan:
        """Return the fast way where it can be gone: it needs numba."""
        try:
            from logstore.segments.compiled.loops import is_available
            from logstore.segments.kafka.compaction.run_scan import RunScan
        except ImportError:
            return PlainScan(key_count_max)
        if not is_available():
            return PlainScan(key_count_max)
        return RunScan(key_count_max, range(self.plan.start, self.plan.bound), self._files.host.rng)

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

    def steps(self) -> Iterator[Copy | None]:
        """
        Do the work, a slice at a time; a copy must be put to use before the next slice.

        Raises:
            CorruptEntryError, CorruptRecordError: a batch is damaged. What is not copied yet
                stays as it is.
            OSError, WriteFailedError: the disk refused.

        """
        if self._is_fast:  # here, because it takes time to load
            self._scan = self._new_scan(self._scan.offsets.key_count_max)
        yield from self._map_keys()
        self.end_offset = self._scan.offsets.latest_offset + 1
        segments = [s for s in self._segments if s.base_offset < self.end_offset]
        plan = self.plan
        cleaning = CleaningRound(
            self._scan.offsets,
            plan.last_records,
            plan.bound,
            plan.now_ms,
            plan.config.delete_retention_ms,
        )
        batches = BatchFilter(cleaning, CleanedTransactions(plan.aborted, self._note_aborted))
        batches.tally = self.tally
        for group in grouped(segments, plan.config, plan.bound):
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
            one for one in self.plan.aborted if one.last_offset >= self.plan.start
        )

        def is_wanted(batch: RecordBatch) -> bool:
            return not transactions.is_discarded(batch) and not batch.is_control

        for index, segment in enumerate(self._dirty):
            scan = self._scan.map_segment(segment, self.plan.start, is_wanted)
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
            following = self.plan.bound if is_last else self._dirty[index + 1].base_offset
            self._scan.offsets.latest_offset = following - 1

    # the copies

    def _clean(self, group: list[KafkaSegment], batches: BatchFilter) -> Iterator[Copy | None]:
        """Copy what stays of a group of segments, and yield the copy."""
        cleaned: CleanedSegment | None = None
        if not self._is_dry:
            cleaned = CleanedSegment(self._files, group[0].base_offset)
        self._cleaned = cleaned
        fs = self._files.fs
        for segment in group:
            batches.keeps_old_tombstones = fs.modified_ms(segment.path) > self.plan.old_horizon_ms
            yield from self._scan.filter_segment(segment, batches, cleaned)
        if cleaned is not None:
            new = cleaned.finished(group)
            yield Copy(group, new)
            self._cleaned = None

    def _note_aborted(self, transaction: AbortedTransaction) -> None:
        if self._cleaned is not None:
            self._cleaned.note_aborted(transaction)


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
