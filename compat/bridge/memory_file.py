"""Bytes that were made for an answer, where a run of a file is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.segment import Extent

if TYPE_CHECKING:
    from typing_extensions import Buffer


class MemoryFile:
    """A file of bytes in memory that is only read. Implements :class:`logstore.host.File`."""

    path = "an answer in memory"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._data)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`."""
        if position == 0 and size_bytes == len(self._data):
            return self._data
        return self._data[position : position + size_bytes]

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        data = self.read(position, len(target))
        target[: len(data)] = data
        return len(data)

    def write(self, position: int, data: Buffer) -> None:
        """Refuse: nothing is written here."""
        raise OSError(f"{self.path} is not written to: {memoryview(data).nbytes} at {position}")

    def truncate(self, size_bytes: int) -> None:
        """Refuse: nothing is written here."""
        raise OSError(f"{self.path} is not cut to {size_bytes}")

    def next_data(self, position: int) -> int | None:
        """Return `position`: there are no holes."""
        return position if position < len(self._data) else None

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def fileno(self) -> int | None:
        """Return None: there is no descriptor."""
        return None

    def close(self) -> None:
        """Do nothing: there is no handle."""


def extent_of(data: bytes) -> Extent:
    """Return all of `data` as a run."""
    return Extent(MemoryFile(data), 0, len(data))
