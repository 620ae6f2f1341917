"""A world that stops before every operation that changes the disk, so that the power can go."""

from __future__ import annotations

import random
from collections.abc import Callable

from logstore.host import Clock, Host
from logstore.testing import ManualClock, SimulatedDisk, SimulatedHost

SECTOR_BYTES = 32


class WatchedDisk(SimulatedDisk):
    """Calls `watch` before every operation that changes something."""

    def __init__(self, clock: Clock, watch: Callable[[], None]) -> None:
        super().__init__(clock, sector_bytes=SECTOR_BYTES)
        self.journal.is_recording = False
        self._watch = watch

    def _count_operation(self, path: str, *, changes: bool) -> None:
        if changes:
            self._watch()
        super()._count_operation(path, changes=changes)


class WatchedHost(SimulatedHost):
    """Calls `visit` with itself before every change; forks of it are not watched."""

    def __init__(self, visit: Callable[[SimulatedHost], None], seed: int = 0) -> None:
        clock = ManualClock()
        disk = WatchedDisk(clock, lambda: visit(self))
        Host.__init__(self, disk, clock, random.Random(seed))
