"""The units of a consume queue as arrays, read from its files by whoever needs a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.errors import CorruptFileError
from logstore.host import FileSystem

if TYPE_CHECKING:
    from logstore.segments.rocketmq.queues.unit_queue import UnitQueue

_NAME_DIGITS = 20
_SIMPLE = np.dtype([("physical", ">i8"), ("size", ">i4"), ("tags", ">i8")])
_BATCH = np.dtype(
    [
        ("physical", ">i8"),
        ("size", ">i4"),
        ("tags", ">i8"),
        ("stored", ">i8"),
        ("base", ">i8"),
        ("count", ">i2"),
        ("compacted", ">i4"),
        ("reserved", ">i4"),
    ]
)
BATCH_UNIT_BYTES = _BATCH.itemsize


@attrs.frozen(eq=False)
class UnitArrays:
    """Units in order: where each message stands and how long it is, and its first queue offset."""

    physical_offset: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    queue_offset: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.physical_offset)


@attrs.frozen
class QueueUnits:
    """
    Some units of one queue: `count` from number `first` on.

    Units are numbered from the start of the queue's byte stream. In a batch queue, whose units are
    longer, the number is not the queue offset.
    """

    directory: str
    unit_bytes: int
    file_bytes: int
    first: int
    count: int
    #: the last of them, where no file has them: a crash leaves queues behind the commit log
    unwritten: bytes = b""

    @classmethod
    def of(cls, queue: UnitQueue, first: int, count: int) -> QueueUnits:
        """Return units of a queue of a store that was opened, and recovered if it had to be."""
        unit_bytes, unwritten = queue.unit_size_bytes, queue.unwritten_units
        start, end = queue.written_span.start, queue.written_span.end
        whole = cls(
            queue.directory,
            unit_bytes,
            queue.units_per_file * unit_bytes,
            start,
            end - start + len(unwritten) // unit_bytes,
            unwritten,
        )
        return whole.part(first, count)

    def part(self, first: int, count: int) -> QueueUnits:
        """Return some of these units."""
        ends = (first, first + count)
        start, stop = (max(0, n - self.written_end) * self.unit_bytes for n in ends)
        unwritten = self.unwritten[start:stop]
        return attrs.evolve(self, first=first, count=count, unwritten=unwritten)

    @property
    def written_end(self) -> int:
        """The number behind the last unit that stands in a file."""
        return self.first + self.count - len(self.unwritten) // self.unit_bytes

    @property
    def is_batch(self) -> bool:
        """Tell whether a unit stands for several messages."""
        return self.unit_bytes == BATCH_UNIT_BYTES

    def read(self, fs: FileSystem) -> UnitArrays:
        """
        Return the units.

        Raises:
            CorruptFileError: a file ends before they do.

        """
        position, end = self.first * self.unit_bytes, self.written_end * self.unit_bytes
        pieces: list[bytes] = []
        while position < end:
            base = position - position % self.file_bytes
            path = f"{self.directory}/{base:0{_NAME_DIGITS}d}"
            file = fs.open(path, writable=False)
            try:
                wanted_bytes = min(end, base + self.file_bytes) - position
                pieces.append(file.read(position - base, wanted_bytes))
            finally:
                file.close()
            if len(pieces[-1]) < wanted_bytes:
                raise CorruptFileError(path, f"ends at {position - base + len(pieces[-1])}")
            position += wanted_bytes
        pieces.append(self.unwritten)
        rows = np.frombuffer(b"".join(pieces), dtype=_BATCH if self.is_batch else _SIMPLE)
        numbers = np.arange(self.first, self.first + self.count, dtype=np.int64)
        return UnitArrays(
            rows["physical"].astype(np.int64),
            rows["size"].astype(np.int64),
            rows["base"].astype(np.int64) if self.is_batch else numbers,
        )


#: of a queue that has no files
NO_UNITS = QueueUnits("", _SIMPLE.itemsize, _SIMPLE.itemsize, 0, 0)
