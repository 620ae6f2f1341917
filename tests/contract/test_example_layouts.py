"""Two layouts of a few dozen lines each keep the laws of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.flat_segment_files import FlatSegmentFiles
from logstore.host import Host
from logstore.segmented_log import SegmentedLog
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.witnessed_log import AnyLog, LogUnderTest
from tests.contract.fixed_units import Unit, UnitSegment
from tests.contract.prefixed_lines import Lines, LineSegment


class FixedUnits(LogUnderTest):
    """Positions by multiplication."""

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        is_clean = recovery_point is None
        files = FlatSegmentFiles(host.fs, directory, UnitSegment, is_clean=is_clean)
        return SegmentedLog(files, recovery_point)

    def draft(self, number: int) -> Unit:
        """Return a unit that bears its number."""
        return Unit(b"unit %7d" % number)


class PrefixedLines(LogUnderTest):
    """Positions from an index in memory, entries of several offsets."""

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        is_clean = recovery_point is None
        files = FlatSegmentFiles(host.fs, directory, LineSegment, is_clean=is_clean)
        return SegmentedLog(files, recovery_point)

    def draft(self, number: int) -> Lines:
        """Return one to three lines."""
        return Lines(b"".join(b"%d.%d\n" % (number, n) for n in range(number % 3 + 1)))


class TestFixedUnits(SegmentContract, RecoveryContract):
    """Fixed-size units keep the laws."""

    layout = FixedUnits()


class TestPrefixedLines(SegmentContract, RecoveryContract):
    """Entries of any size that cover several offsets keep the laws."""

    layout = PrefixedLines()


@pytest.mark.parametrize("name", ["fixed_units", "prefixed_lines"])
def test_a_layout_is_short(name: str) -> None:
    """That a whole layout fits on a page is the proof that the interface is one."""
    lines = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8").splitlines()

    assert len(lines) < 60
    assert [line for line in lines if "import" in line and "tests." in line] == []
