"""
The short way of usual batches into a partition, one or several of one connection at a time.

Most of what clients send goes this way: plain batches, and those that a producer numbers, as Java's
do unless told otherwise, where they go on behind its last one. All others go the way of
:meth:`~logstore.segments.kafka.partition.KafkaPartition.append_produced`, which also knows what is
wrong with them. What either leaves behind is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from logstore.segments.kafka.readable_partition import ReadablePartition
from logstore.segments.kafka.usual_batch import UsualBatch, usual_batch

if TYPE_CHECKING:
    from logstore.segments.kafka.config import LogConfig


class UsualAppends(ReadablePartition):
    """What :class:`~logstore.segments.kafka.partition.KafkaPartition` does with usual batches."""

    index: int
    config: LogConfig
    leader_epoch: int
    on_append: Callable[[Any], None] | None

    def append_usual(self, data: memoryview, now_ms: int) -> int:
        """
        Append the one batch in `data` if nothing is special about it; return its base offset.

        -1, and nothing was done, if something may be: :meth:`append_produced` is its way then.

        Raises:
            WriteFailedError: the disk refused.

        """
        usual = usual_batch(data, self.config, now_ms)
        if usual is None:
            return -1
        return self.append_at_once((self.index, data, *usual), now_ms)

    def append_at_once(self, batch: UsualBatch, now_ms: int) -> int:
        """Do what :meth:`append_usual` does with a batch of which it is known that it is usual."""
        del now_ms  # for partitions that are no files of batches
        _, data, last_delta, timestamp_ms, producer_id = batch
        if producer_id >= 0:
            return self._append_numbered((batch,))
        start = self.log.active.append_usual(data, last_delta, timestamp_ms, self.leader_epoch)
        if self.on_append is not None and start >= 0:
            self.on_append(self)
        return start

    def append_run_at_once(self, run: Sequence[UsualBatch]) -> int:
        """Do what :meth:`append_at_once` does with several, in one write; all of them, or none."""
        if run[0][4] >= 0:
            return self._append_numbered(run)
        for batch in run:
            if batch[4] >= 0:
                return -1
        start = self.log.active.append_usual_run(run, self.leader_epoch)
        if self.on_append is not None and start >= 0:
            self.on_append(self)
        return start

    def _append_numbered(self, run: Sequence[UsualBatch]) -> int:
        """Append usual batches of one producer if they go on where its last one ended, or none."""
        producer_id = run[0][4]
        producer = self.producers.get(producer_id)
        if producer is None or [batch[4] for batch in run] != [producer_id] * len(run):
            return -1
        sequence = producer.next_sequence(run)
        if sequence < 0:
            return -1
        active = self.log.active
        if len(run) == 1:
            start = active.append_usual(*run[0][1:4], self.leader_epoch)
        else:
            start = active.append_usual_run(run, self.leader_epoch)
        if start >= 0:
            producer.note_run(run, sequence, start)
            if self.on_append is not None:
                self.on_append(self)
        return start
