"""Planned faults and damage of the simulated disk."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import get_args

import pytest

from logstore.host import File, VolumeSpace, read_file
from logstore.testing import KEEP_EVERYTHING, LOSE_UNSYNCED, SimulatedHost
from logstore.testing.disk_faults import FaultKind


@pytest.fixture
def host() -> SimulatedHost:
    """A host with a durable file /log of 2000 bytes `a`."""
    host = SimulatedHost()
    file = host.fs.open("/log", create=True)
    file.write(0, b"a" * 2000)
    file.sync()
    host.fs.sync_directory("/")
    return host


@pytest.fixture
def file(host: SimulatedHost) -> File:
    """An open handle on /log."""
    return host.fs.open("/log")


def content(host: SimulatedHost) -> bytes:
    """Return what /log holds now."""
    return read_file(host.fs, "/log")


def test_every_kind_of_operation_can_fail(host: SimulatedHost, file: File) -> None:
    """Each kind raises the planned error once, changes nothing, and works afterwards."""
    fs = host.fs
    fs.make_directory("/full/inner")
    fs.open("/spare", create=True)
    calls: dict[FaultKind, Callable[[], object]] = {
        "open": lambda: fs.open("/new", create=True),
        "read": lambda: file.read(0, 1),
        "write": lambda: file.write(0, b"b"),
        "truncate": lambda: file.truncate(3000),
        "sync": lambda: file.sync(),
        "rename": lambda: fs.rename("/spare", "/renamed"),
        "remove": lambda: fs.remove("/renamed"),
        "make_directory": lambda: fs.make_directory("/made"),
        "remove_directory": lambda: fs.remove_directory("/full"),
        "sync_directory": lambda: fs.sync_directory("/"),
        "list_directory": lambda: fs.list_directory("/"),
        "volume_space": lambda: fs.volume_space("/log"),
        "lock": lambda: fs.lock("/.lock"),
    }
    assert sorted(calls) == sorted(get_args(FaultKind))
    for kind, call in calls.items():
        before = [(e.name, e.size_bytes) for e in fs.list_directory("/")], content(host)
        fs.faults.fail_next(kind, errno.EIO)
        with pytest.raises(OSError, match="Errno 5"):
            call()
        assert ([(e.name, e.size_bytes) for e in fs.list_directory("/")], content(host)) == before
        call()


def test_a_fault_waits_and_repeats(host: SimulatedHost, file: File) -> None:
    """`after` lets operations pass, `count` says how many fail; others are not touched."""
    host.fs.faults.fail_next("write", errno.EIO, path="*.log", count=None)
    host.fs.faults.fail_next("write", errno.ENOSPC, path="/log", after=2, count=2)
    outcomes: list[int | None] = []
    for _ in range(6):
        try:
            file.write(0, b"b")
            outcomes.append(None)
        except OSError as error:
            outcomes.append(error.errno)
    assert outcomes == [None, None, errno.ENOSPC, errno.ENOSPC, None, None]
    other = host.fs.open("/other.log", create=True)
    for _ in range(3):
        with pytest.raises(OSError, match="Errno 5"):
            other.write(0, b"b")
    host.fs.faults.clear()
    other.write(0, b"b")


def test_a_failed_write_may_leave_a_part(host: SimulatedHost, file: File) -> None:
    """`partial_bytes` of a failing write are in the file, and in the journal."""
    host.fs.faults.fail_next("write", errno.EIO, partial_bytes=3)
    with pytest.raises(OSError, match="Errno 5"):
        file.write(1999, b"bbbbbb")
    assert content(host) == b"a" * 1999 + b"bbb"
    assert host.fs.journal.matching("write")[-1].size_bytes == 3


def test_a_full_disk_takes_what_fits(host: SimulatedHost, file: File) -> None:
    """ENOSPC comes after the bytes that still fitted; overwriting needs no room."""
    host.fs.fill_up(free_bytes=100)
    with pytest.raises(OSError, match="Errno 28"):
        file.write(1990, b"b" * 150)
    assert content(host) == b"a" * 1990 + b"b" * 110
    with pytest.raises(OSError, match="Errno 28"):
        file.write(2100, b"c")
    file.write(0, b"c" * 100)
    file.truncate(2000)
    file.write(2000, b"d" * 100)
    assert host.fs.free_bytes == 0
    assert content(host)[2000:] == b"d" * 100


def test_a_volume_is_as_large_as_its_capacity(host: SimulatedHost, file: File) -> None:
    """Its space is what may be stored at all; what the files take is missing from the rest."""
    host.fs.fill_up(free_bytes=100)
    assert host.fs.volume_space("/log") == VolumeSpace(2100, 100)
    file.write(2000, b"b" * 60)
    assert host.fs.volume_space("/") == VolumeSpace(2100, 40)
    host.fs.faults.capacity_bytes = 1000
    assert host.fs.volume_space("/") == VolumeSpace(1000, 0)
    host.fs.faults.clear()
    assert host.fs.volume_space("/") == VolumeSpace(1 << 50, (1 << 50) - 2060)


def test_holes_need_no_room(host: SimulatedHost, file: File) -> None:
    """Extending a file works on a full disk; filling the hole does not."""
    host.fs.fill_up()
    file.truncate(1 << 20)
    with pytest.raises(OSError, match="Errno 28"):
        file.write(70_000, b"b")


def test_removing_makes_room(host: SimulatedHost) -> None:
    """The bytes of a removed file can be used again."""
    host.fs.fill_up()
    other = host.fs.open("/other", create=True)
    with pytest.raises(OSError, match="Errno 28"):
        other.write(0, b"b")
    host.fs.remove("/log")
    other.write(0, b"b" * 2000)


def test_a_read_only_disk_can_only_be_read(host: SimulatedHost, file: File) -> None:
    """Every change is EROFS; reads, listings and syncs work."""
    host.fs.faults.is_read_only = True
    changes = (
        lambda: file.write(0, b"b"),
        lambda: file.truncate(0),
        lambda: host.fs.open("/new", create=True),
        lambda: host.fs.rename("/log", "/new"),
        lambda: host.fs.remove("/log"),
        lambda: host.fs.make_directory("/new"),
    )
    for change in changes:
        with pytest.raises(OSError, match="Errno 30"):
            change()
    assert content(host) == b"a" * 2000
    file.sync()
    assert [entry.name for entry in host.fs.list_directory("/")] == ["log"]


def test_a_lying_disk_syncs_nothing(host: SimulatedHost, file: File) -> None:
    """Syncs return, and the power loss takes what they promised."""
    host.fs.faults.sync_lies = True
    file.write(0, b"b")
    file.sync()
    host.fs.open("/new", create=True)
    host.fs.sync_directory("/")
    host.power_loss(LOSE_UNSYNCED)
    assert content(host) == b"a" * 2000
    assert not host.fs.exists("/new")


def test_a_failed_sync_may_keep_the_pages_dirty(host: SimulatedHost, file: File) -> None:
    """Without drops_unsynced a second sync saves what the first one could not."""
    file.write(0, b"b")
    host.fs.faults.fail_next_sync(errno.EIO, drops_unsynced=False)
    with pytest.raises(OSError, match="Errno 5"):
        file.sync()
    file.sync()
    host.power_loss(LOSE_UNSYNCED)
    assert content(host)[:1] == b"b"


def test_a_failed_sync_may_drop_the_pages(host: SimulatedHost, file: File) -> None:
    """The bytes can be read, the next sync succeeds, and the bytes are gone all the same."""
    file.write(1000, b"b" * 2000)
    host.fs.faults.fail_next_sync(errno.EIO)
    with pytest.raises(OSError, match="Errno 5"):
        file.sync()
    assert content(host) == b"a" * 1000 + b"b" * 2000
    file.sync()
    assert host.fs.unsynced_paths() == ["/log"]
    host.power_loss(KEEP_EVERYTHING)
    assert content(host) == b"a" * 2000


def test_a_dropped_page_is_saved_by_a_later_write(host: SimulatedHost, file: File) -> None:
    """Writing into a sector again makes its page dirty again, and saves the whole sector."""
    file.write(0, b"b" * 1536)
    host.fs.faults.fail_next_sync(errno.EIO)
    with pytest.raises(OSError, match="Errno 5"):
        file.sync()
    file.write(600, b"c")
    unsynced = host.fork()
    file.sync()
    host.power_loss(LOSE_UNSYNCED)
    second = b"b" * 88 + b"c" + b"b" * 423
    assert content(host) == b"a" * 512 + second + b"a" * 976
    unsynced.power_loss(LOSE_UNSYNCED)
    assert content(unsynced) == b"a" * 2000


def test_what_was_dropped_twice_was_never_saved(host: SimulatedHost, file: File) -> None:
    """Two failed syncs of one sector leave on the medium what was there before the first."""
    for data in (b"b", b"c"):
        file.write(0, data * 100)
        host.fs.faults.fail_next_sync(errno.EIO)
        with pytest.raises(OSError, match="Errno 5"):
            file.sync()
    file.sync()
    host.power_loss(KEEP_EVERYTHING)
    assert content(host) == b"a" * 2000


def test_writing_everything_again_saves_everything(host: SimulatedHost, file: File) -> None:
    """After a failed sync, writing the same bytes once more and syncing makes them durable."""
    file.write(1000, b"b" * 2000)
    host.fs.faults.fail_next_sync(errno.EIO)
    with pytest.raises(OSError, match="Errno 5"):
        file.sync()
    for position in range(1000, 3000, 400):
        fork = host.fork()
        fork.power_loss(LOSE_UNSYNCED)
        assert len(content(fork)) == max(2000, position)
        assert content(fork)[1000:position] == b"b" * (position - 1000)
        file.write(position, file.read(position, 400))
        file.sync()
    assert host.fs.unsynced_paths() == []
    host.power_loss(LOSE_UNSYNCED)
    assert content(host) == b"a" * 1000 + b"b" * 2000


def test_a_bit_flips(host: SimulatedHost) -> None:
    """One bit of one byte differs, also after a power loss; flipping it again repairs it."""
    host.fs.flip("/log", 700, bit=1)
    host.power_loss(LOSE_UNSYNCED)
    assert content(host) == b"a" * 700 + b"c" + b"a" * 1299
    host.fs.flip("/log", 700, bit=1)
    assert content(host) == b"a" * 2000


def test_a_flip_needs_a_byte(host: SimulatedHost) -> None:
    """A flip past the end is a mistake of the test."""
    with pytest.raises(AssertionError, match="no byte at 2000"):
        host.fs.flip("/log", 2000)


def test_a_write_lands_further_on(host: SimulatedHost, file: File) -> None:
    """A misdirected append grows the file with zeros and puts its bytes elsewhere."""
    host.fs.faults.misdirect_next(shift_bytes=-1500)
    file.write(2000, b"b" * 100)
    assert content(host) == b"a" * 500 + b"b" * 100 + b"a" * 1400 + bytes(100)
    file.write(2000, b"c" * 100)
    assert content(host)[2000:] == b"c" * 100


def test_a_write_lands_in_another_file(host: SimulatedHost, file: File) -> None:
    """A misdirected overwrite leaves its place as it was and damages the other file."""
    other = host.fs.open("/other", create=True)
    other.write(0, b"o" * 50)
    host.fs.faults.misdirect_next(path="/log", target="/other")
    file.write(40, b"b" * 100)
    assert content(host) == b"a" * 2000
    assert read_file(host.fs, "/other") == b"o" * 40 + b"b" * 10


def test_a_write_is_lost(host: SimulatedHost, file: File) -> None:
    """An acknowledged write that never happens leaves what was there, and zeros past the end."""
    host.fs.faults.lose_next_write()
    file.write(1900, b"b" * 200)
    file.sync()
    assert content(host) == b"a" * 2000 + bytes(100)
