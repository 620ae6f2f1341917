"""
The directory of a store: whose it is, who has it open, how it was left.

Java's ``storePathRootDir``; commit log, queues, index and tables stand in it directly.

Source: ``StorePathConfigHelper``, ``DefaultMessageStore.start`` and ``shutdown``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.errors import ForeignDirectoryError
from logstore.segments.rocketmq.opening.abort_file import AbortFile
from logstore.segments.rocketmq.opening.store_lock import StoreLock

if TYPE_CHECKING:
    from logstore.host import Host

COMMIT_LOG_FOLDER = "commitlog"
CONFIG_FOLDER = "config"
INDEX_FOLDER = "index"
QUEUE_FOLDERS = ("consumequeue", "batchconsumequeue")
#: names that stand in a store; each one alone makes a directory no foreign one
_KNOWN = frozenset(
    {
        COMMIT_LOG_FOLDER,
        CONFIG_FOLDER,
        INDEX_FOLDER,
        *QUEUE_FOLDERS,
        "abort",
        "checkpoint",
        "consumequeue_ext",
    }
)
#: what a volume has of its own
_NOBODYS = frozenset({"lost+found", "lock"})


class StoreDirectory:
    """
    A directory that is a store, or becomes one; held by its lock if it is to be written.

    `was_clean` tells whether the last one that had it open stopped cleanly.

    Raises, on opening:
        ForeignDirectoryError: it is a file, is missing and only to be read, or holds other things.
        LockedError: another process has it open.
    """

    def __init__(self, host: Host, path: str, *, is_writable: bool) -> None:
        self.host = host
        self.path = path
        self.is_writable = is_writable
        fs = host.fs
        if fs.exists(path) and not fs.is_directory(path):
            raise ForeignDirectoryError(f"{path}: is a file; name the store's directory")
        if not fs.exists(path):
            if not is_writable:
                raise ForeignDirectoryError(f"{path}: there is no such directory")
            self._make()
        self._refuse_foreign()
        self._lock = StoreLock(host, path) if is_writable else None
        self._abort = AbortFile(host, path)
        self.was_clean = not self._abort.exists()

    def _make(self) -> None:
        """Create the directory, durably: else a power loss could take the store as a whole."""
        fs, made, parents = self.host.fs, self.path, list[str]()
        while not fs.is_directory(made):
            made = made.rpartition("/")[0] or "/"
            parents.append(made)
        fs.make_directory(self.path)
        for parent in parents:
            fs.sync_directory(parent)

    def _refuse_foreign(self) -> None:
        names = {entry.name for entry in self.host.fs.list_directory(self.path)}
        strange = {name for name in names - _NOBODYS if not name.startswith(".")}
        if strange and not names & _KNOWN:
            raise ForeignDirectoryError(
                f"{self.path}: holds {', '.join(sorted(strange)[:3])} and nothing of RocketMQ's; "
                "name a storePathRootDir or an empty directory"
            )

    def path_of(self, name: str) -> str:
        """Return where something stands in the directory."""
        return f"{self.path}/{name}"

    def mark_open(self, process_id: int) -> None:
        """Write the abort file: from now on a stop is clean only if it says so."""
        self._abort.create(process_id)

    def mark_clean(self) -> None:
        """Remove the abort file: everything is durable."""
        self._abort.remove()

    def release(self) -> None:
        """Let others in."""
        if self._lock is not None:
            self._lock.release()


def looks_like_store(host: Host, path: str) -> bool:
    """Tell whether a directory has a commit log, or a checkpoint with what stands beside one."""
    fs = host.fs
    if not fs.is_directory(path):
        return False
    entries = {entry.name: entry.is_directory for entry in fs.list_directory(path)}
    if entries.get(COMMIT_LOG_FOLDER):
        return True
    # A store that has no messages yet has no queues: lock and tables are all that it has besides.
    beside = {*QUEUE_FOLDERS, CONFIG_FOLDER, "lock"}
    return entries.get("checkpoint") is False and not beside.isdisjoint(entries)
