"""
The cleaner of a running broker: one log after the other, the dirtiest first.

Reading and copying happen in slices wherever the broker does its blocking work, or in a process of
its own (:mod:`~logstore.segments.kafka.compaction.compaction_place`); the log itself is changed
only where it is used. On a simulated host everything
happens at once and in order.

A compacted log is retained by it as well, whether or not its policy is also delete: what lies
below its start goes, or is too old or too much, before the pause is over and not at the next check
of retention, which is for the others.

Source: ``LogCleaner``, ``LogCleanerManager.grabFilthiestCompactedLog``, ``deletableLogs``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from logstore.errors import LogStoreError, MissingSegmentError
from logstore.host import Host
from logstore.segments.kafka.compaction.cleanable import Cleanable, find_cleanable
from logstore.segments.kafka.compaction.cleaner_checkpoint import CleanerCheckpoint
from logstore.segments.kafka.compaction.compaction import Replacement
from logstore.segments.kafka.compaction.compaction_place import (
    CompactionPlace,
    InterruptedPassError,
    InThisProcess,
    PlacedCompaction,
)
from logstore.segments.kafka.compaction.compaction_plan import CompactionLimits
from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)
_SLICES_PER_TURN = 4

#: runs (work, done) so that `done` gets what `work` raised, or None
Offload = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]


class Cleaner:
    """
    Compacts the logs of `directory` that are due, and retains them, when :meth:`clean` is called.

    A log that cannot be cleaned is left alone until the next start, and said so.
    """

    def __init__(
        self,
        host: Host,
        directory: str,
        partitions: Callable[[], Iterable[KafkaPartition]],
        offload: Callable[[], Offload],
        limits: CompactionLimits,
        place: CompactionPlace | None = None,
    ) -> None:
        self.host = host
        self.checkpoint = CleanerCheckpoint(host.fs, directory, partitions)
        #: logs that could not be cleaned
        self.uncleanable: set[KafkaPartition] = set()
        self._partitions = partitions
        self._offload = offload
        #: may be others for the next pass
        self.limits = limits
        self._place: CompactionPlace = InThisProcess() if place is None else place
        self._compaction: PlacedCompaction | None = None
        self._steps: Iterator[Replacement | None] = iter(())
        self._replacement: Replacement | None = None
        self._is_over = False
        self._is_closed = False
        self._is_driving = self._has_turn = False

    @property
    def is_busy(self) -> bool:
        """Tell whether a log is being cleaned."""
        return self._compaction is not None

    def clean(self) -> None:
        """Clean all logs that are due and retain all, unless that is under way."""
        if not self.is_busy and not self._is_closed:
            self._begin()

    def dirtiest(self) -> Cleanable | None:
        """Return the log with the largest part that no pass has seen, among those that are due."""
        now_ms = self.host.clock.wall_ms()
        due = [
            cleanable
            for partition in self._cleaned_here()
            if (
                cleanable := find_cleanable(partition, self.checkpoint.get(partition), now_ms)
            ).is_due
        ]
        return max(due, key=lambda cleanable: cleanable.dirty_ratio, default=None)

    def close(self) -> None:
        """Stop; what is half done is removed and done anew after the next start."""
        self._is_closed = True
        if self._compaction is not None:
            with suppress(OSError):
                self._compaction.abandon()
            self._compaction = None
        self._place.rest()

    def _cleaned_here(self) -> Iterator[KafkaPartition]:
        """Yield the compacted logs, but for those that are left alone."""
        for partition in self._partitions():
            if (
                partition.config.is_compacted
                and partition not in self.uncleanable
                and partition.log.refusal is None
            ):
                yield partition

    def _retain(self) -> None:
        """Give up what is below the start of a compacted log, and what its retention gives up."""
        for partition in list(self._cleaned_here()):
            try:
                partition.retain()
            except (LogStoreError, OSError) as error:
                self._leave_alone(partition, error)

    # one log

    def _begin(self) -> None:
        cleanable = self.dirtiest()
        if cleanable is None:
            self._retain()
            self._place.rest()
            return
        now_ms = self.host.clock.wall_ms()
        self._compaction = self._place.begin(cleanable, now_ms, self.limits)
        self._steps = self._compaction.steps()
        self._is_over = False
        self._drive()

    def _drive(self) -> None:
        """Have the next turn done; those that are over at once must not pile up on the stack."""
        self._has_turn = True
        if self._is_driving:
            return
        self._is_driving = True
        try:
            while self._has_turn:
                self._has_turn = False
                self._offload()(self._work, self._worked)
        finally:
            self._is_driving = False

    def _work(self) -> None:
        """Do some slices, up to the next replacement; runs in a thread."""
        for _ in range(_SLICES_PER_TURN):
            try:
                self._replacement = next(self._steps)
            except StopIteration:
                self._is_over = True
                return
            if self._replacement is not None:
                return

    def _worked(self, error: BaseException | None) -> None:
        compaction = self._compaction
        if compaction is None:
            return  # closed meanwhile
        try:
            if error is not None:
                raise error
            if self._replacement is not None:
                self._replacement.apply()
                self._replacement = None
            elif self._is_over:
                self.checkpoint.put(compaction.partition, compaction.end_offset)
                self._tell(compaction)
        except (MissingSegmentError, FileNotFoundError, InterruptedPassError) as error:
            # Retention was quicker, or what did the work is gone.
            _log.info("%s; it is tried again", error)
            self._give_up(compaction)
            return
        except (LogStoreError, OSError) as error:
            self._fail(compaction, error)
        if self._is_over or self._compaction is None:
            self._compaction = None
            self._retain()
            self._begin()
        else:
            self._drive()

    def _tell(self, compaction: PlacedCompaction) -> None:
        tally = compaction.tally
        _log.info(
            "%s: clean up to offset %s; %s of %s records and %s of %s bytes are left",
            compaction.partition.files.directory,
            compaction.end_offset,
            tally.records_kept,
            tally.records_read,
            tally.bytes_kept,
            tally.bytes_read,
        )

    def _fail(self, compaction: PlacedCompaction, error: BaseException) -> None:
        if compaction.partition in set(self._partitions()):
            self._leave_alone(compaction.partition, error)
        self._give_up(compaction)

    def _leave_alone(self, partition: KafkaPartition, error: BaseException) -> None:
        _log.error(
            "%s: cannot be compacted, and is not tried again before the next start: %s",
            partition.files.directory,
            error,
        )
        self.uncleanable.add(partition)

    def _give_up(self, compaction: PlacedCompaction) -> None:
        self._replacement = None
        self._compaction = None
        with suppress(OSError):
            compaction.abandon()
