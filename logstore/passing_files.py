"""
Files in passing: a scan of more than memory should hold gives back what it is through with.

Whoever reads a store once, from one end to the other, fills the page cache with what nobody will
ask for again. That drives out what others need there, and it is dear: a virtual machine may have to
get every page from its host, which takes longer than to decode what stands in it. So the pages of a
large scan are given back as it goes on, and the next are read into the same memory. A file whose
next 128 MiB were in the cache when its reader came there is let alone: others have use for it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from functools import cache

from logstore.host import File
from logstore.os_host import SystemFile, SystemFileSystem

#: a scan of more than this part of the memory is in passing
_MEMORY_SHARE = 4
#: so much is given back at a time; the system may hold two megabytes as one page
_STEP_BYTES = 8 * 1024 * 1024
#: where to look whether a file is in the cache: so many places, so far apart
_LOOK_COUNT, _LOOK_BYTES = 16, 8 * 1024 * 1024


def is_in_passing(scan_bytes: int) -> bool:
    """Tell whether a scan of so much is more than this machine should keep in memory."""
    return scan_bytes > _memory_bytes() // _MEMORY_SHARE


@cache
def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def give_back(file: File, position: int = 0, size_bytes: int = 0) -> None:
    """Let go of what the page cache has of a run, of all behind it if it has no size."""
    descriptor = file.fileno()
    if descriptor is not None and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, size_bytes, os.POSIX_FADV_DONTNEED)


def _cached_pages(descriptor: int, start: int, size_bytes: int) -> bytes | None:
    """
    Return of each page of a run whether the page cache has it; None if the system does not tell.

    To look must not fetch: Linux answers a read that is not to wait by beginning to read ahead.
    """
    if sys.platform != "linux":
        return None
    pages = (ctypes.c_ubyte * -(-size_bytes // mmap.PAGESIZE))()
    try:
        # A copy on write, of which nothing is touched: ctypes wants what could be written to.
        run = mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_COPY, offset=start)
    except (OSError, ValueError):
        return None
    with run:
        first = ctypes.c_char.from_buffer(run)
        status = ctypes.CDLL(None).mincore(
            ctypes.byref(first), ctypes.c_size_t(size_bytes), ctypes.byref(pages)
        )
        del first  # a run that somebody points into cannot be closed
    return None if status else bytes(page & 1 for page in pages)


class PassingFile(SystemFile):
    """A file that is read forwards, and given back up to there if it was not in the cache."""

    __slots__ = ("_given_end", "_is_looked_at", "_is_passed", "_read_end")

    def __init__(self, path: str, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._is_looked_at = self._is_passed = False
        #: all before it is given back; and where the last read ended
        self._given_end = self._read_end = 0

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        self._pass(position, size_bytes)
        return super().read(position, size_bytes)

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        self._pass(position, len(target))
        return super().read_into(position, target)

    def close(self) -> None:
        """Give back what was read last, and the descriptor."""
        if self._is_passed and self._read_end > self._given_end:
            give_back(self, self._given_end, self._read_end - self._given_end)
        self._is_passed = False
        super().close()

    def _pass(self, position: int, size_bytes: int) -> None:
        """Give back what lies in front of a read."""
        if not self._is_looked_at:
            self._is_looked_at = True
            self._is_passed = not self._is_cached(position)
            self._given_end = position - position % _STEP_BYTES
        self._read_end = position + size_bytes
        if self._is_passed and position >= self._given_end + _STEP_BYTES:
            end = position - position % _STEP_BYTES
            give_back(self, self._given_end, end - self._given_end)
            self._given_end = end

    def _is_cached(self, position: int) -> bool:
        """Tell whether the next of it is in the cache, by looking here and there."""
        start = position - position % mmap.ALLOCATIONGRANULARITY
        end = min(position + _LOOK_COUNT * _LOOK_BYTES, os.fstat(self._descriptor).st_size)
        if end <= start:
            return True
        pages = _cached_pages(self._descriptor, start, end - start)
        return pages is None or all(pages[:: _LOOK_BYTES // mmap.PAGESIZE])


class PassingFileSystem(SystemFileSystem):
    """The operating system's files, of which those that are only read are read in passing."""

    read_only_file = PassingFile
