"""
Flushes off the loop: many appends that wait for the disk share one fsync.

While one flush of a partition runs, further appends to it queue; when it ends, one more flush
covers them all. An acknowledgement that promises durability waits here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from logstore.compat.offload import Offload
from logstore.errors import WriteFailedError
from logstore.segmented_log import FlushTask
from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)

Flushed = Callable[[BaseException | None], None]


class _Queue:
    __slots__ = ("is_running", "waiting")

    def __init__(self) -> None:
        self.is_running = False
        self.waiting: list[tuple[int, Flushed]] = []


class Flusher:
    """
    Runs the flushes of all partitions, one at a time each.

    `is_here` tells whether a partition is still there: whose topic is deleted under its flush has
    no files to sync any more, and nobody has to hear of that.
    """

    def __init__(
        self, offload: Callable[[], Offload], is_here: Callable[[KafkaPartition], bool]
    ) -> None:
        self._offload = offload
        self._is_here = is_here
        self._queues: dict[KafkaPartition, _Queue] = {}
        #: partitions whose append made a flush due, until the request handler takes them
        self.due: list[KafkaPartition] = []

    def mark_due(self, partition: KafkaPartition) -> None:
        """Say that the acknowledgement of the append just made must wait for a flush."""
        self.due.append(partition)

    def take_due(self) -> list[KafkaPartition]:
        """Return the partitions marked since the last call."""
        due, self.due = self.due, []
        return due

    def flush_due_here(self) -> None:
        """
        Flush what is due here and now: for those who answer right away.

        Raises:
            WriteFailedError: what was written may not survive a power loss.

        """
        for partition in self.take_due():
            try:
                partition.flush()
            except OSError as error:
                raise WriteFailedError(
                    f"{partition.topic}-{partition.index}: {error.strerror}; what was written "
                    "may not survive a power loss"
                ) from error

    def flush(self, partition: KafkaPartition, flushed: Flushed | None = None) -> None:
        """Make durable what was appended so far; then call `flushed` with the error, if any."""
        queue = self._queues.setdefault(partition, _Queue())
        queue.waiting.append((partition.flush_position, flushed or _ignore))
        if not queue.is_running:
            self._start(partition, queue)

    def _start(self, partition: KafkaPartition, queue: _Queue) -> None:
        queue.is_running = True
        task = partition.begin_flush()
        self._offload()(task.run, lambda error: self._ended(partition, queue, task, error))

    def _ended(
        self,
        partition: KafkaPartition,
        queue: _Queue,
        task: FlushTask,
        error: BaseException | None,
    ) -> None:
        queue.is_running = False
        if error is None:
            partition.end_flush(task)
        elif self._is_here(partition):
            _log.error("%s-%s: the flush failed: %s", partition.topic, partition.index, error)
        covered = [entry for entry in queue.waiting if error or entry[0] <= task.offset]
        queue.waiting = [entry for entry in queue.waiting if entry not in covered]
        if queue.waiting:
            self._start(partition, queue)
        else:
            self._queues.pop(partition, None)
        for _, flushed in covered:
            flushed(error)


def _ignore(error: BaseException | None) -> None:
    """Nobody waits; a failure was logged already."""
    del error
