"""Where the passes of a running broker's cleaner are done: in its own process, or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from logstore.errors import StorageError
from logstore.segments.kafka.compaction.batch_filter import Tally
from logstore.segments.kafka.compaction.cleanable import Cleanable
from logstore.segments.kafka.compaction.compaction import Compaction, Replacement
from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits
from logstore.segments.kafka.partition import KafkaPartition


class InterruptedPassError(StorageError):
    """A pass came to no end, which says nothing about the log: it may be tried again."""


class PlacedCompaction(Protocol):
    """A pass under way, wherever its work is done (see :class:`Compaction`)."""

    partition: KafkaPartition

    @property
    def end_offset(self) -> int:
        """Up to where the log is clean once all steps are done."""
        ...

    @property
    def tally(self) -> Tally:
        """What went in, and what came out, once all steps are done."""
        ...

    def steps(self) -> Iterator[Replacement | None]:
        """
        Do the work, a slice at a time; what is yielded must be applied before the next one.

        Raises:
            InterruptedPassError: it was broken off.
            LogStoreError, OSError: the log cannot be cleaned.

        """
        ...

    def abandon(self) -> None:
        """Stop, and remove what is half done."""
        ...


class CompactionPlace(Protocol):
    """Begins passes, one at a time."""

    def begin(
        self, cleanable: Cleanable, now_ms: int, limits: CompactionLimits
    ) -> PlacedCompaction:
        """Plan a pass; called where the partition is used."""
        ...

    def rest(self) -> None:
        """Take note that there is nothing to clean for now, or never again."""
        ...


class InThisProcess:
    """Does the work right here, without compiled loops: they would take a second to load."""

    def begin(self, cleanable: Cleanable, now_ms: int, limits: CompactionLimits) -> Compaction:
        """Plan a pass."""
        return Compaction(cleanable, now_ms, limits)

    def rest(self) -> None:
        """Nothing is kept between passes."""
