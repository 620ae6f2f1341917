"""The world as one argument, simulated."""

from __future__ import annotations

import random

from logstore.host import Host
from logstore.testing.file_image import SECTOR_BYTES
from logstore.testing.manual_clock import ManualClock
from logstore.testing.power_loss import LOSE_UNSYNCED, PowerLoss
from logstore.testing.simulated_disk import SimulatedDisk


class SimulatedHost(Host):
    """
    A :class:`logstore.host.Host` whose disk is memory, whose time stands still, whose dice repeat.

    Everything that happens follows from `seed` and from what the test does. The disk starts with
    nothing but ``/``.
    """

    fs: SimulatedDisk
    clock: ManualClock

    def __init__(
        self,
        seed: int = 0,
        *,
        clock: ManualClock | None = None,
        sector_bytes: int = SECTOR_BYTES,
    ) -> None:
        clock = clock or ManualClock()
        disk = SimulatedDisk(clock, sector_bytes=sector_bytes)
        super().__init__(disk, clock, random.Random(seed))

    def power_loss(self, loss: PowerLoss = LOSE_UNSYNCED) -> None:
        """Lose power, and come back with what the medium holds."""
        self.fs.power_loss(loss)

    def fork(self) -> SimulatedHost:
        """Return an equal world that goes its own way."""
        clock = self.clock.copy()
        twin = SimulatedHost.__new__(SimulatedHost)
        rng = random.Random()
        rng.setstate(self.rng.getstate())
        Host.__init__(twin, self.fs.fork(clock), clock, rng)
        return twin
