"""
The transaction index: which transactions were aborted, so that read_committed readers skip them.

``00000000000000000000.txnindex`` holds an entry of 34 bytes, big-endian, for every ABORT marker in
the segment that ended a transaction with data::

    version             i16   0
    producer id         i64
    first offset        i64   of the transaction; may lie in an earlier segment
    last offset         i64   the marker's; increases from entry to entry
    last stable offset  i64   how far read_committed readers may go once the marker is there

The file is created with its first entry: a segment without aborted transactions has none. It is
derived from the ``.log``, carries no checksum, and is rebuilt when its segment is recovered.

Source: ``storage.internals.log.TransactionIndex``, ``AbortedTxn`` (KIP-98).
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from threading import Lock
from typing import NamedTuple

from logstore.errors import CorruptFileError, WriteFailedError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.sparse_index import TEMPORARY_SUFFIXES

_log = logging.getLogger(__name__)
_ENTRY = Struct(">hqqqq")
_LAST_OFFSET = Struct(">q")
_LAST_OFFSET_POSITION = 18
_VERSION = 0
EXTENSION = ".txnindex"


class AbortedTransaction(NamedTuple):
    """One entry. The transaction covers ``[first_offset, last_offset]``, its marker included."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """
    The aborted transactions of one segment.

    Entries go to the file at once, with one write each: aborts are rare. What the disk refused
    stays in memory until a flush succeeds. A flush may run in a thread beside appends.
    """

    ENTRY_BYTES = _ENTRY.size

    __slots__ = (
        "_entries",
        "_fs",
        "_is_absent",
        "_is_named",
        "_is_synced",
        "_lock",
        "_write_count",
        "_written_bytes",
        "base_offset",
        "path",
    )

    def __init__(
        self, fs: FileSystem, path: str, base_offset: int, *, size_bytes: int | None = None
    ) -> None:
        """`size_bytes` is the file's length where the caller knows it (0: there is no file)."""
        self.path = path
        self.base_offset = base_offset
        self._fs = fs
        self._is_absent = size_bytes == 0
        self._entries: bytearray | None = None  # None: not in memory
        self._written_bytes = 0
        self._write_count = 0
        self._is_synced = True
        self._is_named = True  # the name survives a power loss
        self._lock = Lock()

    # content

    @property
    def is_empty(self) -> bool:
        """Tell whether the segment has no aborted transaction."""
        return not self._data()

    def entries(self) -> Iterator[AbortedTransaction]:
        """Yield every entry, in order. Raises CorruptFileError at an unknown version."""
        data = bytes(self._data())
        for fields in _ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]):
            yield self._checked(*fields)

    def collect(self, offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """
        Return the aborted transactions that reach into ``[offset, end_offset)``, and a verdict.

        The verdict is True once no later segment can have more of them: an entry says that all
        below `end_offset` was decided when it was written.
        """
        data = self._data()
        if not data:
            return [], False
        found: list[AbortedTransaction] = []
        for slot in range(self._count_below(data, offset), len(data) // _ENTRY.size):
            entry = self._checked(*_ENTRY.unpack_from(data, slot * _ENTRY.size))
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def sanity_check(self) -> None:
        """Raise CorruptFileError at a version or an offset that no genuine entry has."""
        for entry in self.entries():
            if entry.last_offset < self.base_offset:
                raise CorruptFileError(
                    self.path,
                    f"last offset {entry.last_offset} is below the base offset {self.base_offset}",
                )

    # writing

    def prepare(self) -> None:
        """
        Have the entries in memory: from now on :meth:`append` does not depend on the disk.

        To be called before a marker is written: a marker in the log whose transaction the index
        misses would let aborted records out.

        Raises:
            WriteFailedError: the file cannot be read.

        """
        try:
            self._load()
        except OSError as error:
            raise WriteFailedError(
                f"{self.path}: {error.strerror or error}; no marker was appended"
            ) from error

    def append(self, entry: AbortedTransaction) -> None:
        """Add an entry; its last offset must be larger than that of the one before."""
        entries = self._load()
        if entries:
            last_offset = _LAST_OFFSET.unpack_from(
                entries, len(entries) - _ENTRY.size + _LAST_OFFSET_POSITION
            )[0]
            assert last_offset < entry.last_offset, f"{self.path}: {entry} after {last_offset}"
        with self._lock:
            entries += _ENTRY.pack(
                _VERSION,
                entry.producer_id,
                entry.first_offset,
                entry.last_offset,
                entry.last_stable_offset,
            )
            self._write_count += 1
            self._is_synced = False
        try:
            self._write()
        except OSError as error:
            _log.warning("%s: %s; the next flush tries again", self.path, error)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or above."""
        data = self._data()
        keep_bytes = self._count_below(data, offset) * _ENTRY.size
        if keep_bytes < len(data):
            self._cut(keep_bytes)

    def reset(self) -> None:
        """Drop all entries; an existing file stays, empty, as in Kafka."""
        self._entries = bytearray()
        if not self._is_absent and self._fs.exists(self.path):
            self._cut(0)

    def flush(self) -> None:
        """Make every entry durable; no system call if there is nothing to do."""
        if self._is_synced:
            return
        self._write()
        write_count = self._write_count
        file = self._fs.open(self.path)
        try:
            file.sync()
        except OSError:
            self._written_bytes = 0  # the kernel has forgotten the pages: write all of them again
            raise
        finally:
            file.close()
        if not self._is_named:
            self._fs.sync_directory(self.path.rpartition("/")[0])
            self._is_named = True
        with self._lock:
            if self._write_count == write_count:  # what came later is not covered
                self._is_synced = True

    def rename(self, ending: str) -> None:
        """Give the file, if there is one, `ending` instead of a temporary one it has."""
        path = self.path
        for temporary in TEMPORARY_SUFFIXES:
            path = path.removesuffix(temporary)
        path += ending
        if path != self.path and not self._is_absent and self._fs.exists(self.path):
            self._fs.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        """Let go of the memory, unless the disk lacks something of it."""
        if self._is_synced:
            self._entries = None

    def _write(self) -> None:
        """Bring to the file what it lacks."""
        with self._lock:
            entries = self._entries
            if entries is None or self._written_bytes == len(entries):
                return
            if self._is_absent:
                self._is_named = False
            file = self._fs.open(self.path, create=True)
            self._is_absent = False
            try:
                file.truncate(self._written_bytes)  # half of an entry, from a write that failed
                file.write(self._written_bytes, bytes(entries[self._written_bytes :]))
                self._written_bytes = len(entries)
            finally:
                file.close()

    def _cut(self, keep_bytes: int) -> None:
        """Cut file and memory; the file durably, or a power loss brought the entries back."""
        entries = self._load()
        with self._lock:
            del entries[keep_bytes:]
            self._written_bytes = min(self._written_bytes, keep_bytes)
            if self._is_absent:
                return
            file = self._fs.open(self.path)
            try:
                file.truncate(self._written_bytes)
                file.sync()
            finally:
                file.close()

    # reading

    def _load(self) -> bytearray:
        """Return all entries, in memory from now on; a piece of one behind them is left out."""
        if self._entries is None:
            data = self._data()
            self._entries = bytearray(data[: len(data) - len(data) % _ENTRY.size])
            self._written_bytes = len(self._entries)
        return self._entries

    def _data(self) -> bytes | bytearray:
        if self._entries is not None:
            return self._entries
        if self._is_absent or not self._fs.exists(self.path):
            self._is_absent = True
            return b""
        return read_file(self._fs, self.path)

    def _count_below(self, data: bytes | bytearray, offset: int) -> int:
        """Return how many transactions have their marker below `offset`."""
        unpack_from = _LAST_OFFSET.unpack_from
        return bisect_left(
            range(len(data) // _ENTRY.size),
            offset,
            key=lambda slot: unpack_from(data, slot * _ENTRY.size + _LAST_OFFSET_POSITION)[0],
        )

    def _checked(
        self,
        version: int,
        producer_id: int,
        first_offset: int,
        last_offset: int,
        last_stable_offset: int,
    ) -> AbortedTransaction:
        if version >> 8 > _VERSION:  # of its two bytes Kafka looks at the first alone
            raise CorruptFileError(self.path, f"version {version} of an entry, known is {_VERSION}")
        return AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset)
