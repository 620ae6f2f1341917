"""
Who waits for data: fetches that found too little register here and are woken by appends.

An append only marks the partition; the waiting fetches are asked once per served request, so that
a pipeline of appends costs one look and not one each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logstore.segments.kafka.partition import KafkaPartition


class Readers:
    """Waiting fetches by partition."""

    def __init__(self) -> None:
        self._waiting: dict[KafkaPartition, dict[int, Callable[[], None]]] = {}
        self._touched: dict[KafkaPartition, None] = {}
        self._next_id = 0

    def wait(
        self, partitions: Iterable[KafkaPartition], wake: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `wake` after appends to any of `partitions`; return what ends that."""
        watched = list(partitions)
        ticket = self._next_id
        self._next_id += 1
        for partition in watched:
            self._waiting.setdefault(partition, {})[ticket] = wake
            partition.on_append = self._touch

        def forget() -> None:
            for partition in watched:
                waiting = self._waiting.get(partition)
                if waiting is not None:
                    waiting.pop(ticket, None)
                    if not waiting:
                        del self._waiting[partition]
                        partition.on_append = None

        return forget

    def _touch(self, partition: KafkaPartition) -> None:
        self._touched[partition] = None

    def wake(self) -> None:
        """Ask everybody who waits for a partition that was appended to."""
        while self._touched:
            touched, self._touched = self._touched, {}
            for partition in touched:
                for wake in list(self._waiting.get(partition, {}).values()):
                    wake()

    def abandon(self, partition: KafkaPartition) -> None:
        """Wake everybody who waits for a partition that is going away."""
        self._touched[partition] = None
        self.wake()
