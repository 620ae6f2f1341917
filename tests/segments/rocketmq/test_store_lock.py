"""The lock and the abort file of a store directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore.errors import LockedError
from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.abort_file import AbortFile
from logstore.segments.rocketmq.opening.store_lock import StoreLock
from logstore.testing.simulated_host import SimulatedHost

#: what Java's FileChannel.tryLock(0, 1) does, in another process
TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except BlockingIOError:
        print("locked")
    else:
        print("free")
        if len(sys.argv) > 2:
            sys.stdout.flush()
            sys.stdin.read()
"""


def try_lock(directory: Path) -> str:
    """Return whether another process finds the lock free or locked."""
    command = [sys.executable, "-c", TRY_LOCK, str(directory / "lock")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    """While the lock is held another process cannot lock byte 0; afterwards it can."""
    host = system_host()
    lock = StoreLock(host, str(tmp_path))
    assert try_lock(tmp_path) == "locked"
    lock.release()
    lock.release()
    assert try_lock(tmp_path) == "free"
    # Not before: reading it here would have given the lock up.
    assert (tmp_path / "lock").read_bytes() == b"lock"


def test_a_second_attempt_does_not_break_the_first(tmp_path: Path) -> None:
    """A second store in the same process is refused, and the first keeps others out as before."""
    host = system_host()
    first = StoreLock(host, str(tmp_path))
    with pytest.raises(LockedError, match="stop that broker first"):
        StoreLock(host, str(tmp_path))
    assert try_lock(tmp_path) == "locked"
    first.release()


def test_a_lock_of_another_process_is_an_error(tmp_path: Path) -> None:
    """Where a broker holds byte 0, the error names the file; once it is gone the lock is free."""
    (tmp_path / "lock").write_bytes(b"lock")
    command = [sys.executable, "-c", TRY_LOCK, str(tmp_path / "lock"), "hold"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdin is not None
        assert broker.stdout.readline().strip() == "free"
        with pytest.raises(LockedError, match=f"{tmp_path}/lock: another process"):
            StoreLock(system_host(), str(tmp_path))
        broker.stdin.close()
    StoreLock(system_host(), str(tmp_path)).release()


def test_the_abort_file_says_that_a_store_is_open() -> None:
    """The abort file holds the process id and is durable as soon as it is made or removed."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    host.fs.sync_directory("/")
    abort = AbortFile(host, "/store")
    assert not abort.exists()
    abort.create(17_230)
    host.power_loss()
    assert abort.exists()
    assert host.fs.open("/store/abort").read(0, 99) == b"17230"
    abort.create(7)
    assert host.fs.open("/store/abort").read(0, 99) == b"7"
    abort.remove()
    host.power_loss()
    assert not abort.exists()
    abort.remove()
