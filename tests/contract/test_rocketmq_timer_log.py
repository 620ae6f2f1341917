"""The timer log keeps the laws of a log."""

from __future__ import annotations

import zlib

import attrs

from logstore.host import Host
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.timer.timer_log import TimerLogFile, TimerUnitEntry
from logstore.segments.rocketmq.timer.timer_unit import TIMER_UNIT_BYTES, TimerUnit
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.witnessed_log import AnyLog, LogUnderTest


class TimerLogUnderTest(LogUnderTest):
    """
    Units in files that end with a BLANK.

    They have no checksum; here their last field, which is reserved, is one of all else and of their
    place, and the file knows it.
    """

    finds_inner_offsets = False
    is_preallocated = True
    leaves_remains = True

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        files = MappedFileDirectory(
            host.fs,
            directory,
            WitnessedTimerLogFile,
            10 * TIMER_UNIT_BYTES,
            is_clean=recovery_point is None,
            aside_directory="/aside",
        )
        return MappedFileQueue(files, recovery_point)

    def draft(self, number: int) -> WitnessedDraft:
        """Return a unit that bears its number."""
        return WitnessedDraft(number)


@attrs.frozen
class WitnessedDraft:
    """A unit of which can be told where it belongs."""

    number: int
    size_bytes: int = TIMER_UNIT_BYTES
    offset_count: int = TIMER_UNIT_BYTES
    max_timestamp_ms: int = -1

    def stamped(self, base_offset: int) -> TimerUnitEntry:
        """Return the unit at its place."""
        unit = TimerUnit(-1, 1, 1_700_000_000_000, 5000, self.number * 100, 100, self.number)
        checked = attrs.evolve(unit, reserved=checksum(base_offset, unit))
        return TimerUnitEntry(checked.encode(), base_offset)


def checksum(timer_offset: int, unit: TimerUnit) -> int:
    """Return a checksum of a unit and its place."""
    return zlib.crc32(attrs.evolve(unit, reserved=timer_offset).encode())


class WitnessedTimerLogFile(TimerLogFile):
    """A file that knows its units, and keeps aside what a recovery leaves."""

    keeps_remains_aside = True

    def is_genuine(self, timer_offset: int, data: bytes) -> bool:
        """Compare the checksum."""
        unit = TimerUnit.decode(data)
        return unit is not None and unit.reserved == checksum(timer_offset, unit)


class TestTimerLog(SegmentContract, RecoveryContract):
    """Units of the timer log keep the laws."""

    layout = TimerLogUnderTest()
