"""Keeping brokers out of a store while its files are made anew."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from logstore.errors import LockedError
from logstore.host import FileSystem
from logstore.segments.rocketmq.opening.store_lock import LOCK_NAME
from logstore.tools.inspection.lock_holder import lock_holder


@contextmanager
def brokers_kept_out(fs: FileSystem, directory: str) -> Generator[None]:
    """
    Hold the lock of a store, if it has one, for the time of the block.

    Raises:
        LockedError: a broker has it.

    """
    path = f"{directory}/{LOCK_NAME}"
    if not fs.exists(path):
        yield
        return
    process = lock_holder(path)
    try:
        if process is not None:
            raise BlockingIOError
        lock = fs.lock(path)
    except BlockingIOError:
        who = "another process" if process is None else f"process {process}"
        raise LockedError(f"{directory}: in use by {who}; stop the broker first") from None
    try:
        yield
    finally:
        lock.release()
