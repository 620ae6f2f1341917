"""
Classes that a JVM need not read and check again: a third of what a tool of Kafka's costs.

The first run of a tool writes the archive as it ends, into the directory of the class path that it
is good for; a JVM that finds it of no use (another release, other jars) goes on without a word.
"""

from __future__ import annotations

import os
from pathlib import Path

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


class ClassArchive:
    """The archive in one directory; used where it is, written where it is not."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "tools.jsa"
        self._fresh = directory / f"tools.{os.getpid()}.jsa.new"

    def flags(self, *, may_write: bool) -> str:
        """Return the JVM's flags for one run; the archive is written at its end if it may."""
        if self._path.exists():
            return f"-XX:SharedArchiveFile={self._path} {_QUIET}"
        return f"-XX:ArchiveClassesAtExit={self._fresh} {_QUIET}" if may_write else ""

    def settle(self) -> None:
        """Make what a run that has ended may have written the archive of the runs to come."""
        if self._fresh.exists():
            os.replace(self._fresh, self._path)
