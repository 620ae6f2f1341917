"""What only the real host has: the machine's clocks and volumes, and locks between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore import os_host
from logstore.os_host import SystemClock, SystemFile, SystemFileSystem, system_host
from logstore.passing_files import PassingFileSystem


def test_the_system_clocks_run_in_milliseconds() -> None:
    """The real clocks agree with Python's, in ms."""
    assert abs(SystemClock().wall_ms() - time.time() * 1000) < 5_000
    assert abs(SystemClock().monotonic_ms() - time.monotonic() * 1000) < 5_000


def other_process_locks(path: str) -> bool:
    """Tell whether another process gets the lock on `path`."""
    code = f"import fcntl; fcntl.lockf(open({path!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0 or "BlockingIOError" in run.stderr, run.stderr
    return run.returncode == 0


def test_a_system_volume_is_that_of_df(tmp_path: Path) -> None:
    """Total, used and usable bytes are the numbers that people are shown."""
    done = subprocess.run(
        ["df", "--block-size=1", "--output=size,avail,used", str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    total_bytes, usable_bytes, used_bytes = map(int, done.stdout.splitlines()[1].split())
    space = system_host().fs.volume_space(str(tmp_path))
    assert space.total_bytes == total_bytes
    assert abs(space.usable_bytes - usable_bytes) < total_bytes // 10  # others write meanwhile
    used = space.total_bytes - space.usable_bytes - space.reserved_bytes
    assert abs(used - used_bytes) < total_bytes // 10


def test_a_system_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    """Another process cannot lock byte 0, as RocketMQ does, until the lock is released."""
    fs = system_host().fs
    path = str(tmp_path / "lock")
    lock = fs.lock(path)
    assert not other_process_locks(path)
    with pytest.raises(BlockingIOError):
        fs.lock(path)
    assert not other_process_locks(path), "a second try of our own dropped the lock"
    lock.release()
    assert other_process_locks(path)


def test_a_file_whose_lock_this_process_holds_is_not_opened(tmp_path: Path) -> None:
    """Closing any descriptor of it would give the lock up: under no name is it opened meanwhile."""
    fs = system_host().fs
    path = tmp_path / "lock"
    path.write_bytes(b"lock")
    (tmp_path / "other-name").hardlink_to(path)
    (tmp_path / "link").symlink_to(path)
    lock = fs.lock(str(path))
    for name in ("lock", "other-name", "link"):
        with pytest.raises(BlockingIOError, match="would lose it"):
            fs.open(str(tmp_path / name), writable=False)
        with pytest.raises(BlockingIOError):
            fs.lock(str(tmp_path / name))
    script = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert b"BlockingIOError" in asked.stderr
    lock.release()
    fs.open(str(path), writable=False).close()


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (None, ["full sync"]),
        (errno.ENOTSUP, ["full sync", "fsync"]),
        (errno.EIO, ["full sync"]),
    ],
)
def test_a_sync_reaches_the_disk_where_fsync_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int | None, expected: list[str]
) -> None:
    """As on macOS: its full sync is asked for, fsync where a file system has none; errors show."""
    calls: list[str] = []

    def full_sync(descriptor: int, command: int) -> int:
        assert command == 51
        assert os.fstat(descriptor).st_size == 4
        calls.append("full sync")
        if refusal is not None:
            raise OSError(refusal, os.strerror(refusal))
        return 0

    def fsync(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 4
        calls.append("fsync")

    monkeypatch.delattr(os, "fdatasync", raising=False)
    monkeypatch.setattr(os_host, "_FULL_SYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", fsync)
    file = system_host().fs.open(str(tmp_path / "log"), create=True)
    file.write(0, b"data")
    if refusal == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            file.sync()
    else:
        file.sync()
    file.close()
    assert calls == expected


@pytest.mark.parametrize("kind", [SystemFileSystem, PassingFileSystem])
def test_whatever_the_system_refuses_names_the_file(
    kind: type[SystemFileSystem], tmp_path: Path
) -> None:
    """It knows a number only; of a disk that fails people must know which file to save."""
    folder = kind().open(str(tmp_path), writable=False)  # no bytes can be read of one
    broken = SystemFile(str(tmp_path / "broken"), 2**20)  # a number that nothing has
    tries: list[tuple[SystemFile, Callable[[SystemFile], object]]] = [
        (folder, lambda file: file.read(0, 10)),
        (folder, lambda file: file.read_into(0, memoryview(bytearray(10)))),
        (folder, lambda file: file.truncate(0)),
        (broken, lambda file: file.write(0, b"x")),
        (broken, lambda file: file.sync()),
    ]
    for file, attempt in tries:
        with pytest.raises(OSError) as refused:  # noqa: PT011  which one is the system's to say
            attempt(file)
        assert refused.value.filename == file.path
    folder.close()
