"""
One task of a conversion to Kafka for many queues: starting it costs more than a small queue does.

What such a task writes beside the store is one file of each kind, as if it had one queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from logstore.compat.spark.convert.kafka_segment_task import KafkaSegmentTask, WritersBeside
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.deferred_sync import DeferredFileSystem, sync_volume

#: what the files of a queue cost, as if it were so much larger
_QUEUE_BYTES = 1024 * 1024


@attrs.frozen
class SmallQueuesTask:
    """Writes the messages of several parts of queues, one after the other."""

    number: int
    parts: tuple[KafkaSegmentTask, ...]

    @property
    def size_bytes(self) -> int:
        """How much of the source it reads."""
        return sum(part.size_bytes for part in self.parts)

    def run(self, attempt: Attempt) -> int:
        """Write them all; return how many records there are."""
        fs = DeferredFileSystem()
        with WritersBeside(attempt, self.number, self.parts[0].source) as beside:
            count = sum(part.write(attempt, beside, fs) for part in self.parts)
        sync_volume(str(attempt.path))
        return count


def shared(
    tasks: Iterable[KafkaSegmentTask], task_bytes: int
) -> Iterator[KafkaSegmentTask | SmallQueuesTask]:
    """Yield tasks of about `task_bytes`, numbered anew, in which small neighbours are together."""
    for number, group in enumerate(_groups(tasks, task_bytes)):
        if len(group) == 1:
            yield attrs.evolve(group[0], number=number)
        else:
            yield SmallQueuesTask(number, tuple(group))


def _groups(tasks: Iterable[KafkaSegmentTask], task_bytes: int) -> Iterator[list[KafkaSegmentTask]]:
    group: list[KafkaSegmentTask] = []
    filled_bytes = 0
    for task in tasks:
        cost_bytes = task.size_bytes + _QUEUE_BYTES
        if group and filled_bytes + cost_bytes > task_bytes:
            yield group
            group, filled_bytes = [], 0
        group.append(task)
        filled_bytes += cost_bytes
    if group:
        yield group
