"""
The check of a recovery, compiled: see :func:`logstore.segments.rocketmq.log.record_walk.check_run`.

The loops accept less than that function does. What they stop at is shown to that one, record by
record, until they can go on. Checksums of four bodies are computed side by side: each step of a
CRC waits for the one before, so that one alone leaves most of a core idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logstore.segments.rocketmq.columns import kernel
from logstore.segments.rocketmq.columns.kernel import Bytes, Int64s, Number, compiled
from logstore.segments.rocketmq.log.record_walk import check_run as check_slowly

if TYPE_CHECKING:
    from logstore.segments.rocketmq.log.record_walk import Checked, RecordChecks

#: records whose bodies are looked at together, after all their headers
_GROUP = 4096
_START, _BODY, _BODY_END, _CRC = range(4)
_TABLES = kernel._CRC_TABLES  # pyright: ignore[reportPrivateUsage]
_signed_32 = kernel._signed_32  # pyright: ignore[reportPrivateUsage]
_signed_64 = kernel._signed_64  # pyright: ignore[reportPrivateUsage]
_unsigned_32 = kernel._unsigned_32  # pyright: ignore[reportPrivateUsage]
_BYTE = np.uint32(255)
_8, _16, _24 = np.uint32(8), np.uint32(16), np.uint32(24)


def is_fast() -> bool:
    """Tell whether the loops are compiled."""
    return kernel.is_available()


def check_run(data: memoryview, physical_offset: int, checks: RecordChecks) -> Checked:
    """Tell how many of these bytes are whole, valid records, and what is wrong with the next."""
    if checks.has_property_crc:
        return check_slowly(data, physical_offset, checks)
    source = np.frombuffer(data, np.uint8)
    table = np.empty((_GROUP, 4), np.int64)
    position = 0
    while True:
        position = int(
            _check(source, position, physical_offset, checks.has_body_crc, table, _TABLES)
        )
        size_bytes = int.from_bytes(data[position : position + 4], "big", signed=True)
        one = data[position : position + size_bytes] if size_bytes > 0 else data[position:]
        done, reason = check_slowly(one, physical_offset + position, checks)
        position += done
        if not done:
            return position, reason


@compiled
def _check(
    source: Bytes,
    position: Number,
    physical_offset: Number,
    has_crc: bool,
    table: Int64s,
    tables: NDArray[np.uint32],
) -> Number:
    """Return the position behind the last of the valid records."""
    while True:
        count, end = _check_headers(source, position, physical_offset, table)
        if has_crc:
            sound = _check_bodies(source, table, count, tables)
            if sound < count:
                bad: Number = table[sound, _START]
                return bad
        if count < len(table):
            return end
        position = end


@compiled
def _check_headers(
    source: Bytes, position: Number, physical_offset: Number, table: Int64s
) -> tuple[int, Number]:
    """Note where bodies stand; return how many records have sound headers, and where they end."""
    end = len(source)
    count = 0
    while count < len(table) and end - position >= 96:
        size_bytes = _signed_32(source, position)
        magic = _unsigned_32(source, position + 4)
        record_end = position + size_bytes
        if magic != 0xDAA320A7 or size_bytes < 91 or record_end > end:
            break
        if _signed_64(source, position + 28) != physical_offset + position:
            break
        sys_flag = _signed_32(source, position + 36)
        start = position + 88 + 12 * (sys_flag >> 4 & 1) + 12 * (sys_flag >> 5 & 1)
        if start + 3 > record_end:
            break
        body_bytes = _signed_32(source, start - 4)
        topic = start + body_bytes
        if body_bytes < 0 or topic + 3 > record_end:
            break
        text = topic + 1 + np.int64(source[topic])
        if text + 2 > record_end:
            break
        if text + 2 + (np.int64(source[text]) << 8 | np.int64(source[text + 1])) != record_end:
            break
        table[count, _START] = position
        table[count, _BODY] = start
        table[count, _BODY_END] = topic
        table[count, _CRC] = _signed_32(source, position + 8)
        count += 1
        position = record_end
    return count, position


@compiled
def _check_bodies(source: Bytes, table: Int64s, count: int, tables: NDArray[np.uint32]) -> int:
    """Return how many of the records from the start on have the right CRC."""
    none = np.uint32(0xFFFFFFFF)
    row = 0
    while row + 4 <= count:
        at0, at1, at2, at3 = (
            table[row, _BODY],
            table[row + 1, _BODY],
            table[row + 2, _BODY],
            table[row + 3, _BODY],
        )
        shortest = min(
            min(table[row, _BODY_END] - at0, table[row + 1, _BODY_END] - at1),
            min(table[row + 2, _BODY_END] - at2, table[row + 3, _BODY_END] - at3),
        )
        crc0, crc1, crc2, crc3 = none, none, none, none
        for _ in range(shortest // 8):
            crc0 = _step(source, at0, crc0, tables)
            crc1 = _step(source, at1, crc1, tables)
            crc2 = _step(source, at2, crc2, tables)
            crc3 = _step(source, at3, crc3, tables)
            at0 += 8
            at1 += 8
            at2 += 8
            at3 += 8
        if not _is_right(source, at0, crc0, table, row, tables):
            return row
        if not _is_right(source, at1, crc1, table, row + 1, tables):
            return row + 1
        if not _is_right(source, at2, crc2, table, row + 2, tables):
            return row + 2
        if not _is_right(source, at3, crc3, table, row + 3, tables):
            return row + 3
        row += 4
    while row < count:
        if not _is_right(source, table[row, _BODY], none, table, row, tables):
            return row
        row += 1
    return count


@compiled
def _step(source: Bytes, position: Number, crc: np.uint32, tables: NDArray[np.uint32]) -> np.uint32:
    """Take eight bytes into a CRC."""
    at = np.uint64(position)
    low = crc ^ (
        np.uint32(source[at])
        | np.uint32(source[at + np.uint64(1)]) << _8
        | np.uint32(source[at + np.uint64(2)]) << _16
        | np.uint32(source[at + np.uint64(3)]) << _24
    )
    high = (
        np.uint32(source[at + np.uint64(4)])
        | np.uint32(source[at + np.uint64(5)]) << _8
        | np.uint32(source[at + np.uint64(6)]) << _16
        | np.uint32(source[at + np.uint64(7)]) << _24
    )
    return np.uint32(
        tables[7, low & _BYTE]
        ^ tables[6, low >> _8 & _BYTE]
        ^ tables[5, low >> _16 & _BYTE]
        ^ tables[4, low >> _24]
        ^ tables[3, high & _BYTE]
        ^ tables[2, high >> _8 & _BYTE]
        ^ tables[1, high >> _16 & _BYTE]
        ^ tables[0, high >> _24]
    )


@compiled
def _is_right(
    source: Bytes,
    position: Number,
    crc: np.uint32,
    table: Int64s,
    row: int,
    tables: NDArray[np.uint32],
) -> bool:
    """Take the rest of a body into its CRC; tell whether it is what the record says."""
    end = table[row, _BODY_END]
    if end == table[row, _BODY]:
        return True
    while position + 8 <= end:
        crc = _step(source, position, crc, tables)
        position += 8
    while position < end:
        crc = np.uint32(crc >> _8 ^ tables[0, (crc ^ np.uint32(source[position])) & _BYTE])
        position += 1
    return bool(np.int64(crc ^ np.uint32(0xFFFFFFFF)) & 0x7FFFFFFF == table[row, _CRC])
