"""The records of a queue's units back to back, from wherever they stand in the commit log."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert import batch_kernel
from logstore.compat.spark.convert.queue_units import UnitArrays
from logstore.compat.spark.stores import file_system_of
from logstore.errors import CorruptFileError
from logstore.host import File
from logstore.segments.compiled.reused_memory import ReusedMemory

_NAME_DIGITS = 20
#: what is spread over at most so much more than it has is read together with what lies in between
_SPREAD_MAX = 2


@attrs.define(eq=False)
class RecordGatherer:
    """Reads records of the commit log in a folder; one file is open at a time."""

    commit_log: str
    file_bytes: int
    _memory: ReusedMemory = attrs.field(factory=ReusedMemory, init=False)
    _file: File | None = attrs.field(default=None, init=False)
    #: the path of the file that is open, and whether it is read once
    _opened: tuple[str, bool] = attrs.field(default=("", False), init=False)

    def path_of(self, physical_offset: int) -> tuple[str, int]:
        """Return the file in which a record stands, and its position there."""
        position = physical_offset % self.file_bytes
        return f"{self.commit_log}/{physical_offset - position:0{_NAME_DIGITS}d}", position

    def gather(self, units: UnitArrays, first: int, last: int) -> NDArray[np.uint8]:
        """
        Return the records of units ``[first, last)``.

        Raises:
            CorruptFileError: a file ends before they do.

        """
        target = self._memory.array(int(units.size_bytes[first:last].sum()), np.uint8)
        at = 0
        while first < last:
            start = int(units.physical_offset[first])
            base = start - start % self.file_bytes
            places = units.physical_offset[first:last] - base
            elsewhere = np.flatnonzero((places < 0) | (places >= self.file_bytes))
            stop = first + int(elsewhere[0]) if len(elsewhere) else last
            at += self._read(base, units, first, stop, target[at:])
            first = stop
        return target

    def _read(
        self, base: int, units: UnitArrays, first: int, stop: int, target: NDArray[np.uint8]
    ) -> int:
        """Fill `target` with records of one file, back to back; return how many bytes they have."""
        path, _ = self.path_of(base)
        starts, sizes = units.physical_offset[first:stop] - base, units.size_bytes[first:stop]
        size_bytes, start = int(sizes.sum()), int(starts[0])
        spread_bytes = int(starts[-1] + sizes[-1]) - start
        if spread_bytes == size_bytes and bool((np.diff(starts) == sizes[:-1]).all()):
            self._fill(path, start, target[:size_bytes], is_read_once=True)
            return size_bytes
        if size_bytes <= spread_bytes <= _SPREAD_MAX * size_bytes:
            source = np.empty(spread_bytes, dtype=np.uint8)
            # What lies in between is others' to read: it stays in the cache.
            self._fill(path, start, source, is_read_once=False)
            starts = starts - start
        else:
            source = np.memmap(path, np.uint8, "r").view(np.ndarray)
        return int(
            batch_kernel.gather_records(source, starts, sizes, 0, len(sizes), target[:size_bytes])
        )

    def _fill(
        self, path: str, start: int, target: NDArray[np.uint8], *, is_read_once: bool
    ) -> None:
        if self._file is None or self._opened != (path, is_read_once):
            self.close()
            self._opened = path, is_read_once
            fs = file_system_of(self.commit_log, is_read_once=is_read_once)
            self._file = fs.open(path, writable=False)
        found_bytes = self._file.read_into(start, target.data)
        if found_bytes < len(target):
            raise CorruptFileError(path, f"ends at {start + found_bytes}")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
