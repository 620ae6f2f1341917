"""Where reading may go on behind a damaged batch."""

from __future__ import annotations

import struct

from logstore.checksum import crc32c
from logstore.host import File
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES

# base offset, length, magic, CRC
_unpack = struct.Struct(">qi4xbI").unpack_from
_CRC_START = 21
_WINDOW_BYTES = 1024 * 1024


def next_batch_position(file: File, position: int, end_position: int) -> int:
    """
    Return where the first sound batch behind the damaged one at `position` starts.

    Its length is believed if that leads to a sound batch or to the end; else every byte is tried.
    """
    head = file.read(position, HEADER_BYTES)
    if len(head) == HEADER_BYTES:
        length: int = _unpack(head)[1]
        following = position + PREFIX_BYTES + max(length, 0)
        if following == end_position or _is_sound(file, following, end_position):
            return following
    return _searched(file, position + 1, end_position)


def _searched(file: File, position: int, end_position: int) -> int:
    magic = bytes((MAGIC,))
    while position + HEADER_BYTES <= end_position:
        window = file.read(position, min(_WINDOW_BYTES + HEADER_BYTES, end_position - position))
        found = window.find(magic, 16)
        while found >= 0:
            if _is_sound(file, position + found - 16, end_position):
                return position + found - 16
            found = window.find(magic, found + 1)
        position += max(1, len(window) - HEADER_BYTES)
    return end_position


def _is_sound(file: File, position: int, end_position: int) -> bool:
    """Tell whether a whole batch with a right CRC stands there."""
    head = file.read(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return False
    length: int
    magic: int
    crc: int
    _, length, magic, crc = _unpack(head)
    size_bytes = PREFIX_BYTES + length
    if magic != MAGIC or size_bytes < HEADER_BYTES or position + size_bytes > end_position:
        return False
    return crc32c(memoryview(file.read(position, size_bytes))[_CRC_START:]) == crc
