"""Where in a commit log the next record starts: told by the physical offset that it carries."""

from __future__ import annotations

import struct

from logstore.host import File
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    VERSIONS,
)

_WINDOW_BYTES = 1024 * 1024
_PHYSICAL_OFFSET_AT = 28
_HEAD_BYTES = _PHYSICAL_OFFSET_AT + 8
_unpack = struct.Struct(">i4s20xq").unpack_from
_MAGIC_START = b"\xda\xa3\x20"


def goes_on(file: File, base_physical_offset: int, position: int) -> bool:
    """
    Tell whether a record or a BLANK stands where the records of a piece end.

    Where neither does, whoever reads the next piece passes over what stands there.
    """
    head = file.read(position, _HEAD_BYTES)
    if len(head) >= BLANK_BYTES and BLANK.unpack_from(head)[1] == BLANK_MAGIC:
        return True
    return len(head) == _HEAD_BYTES and _is_start(head, 0, base_physical_offset + position)


def _is_start(window: bytes, at: int, place: int) -> bool:
    size_bytes, magic, physical_offset = _unpack(window, at)
    return magic in VERSIONS and size_bytes > _HEAD_BYTES and physical_offset == place


def next_record_position(
    file: File, base_physical_offset: int, position: int, end_position: int
) -> int:
    """
    Return the first position at or behind `position` where a record starts, or `end_position`.

    A record is believed to be one if its magic is right and it says that it stands just there.
    """
    if position == 0:
        return 0
    while position < end_position:
        window = file.read(position, _WINDOW_BYTES)
        if len(window) < 8:
            break
        found = window.find(_MAGIC_START, 4)
        while 0 <= found <= len(window) - _HEAD_BYTES + 4:
            at = found - 4
            if _is_start(window, at, base_physical_offset + position + at):
                return min(position + at, end_position)
            found = window.find(_MAGIC_START, found + 1)
        if len(window) < _WINDOW_BYTES:
            break
        position += len(window) - _HEAD_BYTES
    return end_position
