"""Files whose bytes go to the disk while more are written, so that the sync at the end is short."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from logstore.host import File
from logstore.passing_files import give_back

#: as much waits for the disk before it is told to begin
_STEP_BYTES = 64 * 1024 * 1024


class WriteBehind:
    """
    Syncs a file in a thread of its own each time enough was written to it.

    What such a sync raises is raised by :meth:`finish`: the system tells of a page that it could
    not write only once. One file at a time.
    """

    def __init__(self, step_bytes: int = _STEP_BYTES) -> None:
        self._step_bytes = step_bytes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="write-behind")
        self._running: Future[None] | None = None
        self._waiting_bytes = 0

    def wrote(self, file: File, size_bytes: int) -> None:
        """Say that so much more was written to the file."""
        self._waiting_bytes += size_bytes
        if self._waiting_bytes < self._step_bytes:
            return
        if self._running is not None:
            if not self._running.done():
                return
            self._running.result()
        self._waiting_bytes = 0
        self._running = self._thread.submit(_sync, file)

    def finish(self) -> None:
        """Wait until nobody syncs any more; the file may be synced and closed then."""
        running, self._running, self._waiting_bytes = self._running, None, 0
        if running is not None:
            running.result()

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown()


def _sync(file: File) -> None:
    file.sync()
    give_back(file)
