"""The files of a log with one file per segment."""

from __future__ import annotations

import pytest

from logstore.errors import CorruptEntryError, MissingSegmentError
from logstore.flat_segment_files import FlatSegmentFiles
from logstore.host import read_file, write_file
from logstore.segmented_log import SegmentedLog
from logstore.testing import SimulatedHost
from tests.contract.fixed_units import UNIT_BYTES, Unit, UnitSegment

UnitLog = SegmentedLog[Unit, UnitSegment]


@pytest.fixture
def host() -> SimulatedHost:
    """Return a world with an empty directory ``/log``."""
    host = SimulatedHost()
    host.fs.make_directory("/log")
    host.fs.sync_directory("/")
    return host


def files_of(
    host: SimulatedHost, *, is_clean: bool = True, is_writable: bool = True
) -> FlatSegmentFiles[UnitSegment]:
    """Return the family of the log in ``/log``."""
    return FlatSegmentFiles(
        host.fs, "/log", UnitSegment, is_clean=is_clean, is_writable=is_writable
    )


def names_in(host: SimulatedHost) -> list[str]:
    """Return the names in ``/log``."""
    return [entry.name for entry in host.fs.list_directory("/log")]


def filled(host: SimulatedHost, count: int = 25) -> UnitLog:
    """Return a log of so many units, ten to a segment."""
    log: UnitLog = SegmentedLog(files_of(host))
    for number in range(count):
        log.append(Unit(b"unit %7d" % number).stamped(log.reserve(Unit(bytes(12)))))
    return log


def test_files_are_named_after_base_offsets(host: SimulatedHost) -> None:
    """20 digits and the extension, so that names sort as offsets do."""
    files = FlatSegmentFiles(host.fs, "/log", UnitSegment, is_clean=True, extension=".units")

    for base_offset in (2**63 - 1, 0, 10):
        assert files.create(base_offset).path == files.path(base_offset)

    assert names_in(host) == [
        "00000000000000000000.units",
        "00000000000000000010.units",
        "09223372036854775807.units",
    ]


def test_other_names_are_left_alone(host: SimulatedHost) -> None:
    """Only 20 ASCII digits with the extension are a segment; directories never are."""
    names = [
        "00000000000000000005.log.cut-at-16",
        "00000000000000000005.index",
        "00000000000000000005",
        "0000000000000000005.log",
        "000000000000000000005.log",
        "0000000000000000000\u0665.log",
        "+0000000000000000005.log",
        "recovery-point",
    ]
    for name in names:
        write_file(host.fs, f"/log/{name}", b"not ours")
    host.fs.make_directory("/log/00000000000000000006.log")

    files = files_of(host)
    assert files.base_offsets() == []
    files.remove(files.create(0))

    assert names_in(host) == sorted([*names, "00000000000000000006.log"])


def test_base_offsets_follow_what_is_created_and_removed(host: SimulatedHost) -> None:
    """They are those of the files on disk, in order, each once."""
    files = files_of(host)
    made = [files.create(base_offset) for base_offset in (10, 0, 20, 10)]
    assert files.base_offsets() == files_of(host).base_offsets() == [0, 10, 20]

    files.remove(made[0])
    assert files.base_offsets() == files_of(host).base_offsets() == [0, 20]


def test_a_leftover_file_is_emptied_for_good(host: SimulatedHost) -> None:
    """What an earlier segment of that name held does not come back behind new entries."""
    path = files_of(host).path(0)
    write_file(host.fs, path, b"old entries")

    files_of(host).create(0)
    host.power_loss()

    assert read_file(host.fs, path) == b""


def test_a_log_comes_back_from_its_files(host: SimulatedHost) -> None:
    """After a clean stop every segment ends where it ended, and all of it counts as durable."""
    expected = [entry.data for entry in filled(host).entries()]

    log: UnitLog = SegmentedLog(files_of(host))

    assert [entry.data for entry in log.entries()] == expected
    spans = [(segment.base_offset, segment.next_offset) for segment in log.segments.values()]
    assert spans == [(0, 10), (10, 20), (20, 25)]
    assert log.recovery_point == log.next_offset == 25


def test_the_position_of_every_entry_is_observed_once(host: SimulatedHost) -> None:
    """Opening shows each entry of the segment to `observe`, in order, with its position."""
    filled(host)
    seen: list[tuple[int, int]] = []

    class Watching(UnitSegment):
        """A segment that notes what it is shown."""

        def observe(self, entry: Unit, position: int) -> None:
            """Note it."""
            seen.append((entry.base_offset, position))

    files = FlatSegmentFiles(host.fs, "/log", Watching, is_clean=True)
    files.open(10, is_active=False)

    assert seen == [(10 + n, n * UNIT_BYTES) for n in range(10)]


def test_a_bad_entry_after_a_clean_stop_is_an_error(host: SimulatedHost) -> None:
    """Nobody would look for it later: the log is not opened."""
    path = filled(host).active.path
    host.fs.flip(path, UNIT_BYTES)

    with pytest.raises(CorruptEntryError, match="position 16"):
        SegmentedLog(files_of(host))


def test_an_entry_out_of_order_after_a_clean_stop_is_an_error(host: SimulatedHost) -> None:
    """A whole, valid entry that belongs elsewhere is not believed either."""

    class Trusting(UnitSegment):
        """Units that bear their offset in the first eight bytes, and no checksum."""

        def decode(self, position: int) -> Unit | None:
            """Return the unit with the offset that it bears."""
            data = self.file.read(position, UNIT_BYTES)
            return Unit(data[:12], int.from_bytes(data[:8], "big")) if data else None

    units = b"".join(offset.to_bytes(16, "big")[8:] + bytes(8) for offset in (0, 1, 1))
    write_file(host.fs, "/log/00000000000000000000.log", units)

    with pytest.raises(CorruptEntryError, match="position 32: offset 1, not 2"):
        FlatSegmentFiles(host.fs, "/log", Trusting, is_clean=True).open(0, is_active=True)


def test_a_bad_entry_after_an_unclean_stop_is_left_to_the_recovery(host: SimulatedHost) -> None:
    """The active segment ends before it until then; a sealed one ends where the next starts."""
    filled(host)
    files = files_of(host, is_clean=False)
    for base_offset in (0, 20):
        host.fs.flip(files.path(base_offset), 2 * UNIT_BYTES)

    sealed = files.open(0, is_active=False)
    active = files.open(20, is_active=True)

    assert (sealed.next_offset, sealed.end_position) == (10, 10 * UNIT_BYTES)
    assert (active.next_offset, active.end_position) == (22, 2 * UNIT_BYTES)


def test_reading_changes_nothing(host: SimulatedHost) -> None:
    """A log that is only read is opened to its last whole entry, with no write and no sync."""
    log = filled(host)
    log.active.file.write(log.active.end_position, b"half a un")
    before = host.fs.operation_count

    reader: UnitLog = SegmentedLog(files_of(host, is_writable=False))

    assert (reader.next_offset, reader.size_bytes) == (25, 25 * UNIT_BYTES)
    assert host.fs.operation_count == before
    with pytest.raises(OSError, match="EBADF"):
        reader.active.file.write(0, b"x")


def test_there_must_be_something_to_read(host: SimulatedHost) -> None:
    """A log that is only read is not created."""
    with pytest.raises(MissingSegmentError, match="the log is only read"):
        SegmentedLog(files_of(host, is_writable=False))

    assert names_in(host) == []


def test_a_reader_keeps_a_removed_file(host: SimulatedHost) -> None:
    """Bytes that are on their way to someone are read to the end, although the name is gone."""
    log = filled(host)
    extent = log.read(0, 10 * UNIT_BYTES)
    expected = extent.read()

    log.family.remove(log.segments[0])

    assert extent.read() == expected
    assert names_in(host) == ["00000000000000000010.log", "00000000000000000020.log"]
