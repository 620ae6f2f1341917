"""
What the store's own tests use, shipped: a simulated world, and contracts to hold a layout to.

Needs no test framework. Start at :class:`SimulatedHost`; what its disk may do to data is written
at the head of :mod:`logstore.testing.simulated_disk`. Who writes a layout starts at
:mod:`logstore.testing.segment_contract`, which is not imported here, so that pytest can still
rewrite its asserts.
"""

from logstore.testing.crash_points import (
    CrashPoint,
    FailurePoint,
    every_failure,
    every_power_loss,
)
from logstore.testing.disk_faults import DiskFaults
from logstore.testing.disk_journal import DiskJournal, Operation
from logstore.testing.faulty_files import FaultyFileSystem
from logstore.testing.manual_clock import ManualClock
from logstore.testing.power_loss import (
    CORNERS,
    DATA_WITHOUT_NAMES,
    DATA_WITHOUT_SIZES,
    KEEP_EVERYTHING,
    LOSE_UNSYNCED,
    NAMES_WITHOUT_DATA,
    SIZES_WITHOUT_DATA,
    Kept,
    PowerLoss,
    PowerLost,
)
from logstore.testing.running_clock import RunningClock
from logstore.testing.simulated_disk import SimulatedDisk
from logstore.testing.simulated_host import SimulatedHost

__all__ = [
    "CORNERS",
    "DATA_WITHOUT_NAMES",
    "DATA_WITHOUT_SIZES",
    "KEEP_EVERYTHING",
    "LOSE_UNSYNCED",
    "NAMES_WITHOUT_DATA",
    "SIZES_WITHOUT_DATA",
    "CrashPoint",
    "DiskFaults",
    "DiskJournal",
    "FailurePoint",
    "FaultyFileSystem",
    "Kept",
    "ManualClock",
    "Operation",
    "PowerLoss",
    "PowerLost",
    "RunningClock",
    "SimulatedDisk",
    "SimulatedHost",
    "every_failure",
    "every_power_loss",
]
