"""
One pass over one partition: the last record of every key stays.

::

    compaction = Compaction(find_cleanable(partition, checkpoint, now_ms), now_ms, limits)
    for step in compaction.steps():       # work on files only: may run in a thread
        if step is not None:
            step.apply()                  # where the partition is used: changes the log
    compaction.end_offset                 # what the next pass gets as its checkpoint

Source: ``Cleaner`` (KIP-58, KIP-98, KIP-354, KIP-534).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import attrs

from logstore.segments.kafka.compaction.batch_filter import Tally
from logstore.segments.kafka.compaction.cleanable import Cleanable
from logstore.segments.kafka.compaction.compaction_pass import CompactionPass
from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits, CompactionPlan
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.segment import KafkaSegment

__all__ = ["Compaction", "CompactionLimits", "Replacement", "compact"]


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

    `is_dry` and `is_fast` as a :class:`CompactionPass` takes them.
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
        self._pass = CompactionPass(
            CompactionPlan.of(cleanable, now_ms, limits),
            partition.files,
            partition.log.segments,
            is_dry=is_dry,
            is_fast=is_fast,
        )

    @property
    def end_offset(self) -> int:
        """Up to where the log is clean once all steps are done."""
        return self._pass.end_offset

    @property
    def tally(self) -> Tally:
        """What went in so far, and what came out."""
        return self._pass.tally

    @property
    def bytes_in_all(self) -> int:
        """How many bytes are to be read, those of the dirty part twice."""
        return self._pass.bytes_in_all

    @property
    def bytes_done(self) -> int:
        """How many of them were read."""
        return self._pass.bytes_done

    @property
    def key_count(self) -> int:
        """How many keys the dirty part has."""
        return self._pass.key_count

    def steps(self) -> Iterator[Replacement | None]:
        """
        Do the work, a slice at a time; what is yielded must be applied before the next one.

        Raises:
            CorruptEntryError, CorruptRecordError: a batch is damaged. What was not replaced yet
                stays as it is.
            OSError, WriteFailedError: the disk refused.

        """
        for copy in self._pass.steps():
            yield None if copy is None else Replacement(self.partition, copy.old, copy.new)

    def abandon(self) -> None:
        """Remove the copy that is being written, if any, after steps that are not followed on."""
        self._pass.abandon()


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
