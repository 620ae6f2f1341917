"""
Where good batches go on behind bytes that are none.

A batch names its length, so one bad length hides all that follows. The hunt looks at every byte
that could be a magic and takes the first place where header, offsets and CRC agree.
"""

from __future__ import annotations

import struct

import attrs

from logstore.checksum import crc32c
from logstore.host import File
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, PREFIX_BYTES

_HEADER = struct.Struct(">qiibIhi")
_CRC_START = 21
_MAGIC_POSITION = 16
_WINDOW_BYTES = 4 * 1024 * 1024
#: how far the offsets of one segment can be apart
_OFFSETS_MAX = 2**31 - 1
_KNOWN_ATTRIBUTES = 0x7F


@attrs.frozen
class Bounds:
    """The offsets that batches may have: from `start` to below `end`."""

    start: int
    end: int


def find_good_batch(file: File, start: int, end: int, bounds: Bounds) -> int | None:
    """Return the first position in ``[start, end)`` where a whole, valid batch of magic 2 is."""
    position = start
    while end - position >= HEADER_BYTES:
        window = file.read(position, min(_WINDOW_BYTES, end - position))
        found = _search(file, window, position, end, bounds)
        if found is not None:
            return found
        # A header that straddles the end of the window is looked at in the next one.
        position += max(1, len(window) - HEADER_BYTES + 1)
    return None


def _search(file: File, window: bytes, start: int, end: int, bounds: Bounds) -> int | None:
    at = window.find(MAGIC, _MAGIC_POSITION)
    while at >= 0:
        index = at - _MAGIC_POSITION
        if index + HEADER_BYTES > len(window):
            return None
        if is_plausible(window, index, end - start - index, bounds) and _is_whole(
            file, window, index, start
        ):
            return start + index
        at = window.find(MAGIC, at + 1)
    return None


def is_plausible(data: bytes | memoryview, index: int, available: int, bounds: Bounds) -> bool:
    """Tell whether the header at `index` can be that of a batch with such offsets."""
    base_offset, length, leader_epoch, magic, _, attributes, delta = _HEADER.unpack_from(
        data, index
    )
    return bool(
        magic == MAGIC
        and HEADER_BYTES <= PREFIX_BYTES + length <= available
        and leader_epoch >= -1
        and not attributes & ~_KNOWN_ATTRIBUTES
        and 0 <= delta <= _OFFSETS_MAX
        and bounds.start <= base_offset
        and base_offset + delta < bounds.end
    )


def _is_whole(file: File, window: bytes, index: int, start: int) -> bool:
    _, length, _, _, crc, _, _ = _HEADER.unpack_from(window, index)
    size_bytes = PREFIX_BYTES + length
    data = memoryview(window)[index : index + size_bytes]
    if len(data) < size_bytes:
        data = memoryview(file.read(start + index, size_bytes))
    return bool(len(data) == size_bytes and crc32c(data[_CRC_START:]) == crc)
