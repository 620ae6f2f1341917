"""
Who waits for data: fetches that found too little register here and are woken by appends.

An append only marks the partition; the waiting fetches are asked once per served request, so that
a pipeline of appends costs one look and not one each. For share fetches a share-partition is
watched as well: there records become available again without an append.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

_log = logging.getLogger(__name__)


class Watched(Protocol):
    """What somebody may wait for: a partition, or a share-partition."""

    topic: str
    index: int
    #: called when there may be more to read
    on_append: Callable[[Any], None] | None


class Readers:
    """Waiting fetches by partition."""

    def __init__(self) -> None:
        self._waiting: dict[Watched, dict[int, Callable[[], None]]] = {}
        #: what was appended to since somebody was last asked
        self.touched: dict[Watched, None] = {}
        self._next_id = 0
        self._is_waking = False

    def wait(self, partitions: Iterable[Watched], wake: Callable[[], None]) -> Callable[[], None]:
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

    def _touch(self, partition: Watched) -> None:
        self.touched[partition] = None

    def wake(self) -> None:
        """
        Ask everybody who waits for a partition that was appended to.

        Who is asked may append in turn, and wakes others from here, not from within.
        """
        if self._is_waking or not self.touched:
            return
        self._is_waking = True
        try:
            while self.touched:
                touched, self.touched = self.touched, {}
                for partition in touched:
                    self._ask(partition)
        finally:
            self._is_waking = False

    def _ask(self, partition: Watched) -> None:
        waiting = self._waiting.get(partition, {})
        for ticket in list(waiting):
            wake = waiting.get(ticket)
            if wake is None:
                continue  # left meanwhile
            try:
                wake()
            except Exception:  # noqa: BLE001 - one reader's fault is not the appender's
                _log.exception("a reader of %s-%s failed", partition.topic, partition.index)

    def abandon(self, partition: Watched) -> None:
        """Wake everybody who waits for a partition that is going away."""
        self.touched[partition] = None
        self.wake()
