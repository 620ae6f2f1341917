"""
Files whose syncs wait for one of all of them.

Who makes thousands of small files that count only when all are there would wait for the disk at
each, and at each of their directories. Here nothing is durable until :func:`sync_volume` returns.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from logstore.os_host import SystemFile, SystemFileSystem


class DeferredFile(SystemFile):
    """A file that is as durable as the last :func:`sync_volume` has made it."""

    __slots__ = ()

    def sync(self) -> None:
        """Leave it to :func:`sync_volume`."""


class DeferredFileSystem(SystemFileSystem):
    """The operating system's files; neither they nor directories are synced one by one."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """Open a file; raises as :meth:`SystemFileSystem.open`."""
        file = super().open(path, create=create, writable=writable)
        return DeferredFile(path, file.release()) if writable else file

    def sync_directory(self, path: str) -> None:
        """Leave it to :func:`sync_volume`."""
        del path


def sync_volume(path: str) -> None:
    """
    Return once all that was written to the volume of `path` is on stable storage.

    Raises:
        OSError: the disk refused some of it.

    """
    syncfs = _syncfs()
    if syncfs is None:
        os.sync()
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)


@cache
def _syncfs() -> Any | None:
    """Return the system's call for one volume; None where it has none."""
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None
