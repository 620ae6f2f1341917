"""
The facts of ``.index``, ``.timeindex`` and ``.txnindex`` files, held against the ``.log`` beside.

An index has no checksum, so only its log can tell that an entry is wrong: the batch that an offset
index points at must end at the entry's offset, and the batch that holds a time index entry's
offset must have the entry's timestamp. Compaction removes batches but keeps what they meant for a
search, so an entry that leads to a later batch is fine (KAFKA-7487).
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import File, FileSystem
from logstore.segments.kafka.offset_index import OffsetIndex
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.segments.kafka.sparse_index import SparseIndex
from logstore.segments.kafka.time_index import TimeIndex
from logstore.tools.inspection.batch_walk import walk_batches
from logstore.tools.inspection.facts import Fact, Finding, Problem, Timestamp

TRANSACTION_ENTRY = struct.Struct(">hqqqq")


def dump_offset_index(fs: FileSystem, path: str, base_offset: int) -> Iterator[Finding]:
    """Yield every entry, and what is wrong with it."""
    index = OffsetIndex.open(fs, path, base_offset, 0, zero_tail=True)
    yield from _shape_problems(index)
    if not index.entry_count:
        yield Fact("empty", {"file": path})
        return
    previous = base_offset - 1
    with _log_beside(fs, path, OffsetIndex.EXTENSION) as log:
        for slot, (offset, position) in enumerate(index.entries()):
            yield Fact("entry", {"offset": offset, "position": position})
            place = slot * OffsetIndex.ENTRY.size
            if offset <= previous:
                yield Problem(path, place, f"offset {offset} does not come after {previous}")
            previous = max(previous, offset)
            reason = None if log is None else _mismatch(log, offset, position)
            if reason is not None:
                yield Problem(path, place, reason)


def dump_time_index(fs: FileSystem, path: str, base_offset: int) -> Iterator[Finding]:
    """Yield every entry, and what is wrong with it."""
    index = TimeIndex.open(fs, path, base_offset, 0, zero_tail=True)
    yield from _shape_problems(index)
    if not index.entry_count:
        yield Fact("empty", {"file": path})
        return
    offsets = _offset_index_beside(fs, path, base_offset)
    last_ms, last = -1, base_offset
    with _log_beside(fs, path, TimeIndex.EXTENSION) as log:
        for slot, (timestamp_ms, offset) in enumerate(index.entries()):
            yield Fact("entry", {"timestamp": Timestamp(timestamp_ms), "offset": offset})
            place = slot * TimeIndex.ENTRY.size
            if timestamp_ms <= last_ms or offset < last:
                found = f"({timestamp_ms}, {offset})"
                yield Problem(path, place, f"{found} does not come after ({last_ms}, {last})")
            last_ms, last = max(last_ms, timestamp_ms), max(last, offset)
            reason = None if log is None else _time_mismatch(log, offsets, timestamp_ms, offset)
            if reason is not None:
                yield Problem(path, place, reason)


def dump_transaction_index(file: File) -> Iterator[Finding]:
    """Yield every aborted transaction of the segment."""
    data = file.read(0, file.size())
    size = TRANSACTION_ENTRY.size
    if not data:
        yield Fact("empty", {"file": file.path})
    for position in range(0, len(data) - len(data) % size, size):
        version, producer_id, first, last, stable = TRANSACTION_ENTRY.unpack_from(data, position)
        if version != 0:
            yield Problem(file.path, position, f"version {version} of an entry, expected 0")
            return
        yield Fact(
            "entry",
            {
                "version": version,
                "producerId": producer_id,
                "firstOffset": first,
                "lastOffset": last,
                "lastStableOffset": stable,
            },
        )
    if len(data) % size:
        position = len(data) - len(data) % size
        yield Problem(file.path, position, f"{len(data) % size} bytes are no whole entry")


def _shape_problems(index: SparseIndex) -> Iterator[Problem]:
    try:
        index.sanity_check()
    except CorruptFileError as error:
        yield Problem(index.path, None, error.reason)


@contextmanager
def _log_beside(fs: FileSystem, path: str, extension: str) -> Generator[File | None]:
    log_path = _sibling(path, extension, ".log")
    if not fs.exists(log_path):
        yield None
        return
    log = fs.open(log_path, writable=False)
    try:
        yield log
    finally:
        log.close()


def _sibling(path: str, extension: str, other: str) -> str:
    """Return the path of the file beside, also of one with a suffix such as ``.deleted``."""
    stem, _, suffix = path.rpartition(extension)
    return f"{stem}{other}{suffix}"


def _offset_index_beside(fs: FileSystem, path: str, base_offset: int) -> OffsetIndex:
    other = _sibling(path, TimeIndex.EXTENSION, OffsetIndex.EXTENSION)
    size_bytes = None if fs.exists(other) else 0
    return OffsetIndex.open(fs, other, base_offset, 0, size_bytes=size_bytes, zero_tail=True)


def _mismatch(log: File, offset: int, position: int) -> str | None:
    """Tell what is wrong with an offset index entry, None if nothing."""
    if not 0 <= position < log.size():
        return f"position {position} is outside of the log of {log.size()} bytes"
    try:
        batch = next(walk_batches(log, position)).batch
    except CorruptEntryError as error:
        return f"no batch starts at position {position}: {error.reason}"
    if batch.last_offset < offset:
        return (
            f"offset {offset} points at position {position}, "
            f"where a batch ends at {batch.last_offset}"
        )
    return None


def _time_mismatch(log: File, offsets: OffsetIndex, timestamp_ms: int, offset: int) -> str | None:
    """Tell what is wrong with a time index entry, None if nothing."""
    batch = _batch_of(log, offsets, offset)
    if batch is None:
        return f"the log holds no batch with offset {offset}"
    is_timeless = batch.magic == 0  # then a broker indexed the time that it was sent with
    is_told = batch.last_offset == offset and not is_timeless
    if is_told and batch.max_timestamp_ms != timestamp_ms:
        return (
            f"timestamp {timestamp_ms}, but the batch that ends at offset {offset} "
            f"has {batch.max_timestamp_ms}"
        )
    return None


def _batch_of(log: File, offsets: OffsetIndex, offset: int) -> RecordBatch | None:
    """Return the first batch that ends at `offset` or above."""
    start = offsets.lookup(offset)[1]
    for position in (start, 0) if start else (0,):  # a wrong .index must not blame the .timeindex
        try:
            for found in walk_batches(log, position):
                if found.batch.last_offset >= offset:
                    return found.batch
        except CorruptEntryError:
            continue
    return None
