"""
What the store's own tests use, shipped: a simulated world, and contracts to hold a layout to.

Needs no test framework. Start at :class:`SimulatedHost`; what its disk may do to data is written
at the head of :mod:`logstore.testing.simulated_disk`. Who writes a layout starts at
:mod:`logstore.testing.segment_contract`.
"""

from logstore.testing.crash_points import (
    CrashPoint,
    FailurePoint,
    every_failure,
    every_power_loss,
)
from logstore.testing.disk_faults import DiskFaults
from logstore.testing.disk_journal import DiskJournal, Operation
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
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.simulated_disk import SimulatedDisk
from logstore.testing.simulated_host import SimulatedHost
from logstore.testing.witnessed_log import LogUnderTest, WitnessedLog

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
    "Kept",
    "LogUnderTest",
    "ManualClock",
    "Operation",
    "PowerLoss",
    "PowerLost",
    "RecoveryContract",
    "SegmentContract",
    "SimulatedDisk",
    "SimulatedHost",
    "WitnessedLog",
    "every_failure",
    "every_power_loss",
]
