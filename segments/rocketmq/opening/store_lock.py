"""
The lock that keeps a second broker out of a store directory.

A POSIX record lock on the first byte of ``lock``, whose text is ``lock``: Java takes the same one,
so a real broker is kept out and keeps us out.

Nothing else in this process may open the file: closing any descriptor of a file gives up every
POSIX lock that the process has on it. That is why the text is written before the lock is taken,
and only where it is missing.

Source: ``DefaultMessageStore`` (constructor and ``start``).
"""

from __future__ import annotations

from logstore.errors import LockedError
from logstore.host import Host, Lock

LOCK_NAME = "lock"
_TEXT = b"lock"


class StoreLock:
    """
    The held lock of one store directory, which must exist.

    Raises, on taking it:
        LockedError: another process has it, or another store of this process.

    """

    __slots__ = ("_lock", "path")

    def __init__(self, host: Host, directory: str) -> None:
        self.path = f"{directory}/{LOCK_NAME}"
        _ensure_text(host, directory, self.path)
        try:
            self._lock: Lock | None = host.fs.lock(self.path)
        except BlockingIOError:
            raise LockedError(
                f"{self.path}: another process has this store open; stop that broker first"
            ) from None

    def release(self) -> None:
        """Let others in; twice is fine."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _ensure_text(host: Host, directory: str, path: str) -> None:
    """Write what Java writes into the file, if it is not there."""
    entries = host.fs.list_directory(directory)
    if any(entry.name == LOCK_NAME and entry.size_bytes >= len(_TEXT) for entry in entries):
        return
    file = host.fs.open(path, create=True)
    try:
        file.write(0, _TEXT)
        file.sync()
    finally:
        file.close()
    host.fs.sync_directory(directory)
