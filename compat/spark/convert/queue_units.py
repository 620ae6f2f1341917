"""The units of a consume queue as arrays, read from its files by whoever needs a part of them."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.errors import CorruptFileError
from logstore.host import FileSystem

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
        position, end = self.first * self.unit_bytes, (self.first + self.count) * self.unit_bytes
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
        rows = np.frombuffer(b"".join(pieces), dtype=_BATCH if self.is_batch else _SIMPLE)
        numbers = np.arange(self.first, self.first + self.count, dtype=np.int64)
        return UnitArrays(
            rows["physical"].astype(np.int64),
            rows["size"].astype(np.int64),
            rows["base"].astype(np.int64) if self.is_batch else numbers,
        )


#: of a queue that has no files
NO_UNITS = QueueUnits("", _SIMPLE.itemsize, _SIMPLE.itemsize, 0, 0)
