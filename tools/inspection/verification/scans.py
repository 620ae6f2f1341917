"""The scans of many segments, partition by partition: on a few threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from logstore.host import FileSystem
from logstore.tools.inspection.verification.segment_task import ScannedSegment, SegmentTask

#: reads release the GIL, and so does the CRC of a long batch
_THREADS = min(4, os.cpu_count() or 1)
#: how many scans may be under way or done before their partition is concluded
_AHEAD = 64


class Progress(Protocol):
    """Who wants to know how far it is."""

    def __call__(self, done_bytes: int, total_bytes: int, /) -> None:
        """Take note that so much of all is done."""
        ...


class Scans(Protocol):
    """Where segments are scanned."""

    def __call__(
        self,
        fs: FileSystem,
        partitions: Sequence[Sequence[SegmentTask]],
        progress: Progress | None,
        /,
    ) -> Iterator[list[ScannedSegment | None]]:
        """Yield what the scans of each partition found, both in the order given; None: gone."""
        ...


def scan_on_threads(
    fs: FileSystem, partitions: Sequence[Sequence[SegmentTask]], progress: Progress | None
) -> Iterator[list[ScannedSegment | None]]:
    """Scan on a few threads, not far ahead of what is asked for."""
    meter = _Meter(sum(task.size_bytes for tasks in partitions for task in tasks), progress)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="verify") as pool:
        pending: list[list[Future[ScannedSegment | None]]] = []
        started = 0
        for place in range(len(partitions)):
            while started < len(partitions) and (
                started <= place or sum(map(len, pending)) < _AHEAD
            ):
                tasks = partitions[started]
                pending.append([pool.submit(task.run_if_there, fs, meter.note) for task in tasks])
                started += 1
            yield [meter.wait(future) for future in pending.pop(0)]


class _Meter:
    """Counts bytes that several threads have done; tells it from one thread only."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()

    def note(self, size_bytes: int) -> None:
        with self._lock:
            self._done += size_bytes

    def wait(self, future: Future[ScannedSegment | None]) -> ScannedSegment | None:
        """Return the outcome, telling meanwhile how far all is."""
        while True:
            try:
                found = future.result(timeout=0.2 if self._progress else None)
            except TimeoutError:
                self._tell()
                continue
            self._tell()
            return found

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)
