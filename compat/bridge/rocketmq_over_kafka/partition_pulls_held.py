"""Pulls that wait for records: woken by what comes to a partition from either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.held_pulls import HeldPull, HeldPulls

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

    def hold(self, pull: HeldPull, timeout_ms: float) -> None:
        """Let `pull` wait, and have its partition watched."""
        super().hold(pull, timeout_ms)
        key = pull.topic, pull.queue_id
        partition = self._store.window(*key)
        if partition is not None and key not in self._forget_watch:
            readers = self._store.kafka.readers
            self._forget_watch[key] = readers.wait([partition], lambda: self._appended(key))

    def _appended(self, key: tuple[str, int]) -> None:
        """Mark those for whom something came; watch no longer where nobody waits."""
        self.arrived(*key, self._store.max_queue_offset(*key))
        if not self.is_awaited(key):
            self._forget_watch.pop(key)()
        if self.has_woken:
            self._served()
