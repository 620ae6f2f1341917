"""Where a disk refuses at an awkward moment; the laws of it are in the contracts."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from logstore.errors import WriteFailedError
from logstore.flat_segment_files import FlatSegmentFiles
from logstore.retention import RetentionPolicy
from logstore.segmented_log import SegmentedLog
from logstore.testing import SimulatedHost
from tests.contract.fixed_units import UNIT_BYTES, Unit, UnitSegment

UnitLog = SegmentedLog[Unit, UnitSegment]


class Meanwhile(FlatSegmentFiles[UnitSegment]):
    """Files whose creation gives others time to do something."""

    meanwhile: Callable[[], None] | None = None

    def create(self, base_offset: int) -> UnitSegment:
        """Create, and let the others go on."""
        segment = super().create(base_offset)
        if self.meanwhile is not None:
            self.meanwhile()
        return segment


@pytest.fixture
def host() -> SimulatedHost:
    """Return a world with an empty directory ``/log``."""
    host = SimulatedHost()
    host.fs.make_directory("/log")
    host.fs.sync_directory("/")
    return host


def filled(host: SimulatedHost, count: int) -> UnitLog:
    """Return a log of so many units, ten to a segment."""
    log: UnitLog = SegmentedLog(Meanwhile(host.fs, "/log", UnitSegment, is_clean=True))
    append(log, count)
    return log


def append(log: UnitLog, count: int = 1) -> None:
    """Append so many units."""
    for _ in range(count):
        draft = Unit(b"unit %7d" % log.next_offset)
        log.append(draft.stamped(log.reserve(draft)))


def test_a_flush_that_fails_while_the_log_rolls_is_noticed(host: SimulatedHost) -> None:
    """The segment that becomes active in this moment refuses as well."""
    log = filled(host, 10)
    task = log.begin_flush()
    host.fs.faults.fail_next_sync(errno.EIO, path=log.active.path)
    files = log.family
    assert isinstance(files, Meanwhile)

    def fail() -> None:
        with pytest.raises(OSError, match="EIO"):
            task.run()

    files.meanwhile = fail
    with pytest.raises(WriteFailedError, match="a sync failed"):
        append(log)
    assert (len(log.segments), log.next_offset) == (2, 10)
    with pytest.raises(WriteFailedError, match="a sync failed"):
        append(log)


def test_a_flush_over_remains_that_cannot_be_cut_off_fails_where_it_runs(
    host: SimulatedHost,
) -> None:
    """Whoever begins one need not handle errors; with a disk that works again, it works."""
    log = filled(host, 3)
    path = log.active.path
    host.fs.faults.fail_next("write", errno.ENOSPC, path=path, partial_bytes=5)
    host.fs.faults.fail_next("truncate", errno.EIO, path=path, count=2)
    with pytest.raises(WriteFailedError, match="nothing was appended"):
        append(log)

    task = log.begin_flush()
    with pytest.raises(WriteFailedError, match="cannot be cut off"):
        task.run()
    assert (log.recovery_point, log.refusal) == (0, None)

    log.flush()
    assert (log.recovery_point, host.fs.open(path).size()) == (3, 3 * UNIT_BYTES)
    append(log)


@pytest.mark.parametrize("kind", ["truncate", "sync"])
def test_a_segment_whose_cut_failed_refuses(host: SimulatedHost, kind: str) -> None:
    """Also without a log around it; it ends where the file does."""
    segment = filled(host, 5).active
    host.fs.faults.fail_next("sync" if kind == "sync" else "truncate", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        segment.truncate(2)

    end = 2 if kind == "sync" else 5
    assert [entry.base_offset for entry in segment.entries()] == list(range(end))
    assert (segment.next_offset, segment.end_position) == (end, end * UNIT_BYTES)
    for call in (lambda: segment.append(Unit(bytes(12), end)), segment.flush, segment.settle):
        with pytest.raises(WriteFailedError, match="open"):
            call()


def test_a_retention_that_rolls_is_none_for_a_log_that_refuses(host: SimulatedHost) -> None:
    """It keeps all that it has: others may be retained in the same round."""
    log = filled(host, 25)
    log.refuse("the disk is on fire; open the log elsewhere")
    assert log.retain(RetentionPolicy(retention_bytes=0), 0, 0) == []
    assert list(log.segments) == [0, 10, 20]
    with pytest.raises(WriteFailedError, match="on fire"):
        log.roll()


def test_the_first_reason_stays(host: SimulatedHost) -> None:
    """What follows from a failure says nothing about its cause."""
    log = filled(host, 5)
    log.refuse("first")
    log.refuse("second")
    assert (log.refusal, log.active.refusal) == ("first", "first")


def test_an_empty_segment_that_cannot_be_removed_does_no_harm(host: SimulatedHost) -> None:
    """A roll over a hole leaves it behind then; the log goes on in the new one."""

    class Holey(UnitSegment):
        """Units with holes between them."""

        may_skip_offsets = True

    log: SegmentedLog[Unit, Holey] = SegmentedLog(
        FlatSegmentFiles(host.fs, "/log", Holey, is_clean=True)
    )
    host.fs.faults.fail_next("remove", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        log.roll(7)
    assert list(log.segments) == [0, 7]
    draft = Unit(bytes(12))
    assert log.append(draft.stamped(log.reserve(draft))) == 0
    log.flush()
    again: SegmentedLog[Unit, Holey] = SegmentedLog(
        FlatSegmentFiles(host.fs, "/log", Holey, is_clean=True)
    )
    assert [entry.base_offset for entry in again.entries()] == [7]
