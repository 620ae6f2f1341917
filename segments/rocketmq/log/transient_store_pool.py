"""
Write buffers that stand between appends and the commit log's files (``transientStorePoolEnable``).

Appends go into memory; a service commits them to the file (:mod:`~logstore.segments.rocketmq.
upkeep.store_syncs`), and only then can they be read and flushed. What is not committed is lost when
the process dies: such a store gives up a little durability for writes of many records at once.

Java borrows one of `pool_size` locked buffers of a file's size for each file. Here a buffer holds
what waits and no more, and so there is nothing to lock; what is left of the pool is how many files
may wait, which is what Java refuses sends by (``isTransientStorePoolDeficient``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: buffers of Java's pool
POOL_SIZE = 5


class WriteBuffer:
    """What was appended to one file from `position` on and does not stand there yet."""

    __slots__ = ("_pieces", "position", "size_bytes")

    def __init__(self, position: int) -> None:
        self.position = position
        self.size_bytes = 0
        self._pieces: list[Buffer] = []

    def append(self, data: Buffer) -> None:
        """Take more bytes."""
        self._pieces.append(data)
        self.size_bytes += memoryview(data).nbytes

    def take_back(self) -> None:
        """Forget the newest bytes."""
        self.size_bytes -= memoryview(self._pieces.pop()).nbytes

    def data(self) -> bytes:
        """Return all that waits."""
        return b"".join(self._pieces)

    def clear(self) -> None:
        """Forget what waited: it stands in the file now."""
        self.position += self.size_bytes
        self.size_bytes = 0
        self._pieces.clear()


class TransientStorePool:
    """Counts the files that hold a buffer."""

    def __init__(self, pool_size: int = POOL_SIZE) -> None:
        self.pool_size = pool_size
        self.borrowed_count = 0

    @property
    def available_count(self) -> int:
        """How many more files could be written to (``availableBufferNums``)."""
        return self.pool_size - self.borrowed_count

    def borrow(self, position: int) -> WriteBuffer:
        """Return a buffer for a file that is filled up to `position`."""
        self.borrowed_count += 1
        return WriteBuffer(position)

    def give_back(self) -> None:
        """Take note that a file is done with its buffer."""
        self.borrowed_count -= 1
