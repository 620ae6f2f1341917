"""Queues held against a part of the commit log only: what is found is to be put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.tools.inspection.rocketmq.stored_store import QueueKey, StoredQueue, StoredStore
from logstore.tools.inspection.rocketmq.verification.log_range import QueueMarks
from logstore.tools.inspection.rocketmq.verification.queue_check import QueueCheck
from logstore.tools.inspection.rocketmq.verification.queues_check import QueuesCheck


class _MarkedQueue(QueueCheck):
    """Notes which units are right as runs of numbers."""

    def __init__(self, store: StoredStore, queue: StoredQueue) -> None:
        super().__init__(store, queue)
        self._seen = bytearray()  # as long as the queue, and not needed here
        self.right: list[tuple[int, int]] = []

    def see(self, start: int, end: int) -> None:
        if self.right and self.right[-1][1] == start:
            self.right[-1] = self.right[-1][0], end
        else:
            self.right.append((start, end))

    def marks(self) -> QueueMarks:
        """Return what was found since the last time."""
        found = QueueMarks(self.right, self.missing, self.wrong)
        self.right, self.missing, self.wrong = [], {}, {}
        return found


class _QueuesInUse(Mapping[QueueKey, _MarkedQueue]):
    """The checks of queues, each made when a message asks for it: a part knows few of them."""

    def __init__(self, store: StoredStore) -> None:
        self._store = store
        self._made: dict[QueueKey, _MarkedQueue] = {}

    def __getitem__(self, key: QueueKey) -> _MarkedQueue:
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = _MarkedQueue(self._store, self._store.queues[key])
        return made

    def __iter__(self) -> Iterator[QueueKey]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class RangeQueues(QueuesCheck):
    """Follows one part of the commit log after another; each has marks of its own."""

    def __init__(self, store: StoredStore) -> None:
        super().__init__(store)
        #: a batch is found by its place among all of its queue: that is for who has the whole log
        self._batches: list[tuple[QueueKey, int, DispatchRequest]] = []

    def _all_checks(self) -> _QueuesInUse:
        self._in_use = _QueuesInUse(self.store)
        return self._in_use

    def _hold(self, check: QueueCheck, request: DispatchRequest, number: int) -> None:
        if check.queue.is_batch:
            key = check.queue.topic, check.queue.queue_id
            self._batches.append((key, number, request))
        else:
            check.take(request, number)

    def marks(self) -> dict[QueueKey, QueueMarks]:
        """Return what was found since the last time, of each queue of which something was."""
        found = {key: self._in_use[key].marks() for key in self._in_use}
        return {
            key: marks
            for key, marks in found.items()
            if marks.right or marks.missing or marks.wrong
        }

    def batches(self) -> list[tuple[QueueKey, int, DispatchRequest]]:
        """Return the batches since the last time."""
        found, self._batches = self._batches, []
        return found

    def counted_without_queue(self) -> Counter[QueueKey]:
        """Return how many messages have no queue, since the last time."""
        found, self.without_queue = self.without_queue, Counter()
        return found
