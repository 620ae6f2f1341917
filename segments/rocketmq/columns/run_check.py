"""
The check of a recovery, compiled: see :func:`logstore.segments.rocketmq.log.record_walk.check_run`.

The loop accepts less than that function does. What it stops at is shown to that one, record by
record, until it can go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logstore.segments.compiled import loops
from logstore.segments.compiled.loops import Bytes, Number, uncounted
from logstore.segments.compiled.machine_words import signed_32, signed_64
from logstore.segments.rocketmq.columns.kernel import crc32
from logstore.segments.rocketmq.log.record_walk import check_run as check_slowly

if TYPE_CHECKING:
    from logstore.segments.rocketmq.log.record_walk import Checked, RecordChecks
#: of a message, as a number with a sign
_MAGIC = 0xDAA320A7 - (1 << 32)


def is_fast() -> bool:
    """Tell whether the loop is compiled."""
    return loops.is_available()


def check_run(data: memoryview, physical_offset: int, checks: RecordChecks) -> Checked:
    """Tell how many of these bytes are whole, valid records, and what is wrong with the next."""
    if checks.has_property_crc:
        return check_slowly(data, physical_offset, checks)
    source = np.frombuffer(data, np.uint8)
    position = 0
    while True:
        position = int(_check(source, position, physical_offset, checks.has_body_crc))
        size_bytes = int.from_bytes(data[position : position + 4], "big", signed=True)
        one = data[position : position + size_bytes] if size_bytes > 0 else data[position:]
        done, reason = check_slowly(one, physical_offset + position, checks)
        position += done
        if not done:
            return position, reason


@uncounted
def _check(source: Bytes, position: Number, physical_offset: Number, has_crc: bool) -> Number:
    """Return the position behind the last of the valid records."""
    end = len(source)
    at = np.int64(position)
    while end - at >= 96:
        size_bytes = signed_32(source, at)
        record_end = at + size_bytes
        if signed_32(source, at + 4) != _MAGIC or size_bytes < 91 or record_end > end:
            break
        if signed_64(source, at + 28) != physical_offset + at:
            break
        sys_flag = signed_32(source, at + 36)
        body = at + 88 + 12 * (sys_flag >> 4 & 1) + 12 * (sys_flag >> 5 & 1)
        if body + 3 > record_end:
            break
        topic = body + signed_32(source, body - 4)
        if topic < body or topic + 3 > record_end:
            break
        text = topic + 1 + np.int64(source[topic])
        if text + 2 > record_end:
            break
        if text + 2 + (np.int64(source[text]) << 8 | np.int64(source[text + 1])) != record_end:
            break
        if has_crc and topic > body:
            crc = signed_32(source, at + 8)
            if crc32(source, body, topic) & 0x7FFFFFFF != crc:
                break
        at = record_end
    return at
