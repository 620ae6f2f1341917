"""
Memory that is taken again as soon as nobody looks at it any more.

A step of a decoder fills some MiB of arrays and lets go of them before the next. Fresh memory for
each costs a page fault every 4 KiB, which takes as long as the decoding itself.
"""

from __future__ import annotations

import sys
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NumberT = TypeVar("NumberT", np.uint8, np.int32, np.int64)

#: smaller arrays come from the allocator, which keeps their memory
REUSED_BYTES_MIN = 64 * 1024
#: blocks that are remembered; whoever keeps many steps has blocks that are not
_BLOCKS_MAX = 16
#: sizes are rounded up to eighths of a power of two, so that one step's block serves the next
_STEPS_SHIFT = 3
#: who refers to a block that nobody uses: the variable that looks, and the call that counts
_REFERENCES_UNUSED = 2


class ReusedMemory:
    """
    Gives out arrays; what is in them at first is left from whoever had the memory before.

    An array and all that is made of it (views, memoryviews, Arrow buffers) hold its block; when
    the last of them is gone the block is given out again. May be used from several threads.
    """

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.uint8]] = []

    def array(self, count: int, kind: type[NumberT]) -> NDArray[NumberT]:
        """Return an array of `count` numbers that nobody else uses."""
        dtype: np.dtype[NumberT] = np.dtype(kind)
        size_bytes = count * dtype.itemsize
        if size_bytes < REUSED_BYTES_MIN:
            return np.empty(count, dtype)
        block = self._find(_rounded_up(size_bytes))
        found: NDArray[NumberT] = block[:size_bytes].view(dtype)
        self._blocks.append(block)
        del self._blocks[:-_BLOCKS_MAX]
        return found

    def _find(self, size_bytes: int) -> NDArray[np.uint8]:
        """Return an unused block of this size, a new one if there is none."""
        blocks = self._blocks
        for _ in range(len(blocks)):
            try:
                block = blocks.pop(0)  # while it is looked at no other thread can find it
            except IndexError:
                break
            if len(block) == size_bytes and sys.getrefcount(block) == _REFERENCES_UNUSED:
                return block
            blocks.append(block)
        return np.empty(size_bytes, np.uint8)


def _rounded_up(size_bytes: int) -> int:
    step = 1 << max(size_bytes.bit_length() - 1 - _STEPS_SHIFT, 0)
    return -(-size_bytes // step) * step
