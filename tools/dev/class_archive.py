"""
Classes that a JVM need not read and check again: a third to a half of what its start costs.

Each archive is written once, into the directory of the class path that it is good for; a JVM that
finds it of no use (another release, other jars) goes on without a word.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
_DUMP_SECONDS_MAX = 60


class ClassArchive:
    """The archive of one kind of program in one directory; used where it is."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / f"{name}.jsa"
        self._fresh = directory / f"{name}.{os.getpid()}.jsa.new"
        self._lock_path = directory / f"{name}.jsa.lock"
        self._lock: int | None = None

    def flags(self, *, may_write: bool) -> str:
        """
        Return the JVM's flags for one run.

        Where there is no archive, a run that may write one is made ready for :meth:`write`, in one
        process at a time: the others need not do the same work.
        """
        if not self._path.exists():
            return f"-XX:+RecordDynamicDumpInfo {_QUIET}" if may_write and self._claim() else ""
        return f"-XX:SharedArchiveFile={self._path} {_QUIET}"

    def write(self, pid: int) -> None:
        """Have a JVM that goes on running write what it has loaded, where :meth:`flags` said so."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            command = ["jcmd", str(pid), "VM.cds", "dynamic_dump", str(self._fresh)]
            subprocess.run(command, capture_output=True, check=False, timeout=_DUMP_SECONDS_MAX)
            if self._fresh.exists():
                os.replace(self._fresh, self._path)
        except subprocess.TimeoutExpired:
            self._fresh.unlink(missing_ok=True)
        finally:
            os.close(lock)

    def _claim(self) -> bool:
        """Keep others from it until :meth:`write`; tell whether nobody else was at it before."""
        if self._lock is not None:
            return True
        if shutil.which("jcmd") is None:  # a runtime without the tools of a JDK
            return False
        self._lock_path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True
