"""
One pass over the batches of a file: the way of recovery, of every scan and of every check.

A log may hold messages of magic 0 and 1 between (as a rule, in front of) its batches. Each is an
entry of its own, a :class:`~logstore.segments.kafka.legacy.message.LegacyMessage`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.host import File
from logstore.segments.kafka.legacy.message import (
    MAGIC_POSITION,
    MESSAGE_BYTES_MIN,
    is_legacy_magic,
    parse_message,
)
from logstore.segments.kafka.record_batch import (
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
    batch_size_bytes,
    parse_batch,
)

#: how much of the file one step reads; a longer batch is read whole
STEP_BYTES = 1024 * 1024
_CRC_START = 21
#: how much is read to step over batch headers: more than an index interval and a header
_WINDOW_BYTES = 8 * 1024
_SPAN = struct.Struct(">qi4xb6xi")  # baseOffset, batchLength, (epoch), magic, (...), delta
_unpack_length = struct.Struct(">i").unpack_from


def walk_batches(
    file: File,
    path: str,
    position: int = 0,
    *,
    is_checked: bool = True,
    step_bytes: int = STEP_BYTES,
) -> Iterator[RecordBatch]:
    """
    Yield every batch, and every message of before there were batches, from `position` on.

    The loop is one function because recovery is as fast as it is. CRCs are checked unless
    `is_checked` is False.

    Raises:
        CorruptEntryError: one is cut short, of an unknown magic, or its CRC is wrong.

    """
    end = file.size()
    if position < 0:
        _refuse(path, position, "a damaged index leads to a place before the file")
    while position < end:
        data = memoryview(_read_step(file, path, position, end, step_bytes))
        index, available = 0, len(data)
        while available - index >= HEADER_BYTES:
            size_bytes = PREFIX_BYTES + _unpack_length(data, index + 8)[0]
            if size_bytes > available - index:
                break
            if size_bytes < HEADER_BYTES:
                batch = _entry(data, index, path, position, is_checked)
                yield batch
                index += batch.size_bytes
                continue
            view = data[index : index + size_bytes]
            batch = RecordBatch(view, size_bytes)
            if batch.magic != MAGIC:
                batch = _entry(data, index, path, position, is_checked)
            elif is_checked and crc32c(view[_CRC_START:]) != batch.crc:
                crc = batch.computed_crc()
                _refuse(
                    path, position + index, f"CRC is {crc:#010x}, header says {batch.crc:#010x}"
                )
            yield batch
            index += size_bytes
        if index == 0:  # less than a batch's header, which may be a message
            batch = _entry(data, 0, path, position, is_checked)
            yield batch
            index = batch.size_bytes
        position += index


def walk_spans(file: File, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """
    Yield (base offset, position, size, last offset delta) of each batch up to `end`; no CRC check.

    A message of magic 0 or 1 has its last offset where a batch has its first, and no delta.
    """
    window, window_start = b"", position
    while position + MAGIC_POSITION < end:
        index = position - window_start
        if index + HEADER_BYTES > len(window):
            window, window_start, index = file.read(position, _WINDOW_BYTES), position, 0
            if len(window) <= MAGIC_POSITION:
                return
            window = window.ljust(HEADER_BYTES, b"\0")  # a message may be shorter
        base_offset, length, magic, last_delta = _SPAN.unpack_from(window, index)
        if magic < MAGIC and is_legacy_magic(magic):
            last_delta = 0
            if length < MESSAGE_BYTES_MIN[magic] - PREFIX_BYTES:
                return
        elif length < HEADER_BYTES - PREFIX_BYTES:
            return
        start = position
        position += length + PREFIX_BYTES
        if position > end:
            return
        yield base_offset, start, length + PREFIX_BYTES, last_delta


def is_cut_at(file: File, position: int, end: int) -> bool:
    """Tell whether a file that ends at `end` does so before the batch at `position` does."""
    left = end - position
    return left <= MAGIC_POSITION or batch_size_bytes(file.read(position, PREFIX_BYTES)) > left


def parse_entry(
    data: memoryview, position: int = 0, path: str = "request", *, is_checked: bool = True
) -> RecordBatch:
    """
    Return a view of the whole, valid batch, or message of magic 0 or 1, at `position` of `data`.

    Without `is_checked` its CRC may be wrong.

    Raises:
        CorruptEntryError: as :func:`~logstore.segments.kafka.record_batch.parse_batch` does.

    """
    magic_position = position + MAGIC_POSITION
    if len(data) > magic_position and is_legacy_magic(data[magic_position]):
        return parse_message(data, position, path, is_checked=is_checked)
    return parse_batch(data, position, path, is_checked=is_checked)


def iterate_entries(data: memoryview, path: str = "request") -> Iterator[RecordBatch]:
    """Yield every whole batch or message in `data`; a tail that is cut short ends the iteration."""
    position = 0
    while len(data) - position > MAGIC_POSITION:
        if batch_size_bytes(data, position) > len(data) - position:
            return
        entry = parse_entry(data, position, path)
        yield entry
        position += entry.size_bytes


def _entry(data: memoryview, index: int, path: str, position: int, is_checked: bool) -> RecordBatch:
    """Return what :func:`parse_entry` does; errors count positions in the file, not in `data`."""
    try:
        return parse_entry(data, index, path, is_checked=is_checked)
    except CorruptEntryError as error:
        raise CorruptEntryError(path, position + index, error.reason) from None


def _read_step(file: File, path: str, position: int, end: int, step_bytes: int) -> bytes:
    """Return the bytes of the next step: at least one whole batch, if there is one."""
    data = file.read(position, step_bytes)
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
