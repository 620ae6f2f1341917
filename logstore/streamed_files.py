"""
Files that are written once, from front to back, past the page cache.

A conversion writes gigabytes that nobody reads soon. In the page cache they would drive out what
others need, and each page of it is work: it is found, zeroed or got from a virtual machine's host,
copied to, and written by the kernel later. So what is written is gathered in blocks that a thread
hands to the disk as they are (``O_DIRECT``), while the next is filled. Where a file system has no
such way the thread writes as everybody does, and syncs and gives back pages as it goes on.
"""

from __future__ import annotations

import errno
import mmap
import os
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING

from logstore.os_host import SystemFile, SystemFileSystem
from logstore.passing_files import give_back

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BLOCK_BYTES = 4 * 1024 * 1024
#: one is filled while two are with the disk, whose next work then waits in front of it
_BLOCK_COUNT = 3
#: positions and sizes of direct writes are multiples of it: a page, which holds any disk's sectors
_ALIGNMENT_BYTES = 4096
#: without direct writes so much waits for the disk before it is told to begin
_SYNC_STEP_BYTES = 64 * 1024 * 1024
_NO_DIRECT = -1


class BlockWriter:
    """Blocks of memory, and a thread that writes those that are full; some files share one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="block-writer")
        self._free: SimpleQueue[memoryview] = SimpleQueue()
        self._made_count = 0

    def take(self) -> memoryview:
        """Return a block to fill; waits until the disk has taken one, where all are in use."""
        if self._made_count < _BLOCK_COUNT and self._free.empty():
            self._made_count += 1
            return memoryview(mmap.mmap(-1, _BLOCK_BYTES))  # begins at a page, as the disk wants it
        return self._free.get()

    def give_back(self, block: memoryview) -> None:
        """Let somebody else fill it."""
        self._free.put(block)

    def write(self, file: StreamedFile, block: memoryview, position: int) -> Future[None]:
        """Have a full block written; it is free again when that is done."""
        return self._thread.submit(self._write, file, block, position)

    def _write(self, file: StreamedFile, block: memoryview, position: int) -> None:
        try:
            file.write_block(block, position)
        finally:
            self._free.put(block)

    def close(self) -> None:
        """Let the thread go, when it has written what it was given."""
        self._thread.shutdown()


class StreamedFile(SystemFile):
    """
    A file whose writes are handed on in blocks as long as each begins where the last one ended.

    A write anywhere else, a read and a sync first see to it that everything is with the system.
    What the thread was refused is raised by whoever writes next, syncs or closes, again and again:
    the file is not what it should be.
    """

    __slots__ = (
        "_block",
        "_block_position",
        "_blocks",
        "_direct",
        "_error",
        "_filled_bytes",
        "_under_way",
        "_unsynced_bytes",
    )

    def __init__(self, path: str, descriptor: int, blocks: BlockWriter) -> None:
        super().__init__(path, descriptor)
        self._blocks = blocks
        self._direct = _open_direct(path)
        self._block: memoryview | None = None
        self._block_position = self._filled_bytes = self._unsynced_bytes = 0
        self._under_way: list[Future[None]] = []
        self._error: OSError | None = None

    def write(self, position: int, data: Buffer) -> None:
        """Take `data`; raises OSError that names the file, also for what was taken before."""
        self._raise_error()
        view = memoryview(data).cast("B")
        if self._block is None or position != self._block_position + self._filled_bytes:
            self._settle()
            lead_bytes = min(-position % _ALIGNMENT_BYTES, len(view))
            super().write(position, view[:lead_bytes])
            view, position = view[lead_bytes:], position + lead_bytes
            if not view:
                return
            self._block, self._block_position = self._blocks.take(), position
        while view:
            view = view[self._fill(view) :]

    def _fill(self, view: memoryview) -> int:
        """Copy what fits into the block, and hand it on if it is full; return how much that was."""
        if self._block is None:
            self._block = self._blocks.take()
        block, filled = self._block, self._filled_bytes
        count = min(len(view), len(block) - filled)
        block[filled : filled + count] = view[:count]
        self._filled_bytes = filled + count
        if self._filled_bytes == len(block):
            self._under_way = [one for one in self._under_way if not one.done()]
            self._under_way.append(self._blocks.write(self, block, self._block_position))
            self._block = None
            self._block_position, self._filled_bytes = self._block_position + len(block), 0
        return count

    def write_block(self, block: memoryview, position: int) -> None:
        """Write a block of whole pages: what the thread does. Its errors are kept, not raised."""
        try:
            if self._error is None and not self._write_directly(block, position):
                super().write(position, block)
                self._sync_sometimes(len(block))
        except OSError as error:
            self._error = error

    def _write_directly(self, block: memoryview, position: int) -> bool:
        """Write past the page cache; tell whether the system can."""
        done = 0
        while self._direct != _NO_DIRECT and done < len(block):
            try:
                done += os.pwrite(self._direct, block[done:], position + done)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    error.filename = self.path
                    raise
                self._close_direct()
        return self._direct != _NO_DIRECT

    def _sync_sometimes(self, size_bytes: int) -> None:
        self._unsynced_bytes += size_bytes
        if self._unsynced_bytes >= _SYNC_STEP_BYTES:
            self._unsynced_bytes = 0
            super().sync()
            give_back(self)

    def _settle(self) -> None:
        """See to it that all that was written is with the system."""
        block, filled = self._block, self._filled_bytes
        self._block, self._filled_bytes = None, 0
        under_way, self._under_way = self._under_way, []
        for one in under_way:
            one.result()
        if block is not None:
            whole_bytes = filled - filled % _ALIGNMENT_BYTES
            self.write_block(block[:whole_bytes], self._block_position)
            rest = bytes(block[whole_bytes:filled])
            self._blocks.give_back(block)
            if self._error is None and rest:
                super().write(self._block_position + whole_bytes, rest)
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise OSError(self._error.errno, self._error.strerror, self.path)

    def size(self) -> int:
        """Return the length in bytes."""
        self._settle()
        return super().size()

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer only where the file ends."""
        self._settle()
        return super().read(position, size_bytes)

    def read_into(self, position: int, target: memoryview) -> int:
        """Fill `target` from `position`; return how many bytes there were."""
        self._settle()
        return super().read_into(position, target)

    def truncate(self, size_bytes: int) -> None:
        """Cut or (sparsely) extend the file to `size_bytes`."""
        self._settle()
        super().truncate(size_bytes)

    def next_data(self, position: int) -> int | None:
        """Return the first position from there on that need not be a zero of a hole, or None."""
        self._settle()
        return super().next_data(position)

    def sync(self) -> None:
        """Return once data and size are on stable storage; their pages are given back."""
        self._settle()
        super().sync()
        give_back(self)

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sends."""
        self._settle()
        return super().fileno()

    def release(self) -> int:
        """Return the descriptor, which is the caller's to close from now on."""
        self._settle()
        self._close_direct()
        return super().release()

    def close(self) -> None:
        """Hand over what is left, and give the descriptors back."""
        if self._descriptor < 0:
            return
        try:
            self._settle()
        finally:
            self._close_direct()
            super().close()

    def _close_direct(self) -> None:
        direct, self._direct = self._direct, _NO_DIRECT
        if direct != _NO_DIRECT:
            os.close(direct)

    def __del__(self) -> None:
        # Nobody closed it: what it holds is no file that anybody waits for.
        self._close_direct()
        super().close()


def _open_direct(path: str) -> int:
    """Return a descriptor that writes past the page cache; none where the system has no such."""
    if not hasattr(os, "O_DIRECT"):
        return _NO_DIRECT
    try:
        return os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return _NO_DIRECT


class StreamedFileSystem(SystemFileSystem):
    """The operating system's files, of which those that are written are streamed."""

    def __init__(self) -> None:
        self._blocks = BlockWriter()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """Open a file; raises as :meth:`SystemFileSystem.open`."""
        file = super().open(path, create=create, writable=writable)
        return StreamedFile(path, file.release(), self._blocks) if writable else file

    def close(self) -> None:
        """Let the thread go; files that are still open can be closed."""
        self._blocks.close()
