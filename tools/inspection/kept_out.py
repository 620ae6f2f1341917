"""Keeping brokers out of a directory while its files are copied or made anew."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from logstore.errors import LockedError
from logstore.host import FileSystem, Lock
from logstore.tools.inspection.lock_holder import lock_holder


@contextmanager
def kept_out(
    fs: FileSystem, directory: str, lock_path: str, *, only_reads: bool = False
) -> Generator[None]:
    """
    Hold the lock that brokers take on `directory`, if it has one, for the time of the block.

    With `only_reads` it is enough that nobody has it, where this user may not take it: a copy is
    made of read-only disks and of other people's files, too.

    Raises:
        LockedError: a broker has it.
        OSError: it can be neither taken nor looked at.

    """
    lock: Lock | None = None
    if fs.exists(lock_path):
        process = lock_holder(lock_path)
        try:
            if process is not None:
                raise BlockingIOError
            lock = fs.lock(lock_path)
        except BlockingIOError:
            who = "another process" if process is None else f"process {process}"
            raise LockedError(f"{directory}: in use by {who}; stop the broker first") from None
        except OSError as error:
            is_forbidden = error.errno in (errno.EACCES, errno.EROFS)
            if not (only_reads and is_forbidden and os.access(lock_path, os.R_OK)):
                raise
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
