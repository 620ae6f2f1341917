"""
A sparse index: a sorted run of fixed-size entries that lead into one segment's data file.

An index is derived from the data file, can always be built again, and so carries no checksum.
Its life:

- *Active* (created or resumed): all entries are in a ``bytearray``; an append costs no system
  call. :meth:`SparseIndex.flush` writes what is new with one write. On disk the file stands at its
  full size (rounded down to whole entries, sparse), as Kafka maps it.
- *Sealed* (opened or sealed): neither bytes nor handle are held until the first lookup, which
  loads the file whole through an :class:`IndexCache`. Nothing is mapped: brokers with many
  segments run out of maps before they run out of memory.

No handle outlives a call, so thousands of indexes cost no descriptors.
Not thread-safe, but for one thing: a flush in a thread of its own may run beside appends and
beside the roll that seals the index.

Source: ``storage.internals.log.AbstractIndex``.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from struct import Struct
from threading import Lock, RLock
from typing import ClassVar, TypeVar

from logstore.errors import CorruptFileError, OffsetError
from logstore.host import File, FileSystem, read_file
from logstore.zero_tail import written_length

CACHE_BYTES_MAX = 64 * 1024 * 1024
TEMPORARY_SUFFIXES = (".deleted", ".cleaned", ".swap")

IndexT = TypeVar("IndexT", bound="SparseIndex")


class IndexOrderError(OffsetError):
    """An index entry does not come after the one before it."""


class IndexOverflowError(OffsetError):
    """An offset is too far from the base offset, or a position too large, for four bytes."""


class IndexCache:
    """
    The bytes of sealed indexes that were used last, at most `bytes_max` of them together.

    A file larger than the whole cache is handed out but not kept. Shared by partitions that are
    opened and flushed in threads of their own, hence the lock.
    """

    def __init__(self, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.size_bytes = 0
        self._loaded: OrderedDict[SparseIndex, bytes] = OrderedDict()
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._loaded)

    def get(self, index: SparseIndex) -> bytes | None:
        """Return what is kept of `index` and remember that it was used."""
        with self._lock:
            data = self._loaded.get(index)
            if data is not None:
                self._loaded.move_to_end(index)
            return data

    def put(self, index: SparseIndex, data: bytes) -> None:
        """Keep the bytes of `index`, and drop what was not used for longest."""
        with self._lock:
            self.discard(index)
            if len(data) > self.bytes_max:
                return
            self._loaded[index] = data
            self.size_bytes += len(data)
            while self.size_bytes > self.bytes_max:
                _, dropped = self._loaded.popitem(last=False)
                self.size_bytes -= len(dropped)

    def take(self, index: SparseIndex) -> bytes | None:
        """Forget `index`; return what was kept of it."""
        with self._lock:
            data = self._loaded.pop(index, None)
            if data is not None:
                self.size_bytes -= len(data)
            return data

    def discard(self, index: SparseIndex) -> None:
        """Forget `index`."""
        self.take(index)


class SparseIndex(ABC):
    """What offset index and time index have in common; the entries differ."""

    ENTRY: ClassVar[Struct]
    #: where in an entry the four bytes of its relative offset stand
    _RELATIVE_OFFSET_AT: ClassVar[int]
    EXTENSION: ClassVar[str]

    __slots__ = (
        "_cache",
        "_entries",
        "_fs",
        "_has_lost_pages",
        "_is_in_shape",
        "_is_synced",
        "_lock",
        "_size_bytes",
        "_write_count",
        "_written_bytes",
        "_zero_tail",
        "base_offset",
        "bytes_max",
        "path",
    )

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        bytes_max: int,
        cache: IndexCache | None = None,
    ) -> None:
        self._fs = fs
        self._cache = IndexCache() if cache is None else cache
        self.path = path
        self.base_offset = base_offset
        #: As configured, rounded down to whole entries: the size of the active file.
        self.bytes_max = bytes_max - bytes_max % self.ENTRY.size
        self._entries: bytearray | None = None  # None: sealed
        self._written_bytes = 0  # active: how much of the entries the file has
        self._is_in_shape = False  # active: the file is at full size, zeros past what was written
        self._is_synced = True
        self._has_lost_pages = False  # sealed: a sync failed, so the file is to be written anew
        self._size_bytes: int | None = None  # sealed: used length, None until somebody looked
        self._zero_tail = False
        self._write_count = 0
        self._lock = Lock()  # of a flush against a roll; not held over a sync

    # -- life ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls: type[IndexT],
        fs: FileSystem,
        path: str,
        base_offset: int,
        bytes_max: int,
        *,
        cache: IndexCache | None = None,
        preallocate: bool = False,
    ) -> IndexT:
        """
        Return an empty active index of at most `bytes_max`.

        The file is made at its full size with `preallocate`, otherwise by the first flush; an old
        file of that name loses its content either way.
        """
        index = cls(fs, path, base_offset, bytes_max, cache)
        index._entries = bytearray()
        index._is_synced = False
        index._loaded()
        if preallocate:
            index.flush(sync=False)
        return index

    @classmethod
    def open(
        cls: type[IndexT],
        fs: FileSystem,
        path: str,
        base_offset: int,
        bytes_max: int,
        *,
        cache: IndexCache | None = None,
        size_bytes: int | None = None,
        zero_tail: bool = False,
    ) -> IndexT:
        """
        Return the sealed index that a file holds; nothing is read yet.

        `size_bytes` is the file's length if the caller knows it (0 if there is no file). With
        `zero_tail` the zeros of a file that was active when its broker died are left out; without,
        as in Kafka, every entry of the file counts.
        """
        index = cls(fs, path, base_offset, bytes_max, cache)
        index._zero_tail = zero_tail
        index._size_bytes = None if zero_tail and size_bytes else size_bytes
        return index

    def resume(self, *, preallocate: bool = False) -> None:
        """Make the index active again: load it, and let the file grow back to its full size."""
        if self._entries is None:
            # Past the cache: from now on the entries are here.
            data = b"" if self._size_bytes == 0 else self._cache.take(self) or self._read()
            self._entries = bytearray(data[: len(data) - len(data) % self.ENTRY.size])
            self._written_bytes = len(self._entries)
            self._is_in_shape = False
            self._zero_tail = False
            self._loaded()
        if preallocate:
            self.flush(sync=False)

    def flush(self, sync: bool = True) -> None:
        """
        Bring every entry so far to the file and, with `sync`, to stable storage.

        The first flush makes an active file as large as it may become. No system call if there is
        nothing to do.
        """
        entries = self._entries
        if entries is None:
            if sync and not self._is_synced:
                self._sync_sealed()
            return
        is_written = self._is_in_shape and self._written_bytes == len(entries)
        if is_written and (self._is_synced or not sync):
            return
        file = self._fs.open(self.path, create=True)
        try:
            self._write_entries(file, entries)
            if sync:
                self._sync(file)
        finally:
            file.close()

    def _write_entries(self, file: File, entries: bytearray) -> None:
        """Give the active file its size and what it lacks of `entries`."""
        with self._lock:
            if self._entries is not entries:
                return  # sealed since: the file is written and trimmed
            if not self._is_in_shape:
                file.truncate(self._written_bytes)  # what stood behind was cut off, or is another's
                file.truncate(self.bytes_max)
                self._is_in_shape = True
                self._note_write()
            # A copy, because a view would forbid appends while this thread writes it.
            tail = bytes(entries[self._written_bytes :])
            if tail:
                self._note_write()
                file.write(self._written_bytes, tail)
                self._written_bytes += len(tail)

    def seal(self) -> None:
        """Write what is missing, trim the file to what is used, and let go of the memory."""
        with self._lock:
            entries = self._entries
            if entries is None:
                return
            self._is_in_shape = False
            self._note_write()
            file = self._fs.open(self.path, create=True)
            try:
                file.truncate(self._written_bytes)
                if self._written_bytes < len(entries):
                    file.write(self._written_bytes, entries[self._written_bytes :])
            finally:
                file.close()
            self._size_bytes = self._written_bytes = len(entries)
            self._entries = None

    def close(self) -> None:
        """Seal an active index; let go of the memory of a sealed one."""
        self.seal()
        self._cache.discard(self)

    def drop(self) -> None:
        """Let go of the memory; the file stays as it is, and is of no use to a sealed index."""
        with self._lock:
            self._entries = None
        self._cache.discard(self)

    def rename(self, suffix: str) -> None:
        """Give the file `suffix` instead of the temporary one it has, if any; ``""`` for none."""
        path = self.path
        for old in TEMPORARY_SUFFIXES:
            path = path.removesuffix(old)
        path += suffix
        if path != self.path and self._fs.exists(self.path):
            self._fs.rename(self.path, path)
        self.path = path

    def remove(self) -> None:
        """Remove the file, if it is there; the index is of no use afterwards."""
        self._cache.discard(self)
        if self._fs.exists(self.path):
            self._fs.remove(self.path)

    # -- content ------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Tell whether entries may be appended."""
        return self._entries is not None

    @property
    def size_bytes(self) -> int:
        """Bytes that are in use."""
        if self._entries is not None:
            return len(self._entries)
        if self._size_bytes is None:
            if self._zero_tail:
                return len(self.data())
            file = self._fs.open(self.path, writable=False)
            try:
                self._size_bytes = file.size()
            finally:
                file.close()
        return self._size_bytes

    @property
    def entry_count(self) -> int:
        """How many entries there are."""
        return self.size_bytes // self.ENTRY.size

    @property
    def entry_count_max(self) -> int:
        """How many entries fit."""
        return self.bytes_max // self.ENTRY.size

    def data(self) -> bytes | bytearray:
        """Return all bytes in use. Those of an active index change under the caller's hands."""
        if self._entries is not None:
            return self._entries
        if self._size_bytes == 0:
            return b""  # also where there is no file
        data = self._cache.get(self)
        if data is None:
            data = self._read()
            self._cache.put(self, data)
        return data

    def _read(self) -> bytes:
        """Read a sealed index from its file."""
        data = read_file(self._fs, self.path)
        if self._zero_tail:
            data = self._without_zero_tail(data)
        self._size_bytes = len(data)
        return data

    def _last_data(self) -> bytes | bytearray:
        """
        Return bytes that end with the last entry; of a sealed index, no more than that.

        A start asks it of every segment, and all their indexes together are gigabytes.
        """
        if self._entries is not None or self._zero_tail or self._size_bytes == 0:
            return self.data()
        data = self._cache.get(self)
        if data is not None:
            return data
        file = self._fs.open(self.path, writable=False)
        try:
            self._size_bytes = file.size()
            count = self.entry_count
            return file.read((count - 1) * self.ENTRY.size, self.ENTRY.size) if count else b""
        finally:
            file.close()

    def reset(self) -> None:
        """Drop all entries and be active."""
        self._cache.discard(self)
        if self._entries is None:
            self._written_bytes = 0
            self._is_in_shape = False
            self._zero_tail = False
        self._entries = bytearray()
        self._cut()

    def truncate_to(self, offset: int) -> None:
        """Drop the entries with this offset and above, and be active."""
        self.resume()
        assert self._entries is not None, "resume() makes an index active"
        keep_bytes = self._count_below(offset) * self.ENTRY.size
        if keep_bytes < len(self._entries):
            del self._entries[keep_bytes:]
            self._cut()

    def sanity_check(self) -> None:
        """Raise CorruptFileError if the length or the order of the ends cannot be right."""
        size_bytes = len(self.data())
        if size_bytes % self.ENTRY.size:
            raise CorruptFileError(
                self.path,
                f"{size_bytes} bytes are no whole number of {self.ENTRY.size}-byte entries",
            )
        if size_bytes:
            self._check_ends()

    def _cut(self) -> None:
        """Take note that entries went away from the end."""
        assert self._entries is not None, "only an active index loses entries"
        if self._written_bytes > len(self._entries):
            self._written_bytes = len(self._entries)
            self._is_in_shape = False
        self._loaded()

    def _sync_sealed(self) -> None:
        file = self._fs.open(self.path)
        try:
            if self._has_lost_pages:
                file.write(0, self.data())
            self._sync(file)
        finally:
            file.close()

    def _sync(self, file: File) -> None:
        """Sync; after a failure the kernel has forgotten the pages, so all are written again."""
        write_count = self._write_count
        try:
            file.sync()
        except OSError:
            with self._lock:
                self._has_lost_pages = True
                self._written_bytes = 0
            raise
        with self._lock:
            if self._write_count == write_count:  # what came later is not covered
                self._has_lost_pages = False
                self._is_synced = True

    def _note_write(self) -> None:
        self._write_count += 1
        self._is_synced = False

    def _without_zero_tail(self, data: bytes) -> bytes:
        """
        Return `data` up to the zeros that a preallocated file ends with.

        An entry past the first whose relative offset is 0 cannot be genuine: it is what
        DumpLogSegments stops at. A first entry of zeros with something behind it is none either.
        """
        size = self.ENTRY.size
        used = written_length(data)
        used += -used % size
        # Whether four bytes are zero does not depend on their order, so they are told in one go.
        whole = min(used, len(data)) // size * size
        words = memoryview(data)[:whole].cast("i")
        offsets: list[int] = words[self._RELATIVE_OFFSET_AT // 4 :: size // 4].tolist()
        with contextlib.suppress(ValueError):
            used = offsets.index(0, 1) * size
        if used == 0 and len(data) == size:
            return data  # one entry that happens to be zero, in a file that was trimmed
        return data[:used]

    # -- what the two kinds answer their own way ----------------------------------------------

    @abstractmethod
    def _count_below(self, offset: int) -> int:
        """Return how many entries have a smaller offset."""

    @abstractmethod
    def _loaded(self) -> None:
        """Remember the last entry: the entries were replaced or cut."""

    @abstractmethod
    def _check_ends(self) -> None:
        """Raise CorruptFileError if first and last entry (there is one) cannot be right."""

    @abstractmethod
    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield all entries, in order."""
