"""One pass over the batches of a file: the way of recovery, of every scan and of every check."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES, RecordBatch

#: how much of the file one step reads; a longer batch is read whole
STEP_BYTES = 1024 * 1024
_CRC_START = 21
_unpack_length = struct.Struct(">i").unpack_from


def walk_batches(
    file: File, path: str, position: int = 0, *, is_checked: bool = True
) -> Iterator[RecordBatch]:
    """
    Yield every batch from `position` to the end of the file.

    The loop is one function because recovery is as fast as it is. CRCs are checked unless
    `is_checked` is False.

    Raises:
        CorruptEntryError: a batch is cut short, not of magic 2, or its CRC is wrong.

    """
    end = file.size()
    if position < 0:
        _refuse(path, position, "a damaged index leads to a place before the file")
    while position < end:
        data = memoryview(_read_step(file, path, position, end))
        index, available = 0, len(data)
        while available - index >= HEADER_BYTES:
            size_bytes = PREFIX_BYTES + _unpack_length(data, index + 8)[0]
            if size_bytes > available - index:
                break
            if size_bytes < HEADER_BYTES:
                _refuse(path, position + index, f"batch length {size_bytes - 12} is too small")
            view = data[index : index + size_bytes]
            batch = RecordBatch(view, size_bytes)
            if batch.magic != MAGIC:
                _refuse(path, position + index, f"magic {batch.magic}, expected {MAGIC}")
            if is_checked and crc32c(view[_CRC_START:]) != batch.crc:
                crc = batch.computed_crc()
                _refuse(
                    path, position + index, f"CRC is {crc:#010x}, header says {batch.crc:#010x}"
                )
            yield batch
            index += size_bytes
        if index == 0:
            _refuse(path, position, f"{available} bytes are less than a batch header")
        position += index


def _read_step(file: File, path: str, position: int, end: int) -> bytes:
    """Return the bytes of the next step: at least one whole batch, if there is one."""
    data = file.read(position, STEP_BYTES)
    if len(data) < HEADER_BYTES:
        return data
    size_bytes = PREFIX_BYTES + _unpack_length(data, 8)[0]
    if size_bytes > end - position:  # not to be read: a wrong length may say gigabytes
        _refuse(
            path, position, f"a batch of {size_bytes} bytes is cut short after {end - position}"
        )
    return file.read(position, size_bytes) if size_bytes > len(data) else data


def _refuse(path: str, position: int, reason: str) -> None:
    raise CorruptEntryError(path, position, reason)
