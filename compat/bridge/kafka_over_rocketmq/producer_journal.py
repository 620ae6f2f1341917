"""
What idempotent producers have sent to queues, so that a restart knows a repetition for one.

A queue has no place for producer ids and sequences. They stand in a file beside the data, an entry
for each batch, written right after its messages and synced right before them. ::

    size of the entry u16 | CRC-32C of the rest u32 | partition i32 | producer id i64 | epoch i16
    | first and last sequence i32 i32 | last offset i64 | offset delta i32 | timestamp i64 | topic

The file ends where an entry is cut short or does not fit its CRC. A start reads it, forgets what
the queues no longer have, and writes it anew.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

import attrs

from logstore.checksum import crc32c
from logstore.host import Host, read_file

FILE_NAME = "producers.journal"
#: a longer file is written anew, with what still counts
SIZE_BYTES_MAX = 4 * 1024 * 1024
_HEAD = struct.Struct(">HI")
_FIELDS = struct.Struct(">iqhiiqiq")


@attrs.frozen
class SentBatch:
    """One batch of an idempotent producer."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    def packed(self) -> bytes:
        """Return the entry."""
        fields = _FIELDS.pack(*attrs.astuple(self)[1:]) + self.topic.encode()
        return _HEAD.pack(_HEAD.size + len(fields), crc32c(fields)) + fields


def unpacked(data: bytes) -> Iterator[SentBatch]:
    """Yield the entries up to the first that is cut short or damaged."""
    position = 0
    while position + _HEAD.size + _FIELDS.size <= len(data):
        size_bytes, crc = _HEAD.unpack_from(data, position)
        entry = data[position + _HEAD.size : position + size_bytes]
        is_whole = len(entry) == size_bytes - _HEAD.size >= _FIELDS.size
        if not is_whole or crc32c(entry) != crc:
            return
        topic = entry[_FIELDS.size :].decode("utf-8", "replace")
        yield SentBatch(topic, *_FIELDS.unpack_from(entry))
        position += size_bytes


class ProducerJournal:
    """The file in `directory`; `kept` returns what counts when it is written anew."""

    def __init__(self, host: Host, directory: str) -> None:
        self._fs = host.fs
        self._path = f"{directory}/{FILE_NAME}"
        self._directory = directory
        self.kept: Callable[[], Iterable[SentBatch]] = tuple
        self._end = 0
        self._is_dirty = False
        self._file = None if not host.fs.exists(self._path) else host.fs.open(self._path)

    def load(self) -> list[SentBatch]:
        """Return the entries that were written before the last stop. Raises OSError."""
        if self._file is None:
            return []
        return list(unpacked(read_file(self._fs, self._path)))

    def note(self, batch: SentBatch) -> None:
        """Add an entry; a kill of the process does not lose it. Raises OSError."""
        if self._file is None or self._end >= SIZE_BYTES_MAX:
            self.rewrite()
        assert self._file is not None, "it was just written"
        data = batch.packed()
        self._file.write(self._end, data)
        self._end += len(data)
        self._is_dirty = True

    def rewrite(self) -> None:
        """Write the file anew, durably, with what still counts. Raises OSError."""
        data = b"".join(batch.packed() for batch in self.kept())
        fresh = f"{self._path}.tmp"
        file = self._fs.open(fresh, create=True)
        file.truncate(0)
        file.write(0, data)
        file.sync()
        if self._file is not None:
            self._file.close()
        self._fs.rename(fresh, self._path)
        self._fs.sync_directory(self._directory)
        file.close()
        self._file = self._fs.open(self._path)
        self._end = len(data)
        self._is_dirty = False

    def sync(self) -> None:
        """Make all entries durable; may be called in any thread. Raises OSError."""
        if self._is_dirty and self._file is not None:
            self._is_dirty = False
            self._file.sync()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
