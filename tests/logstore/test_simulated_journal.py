"""The recording of the simulated disk, and the order laws asked of it."""

from __future__ import annotations

import errno

import pytest

from logstore.host import write_file
from logstore.testing import SimulatedHost


@pytest.fixture
def host() -> SimulatedHost:
    """A host with nothing on it."""
    return SimulatedHost()


def test_everything_that_changes_the_disk_is_recorded(host: SimulatedHost) -> None:
    """Each operation stands in the journal with its path, position and size, in order."""
    fs = host.fs
    fs.make_directory("/x/y")
    file = fs.open("/x/a", create=True)
    file.write(5, b"abc")
    file.truncate(4)
    file.sync()
    fs.rename("/x/a", "/x/b")
    fs.sync_directory("/x")
    fs.open("/x/b", writable=False).read(0, 1)
    fs.remove("/x/b")
    fs.lock("/.lock")
    fs.remove_directory("/x")
    host.power_loss()
    assert str(fs.journal).splitlines() == [
        "0: make_directory /x",
        "1: make_directory /x/y",
        "2: create /x/a",
        "3: write /x/a [5, 8)",
        "4: truncate /x/a to 4",
        "5: sync /x/a",
        "6: rename /x/a to /x/b",
        "7: sync_directory /x",
        "8: open /x/b",
        "9: remove /x/b",
        "10: create /.lock",
        "11: lock /.lock",
        "12: remove_directory /x/y",
        "13: remove_directory /x",
        "14: power_loss ",
    ]


def test_what_failed_is_not_recorded(host: SimulatedHost) -> None:
    """An operation that raised did not happen (but for the part that a write left behind)."""
    file = host.fs.open("/a", create=True)
    host.fs.faults.fail_next("sync", errno.EIO)
    host.fs.faults.fail_next("truncate", errno.EIO)
    host.fs.faults.is_read_only = True
    for call in (file.sync, lambda: file.truncate(3), lambda: file.write(0, b"x")):
        with pytest.raises(OSError, match="Errno"):
            call()
    assert [operation.kind for operation in host.fs.journal] == ["create"]


def test_the_recording_can_be_turned_off(host: SimulatedHost) -> None:
    """With is_recording off nothing is kept but notes."""
    host.fs.journal.is_recording = False
    host.fs.open("/a", create=True).write(0, b"x")
    host.fs.journal.note("flushed", 3)
    assert [operation.kind for operation in host.fs.journal] == ["note"]


def test_notes_come_back_in_order(host: SimulatedHost) -> None:
    """What a workload noted is read back by name, also after a power loss and in a fork."""
    host.fs.journal.note("flushed", 3)
    host.fs.journal.note("started")
    host.fs.journal.note("flushed", 7)
    host.power_loss()
    assert host.fork().fs.journal.notes("flushed", int) == [3, 7]
    assert host.fs.journal.notes("started") == [None]
    with pytest.raises(AssertionError):
        host.fs.journal.notes("started", int)


def test_matching_takes_patterns(host: SimulatedHost) -> None:
    """A star crosses directories; a kind narrows further."""
    host.fs.make_directory("/x")
    for path in ("/x/0.log", "/x/0.index", "/1.log"):
        host.fs.open(path, create=True).write(0, b"x")
    journal = host.fs.journal
    assert [o.path for o in journal.matching("write", "*.log")] == ["/x/0.log", "/1.log"]
    assert [o.kind for o in journal.matching(path="/x/0.index")] == ["create", "write"]
    assert len(journal.matching("write")) == 3


def test_a_rename_without_a_sync_is_found(host: SimulatedHost) -> None:
    """renames_of_unsynced lists the replacements that a power loss can leave empty."""
    write_file(host.fs, "/good", b"data")
    assert host.fs.journal.renames_of_unsynced() == []
    write_file(host.fs, "/bad", b"data", sync=False)
    assert [o.target for o in host.fs.journal.renames_of_unsynced()] == ["/bad"]


def test_a_sync_covers_what_came_before_it(host: SimulatedHost) -> None:
    """unsynced_at sees the writes after the last sync, through another name and handle too."""
    host.fs.open("/a", create=True).write(0, b"1")
    host.fs.open("/a").sync()
    file = host.fs.open("/a")
    host.fs.rename("/a", "/b")
    file.write(1, b"2")
    journal = host.fs.journal
    number = journal.matching("create")[0].file
    assert [o.position for o in journal.unsynced_at(len(journal), number)] == [1]
    host.fs.open("/b").sync()
    assert journal.unsynced_at(len(journal), number) == []


def test_directories_with_unsynced_names_are_found(host: SimulatedHost) -> None:
    """unsynced_directories lists where names changed after the last sync."""
    host.fs.make_directory("/x")
    host.fs.make_directory("/y")
    host.fs.open("/x/a", create=True)
    assert host.fs.journal.unsynced_directories() == ["/", "/x"]
    for path in ("/", "/x"):
        host.fs.sync_directory(path)
    assert host.fs.journal.unsynced_directories() == []
    host.fs.rename("/x/a", "/y/a")
    assert host.fs.journal.unsynced_directories() == ["/x", "/y"]


def test_data_before_index(host: SimulatedHost) -> None:
    """Index writes are found that had no data write since the index write before."""
    log = host.fs.open("/0.log", create=True)
    index = host.fs.open("/0.index", create=True)
    log.write(0, b"1")
    index.write(0, b"1")
    journal = host.fs.journal
    assert journal.unpreceded("write", "*.index", by_kind="write", by_path="*.log") == []
    index.write(1, b"2")
    log.write(1, b"2")
    broken = journal.unpreceded("write", "*.index", by_kind="write", by_path="*.log")
    assert [o.position for o in broken] == [1]
