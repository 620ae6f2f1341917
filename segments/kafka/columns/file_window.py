"""A stretch of a file that slides on through memory: nothing is read twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.host import File


class FileWindow:
    """
    Up to `size_bytes` of a file, which end at `end_position` at the latest.

    It is small enough to stay in a processor's cache, from the read to the last look at it.
    """

    def __init__(self, file: File, end_position: int, size_bytes: int) -> None:
        self._file = file
        self._end_position = end_position
        data = bytearray(size_bytes)
        self._memory = memoryview(data)
        self._array = np.frombuffer(data, dtype=np.uint8)
        self._array.flags.writeable = False  # one type for compiled loops, compiled once
        #: where in the file the window starts
        self.position = 0
        self._start: int = 0
        self._filled: int = 0

    @property
    def array(self) -> NDArray[np.uint8]:
        """What is there, as numbers."""
        return self._array[self._start : self._filled]

    @property
    def view(self) -> memoryview:
        """What is there, as bytes."""
        return self._memory[self._start : self._filled]

    def seek(self, position: int) -> None:
        """Let the window start at `position` of the file; what is there of it is kept."""
        start = self._start + position - self.position
        if not self._start <= start <= self._filled:
            start = self._filled = 0
        self._start = start
        self.position = position

    def grow(self) -> bool:
        """Read on as far as there is room; False if nothing came."""
        kept_bytes = self._filled - self._start
        if self._start:
            self._memory[:kept_bytes] = self._memory[self._start : self._filled]
            self._start, self._filled = 0, kept_bytes
        wanted_bytes = min(len(self._memory), self._end_position - self.position)
        if wanted_bytes <= kept_bytes:
            return False
        room = self._memory[kept_bytes:wanted_bytes]
        found_bytes = self._file.read_into(self.position + kept_bytes, room)
        self._filled += found_bytes
        return found_bytes > 0
