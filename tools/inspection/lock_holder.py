"""Who has a directory's lock, found out without taking it."""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from logstore.os_host import SystemLock

#: struct flock of 64-bit Linux: type, whence, start, length, pid
_FLOCK = struct.Struct("@hhqqi")


def lock_holder(path: str) -> int | None:
    """
    Return the id of the process that has the POSIX lock on `path`; None if nobody has, or is known.

    The file must not be opened while this very process has the lock: closing it again would let
    the lock go.
    """
    if SystemLock.is_held(path):
        return os.getpid()
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else process
