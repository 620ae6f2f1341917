"""
What a task knows of the messages that it writes: their queue units, and their index entries.

A store derives both from its commit log. The task has just packed the messages, so it reads them
where they still are, in memory, by the code that a recovery reads them with, and leaves the result
beside its files. Whoever completes the store only has to put it in its places.

``<task>.units`` are consume queue units as they stand in queues' files, run behind run;
``<task>.keys`` are rows of :data:`KEY`, in the order of the commit log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.rocketmq.columns import IndexEntries, ScanStop, scan_records
from logstore.segments.rocketmq.columns.index_fill import without_sign
from logstore.segments.rocketmq.columns.kernel import PHYSICAL_OFFSET, SIZE, STORE_MS
from logstore.segments.rocketmq.messages.dispatch_request import DeliverTime
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT_BYTES
from logstore.segments.rocketmq.settings.release import Release

#: an entry of the message index: hash without a sign, physical offset and store time of its message
KEY = np.dtype([("hash", "<i4"), ("physical_offset", "<i8"), ("store_timestamp_ms", "<i8")])
_KEYS_READ = 1 << 17


@attrs.frozen
class QueueRun:
    """Units of one queue that follow one another; the last one's message ends there."""

    topic: str
    queue_id: int
    queue_offset: int
    unit_count: int
    next_physical_offset: int


@attrs.frozen
class Derived:
    """What a task has derived; `store_timestamp_ms` is that of its last message."""

    runs: tuple[QueueRun, ...]
    store_timestamp_ms: int
    last_physical_offset: int


class DerivedWriter:
    """Derives and writes what belongs to one task's messages; durable when it is closed."""

    def __init__(self, directory: Path, number: int, deliver_time: DeliverTime) -> None:
        self._units = units_path(directory, number).open("wb")
        self._keys = keys_path(directory, number).open("wb")
        self._deliver_time = deliver_time
        self._memory = ReusedMemory()
        self._runs: list[QueueRun] = []
        self._last = (0, -1)
        self._is_whole = True

    def __enter__(self) -> Self:
        return self

    def add(self, messages: NDArray[np.uint8]) -> None:
        """Derive what belongs to messages that stand back to back."""
        scan = scan_records(messages.data, deliver_time=self._deliver_time, memory=self._memory)
        if scan.stop is not ScanStop.ALL_READ:
            self._is_whole = False  # of odd messages only the store itself may judge
            return
        for run in scan.queue_runs():
            last = int(run.rows[-1])
            end = int(scan.table[PHYSICAL_OFFSET, last] + scan.table[SIZE, last])
            first, count = int(run.queue_offsets[0]), len(run.queue_offsets)
            self._is_whole = self._is_whole and run.is_dense
            self._units.write(run.units)
            self._note(QueueRun(run.topic, run.queue_id, first, count, end))
        self._last = int(scan.table[STORE_MS, -1]), int(scan.table[PHYSICAL_OFFSET, -1])
        entries = scan.index_entries(has_tag_keys=Release.V5.has_tag_entries)
        rows = np.empty(len(entries), KEY)
        rows["hash"] = without_sign(entries.hashes)
        rows["physical_offset"] = entries.physical_offsets
        rows["store_timestamp_ms"] = entries.store_timestamps_ms
        self._keys.write(rows.view(np.uint8).data)

    def _note(self, run: QueueRun) -> None:
        """Add a run to those known, or to the one that it goes on."""
        last = self._runs[-1] if self._runs else None
        if last is not None and (last.topic, last.queue_id) == (run.topic, run.queue_id):
            if last.queue_offset + last.unit_count == run.queue_offset:
                count = last.unit_count + run.unit_count
                self._runs[-1] = attrs.evolve(run, queue_offset=last.queue_offset, unit_count=count)
                return
            self._is_whole = False  # a queue with a hole: the store fills it up its own way
        self._runs.append(run)

    def derived(self) -> Derived | None:
        """Return what was derived; None where only the store itself can."""
        return Derived(tuple(self._runs), *self._last) if self._is_whole else None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in (self._units, self._keys):
            with file:
                if error is None:
                    file.flush()
                    os.fsync(file.fileno())


def units_path(directory: Path, number: int) -> Path:
    """Return where a task's units stand."""
    return directory / f"{number}.units"


def keys_path(directory: Path, number: int) -> Path:
    """Return where a task's index entries stand."""
    return directory / f"{number}.keys"


def read_units(file: IO[bytes], run: QueueRun) -> bytes:
    """Return the units of the next run of a file."""
    return file.read(UNIT_BYTES * run.unit_count)


def read_keys(path: Path) -> Iterator[IndexEntries]:
    """Yield the index entries of a task, many at a time."""
    with path.open("rb") as file:
        while data := file.read(KEY.itemsize * _KEYS_READ):
            rows = np.frombuffer(data, KEY)
            yield IndexEntries(
                rows["hash"].astype(np.int64),
                np.arange(len(rows), dtype=np.int32),
                rows["physical_offset"].astype(np.int64),
                rows["store_timestamp_ms"].astype(np.int64),
            )
