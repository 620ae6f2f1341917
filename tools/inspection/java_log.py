"""
Walk over a log as Kafka's ``FileLogInputStream`` does: which bytes it takes for a batch.

It trusts sizes: nothing but a size below 14 is wrong to it, and a batch that the file does not hold
whole is the end. So it also steps over what :mod:`.batch_walk` complains about.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.host import File
from logstore.segments.kafka.legacy.message import MESSAGE_BYTES_MIN, LegacyMessage
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
)
from logstore.tools.inspection.java_indexes import JavaError

#: offset, size, leader epoch or CRC, magic: what all formats share
_COMMON_BYTES = 17
_SIZE_MIN = 14
_WINDOW_BYTES = 1024 * 1024
_MAGIC_POSITION = 16


def java_batches(
    file: File, shown_path: str, start: int = 0, end: int | None = None, *, is_whole: bool = True
) -> Iterator[tuple[int, RecordBatch]]:
    """
    Yield (position, batch or message of magic 0 or 1); of the batch at least its header is there.

    Raises:
        JavaError: a size can be none.

    """
    end = file.size() if end is None else end
    position, window, window_start = start, memoryview(b""), start
    while position < end - _COMMON_BYTES:
        index = position - window_start
        if len(window) - index < min(HEADER_BYTES, end - position):
            window = memoryview(file.read(position, min(_WINDOW_BYTES, end - position)))
            window_start, index = position, 0
        size_bytes = batch_size_bytes(window, index)
        if size_bytes - PREFIX_BYTES < _SIZE_MIN:
            raise JavaError(
                "org.apache.kafka.common.errors.CorruptRecordException",
                f"Found record size {size_bytes - PREFIX_BYTES} smaller than minimum record "
                f"overhead ({_SIZE_MIN}) in file {shown_path}.",
            )
        if position > end - size_bytes:
            return
        if is_whole and len(window) - index < size_bytes:
            window = memoryview(file.read(position, max(_WINDOW_BYTES, size_bytes)))
            window_start, index = position, 0
        batch = _batch(window[index:], size_bytes)
        if batch.magic >= MAGIC and file.size() - position < HEADER_BYTES:
            records = f"FileRecords(size={end}, file={shown_path}, start=0, end={end})"
            raise JavaError(
                "org.apache.kafka.common.KafkaException",
                f"Failed to load record batch at position {position} from {records}",
            )
        yield position, batch
        position += size_bytes


def _batch(data: memoryview, size_bytes: int) -> RecordBatch:
    magic = data[_MAGIC_POSITION]
    whole = data[:size_bytes]
    if magic in MESSAGE_BYTES_MIN and size_bytes >= MESSAGE_BYTES_MIN[magic]:
        return LegacyMessage(whole, size_bytes)
    if len(whole) < HEADER_BYTES:  # too small to be a batch: what follows serves as its header
        whole = memoryview(bytes(data[:HEADER_BYTES]).ljust(HEADER_BYTES, b"\0"))
    return RecordBatch(whole, size_bytes)


def is_legacy(batch: RecordBatch) -> bool:
    """Tell whether it is a message of before Kafka 0.11."""
    return batch.magic < MAGIC
