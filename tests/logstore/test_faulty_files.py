"""The operating system's files when they are told to fail: as the simulated disk does."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.os_host import SystemFileSystem
from logstore.testing import DiskFaults, FaultyFileSystem
from logstore.testing.faulty_files import FaultyFile


@pytest.fixture
def fs() -> FaultyFileSystem:
    """Return files with nothing planned."""
    return FaultyFileSystem()


@pytest.fixture
def file(fs: FaultyFileSystem, tmp_path: Path) -> FaultyFile:
    """Return a file of 2,000 bytes."""
    file = fs.open(str(tmp_path / "log"), create=True)
    file.write(0, b"a" * 2000)
    return file


def test_nothing_planned(fs: FaultyFileSystem, file: FaultyFile, tmp_path: Path) -> None:
    """All is as the operating system has it."""
    assert file.read(0, 3000) == b"a" * 2000
    file.sync()
    file.truncate(10)
    fs.make_directory(str(tmp_path / "d" / "e"))
    fs.rename(str(tmp_path / "log"), str(tmp_path / "d" / "log"))
    fs.sync_directory(str(tmp_path))
    assert [entry.name for entry in fs.list_directory(str(tmp_path / "d"))] == ["e", "log"]
    assert fs.exists(str(tmp_path / "d" / "log"))
    space = SystemFileSystem().volume_space(str(tmp_path))
    assert fs.volume_space(str(tmp_path)).total_bytes == space.total_bytes
    fs.remove(str(tmp_path / "d" / "log"))
    fs.remove_directory(str(tmp_path / "d"))
    assert list(tmp_path.iterdir()) == []


def test_a_write_tears(fs: FaultyFileSystem, file: FaultyFile) -> None:
    """It leaves the bytes that it was told to, and says which file it was."""
    fs.faults.fail_next("write", errno.EIO, path="*/log", partial_bytes=3)
    with pytest.raises(OSError, match="log") as caught:
        file.write(2000, b"bbbbbb")
    assert caught.value.errno == errno.EIO
    assert file.read(1999, 100) == b"abbb"
    file.write(2003, b"c")
    assert file.read(2000, 100) == b"bbbc"


@pytest.mark.parametrize("kind", ["read", "sync", "truncate"])
def test_what_else_a_file_does_fails(fs: FaultyFileSystem, file: FaultyFile, kind: str) -> None:
    """As often as planned."""
    works: dict[str, Callable[[], object]] = {
        "read": lambda: file.read_into(0, memoryview(bytearray(5))),
        "sync": file.sync,
        "truncate": lambda: file.truncate(2000),
    }
    work = works[kind]
    fs.faults.fail_next(kind, errno.EIO, count=2, after=1)  # type: ignore[arg-type] # one of them
    work()
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            work()
    work()


def test_planned_reads_are_not_read_past_us(fs: FaultyFileSystem, file: FaultyFile) -> None:
    """The kernel would send the file without asking."""
    assert file.fileno() is not None
    fs.faults.fail_next("read", errno.EIO)
    assert file.fileno() is None


def test_a_disk_fills_up(fs: FaultyFileSystem, file: FaultyFile, tmp_path: Path) -> None:
    """What still fits is written; overwriting needs no room; all files share it."""
    fs.faults.capacity_bytes = 100
    file.write(0, b"b" * 2000)
    file.write(2000, b"c" * 60)
    other = fs.open(str(tmp_path / "other"), create=True)
    with pytest.raises(OSError, match="No space left"):
        other.write(0, b"d" * 50)
    assert other.size() == 40
    assert fs.volume_space(str(tmp_path)).usable_bytes == 0
    fs.faults.clear()
    other.write(40, b"d" * 10)
    assert other.size() == 50


def test_a_disk_becomes_read_only(fs: FaultyFileSystem, file: FaultyFile, tmp_path: Path) -> None:
    """Every change is refused, reading is not."""
    directory = str(tmp_path / "d")
    fs.faults.is_read_only = True
    changes: list[Callable[[], object]] = [
        lambda: file.write(0, b"x"),
        lambda: file.truncate(0),
        lambda: fs.open(str(tmp_path / "new"), create=True),
        lambda: fs.make_directory(directory),
        lambda: fs.rename(file.path, directory),
        lambda: fs.remove(file.path),
        lambda: fs.remove_directory(str(tmp_path)),
    ]
    for change in changes:
        with pytest.raises(OSError, match="Read-only file system"):
            change()
    assert fs.open(file.path).read(0, 3) == b"aaa"


@pytest.mark.parametrize("kind", ["open", "list_directory", "lock", "volume_space"])
def test_what_else_a_disk_does_fails(fs: FaultyFileSystem, file: FaultyFile, kind: str) -> None:
    """And is well afterwards."""
    directory = str(Path(file.path).parent)
    works: dict[str, Callable[[], object]] = {
        "open": lambda: fs.open(file.path).close(),
        "list_directory": lambda: fs.list_directory(directory),
        "lock": lambda: fs.lock(f"{directory}/.lock").release(),
        "volume_space": lambda: fs.volume_space(directory),
    }
    work = works[kind]
    fs.faults.fail_next(kind, errno.EIO)  # type: ignore[arg-type] # one of them
    with pytest.raises(OSError, match="Input/output error"):
        work()
    work()


def test_a_write_is_lost(fs: FaultyFileSystem, file: FaultyFile) -> None:
    """It leaves what was there, and zeros past the end."""
    fs.faults.lose_next_write()
    file.write(1900, b"b" * 200)
    assert file.read(0, 3000) == b"a" * 2000 + bytes(100)


def test_a_write_lands_elsewhere(fs: FaultyFileSystem, file: FaultyFile, tmp_path: Path) -> None:
    """In the same file or in another one, which does not grow by it."""
    fs.faults.misdirect_next(shift_bytes=-1500)
    file.write(2000, b"b" * 100)
    assert file.read(0, 3000) == b"a" * 500 + b"b" * 100 + b"a" * 1400 + bytes(100)
    other = tmp_path / "other"
    other.write_bytes(b"o" * 50)
    fs.faults.misdirect_next(path="*/log", target=str(other))
    file.write(40, b"c" * 100)
    assert other.read_bytes() == b"o" * 40 + b"c" * 10
    assert file.read(40, 100) == b"a" * 100


def test_faults_may_be_shared() -> None:
    """One plan for many."""
    faults = DiskFaults()
    assert FaultyFileSystem(faults).faults is FaultyFileSystem(faults).faults is faults
