"""Keeping brokers out of a directory whose files are copied or made anew."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from logstore.errors import LockedError
from logstore.host import Lock
from logstore.os_host import SystemFileSystem
from logstore.tools.inspection.kept_out import kept_out


class ForbiddenLocks(SystemFileSystem):
    """A file system on which no lock file can be opened for writing."""

    def __init__(self, code: int) -> None:
        self._code = code

    def lock(self, path: str) -> Lock:  # type: ignore[override]
        """Refuse it, as a read-only disk or another owner's file does."""
        raise OSError(self._code, os.strerror(self._code), path)


def lock_file(directory: Path) -> str:
    """Return the path of a lock file that nobody holds."""
    path = directory / ".lock"
    path.touch()
    return str(path)


def test_a_broker_cannot_take_the_lock_meanwhile(tmp_path: Path) -> None:
    """It is held within the block, and free behind it."""
    fs, path = SystemFileSystem(), lock_file(tmp_path)
    with kept_out(fs, str(tmp_path), path), pytest.raises(BlockingIOError):
        fs.lock(path)
    fs.lock(path).release()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    """By the id of the process that uses it; what only reads is refused as well."""
    fs, path = SystemFileSystem(), lock_file(tmp_path)
    lock = fs.lock(path)
    words = f"{tmp_path}: in use by process {os.getpid()}; stop the broker first"
    for only_reads in (False, True):
        with (
            pytest.raises(LockedError) as told,
            kept_out(fs, str(tmp_path), path, only_reads=only_reads),
        ):
            pass
        assert str(told.value) == words
    lock.release()


def test_without_a_lock_file_there_is_nothing_to_hold(tmp_path: Path) -> None:
    """A copy of one partition has none, and gets none."""
    with kept_out(SystemFileSystem(), str(tmp_path), str(tmp_path / ".lock")):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_what_only_reads_goes_on_where_no_lock_can_be_taken(tmp_path: Path, code: int) -> None:
    """A read-only disk, or somebody else's files: that nobody has the lock is enough."""
    path = lock_file(tmp_path)
    has_gone_on = False
    with kept_out(ForbiddenLocks(code), str(tmp_path), path, only_reads=True):
        has_gone_on = True
    assert has_gone_on
    with pytest.raises(OSError, match="lock"), kept_out(ForbiddenLocks(code), str(tmp_path), path):
        pass


def test_other_failures_are_told(tmp_path: Path) -> None:
    """A failing disk is no reason to go on."""
    path = lock_file(tmp_path)
    with (
        pytest.raises(OSError, match="lock"),
        kept_out(ForbiddenLocks(errno.EIO), str(tmp_path), path, only_reads=True),
    ):
        pass
