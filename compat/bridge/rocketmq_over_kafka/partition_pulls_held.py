"""Pulls that wait for records: woken by what comes to a partition from either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pulling.held_pulls import HeldPull, HeldPulls

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_store import PartitionStore
    from logstore.compat.waiting import Timers


class PartitionPullsHeld(HeldPulls):
    """All waiting pulls of a broker; `served` has those answered that were marked."""

    def __init__(self, timers: Timers, store: PartitionStore, served: Callable[[], None]) -> None:
        super().__init__(timers, store.max_queue_offset)
        self._store = store
        self._served = served
        self._forget_watch: dict[tuple[str, int], Callable[[], None]] = {}
        #: up to where the messages of a watched partition were looked at
        self._looked_to: dict[tuple[str, int], int] = {}

    def hold(self, pull: HeldPull, timeout_ms: float) -> None:
        """Let `pull` wait, and have its partition watched."""
        super().hold(pull, timeout_ms)
        key = pull.topic, pull.queue_id
        partition = self._store.window(*key)
        if partition is not None and key not in self._forget_watch:
            readers = self._store.kafka.readers
            self._looked_to[key] = pull.queue_offset
            self._forget_watch[key] = readers.wait([partition], lambda: self._appended(key))

    def _appended(self, key: tuple[str, int]) -> None:
        """Mark those for whom something came; watch no longer where nobody waits."""
        start, end = self._looked_to[key], self._store.max_queue_offset(*key)
        if all(pull.filter is None for pull in self._queues.get(key, ())):
            self.arrived(*key, end)
        else:
            for queue_offset, tags_code in self._store.tags_codes(*key, start, end):
                self.arrived(*key, queue_offset + 1, tags_code)
        self._looked_to[key] = end
        if not self.is_awaited(key):
            self._forget_watch.pop(key)()
            del self._looked_to[key]
        if self.has_woken:
            self._served()
