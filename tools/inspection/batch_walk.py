"""
Walk over the record batches of a ``.log`` file as it stands, good or bad.

Messages of magic 0 and 1, of before Kafka 0.11, are batches too
(:class:`~logstore.segments.kafka.legacy.message.LegacyMessage`).

:class:`logstore.segments.kafka.segment.KafkaSegment` stops at the first wrong CRC, because it
serves data. Here a wrong CRC is a finding like any other; only where no next batch can be found
does the walk end, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.kafka.legacy.message import MESSAGE_BYTES_MIN, LegacyMessage
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)

#: how much is read to step over headers, and to read whole batches
HEAD_WINDOW_BYTES = 8 * 1024
DATA_WINDOW_BYTES = 1024 * 1024
#: bytes up to and with the magic, which all versions of the format share
_COMMON_BYTES = 17


@attrs.frozen
class FoundBatch:
    """
    A batch and where it stands.

    `batch.data` is the whole batch if it was asked for, else at least its header.
    """

    position: int
    batch: RecordBatch

    @property
    def end_position(self) -> int:
        """Where the next batch stands."""
        return self.position + self.batch.size_bytes


def walk_batches(
    file: File, position: int = 0, end: int | None = None, *, is_whole: bool = False
) -> Iterator[FoundBatch]:
    """
    Yield the batches of `file` from `position` to `end` (default: its size); CRCs are not checked.

    Only headers are read unless `is_whole`.

    Raises:
        CorruptEntryError: what stands at a position is no whole batch.

    """
    end = file.size() if end is None else end
    window_bytes = DATA_WINDOW_BYTES if is_whole else HEAD_WINDOW_BYTES
    window, start = memoryview(b""), position
    while position < end:
        index = position - start
        if len(window) - index < min(HEADER_BYTES, end - position):
            window, start, index = _read(file, position, min(window_bytes, end - position))
        size_bytes = _checked_size(file.path, position, window[index:], end - position)
        if is_whole and len(window) - index < size_bytes:
            window, start, index = _read(file, position, max(window_bytes, size_bytes))
        view = window[index : index + size_bytes]
        is_message = view[_COMMON_BYTES - 1] < MAGIC
        batch = LegacyMessage(view, size_bytes) if is_message else RecordBatch(view, size_bytes)
        yield FoundBatch(position, batch)
        position += size_bytes


def _read(file: File, position: int, size_bytes: int) -> tuple[memoryview, int, int]:
    return memoryview(file.read(position, size_bytes)), position, 0


def _checked_size(path: str, position: int, data: memoryview, available: int) -> int:
    """Return the size of the batch that `data` starts with, if it can be one at all."""
    head_bytes = min(available, len(data))
    if head_bytes < _COMMON_BYTES:
        raise CorruptEntryError(path, position, f"{head_bytes} bytes are less than a batch header")
    size_bytes = batch_size_bytes(data)
    if size_bytes == PREFIX_BYTES and not any(data[:HEADER_BYTES]):
        raise CorruptEntryError(path, position, f"zeros: {available} bytes that nobody wrote")
    magic = data[_COMMON_BYTES - 1]
    if magic in MESSAGE_BYTES_MIN and size_bytes >= MESSAGE_BYTES_MIN[magic]:
        if size_bytes <= available:
            return size_bytes
        raise CorruptEntryError(
            path, position, f"a message of {size_bytes} bytes is cut short after {available}"
        )
    if size_bytes < HEADER_BYTES:
        raise CorruptEntryError(path, position, f"batch length {size_bytes - 12} is too small")
    if magic != MAGIC:
        raise CorruptEntryError(path, position, f"magic {magic}, expected {MAGIC}")
    if size_bytes > available or head_bytes < HEADER_BYTES:
        raise CorruptEntryError(
            path, position, f"a batch of {size_bytes} bytes is cut short after {available}"
        )
    return size_bytes


def whole_batch(file: File, position: int) -> RecordBatch:
    """
    Return the batch at `position` with all its bytes; its CRC is not checked.

    Raises:
        CorruptEntryError: there is no whole batch.

    """
    for found in walk_batches(file, position, is_whole=True):
        return found.batch
    raise CorruptEntryError(file.path, position, "the file ends here")
