"""
Who watches the recovery of a log's segments: leader epochs and producers are rebuilt on the way.

A segment that is recovered gets its batches' epochs into the epoch cache, and its aborted
transactions into its transaction index. For the latter it must be known which transactions were
open where it starts: the producer state of there is restored first, from a snapshot and the
segments before. When it is done the state behind it is kept in a snapshot of its own, so that the
next segment need not start from the beginning.

Source: ``LogLoader.recoverSegment``, ``LogSegment.recover``.
"""

from __future__ import annotations

from typing import Protocol

from logstore.segments.kafka.leader_epochs import LeaderEpochs
from logstore.segments.kafka.producer_history import ProducerHistory
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.segment import KafkaSegment


class RecoveryWitness(Protocol):
    """Who watches a recovery, to rebuild in the same pass what is kept of a whole log."""

    def opened(self, segment: KafkaSegment) -> None:
        """Take note of a segment of the log; they come in order."""
        ...

    def begin(self, segment: KafkaSegment) -> None:
        """Take note that the recovery of `segment` begins, from its first batch on."""
        ...

    def see(self, segment: KafkaSegment, batch: RecordBatch) -> None:
        """Take note of a good batch of it."""
        ...

    def end(self, segment: KafkaSegment) -> None:
        """Take note that `segment` is recovered."""
        ...


class PartitionWitness:
    """
    The witness of one partition.

    `start_offset` is the log start that the checkpoint knows.
    """

    def __init__(
        self, history: ProducerHistory, leader_epochs: LeaderEpochs, start_offset: int
    ) -> None:
        self._history = history
        self._leader_epochs = leader_epochs
        self._start_offset = start_offset
        self._opened: dict[int, KafkaSegment] = {}

    def opened(self, segment: KafkaSegment) -> None:
        """Take note of a segment of the log, in order."""
        self._opened[segment.base_offset] = segment

    def begin(self, segment: KafkaSegment) -> None:
        """Restore the producers of where `segment` starts."""
        self._history.start_over()
        self._history.remove_below(next(iter(self._opened), segment.base_offset))
        self._history.rebuild(list(self._opened.values()), self._start_offset, segment.base_offset)

    def see(self, segment: KafkaSegment, batch: RecordBatch) -> None:
        """Take note of a good batch."""
        if batch.leader_epoch > self._leader_epochs.latest_epoch:
            self._leader_epochs.assign(batch.leader_epoch, batch.base_offset)
        if batch.producer_id >= 0:
            self._history.note(batch, segment)

    def end(self, segment: KafkaSegment) -> None:
        """Keep the producers of where `segment` ends."""
        self._history.end_offset = segment.next_offset
        self._history.take_snapshot(segment.next_offset)
