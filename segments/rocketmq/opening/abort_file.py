"""
The abort file: it stands in a store directory while a broker has it open, or after a crash.

Its text is the process id (4.x leaves it empty). A clean stop removes it last of all; the next
start that finds it recovers from the checkpoint on, not only the last files. 5.x leaves an empty
``abort.bak`` behind, of which nobody takes note.

Source: ``DefaultMessageStore.createTempFile``, ``isTempFileExist``.
"""

from __future__ import annotations

from logstore.host import Host

ABORT_NAME = "abort"


class AbortFile:
    """The abort file of one store directory."""

    __slots__ = ("_directory", "_host", "path")

    def __init__(self, host: Host, directory: str) -> None:
        self._host = host
        self._directory = directory
        self.path = f"{directory}/{ABORT_NAME}"

    def exists(self) -> bool:
        """Tell whether the last one that had the store open did not stop cleanly."""
        return self._host.fs.exists(self.path)

    def create(self, process_id: int) -> None:
        """Say that this process has the store open; durable on return."""
        file = self._host.fs.open(self.path, create=True)
        try:
            file.truncate(0)
            file.write(0, str(process_id).encode())
            file.sync()
        finally:
            file.close()
        self._host.fs.sync_directory(self._directory)

    def remove(self) -> None:
        """Say that the store was stopped cleanly; durable on return."""
        if self.exists():
            self._host.fs.remove(self.path)
            self._host.fs.sync_directory(self._directory)
