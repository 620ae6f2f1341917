"""Two layouts of a few dozen lines each keep the laws of a log."""

from __future__ import annotations

from logstore.host import Host
from logstore.segmented_log import SegmentedLog
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.witnessed_log import AnyLog, LogUnderTest
from tests.contract.fixed_units import UnitSegment, unit
from tests.contract.paragraphs import ParagraphSegment, paragraph
from tests.contract.plain_log import PlainDraft, PlainFiles


class FixedUnits(LogUnderTest):
    """Positions by multiplication."""

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        is_clean = recovery_point is None
        files = PlainFiles(host.fs, directory, UnitSegment, is_clean=is_clean)
        return SegmentedLog(files, recovery_point)

    def draft(self, number: int) -> PlainDraft:
        """Return a unit that bears its number."""
        return unit(f"unit {number:7}".encode())


class Paragraphs(LogUnderTest):
    """Positions from an index in memory, entries of several offsets."""

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""
        is_clean = recovery_point is None
        files = PlainFiles(host.fs, directory, ParagraphSegment, is_clean=is_clean)
        return SegmentedLog(files, recovery_point)

    def draft(self, number: int) -> PlainDraft:
        """Return one to three lines."""
        return paragraph(b"".join(b"%d.%d\n" % (number, n) for n in range(number % 3 + 1)))


class TestFixedUnits(SegmentContract, RecoveryContract):
    """Fixed-size units keep the laws."""

    layout = FixedUnits()


class TestParagraphs(SegmentContract, RecoveryContract):
    """Entries of any size that cover several offsets keep the laws."""

    layout = Paragraphs()
